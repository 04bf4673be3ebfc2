package events

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var roles = []SourceKind{SourceEdge, SourceRelay, SourceDirect, SourceAPI, SourceBackend, SourceOperator, "intruder", ""}

// Who may write what: role × fact, each fact naming its writer where it names one.
func TestActors(t *testing.T) {
	var out strings.Builder
	fmt.Fprintf(&out, "%-34s %s\n", "fact", strings.TrimSpace(fmt.Sprintln(roles[0], roles[1], roles[2], roles[3], roles[4], roles[5], "other", "none")))
	for _, k := range Catalog {
		fmt.Fprintf(&out, "%-34s", k.Type)
		for _, role := range roles {
			s := host(role, "h1")
			key, fact := ownFact(k, s)
			mark := "yes"
			if refusal := checkActor(s, k.Bucket, key, fact); refusal != nil {
				mark = "-"
				if refusal.Code != WrongActor {
					t.Errorf("%s as %q: %v", k.Type, role, refusal)
				}
			}
			fmt.Fprintf(&out, " %s", mark)
		}
		out.WriteByte('\n')
	}
	golden(t, "../testdata/wire/actors.golden", out.String())
}

// ownFact is a fact in which s names itself, under its own key.
func ownFact(k Kind, s Source) (string, Fact) {
	switch f := k.New().(type) {
	case *BackendBeat:
		f.Server, f.Incarnation = s.ID, s.Incarnation
		return BackendKey(s.ID), f
	case *ProxyBeat:
		f.Proxy, f.Incarnation = s.ID, s.Incarnation
		return ProxyKey(s.ID), f
	case *Claimed:
		f.Dispatcher, f.Incarnation = s.ID, s.Incarnation
		return "", f
	case *SessionOpened:
		f.Session.Holder, f.Session.HolderIncarnation = s.ID, s.Incarnation
		return "", f
	default:
		return "", f
	}
}

// A host that may write a kind of fact still may not write it in another's name.
func TestActorNamesItself(t *testing.T) {
	edge, backend := host(SourceEdge, "e1"), host(SourceBackend, "b1")
	other := fixed[Incarnation]("another life")
	cases := []struct {
		name   string
		source Source
		key    string
		fact   Fact
		ok     bool
	}{
		{"own claim", edge, "", &Claimed{Dispatcher: "e1", Incarnation: edge.Incarnation}, true},
		{"claim for another", edge, "", &Claimed{Dispatcher: "e2", Incarnation: edge.Incarnation}, false},
		{"claim of another life", edge, "", &Claimed{Dispatcher: "e1", Incarnation: other}, false},
		{"own session", edge, "", &SessionOpened{Session: Session{Holder: "e1", HolderIncarnation: edge.Incarnation}}, true},
		{"session for another", edge, "", &SessionOpened{Session: Session{Holder: "e2", HolderIncarnation: edge.Incarnation}}, false},
		{"session of another life", edge, "", &SessionOpened{Session: Session{Holder: "e1", HolderIncarnation: other}}, false},
		{"own beat", backend, "backend.b1", &BackendBeat{Server: "b1", Incarnation: backend.Incarnation}, true},
		{"beat under another's key", backend, "backend.b2", &BackendBeat{Server: "b1", Incarnation: backend.Incarnation}, false},
		{"beat of another under its key", backend, "backend.b2", &BackendBeat{Server: "b2", Incarnation: backend.Incarnation}, false},
		{"beat of another under the own key", backend, "backend.b1", &BackendBeat{Server: "b2", Incarnation: backend.Incarnation}, false},
		{"beat of another life", backend, "backend.b1", &BackendBeat{Server: "b1", Incarnation: other}, false},
		{"backend as a proxy", backend, "proxy.b1", &ProxyBeat{Proxy: "b1", Incarnation: backend.Incarnation}, false},
		{"proxy as a backend", edge, "backend.e1", &BackendBeat{Server: "e1", Incarnation: edge.Incarnation}, false},
		{"own proxy beat", edge, "proxy.e1", &ProxyBeat{Proxy: "e1", Incarnation: edge.Incarnation}, true},
		{"proxy beat under another's key", edge, "proxy.e2", &ProxyBeat{Proxy: "e1", Incarnation: edge.Incarnation}, false},
		{"backend writes a transfer", backend, "", &Consumed{Attempt: 1, Server: "b1"}, false},
		{"edge kills", edge, KillKey, &KillSet{On: true}, false},
	}
	for _, c := range cases {
		b := must(KindOf(c.fact)).Bucket
		refusal := checkActor(c.source, b, c.key, c.fact)
		if c.ok && refusal != nil {
			t.Errorf("%s: %v", c.name, refusal)
		}
		if !c.ok {
			requireRefusal(t, c.name, refusal, WrongActor)
			if _, err := Seal(corpusKeyring(), Envelope{Source: c.source, Key: c.key, Time: corpusTime()}, c.fact); err == nil {
				t.Errorf("%s: sealed all the same", c.name)
			}
		}
	}
}

func TestBucketsWithoutFacts(t *testing.T) {
	for _, b := range []Bucket{Limits, Routes, Leases, Checkpoints} {
		if !mayWrite(SourceEdge, b) || mayWrite(SourceBackend, b) || mayWrite(SourceOperator, b) {
			t.Errorf("%s: want dispatchers and nobody else", b)
		}
	}
	if mayWrite(SourceEdge, "elsewhere") {
		t.Error("a bucket that is not ours may be written")
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // test data is public
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; look at it, then run with -update. Got:\n%s", path, got)
	}
}
