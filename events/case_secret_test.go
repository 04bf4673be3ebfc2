package events

import (
	"maps"
	"strings"
	"testing"
)

// TestCase103_TwoSecrets: a key that is not known and a signature that does not match are told apart and name the key; two keys hold during a
// rotation, and nothing passes unsigned.
func TestCase103_TwoSecrets(t *testing.T) {
	ours, before, foreign := testKey(t, "ours"), testKey(t, "before"), testKey(t, "another network's")
	reader := NewKeyring(ours, before)
	h := Header{HeaderID: "x", HeaderTime: "2026-11-30T12:00:00Z"}
	signed := func(k Key, body string) Header {
		out := maps.Clone(h)
		out[HeaderSig] = NewKeyring(k).Sign("s", h, []byte(body))
		return out
	}
	for name, row := range map[string]struct {
		header Header
		code   Code
		names  string
	}{
		"today's key":           {signed(ours, "body"), OK, ""},
		"the one before":        {signed(before, "body"), OK, ""},
		"another network's":     {signed(foreign, "body"), UnknownKey, foreign.ID},
		"another body":          {signed(ours, "other"), BadSignature, ours.ID},
		"the old key, another":  {signed(before, "other"), BadSignature, before.ID},
		"another secret's name": {signed(Key{ID: ours.ID, Secret: foreign.Secret}, "body"), BadSignature, ours.ID},
		"no signature":          {h, BadSignature, ""},
		"an older scheme":       {Header{HeaderID: "x", HeaderTime: h[HeaderTime], HeaderSig: "v0;kid=" + ours.ID + ";00"}, BadSignature, ""},
	} {
		got := reader.Verify("s", row.header, []byte("body"))
		switch {
		case row.code == OK && got != nil, row.code != OK && (got == nil || got.Code != row.code):
			t.Errorf("%s: %v, want %s", name, refusalText(got), row.code)
		case got != nil && !strings.Contains(got.Detail, row.names):
			t.Errorf("%s: %q does not name key %s", name, got.Detail, row.names)
		}
	}
}

// TestCase104_SignatureOverTheFactItself: what a way between two hosts may do to a message (more headers, another order, other headers of
// its own) takes nothing from the signature; what the fact says is covered to the last byte.
func TestCase104_SignatureOverTheFactItself(t *testing.T) {
	keys := corpusKeyring()
	m := samples()[0].seal(t, keys)
	subject := m.Bucket.Subject(m.Key)
	for _, extra := range []Header{nil, {"Via": "a proxy"}, {"Content-Encoding": "identity", "Nats-Expected-Stream": "x"}} {
		h := Header{}
		maps.Copy(h, extra)
		maps.Copy(h, m.Header)
		if r := keys.Verify(subject, h, m.Body); r != nil {
			t.Errorf("with %v: %v", extra, r)
		}
	}
	for _, body := range [][]byte{m.Body[:len(m.Body)-1], append(m.Body[:len(m.Body):len(m.Body)], 0), nil} {
		requireRefusal(t, "another body", keys.Verify(subject, m.Header, body), BadSignature)
	}
	for _, name := range signedHeaders {
		h := maps.Clone(m.Header)
		h[name] += "x"
		requireRefusal(t, name, keys.Verify(subject, h, m.Body), BadSignature)
	}
}
