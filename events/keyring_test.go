package events

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"maps"
	"strings"
	"testing"
)

// seedKey is a key that a test makes out of a letter.
func seedKey(letter string) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed([]byte(strings.Repeat(letter, ed25519.SeedSize)))
}

func publicHex(k ed25519.PrivateKey) string {
	return hex.EncodeToString(k.Public().(ed25519.PublicKey))
}

// realm is a network whose hosts have keys of their own, as its operator sees it.
type realm struct {
	t    *testing.T
	root ed25519.PrivateKey
	keys *Keyring
	seq  uint64
}

func newRealm(t *testing.T, secrets ...Key) *realm {
	t.Helper()
	r := &realm{t: t, root: seedKey("o"), keys: NewKeyring(secrets...)}
	r.keys.Trust(r.root.Public().(ed25519.PublicKey))
	return r
}

// fact is an identity fact as it stands in control.
func (r *realm) fact(signer *Keyring, source HostID, f IdentitySet) Record {
	r.t.Helper()
	r.seq++
	if f.Keys == nil {
		f.Keys = []HostKey{}
	}
	if f.Alone == nil {
		f.Alone = []Span{}
	}
	m, err := Seal(signer, Envelope{ID: fixed[EventID](string(f.Host)), Source: host(SourceOperator, source), Time: corpusTime(), Key: IdentityKey(f.Host)}, &f)
	if err != nil {
		r.t.Fatal(err)
	}
	return record(m, r.seq)
}

func (r *realm) learn(f IdentitySet) {
	r.t.Helper()
	if refusal := r.keys.Learn(r.fact(NewKeyring().As(r.root), RootID, f)); refusal != nil {
		r.t.Fatal(refusal)
	}
}

// signed is what a signer makes of a message of a source.
func signed(k *Keyring, subject string, s Source) Header {
	h := Header{HeaderID: "x", HeaderSource: s.String()}
	h[HeaderSig] = k.Sign(subject, h, []byte("body"))
	return h
}

func open(spans ...Span) []Span { return append([]Span{}, spans...) }

// TestWhoseSignatureCounts: key × source × place.
func TestWhoseSignatureCounts(t *testing.T) {
	secret := testKey(t, "s")
	r := newRealm(t, secret)
	proxy, backend, ada, old := seedKey("p"), seedKey("b"), seedKey("a"), seedKey("c")
	r.learn(IdentitySet{Host: "p1", Role: IdentityProxy, Alone: open(Span{Bucket: Transfers, From: 100}), Keys: []HostKey{
		{Key: publicHex(old), Closed: true, Spans: open(Span{Bucket: Transfers, From: 100, Until: 200})},
		{Key: publicHex(proxy), Spans: open(Span{Bucket: Transfers, From: 190})},
	}})
	r.learn(IdentitySet{Host: "b1", Role: IdentityBackend, Keys: []HostKey{{Key: publicHex(backend)}}})
	r.learn(IdentitySet{Host: "ada", Role: IdentityOperator, Keys: []HostKey{{Key: publicHex(ada)}}})
	r.learn(IdentitySet{Host: "eve", Role: IdentityAuditor, Keys: []HostKey{{Key: publicHex(seedKey("e"))}}})
	by := func(k ed25519.PrivateKey) *Keyring { return NewKeyring().As(k) }
	shared := NewKeyring(secret)
	edge, mine, backs, oper := host(SourceEdge, "p1"), host(SourceBackend, "p1"), host(SourceBackend, "b1"), host(SourceOperator, "ada")
	for _, c := range []struct {
		name   string
		signer *Keyring
		source Source
		bucket Bucket // empty: a request
		seq    uint64
		want   Code
	}{
		{"own key", by(proxy), edge, Transfers, 190, OK},
		{"own key, later", by(proxy), edge, Transfers, 5000, OK},
		{"own key, before it was given", by(proxy), edge, Transfers, 189, BadSignature},
		{"own key, a request", by(proxy), edge, "", 0, OK},
		{"own key, a heartbeat", by(proxy), edge, Fleet, 1, OK},
		{"beside a backend of the same id", by(proxy), mine, Fleet, 1, OK},
		{"earlier key, in its time", by(old), edge, Transfers, 200, OK},
		{"earlier key, afterwards", by(old), edge, Transfers, 201, BadSignature},
		{"earlier key, a request", by(old), edge, "", 0, BadSignature},
		{"earlier key, a heartbeat", by(old), edge, Fleet, 7, BadSignature},
		{"another host's name", by(proxy), host(SourceEdge, "p2"), Transfers, 500, WrongActor},
		{"a backend's key speaks as an edge", by(backend), host(SourceEdge, "b1"), Transfers, 500, WrongActor},
		{"a backend's key speaks for another", by(backend), host(SourceBackend, "b2"), Fleet, 1, WrongActor},
		{"a backend's key", by(backend), backs, Fleet, 1, OK},
		{"a proxy's key decides", by(proxy), host(SourceOperator, "p1"), Control, 9, WrongActor},
		{"an operator's key", by(ada), oper, Control, 9, OK},
		{"an operator's key dispatches", by(ada), host(SourceEdge, "ada"), Transfers, 500, WrongActor},
		{"an auditor's key", by(seedKey("e")), host(SourceEdge, "eve"), Transfers, 500, WrongActor},
		{"the operator's own key", by(r.root), host(SourceOperator, RootID), Control, 9, OK},
		{"the operator's own key in another name", by(r.root), oper, Control, 9, WrongActor},
		{"a stranger's key", by(seedKey("x")), edge, Transfers, 500, UnknownKey},
		{"the secret for a keyed host, before", shared, edge, Transfers, 99, OK},
		{"the secret for a keyed host", shared, edge, Transfers, 100, WrongActor},
		{"the secret for a keyed host, a request", shared, edge, "", 0, WrongActor},
		{"the secret for a keyed host, a heartbeat", shared, edge, Fleet, 3, WrongActor},
		{"the secret for a host that it still speaks for", shared, backs, Fleet, 3, OK},
		{"the secret for a host without a key", shared, host(SourceEdge, "p9"), Transfers, 500, OK},
		{"another secret", NewKeyring(testKey(t, "z")), host(SourceEdge, "p9"), Transfers, 500, UnknownKey},
	} {
		rec := Record{Bucket: c.bucket, Key: "k", Seq: c.seq, Body: []byte("body")}
		var got *Refusal
		if c.bucket == "" {
			got = r.keys.Verify("s", signed(c.signer, "s", c.source), []byte("body"))
		} else {
			rec.Header = signed(c.signer, c.bucket.Subject("k"), c.source)
			got = r.keys.VerifyRecord(rec)
		}
		if c.want == OK && got != nil || c.want != OK && (got == nil || got.Code != c.want) {
			t.Errorf("%s: %v, want %s", c.name, refusalText(got), c.want)
		}
	}
}

// TestTheSecretIsRetired: once the operator says so the secret speaks for nobody, also where it is not known.
func TestTheSecretIsRetired(t *testing.T) {
	secret := testKey(t, "s")
	with, without := newRealm(t, secret), newRealm(t)
	for _, r := range []*realm{with, without} {
		r.learn(IdentitySet{Host: RootID, Role: IdentityOperator, Alone: open(Span{Bucket: Transfers, From: 50})})
	}
	h := signed(NewKeyring(secret), Transfers.Subject("k"), host(SourceEdge, "p9"))
	at := func(seq uint64) Record {
		return Record{Bucket: Transfers, Key: "k", Seq: seq, Header: h, Body: []byte("body")}
	}
	requireRefusal(t, "afterwards", with.keys.VerifyRecord(at(50)), WrongActor)
	requireRefusal(t, "afterwards, where nobody has it", without.keys.VerifyRecord(at(50)), WrongActor)
	requireRefusal(t, "before, where nobody has it", without.keys.VerifyRecord(at(49)), UnknownKey)
	if got := with.keys.VerifyRecord(at(49)); got != nil {
		t.Errorf("before: %v", got)
	}
}

// TestOnlyTheOperatorNamesHosts: nobody else's identity fact is taken, nor one that is behind what is known.
func TestOnlyTheOperatorNamesHosts(t *testing.T) {
	secret := testKey(t, "s")
	r := newRealm(t, secret)
	ada := seedKey("a")
	r.learn(IdentitySet{Host: "ada", Role: IdentityOperator, Keys: []HostKey{{Key: publicHex(ada)}}})
	theft := IdentitySet{Host: "p1", Role: IdentityProxy, Keys: []HostKey{{Key: publicHex(seedKey("x"))}}}
	requireRefusal(t, "another operator", r.keys.Learn(r.fact(NewKeyring().As(ada), "ada", theft)), WrongActor)
	requireRefusal(t, "the secret", r.keys.Learn(r.fact(NewKeyring(secret), "ada", theft)), WrongActor)
	requireRefusal(t, "without an operator's key", NewKeyring(secret).Learn(r.fact(NewKeyring(secret), "ada", theft)), UnknownKey)
	forged := r.fact(NewKeyring().As(r.root), RootID, theft)
	forged.Body = bytes.Replace(forged.Body, []byte("p1"), []byte("p2"), 1)
	requireRefusal(t, "a changed byte", r.keys.Learn(forged), BadSignature)
	moved := r.fact(NewKeyring().As(r.root), RootID, theft)
	moved.Key = "identity.p2"
	if r.keys.Learn(moved) == nil {
		t.Error("a fact under another key was taken")
	}
	early, late := r.fact(NewKeyring().As(r.root), RootID, theft), r.fact(NewKeyring().As(r.root), RootID, IdentitySet{Host: "p1", Role: IdentityProxy})
	for _, rec := range []Record{late, early} {
		if refusal := r.keys.Learn(rec); refusal != nil {
			t.Error(refusal)
		}
	}
	if got := r.keys.Identities()["p1"]; len(got.Keys) != 0 {
		t.Errorf("an earlier fact replaced a later one: %+v", got)
	}
}

// TestStranger: who could be introduced, and who could not.
func TestStranger(t *testing.T) {
	r := newRealm(t, testKey(t, "s"))
	proxy := seedKey("p")
	r.learn(IdentitySet{Host: "p1", Role: IdentityProxy, Keys: []HostKey{{Key: publicHex(proxy)}}})
	for name, c := range map[string]struct {
		h    Header
		want HostID
	}{
		"known":         {signed(NewKeyring().As(proxy), "s", host(SourceEdge, "p1")), ""},
		"unknown":       {signed(NewKeyring().As(seedKey("q")), "s", host(SourceEdge, "p2")), "p2"},
		"another's key": {signed(NewKeyring().As(proxy), "s", host(SourceEdge, "p2")), "p2"},
		"secret":        {signed(NewKeyring(testKey(t, "z")), "s", host(SourceEdge, "p2")), ""},
		"operator":      {signed(NewKeyring().As(r.root), "s", host(SourceOperator, RootID)), ""},
		"unsigned":      {Header{HeaderSource: host(SourceEdge, "p2").String()}, ""},
	} {
		if got, ok := r.keys.Stranger(c.h); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", name, got, ok, c.want)
		}
	}
}

// TestKeyringsThatCameOfOneAnother know the same, and sign each in its own name.
func TestKeyringsThatCameOfOneAnother(t *testing.T) {
	r := newRealm(t, testKey(t, "s"))
	mine := r.keys.As(seedKey("p"))
	r.learn(IdentitySet{Host: "p1", Role: IdentityProxy, Keys: []HostKey{{Key: publicHex(seedKey("p"))}}})
	h := signed(mine, "s", host(SourceEdge, "p1"))
	for _, k := range []*Keyring{mine, r.keys} {
		if refusal := k.Verify("s", h, []byte("body")); refusal != nil {
			t.Error(refusal)
		}
	}
	record, known := mine.Identity("p1")
	if sealed, err := SealedOf(record).Record(); !known || err != nil || newRealm(t).keys.Learn(sealed) != nil || !maps.Equal(sealed.Header, record.Header) {
		t.Errorf("an identity does not survive being handed on: %v", err)
	}
	mine.Secrets(testKey(t, "n"))
	if id := r.keys.Sign("s", Header{}, nil); !strings.Contains(id, testKey(t, "n").ID) {
		t.Errorf("signs %s after a rotation", id)
	}
	r.keys.Forget()
	requireRefusal(t, "forgotten", mine.Verify("s", h, []byte("body")), UnknownKey)
}
