package events

import (
	"encoding/binary"
	"maps"
	"slices"
	"strings"
	"testing"
)

func testKey(t testing.TB, secret string) Key {
	t.Helper()
	key, err := NewKey([]byte(strings.Repeat(secret, MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// Every signed header, the subject and the body: one bit of any of them, and the signature
// does not hold.
func TestEveryFlipIsFound(t *testing.T) {
	keys := corpusKeyring()
	m := samples()[1].seal(t, keys)
	m.Header[HeaderDeadline] = "250"
	subject := m.Bucket.Subject(m.Key)
	m.Header[HeaderSig] = keys.Sign(subject, m.Header, m.Body)
	if refusal := keys.Verify(subject, m.Header, m.Body); refusal != nil {
		t.Fatal(refusal)
	}
	for _, name := range signedHeaders {
		if m.Header[name] == "" {
			t.Fatalf("the sample has no %s", name)
		}
		for i := range m.Header[name] {
			h := maps.Clone(m.Header)
			h[name] = flip(h[name], i)
			requireRefusal(t, name+" changed", keys.Verify(subject, h, m.Body), BadSignature)
		}
		h := maps.Clone(m.Header)
		delete(h, name)
		requireRefusal(t, name+" removed", keys.Verify(subject, h, m.Body), BadSignature)
		h[name] = m.Header[name] + " "
		requireRefusal(t, name+" longer", keys.Verify(subject, h, m.Body), BadSignature)
	}
	for i := range subject {
		requireRefusal(t, "subject changed", keys.Verify(flip(subject, i), m.Header, m.Body), BadSignature)
	}
	for i := range m.Body {
		body := []byte(flip(string(m.Body), i))
		requireRefusal(t, "body changed", keys.Verify(subject, m.Header, body), BadSignature)
	}
	requireRefusal(t, "body cut", keys.Verify(subject, m.Header, m.Body[:len(m.Body)-1]), BadSignature)
}

func flip(s string, i int) string { return s[:i] + string([]byte{s[i] ^ 1}) + s[i+1:] }

// What is one header's end cannot become the next one's beginning.
func TestCanonicalFieldsDoNotRun(t *testing.T) {
	a := Canonical("s", Header{HeaderID: "ab", HeaderType: "c"}, []byte("x"))
	b := Canonical("s", Header{HeaderID: "a", HeaderType: "bc"}, []byte("x"))
	if string(a) == string(b) {
		t.Error("two messages have one canonical form")
	}
	absent := Canonical("s", Header{}, nil)
	if string(absent) != string(Canonical("s", Header{HeaderPrev: ""}, []byte{})) {
		t.Error("an absent header is not an empty one")
	}
	rest := strings.TrimPrefix(string(absent), "landfall-sig-v1")
	if n := binary.BigEndian.Uint32([]byte(rest)); n != 1 || rest[4] != 's' || len(rest) != 4+1+4*(len(signedHeaders)+1) {
		t.Errorf("canonical form %q", absent)
	}
}

// Headers of which nobody said anything are not signed: a store may add its own.
func TestUnsignedHeaders(t *testing.T) {
	keys := corpusKeyring()
	m := samples()[0].seal(t, keys)
	m.Header["Nats-Msg-Id"], m.Header["Nats-Stream"] = "x", "KV_transfers"
	if refusal := keys.Verify(m.Bucket.Subject(m.Key), m.Header, m.Body); refusal != nil {
		t.Error(refusal)
	}
	if !slices.Contains(signedHeaders, HeaderPrev) || slices.Contains(signedHeaders, HeaderSig) {
		t.Errorf("signed are %v", signedHeaders)
	}
}

func TestKeyring(t *testing.T) {
	a, b, c := testKey(t, "a"), testKey(t, "b"), testKey(t, "c")
	h := Header{HeaderID: "x"}
	signed := func(k *Keyring) Header {
		out := maps.Clone(h)
		out[HeaderSig] = k.Sign("s", h, []byte("body"))
		return out
	}
	old, during, done := NewKeyring(a), NewKeyring(b, a), NewKeyring(b)
	cases := []struct {
		name           string
		writer, reader *Keyring
		code           Code // OK: it verifies
	}{
		{"before a rotation", old, old, OK},
		{"during, signed before", old, during, OK},
		{"during, signed during", during, during, OK},
		{"after, signed during", during, done, OK},
		{"after, signed before", old, done, UnknownKey},
		{"reader not rotated yet", during, old, UnknownKey},
		{"stranger", NewKeyring(c), during, UnknownKey},
	}
	for _, tc := range cases {
		got := tc.reader.Verify("s", signed(tc.writer), []byte("body"))
		if tc.code == OK && got != nil || tc.code != OK && (got == nil || got.Code != tc.code) {
			t.Errorf("%s: %v, want %s", tc.name, refusalText(got), tc.code)
		}
	}
	// a key that has the name of another one and a secret of its own
	imposter := NewKeyring(Key{ID: a.ID, Secret: c.Secret})
	requireRefusal(t, "imposter", old.Verify("s", signed(imposter), []byte("body")), BadSignature)
}

func TestSignatureHeader(t *testing.T) {
	keys := corpusKeyring()
	for _, sig := range []string{
		"", "v1", "v1;kid=a", "v2;kid=cc9e340c;00", "v1;cc9e340c;00", "v1;kid=cc9e340c;xx", "v1;kid=cc9e340c;00;", "v1;kid=cc9e340c;", "v1;kid=cc9e340c;00",
	} {
		requireRefusal(t, sig, keys.Verify("s", Header{HeaderSig: sig}, nil), BadSignature)
	}
	requireRefusal(t, "no key named", keys.Verify("s", Header{HeaderSig: "v1;kid=;00"}, nil), UnknownKey)
}

func TestNewKey(t *testing.T) {
	if _, err := NewKey(make([]byte, MinSecret-1)); err == nil || !strings.Contains(err.Error(), "31 bytes, want at least 32") {
		t.Errorf("a short secret: %v", err)
	}
	if key := testKey(t, "a"); len(key.ID) != 8 || key.ID == testKey(t, "b").ID {
		t.Errorf("key id %q", key.ID)
	}
}

func BenchmarkOpen(b *testing.B) {
	keys := corpusKeyring()
	for _, name := range []string{"claimed.v1/edge", "reserved.v1/edge", "backend.v1/full"} {
		for _, s := range samples() {
			if !strings.HasSuffix(s.String(), name) {
				continue
			}
			r := record(s.seal(b, keys), 1)
			b.Run(name, func(b *testing.B) {
				b.SetBytes(int64(len(r.Body)))
				b.ReportAllocs()
				for b.Loop() {
					if _, refusal := Open(keys, r); refusal != nil {
						b.Fatal(refusal)
					}
				}
			})
		}
	}
}
