package events

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"
	"time"
)

// Whatever bytes stand in the log, Open gives a fact that is written to the same bytes, or
// a refusal with a code of its list.
func FuzzOpen(f *testing.F) {
	keys := corpusKeyring()
	for _, s := range samples() {
		m := s.seal(f, keys)
		f.Add(string(m.Bucket), m.Key, m.Header[HeaderType], m.Header[HeaderSource], m.Header[HeaderPrev], m.Body, true)
	}
	f.Add("transfers", "x", "landfall.transfer.claimed.v1", "/edge/e/x", "-1", []byte("\x80"), false)
	f.Fuzz(func(t *testing.T, bucket, key, typ, source, prev string, body []byte, sign bool) {
		r := Record{Bucket: Bucket(bucket), Key: key, Seq: 1, Header: Header{
			HeaderSpec: "1.0", HeaderID: fixed[EventID]("fuzz").String(), HeaderType: typ, HeaderSource: source,
			HeaderTime: "2026-11-29T12:00:00Z", HeaderKey: key, HeaderContent: contentMsgpack, HeaderSchema: "1", HeaderPrev: prev,
		}, Body: body}
		if sign {
			r.Header[HeaderSig] = keys.Sign(r.Bucket.Subject(key), r.Header, body)
		}
		e, refusal := Open(keys, r)
		if refusal != nil {
			if !slices.Contains([]Code{Stray, BadSignature, UnknownKey, UnknownType, Malformed, WrongActor}, refusal.Code) {
				t.Fatalf("refused with %v", refusal)
			}
			return
		}
		again, err := Marshal(e.Fact)
		if err != nil {
			t.Fatalf("%T was read and cannot be written: %v", e.Fact, err)
		}
		if unknown, _ := checkBody(body, shapeTypeOf(e.Fact)); !unknown && !bytes.Equal(again, body) {
			t.Fatalf("%x written again as %x", body, again)
		}
		if _, err := json.Marshal(e.Fact); err != nil {
			t.Fatalf("%T was read and has no JSON form: %v", e.Fact, err)
		}
	})
}

// Whatever comes as a request, an answer or news, OpenCall takes it or refuses it with one of two
// codes, and takes nothing that does not verify.
func FuzzOpenCall(f *testing.F) {
	keys := corpusKeyring()
	for i, b := range bodies() {
		w := must(SealCall(keys, Call{ID: fixed[RequestID]("fuzz"), Source: Source{Kind: SourceBackend, ID: "b1", Incarnation: fixed[Incarnation]("fuzz")}, Deadline: time.Second}, time.Unix(1, 0).UTC(), "landfall.x", b))
		f.Add(uint8(i), w.Header[HeaderSource], w.Header[HeaderTime], w.Header[HeaderDeadline], w.Header[HeaderContent], w.Header[HeaderCausation], w.Body, true)
	}
	f.Add(uint8(0), "/backend/b1/x", "yesterday", "-5", "text/plain", "x", []byte("{}"), true)
	f.Fuzz(func(t *testing.T, which uint8, source, at, deadline, content, cause string, body []byte, sign bool) {
		w := Wire{Header: Header{
			HeaderSpec: "1.0", HeaderType: callType, HeaderID: fixed[RequestID]("fuzz").String(), HeaderSource: source, HeaderTime: at,
			HeaderDeadline: deadline, HeaderContent: content, HeaderCausation: cause,
		}, Body: body}
		if sign {
			w.Header[HeaderSig] = keys.Sign("landfall.x", w.Header, body)
		}
		all := bodies()
		c, refusal := OpenCall(keys, "landfall.x", w, newLike(all[int(which)%len(all)]))
		switch {
		case refusal != nil && refusal.Code != AuthFailed && refusal.Code != BadRequest:
			t.Fatalf("refused with %v", refusal)
		case refusal == nil && !sign:
			t.Fatal("nobody signed it")
		case refusal == nil && (c.Deadline < 0 || c.Deadline > MaxDeadline || c.Source.String() != source):
			t.Fatalf("accepted %+v of %q", c, source)
		}
	})
}

// Whatever comes as the body of a call, in either form, decoding ends, and what was taken
// can be written and is then the same.
func FuzzUnmarshal(f *testing.F) {
	for i, b := range bodies() {
		f.Add(uint8(i), must(Marshal(b)), false)
		f.Add(uint8(i), must(json.Marshal(b)), true)
	}
	f.Add(uint8(0), bytes.Repeat([]byte{0x91}, MaxBody), false)
	f.Add(uint8(0), bytes.Repeat([]byte{'['}, MaxBody), true)
	f.Fuzz(func(t *testing.T, which uint8, body []byte, asJSON bool) {
		all := bodies()
		into, back := newLike(all[int(which)%len(all)]), newLike(all[int(which)%len(all)])
		decode := Unmarshal
		if asJSON {
			decode = unmarshalJSON
		}
		if err := decode(body, into); err != nil {
			return
		}
		raw, err := Marshal(into)
		if err != nil {
			return // larger in MessagePack than in JSON
		}
		if err := UnmarshalExact(raw, back); err != nil {
			t.Fatalf("%T %x was written and cannot be read: %v", into, raw, err)
		}
		if again := must(Marshal(back)); !bytes.Equal(raw, again) {
			t.Fatalf("%x, then %x", raw, again)
		}
	})
}

func FuzzParseToken(f *testing.F) {
	token := Token{Transfer: fixed[TransferID]("fuzz"), Attempt: 3}
	for _, s := range []string{token.String(), token.Label(), "", "-", "r-", "r--1", token.String() + "0000", "r-" + token.String()} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := ParseToken(s)
		if err != nil {
			return
		}
		if token.Attempt < 1 || token.Attempt > MaxAttempts {
			t.Fatalf("%q gave attempt %d", s, token.Attempt)
		}
		for _, form := range []string{token.String(), token.Label()} {
			if again, err := ParseToken(form); err != nil || again != token {
				t.Fatalf("%q gave %v, %q gave %v, %v", s, token, form, again, err)
			}
		}
	})
}

func FuzzParseSource(f *testing.F) {
	for _, s := range []string{host(SourceEdge, "edge-1").String(), "", "/", "///", "/edge//x", "edge/a/b/c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		source, err := ParseSource(s)
		if err != nil {
			return
		}
		again, err := ParseSource(source.String())
		if err != nil || again != source {
			t.Fatalf("%q gave %v, which gives %v, %v", s, source, again, err)
		}
	})
}

func FuzzParseTransferKey(f *testing.F) {
	f.Add(samplePlayer + "." + sampleTransfer)
	f.Add("069A79F4-44e9-4726-a5be-fca90e38aaf5." + sampleTransfer)
	f.Fuzz(func(t *testing.T, key string) {
		if p, x, err := ParseTransferKey(key); err == nil && TransferKey(p, x) != key {
			t.Fatalf("%q is taken for %s", key, TransferKey(p, x))
		}
	})
}
