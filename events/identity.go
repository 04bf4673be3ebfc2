package events

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
)

// RootID is the identity of the operator's own key, whose public half stands in network.yml. It
// alone says who everybody else is.
const RootID = "operator"

// IdentityRole is what the bearer of a key may be.
type IdentityRole string

// Roles of identities.
const (
	IdentityBackend  IdentityRole = "backend"  // beats, asks and announces in its own name
	IdentityProxy    IdentityRole = "proxy"    // writes facts; may be a backend of the same id too
	IdentityOperator IdentityRole = "operator" // decides
	IdentityAuditor  IdentityRole = "auditor"  // reads, signs nothing
)

// IdentityRoles lists them.
var IdentityRoles = []IdentityRole{IdentityBackend, IdentityProxy, IdentityOperator, IdentityAuditor}

// speaksAs tells in which roles of a source the bearer may sign.
func (r IdentityRole) speaksAs(k SourceKind) bool {
	switch r {
	case IdentityBackend:
		return k == SourceBackend
	case IdentityProxy:
		return k.Dispatcher() || k == SourceBackend
	case IdentityOperator:
		return k == SourceOperator
	case IdentityAuditor:
		return false
	}
	return false
}

type (
	// IdentitySet is all that is believed of one host: its keys, and whether the shared secret
	// speaks for it as well. It is signed with the operator's key. That of the operator itself
	// says with Alone from where on the secret speaks for nobody.
	IdentitySet struct {
		Host  HostID       `msgpack:"host" json:"host"`
		Role  IdentityRole `msgpack:"role" json:"role"`
		Keys  []HostKey    `msgpack:"keys" json:"keys"`   // in the order they were given
		Alone []Span       `msgpack:"alone" json:"alone"` // from where on the shared secret is not believed of this host; empty: it is
		Who   string       `msgpack:"who" json:"who"`
		Why   string       `msgpack:"why" json:"why"`
	}

	// HostKey is one Ed25519 key of a host, and what it may have signed.
	HostKey struct {
		Key    string `msgpack:"key" json:"key"`                           // public half, 64 hexadecimal digits
		Closed bool   `msgpack:"closed,omitempty" json:"closed,omitempty"` // logs in no more, and signs no request
		Spans  []Span `msgpack:"spans" json:"spans"`                       // by bucket; in a bucket that is not listed (fleet) it is good until it is closed
	}

	// Span is a range of sequences of one bucket.
	Span struct {
		Bucket Bucket `msgpack:"bucket" json:"bucket"`
		From   uint64 `msgpack:"from" json:"from"`                       // first one
		Until  uint64 `msgpack:"until,omitempty" json:"until,omitempty"` // last one; absent: no end
	}
)

func (*IdentitySet) fact() {}

// MaxHostKeys bounds the keys of an identity; the oldest closed ones go first.
const MaxHostKeys = 8

// IdentityKey is the key in control of what is believed of a host.
func IdentityKey(id HostID) string { return identityPrefix + string(id) }

const identityPrefix = "identity."

// SpannedBuckets are those whose sequences bound what a key may have signed: all that keep facts
// for good. Heartbeats may come again from the start.
var SpannedBuckets = []Bucket{Transfers, Sessions, Control, Audit, Checkpoints, Limits, Routes, Leases}

// place is where something signed was met: a sequence of a bucket, or, without a bucket, now.
type place struct {
	bucket Bucket
	seq    uint64
}

// within tells that a place lies in one of the spans. bounded is false where none of them speaks of it.
func (p place) within(spans []Span) (inside, bounded bool) {
	for _, s := range spans {
		if s.Bucket == p.bucket && p.bucket != "" {
			return p.seq >= s.From && (s.Until == 0 || p.seq <= s.Until), true
		}
	}
	return false, false
}

// reaches tells that something that begins with spans holds at a place.
func (p place) reaches(spans []Span) bool {
	inside, bounded := p.within(spans)
	return inside || !bounded && len(spans) > 0
}

// good tells that a key may have signed what was met there.
func (k HostKey) good(p place) bool {
	inside, bounded := p.within(k.Spans)
	return inside || !bounded && !k.Closed
}

// identity is an IdentitySet made ready.
type identity struct {
	set    IdentitySet
	keys   []ed25519.PublicKey // beside set.Keys
	record Record              // as it stands in the log
}

func newIdentity(f IdentitySet, r Record) (*identity, error) {
	if IdentityKey(f.Host) != r.Key {
		return nil, fmt.Errorf("%s names %s", r.Key, f.Host)
	}
	i := &identity{set: f, record: r}
	for _, k := range f.Keys {
		raw, err := hex.DecodeString(k.Key)
		if err != nil || len(raw) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("key %q of %s: want %d hexadecimal digits", k.Key, f.Host, 2*ed25519.PublicKeySize)
		}
		i.keys = append(i.keys, raw)
	}
	return i, nil
}

// SealedOf packs a fact of control for a WhoIsAnswer.
func SealedOf(r Record) SealedFact {
	values := make([]string, len(signedHeaders))
	for i, name := range signedHeaders {
		values[i] = r.Header[name]
	}
	return SealedFact{Key: r.Key, Seq: r.Seq, Headers: strings.Join(values, "\n"), Sig: r.Header[HeaderSig], Body: hex.EncodeToString(r.Body)}
}

// Record is the reverse of SealedOf. Whether it is genuine is for Keyring.Learn to say.
func (s SealedFact) Record() (Record, error) {
	body, err := hex.DecodeString(s.Body)
	values := strings.Split(s.Headers, "\n")
	if err != nil || len(values) != len(signedHeaders) {
		return Record{}, fmt.Errorf("sealed fact %q: want %d headers and a body in hexadecimal digits", s.Key, len(signedHeaders))
	}
	r := Record{Bucket: Control, Key: s.Key, Seq: s.Seq, Header: Header{HeaderSig: s.Sig}, Body: body}
	for i, name := range signedHeaders {
		if values[i] != "" {
			r.Header[name] = values[i]
		}
	}
	return r, nil
}

// Introductions are the facts in an answer to WhoIsAsk, before anything is known of who answers.
func Introductions(w Wire) (out []SealedFact) {
	var a WhoIsAnswer
	if err := Unmarshal(w.Body, &a); err != nil || a.Code != OK {
		return nil
	}
	for _, f := range []SealedFact{a.Fact, a.Own} {
		if f.Key != "" {
			out = append(out, f)
		}
	}
	return out
}
