package events

import (
	"maps"
	"reflect"
	"strings"
	"testing"
)

// What was sealed is opened to the same envelope and fact.
func TestSealOpen(t *testing.T) {
	keys := corpusKeyring()
	for i, s := range samples() {
		m := s.seal(t, keys)
		e, refusal := Open(keys, record(m, uint64(i)+1))
		if refusal != nil {
			t.Errorf("%s: %v", s, refusal)
			continue
		}
		if want := s.envelope(); !reflect.DeepEqual(e.Envelope, want) {
			t.Errorf("%s: envelope %+v, want %+v", s, e.Envelope, want)
		}
		if e.Seq != uint64(i)+1 || e.Bucket != m.Bucket || !e.Stored.Equal(corpusTime()) || m.Prev != s.prev {
			t.Errorf("%s: place %s %d %v, guard %d", s, e.Bucket, e.Seq, e.Stored, m.Prev)
		}
		if !reflect.DeepEqual(e.Fact, s.fact) {
			t.Errorf("%s: %+v, want %+v", s, e.Fact, s.fact)
		}
	}
}

// Each thing that may be wrong with a record has its code. What is changed is signed again
// unless said otherwise: these are the mistakes of somebody who has the key.
func TestOpenRefuses(t *testing.T) {
	keys := corpusKeyring()
	stranger := NewKeyring(testKey(t, "z"))
	base := samples()[4] // claimed
	cases := []struct {
		name   string
		change func(r *Record)
		resign bool
		code   Code
	}{
		{"marker put by hand", func(r *Record) { r.Header = Header{"KV-Operation": "DEL"} }, false, Stray},
		{"no headers at all", func(r *Record) { r.Header = nil }, false, Stray},
		{"not signed", func(r *Record) { delete(r.Header, HeaderSig) }, false, BadSignature},
		{"signed by a stranger", func(r *Record) { r.Header[HeaderSig] = stranger.Sign(r.Bucket.Subject(r.Key), r.Header, r.Body) }, false, UnknownKey},
		{"under another key", func(r *Record) { r.Key = strings.Replace(r.Key, "06", "07", 1) }, false, BadSignature},
		{"in another bucket", func(r *Record) { r.Bucket = Sessions }, false, BadSignature},
		{"another prev", func(r *Record) { r.Header[HeaderPrev] = "1" }, false, BadSignature},
		{"another bucket, signed", func(r *Record) { r.Bucket = Sessions }, true, UnknownType},
		{"type of tomorrow", func(r *Record) { r.Header[HeaderType] = "landfall.transfer.teleported.v1" }, true, UnknownType},
		{"type of another bucket", func(r *Record) { r.Header[HeaderType] = "landfall.control.kill.v1" }, true, UnknownType},
		{"key and subject differ", func(r *Record) { r.Header[HeaderKey] = "x" }, true, Malformed},
		{"other spec version", func(r *Record) { r.Header[HeaderSpec] = "1.1" }, true, Malformed},
		{"JSON in the log", func(r *Record) { r.Header[HeaderContent] = contentJSON }, true, Malformed},
		{"no id", func(r *Record) { delete(r.Header, HeaderID) }, true, Malformed},
		{"no source", func(r *Record) { r.Header[HeaderSource] = "/edge/e1" }, true, Malformed},
		{"bad time", func(r *Record) { r.Header[HeaderTime] = "yesterday" }, true, Malformed},
		{"bad schema", func(r *Record) { r.Header[HeaderSchema] = "" }, true, Malformed},
		{"bad prev", func(r *Record) { r.Header[HeaderPrev] = "-1" }, true, Malformed},
		{"bad correlation", func(r *Record) { r.Header[HeaderCorrelation] = "x" }, true, Malformed},
		{"bad causation", func(r *Record) { r.Header[HeaderCausation] = "x" }, true, Malformed},
		{"body of another fact", func(r *Record) { r.Body = []byte("\x80") }, true, Malformed},
		{"body not canonical", func(r *Record) { r.Body = append([]byte{0xde, 0, r.Body[0] & 15}, r.Body[1:]...) }, true, Malformed},
		{"by a backend", func(r *Record) { r.Header[HeaderSource] = host(SourceBackend, "edge-1").String() }, true, WrongActor},
		{"by another edge", func(r *Record) { r.Header[HeaderSource] = host(SourceEdge, "edge-2").String() }, true, WrongActor},
	}
	for _, c := range cases {
		r := record(base.seal(t, keys), 9)
		r.Header = maps.Clone(r.Header)
		c.change(&r)
		if c.resign {
			r.Header[HeaderSig] = keys.Sign(r.Bucket.Subject(r.Key), r.Header, r.Body)
		}
		e, refusal := Open(keys, r)
		requireRefusal(t, c.name, refusal, c.code)
		if e.Seq != 9 || e.Bucket != r.Bucket {
			t.Errorf("%s: the refusal lost its place: %s %d", c.name, e.Bucket, e.Seq)
		}
	}
}

func TestParseSource(t *testing.T) {
	want := host(SourceEdge, "edge-1")
	if got, err := ParseSource(want.String()); err != nil || got != want {
		t.Errorf("%s came back as %v, %v", want, got, err)
	}
	inc := want.Incarnation.String()
	for _, s := range []string{"", "/", "edge/e/" + inc, "/edge/e", "/edge/e/" + inc + "/", "/edge/e.1/" + inc, "/edge//" + inc, "/edge/e/x", "/edge/" + strings.Repeat("e", 64) + "/" + inc} {
		if got, err := ParseSource(s); err == nil {
			t.Errorf("%q is taken for %v", s, got)
		}
	}
}
