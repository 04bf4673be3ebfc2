package projections

import (
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// Fleet is the snapshot of all heartbeats. It is immutable: every beat makes a new one, so
// a dispatch may use one snapshot from beginning to end.
type Fleet struct {
	Seq      uint64     // of the newest heartbeat
	Live     bool       // the tail is connected and has caught up
	Since    time.Time  // since when the reader has watched without a break
	Heard    time.Time  // when it last took in a heartbeat, whoever's
	Backends []*Backend // sorted by id
	Proxies  []*Proxy   // sorted by id
	// Instances has the newest life of each, sorted by placement.
	Instances []*Instance
}

// Backend is the last beat of a backend.
type Backend struct {
	events.BackendBeat
	Seq   uint64
	Seen  time.Time // the reader's clock; corrected by the stream's clock for a beat found while catching up
	Since time.Time // when the first beat of this life was seen
	Live  bool      // seen as it came, not found in the store
	// Claims is another address than the believed one, which this life has begun to name, and
	// Claimed in how many heartbeats in a row. Nobody new is sent there meanwhile.
	Claims  Address
	Claimed int
	// Skew is how far the host's clock is ahead of the store's, and what the beat took. It is
	// for people to see: nothing depends on it.
	Skew time.Duration
}

// Address is where a backend is dialled.
type Address struct{ Advertise, Public string }

// addressBeats is how many heartbeats in a row must name another address before it is believed:
// an address does not change within a life, unless its machine's does.
const addressBeats = 5

// believe keeps the address of the beat before, until another one has been named for long enough.
func (b *Backend) believe(old *Backend) {
	named, held := Address{b.Advertise, b.Public}, Address{old.Advertise, old.Public}
	if named == held {
		return
	}
	b.Claims, b.Claimed = named, 1
	if named == old.Claims {
		b.Claimed = old.Claimed + 1
	}
	if b.Claimed >= addressBeats {
		b.Claims, b.Claimed = Address{}, 0
		return
	}
	b.Advertise, b.Public = held.Advertise, held.Public
}

// Proxy is the last beat of a dispatcher.
type Proxy struct {
	events.ProxyBeat
	Seq   uint64
	Seen  time.Time
	Since time.Time
	Live  bool
	Skew  time.Duration // see Backend
}

// Apply folds one beat.
func (f *Fleet) Apply(e events.Event, seen time.Time) (*Fleet, *events.Refusal) {
	next := *f
	next.Seq = max(f.Seq, e.Seq)
	if seen.After(f.Heard) {
		next.Heard = seen
	}
	switch beat := e.Fact.(type) {
	case *events.BackendBeat:
		b := &Backend{BackendBeat: *beat, Seq: e.Seq, Seen: seen, Since: seen, Live: f.Live, Skew: e.Time.Sub(e.Stored)}
		if old := f.Backend(beat.Server); old != nil && old.Incarnation == beat.Incarnation {
			b.Since = old.Since
			b.believe(old)
		}
		next.Backends = put(f.Backends, b, func(x *Backend) string { return string(x.Server) })
		return &next, nil
	case *events.InstanceBeat:
		return next.withInstance(beat, e, seen), nil
	case *events.ProxyBeat:
		p := &Proxy{ProxyBeat: *beat, Seq: e.Seq, Seen: seen, Since: seen, Live: f.Live, Skew: e.Time.Sub(e.Stored)}
		if old := f.Proxy(beat.Proxy); old != nil && old.Incarnation == beat.Incarnation {
			p.Since = old.Since
		}
		next.Proxies = put(f.Proxies, p, func(x *Proxy) string { return string(x.Proxy) })
		return &next, nil
	default: // the facts of other buckets are none of this fold's
		return f, events.Refuse(events.Malformed, "not a heartbeat")
	}
}

// From gives the snapshot of a reader that begins again with a stream that ends at last. It
// keeps the old beats, which only grow older until newer ones replace them.
func (f *Fleet) From(last uint64) *Fleet {
	next := *f
	if last < next.Seq {
		next.Seq = 0 // another life of the stream, whose sequences say nothing about this one's
	}
	return &next
}

// put gives a copy of a sorted list with one element replaced or added.
func put[T any](list []*T, x *T, name func(*T) string) []*T {
	i, found := slices.BinarySearchFunc(list, name(x), func(y *T, id string) int { return strings.Compare(name(y), id) })
	if found {
		out := slices.Clone(list)
		out[i] = x
		return out
	}
	return slices.Insert(slices.Clone(list), i, x)
}

// WithSight gives the snapshot of a reader that can now see, or has gone blind.
func (f *Fleet) WithSight(live bool, now time.Time) *Fleet {
	next := *f
	next.Live, next.Since, next.Heard = live, now, now
	return &next
}

// after gives the snapshot of a reader that may not have heard anything for a while before this
// one, not even itself: longer than stale is a break, like an outage. A process that was
// stopped, or whose connection hung, has not watched anybody meanwhile.
func (f *Fleet) after(old *Fleet, stale time.Duration) *Fleet {
	if !old.Live || stale <= 0 || f.Heard.Sub(old.Heard) <= stale {
		return f
	}
	next := *f
	next.Since = f.Heard
	return &next
}

// Backend gives one backend's last beat, nil when none was seen.
func (f *Fleet) Backend(id events.HostID) *Backend {
	i, ok := slices.BinarySearchFunc(f.Backends, string(id), func(b *Backend, s string) int { return strings.Compare(string(b.Server), s) })
	if !ok {
		return nil
	}
	return f.Backends[i]
}

// Proxy gives one dispatcher's last beat, nil when none was seen.
func (f *Fleet) Proxy(id events.HostID) *Proxy {
	i, ok := slices.BinarySearchFunc(f.Proxies, string(id), func(p *Proxy, s string) int { return strings.Compare(string(p.Proxy), s) })
	if !ok {
		return nil
	}
	return f.Proxies[i]
}

// Hears tells that the reader sees what happens: its tail is live, and it has heard somebody, be
// it itself, within the time after which silence counts.
func (f *Fleet) Hears(now time.Time, stale time.Duration) bool {
	return f.Live && now.Sub(f.Heard) <= stale
}

// Sighted tells that the reader has watched long enough to judge anybody absent: it hears, and
// has for longer than grace.
func (f *Fleet) Sighted(now time.Time, stale, grace time.Duration) bool {
	return f.Hears(now, stale) && now.Sub(f.Since) > grace
}

// Silence is how long a host seen at seen has been silent before this reader's own eyes:
// nothing while it was blind counts. It is 0 for a blind reader.
func (f *Fleet) Silence(seen, now time.Time) time.Duration {
	if !f.Live {
		return 0
	}
	if seen.Before(f.Since) {
		seen = f.Since
	}
	return now.Sub(seen)
}
