package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"iter"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// history is the part of a store that reading verbs use. It cannot write.
type history interface {
	Info(ctx context.Context, b events.Bucket) (events.StreamState, error)
	History(ctx context.Context, b events.Bucket, r streams.Range) iter.Seq2[events.Record, error]
}

// verdict says whether a record's signature was found right.
type verdict string

const (
	genuine verdict = "true"
	forged  verdict = "false"
	noKey   verdict = "no key"
)

// MarshalJSON makes true and false of what is known, and a text of what is not.
func (v verdict) MarshalJSON() ([]byte, error) {
	if v == noKey {
		return json.Marshal(string(v))
	}
	return []byte(v), nil
}

// reading is one record and what can be said of it.
type reading struct {
	events.Record
	event    events.Event    // Fact is nil when it cannot be decoded
	refusal  *events.Refusal // why no fold takes it; nil for a good one
	verified verdict
}

// opener verifies and decodes records. A missing key hides nothing: it is only said.
type opener struct {
	keys  *events.Keyring // nil: no key at hand
	own   *events.Keyring // signs anew what cannot be verified, to decode it by the same rules
	judge *events.Keyring // verifies both
}

// newOpener verifies with all that is trusted; that may be nothing.
func newOpener(t trust) (*opener, error) {
	o := &opener{}
	own := make([]byte, events.MinSecret)
	if _, err := rand.Read(own); err != nil {
		return nil, err
	}
	key, err := events.NewKey(own)
	if err != nil {
		return nil, err
	}
	o.own = events.NewKeyring(key)
	if len(t.secrets) > 0 || t.operator != nil {
		if o.keys, err = t.keyring(); err != nil {
			return nil, err
		}
	}
	o.judge, err = t.keyring(key)
	return o, err
}

func (o *opener) open(r events.Record) reading {
	out := reading{Record: r, verified: genuine}
	keys := o.keys
	if keys == nil {
		keys = o.own
	}
	o.learn(r)
	out.event, out.refusal = decode(keys, r)
	if out.refusal == nil {
		return out
	}
	switch out.refusal.Code {
	case events.UnknownKey:
		out.verified = noKey
		out.event, out.refusal = o.unverified(r)
	case events.BadSignature:
		out.verified = forged
		out.event, _ = o.unverified(r)
	case events.Stray:
		out.verified = forged
	default:
	}
	return out
}

// unverified opens a record as if its signature were good.
func (o *opener) unverified(r events.Record) (events.Event, *events.Refusal) {
	return decode(o.own, o.signed(r))
}

func (o *opener) signed(r events.Record) events.Record {
	r.Header = maps.Clone(r.Header)
	r.Header[events.HeaderSig] = o.own.Sign(r.Bucket.Subject(r.Key), r.Header, r.Body)
	return r
}

// verifiable gives a record as judge can open it: one whose key is not at hand counts as good.
func (o *opener) verifiable(r events.Record) events.Record {
	o.learn(r)
	if refusal := o.judge.VerifyRecord(r); refusal != nil && refusal.Code == events.UnknownKey {
		return o.signed(r)
	}
	return r
}

// decode is events.Open without what is left of a body that could not be read.
func decode(keys *events.Keyring, r events.Record) (events.Event, *events.Refusal) {
	e, refusal := events.Open(keys, r)
	if refusal != nil && refusal.Code == events.Malformed {
		e.Fact = nil
	}
	return e, refusal
}

// undecodable tells that the fact itself is not known.
func (r reading) undecodable() bool { return r.event.Fact == nil }

// prev is the guard that the writer named, 0 when it cannot be read.
func (r reading) prev() uint64 {
	n, _ := strconv.ParseUint(r.Header[events.HeaderPrev], 10, 64)
	return n
}

// player is whose record it is, zero outside of transfers and sessions.
func (r reading) player() events.PlayerID {
	text, _, _ := strings.Cut(r.Key, ".")
	if r.Bucket != events.Transfers && r.Bucket != events.Sessions {
		return events.PlayerID{}
	}
	id, _ := events.ParseID[events.PlayerID](text)
	return id
}

// transfer is the journey a record belongs to, zero outside of transfers.
func (r reading) transfer() events.TransferID {
	if r.Bucket != events.Transfers {
		return events.TransferID{}
	}
	_, id, _ := events.ParseTransferKey(r.Key)
	return id
}

// shortType is a wire name without what all have in common.
func shortType(wire string) string {
	name := strings.TrimPrefix(wire, "landfall.")
	if base, version, ok := cutLast(name, "."); ok && strings.HasPrefix(version, "v") {
		name = base
	}
	return strings.TrimPrefix(name, "transfer.")
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// pulled is a sequence of readings that can be looked into.
type pulled struct {
	next func() (reading, error, bool)
	stop func()
	head reading
	live bool
}

// merged gives the readings of several buckets by their stored times, each bucket's in its
// own order. Clocks of different buckets need not agree: the order between two buckets is
// good for reading, and nothing is decided by it.
func merged(each ...iter.Seq2[reading, error]) iter.Seq2[reading, error] {
	if len(each) == 1 {
		return each[0]
	}
	return func(yield func(reading, error) bool) {
		var open []*pulled
		defer func() {
			for _, p := range open {
				p.stop()
			}
		}()
		for _, seq := range each {
			p := &pulled{}
			p.next, p.stop = iter.Pull2(seq)
			open = append(open, p)
			if err := p.advance(); err != nil {
				yield(reading{}, err)
				return
			}
		}
		for p := oldest(open); p != nil; p = oldest(open) {
			if !yield(p.head, nil) {
				return
			}
			if err := p.advance(); err != nil {
				yield(reading{}, err)
				return
			}
		}
	}
}

func (p *pulled) advance() (err error) {
	p.head, err, p.live = p.next()
	return err
}

func oldest(open []*pulled) *pulled {
	var first *pulled
	for _, p := range open {
		if p.live && (first == nil || p.head.Stored.Before(first.head.Stored)) {
			first = p
		}
	}
	return first
}

// clockOf is a bucket's own clock: "ten minutes ago" is measured by it.
func clockOf(s events.StreamState) time.Time { return time.Unix(0, s.Clock) }
