package streamtest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
)

// limits says how many records one key of a bucket keeps, and what happens to the next one.
type limits struct {
	history int  // 0: no limit
	refuse  bool // the next one is refused; else the oldest goes
	expires bool // a record may carry its own time to live
}

func limitsOf(b events.Bucket) limits {
	switch b {
	case events.Transfers:
		return limits{history: events.MaxKeyFacts, refuse: true}
	case events.Sessions, events.Control, events.Fleet:
		return limits{history: events.MaxKeyFacts}
	case events.Limits, events.Routes, events.Leases:
		return limits{history: 1, expires: true}
	case events.Audit, events.Checkpoints:
		return limits{}
	}
	return limits{}
}

// bucket is one stream. Guarded by Memory.mu.
type bucket struct {
	name        events.Bucket
	incarnation string
	limits      limits
	life        int // counts everything that forces a tail to look again at what it knows
	base        uint64
	records     []*events.Record // of sequence base+1 and on; nil where one was removed
	byKey       map[string][]uint64
	byGuard     map[string][]uint64
	ids         map[events.EventID]uint64
	changed     signal
}

func newBucket(name events.Bucket, incarnation string) *bucket {
	b := &bucket{name: name, incarnation: incarnation, limits: limitsOf(name)}
	b.clear(0)
	return b
}

func (b *bucket) clear(base uint64) {
	b.base, b.records = base, nil
	b.byKey, b.byGuard = map[string][]uint64{}, map[string][]uint64{}
	b.ids = map[events.EventID]uint64{}
}

func (b *bucket) last() uint64 { return b.base + uint64(len(b.records)) }

// first is the sequence of the oldest record, or the next one to be given when there is none.
func (b *bucket) first() uint64 { return b.base + 1 }

func (b *bucket) at(seq uint64) *events.Record {
	if seq <= b.base || seq > b.last() {
		return nil
	}
	return b.records[seq-b.base-1]
}

func (b *bucket) all() []events.Record {
	out := make([]events.Record, 0, len(b.records))
	for _, r := range b.records {
		if r != nil {
			out = append(out, *r)
		}
	}
	return out
}

func (b *bucket) state(clock time.Time) events.StreamState {
	return events.StreamState{Incarnation: b.incarnation, First: b.first(), Last: b.last(), Clock: clock.UnixNano()}
}

func newest(seqs []uint64) uint64 {
	if len(seqs) == 0 {
		return 0
	}
	return seqs[len(seqs)-1]
}

// append does what the server does with a guarded message, and what a client adds to it:
// an id that is already stored is the caller's own fact.
func (b *bucket) append(m events.Message, now time.Time) (uint64, *events.AppendError) {
	id, err := events.ParseID[events.EventID](m.Header[events.HeaderID])
	if err != nil {
		return 0, &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Err: err}
	}
	if refused := b.refuseErasing(m); refused != nil {
		return 0, refused
	}
	if seq, ok := b.ids[id]; ok {
		if r := b.at(seq); r != nil && !m.Is(*r) {
			return 0, &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Err: m.OtherFact(*r)}
		}
		return seq, nil
	}
	if last := newest(b.byGuard[b.name.Guard(m.Key)]); last != m.Prev {
		return 0, &events.AppendError{Reason: events.Conflict, Key: m.Key, Last: last, Code: 10071, Err: errors.New("wrong last sequence")}
	}
	if b.limits.refuse && len(b.byKey[m.Key]) >= b.limits.history {
		return 0, &events.AppendError{Reason: events.KeyIsFull, Key: m.Key, Code: 10077, Err: errors.New("maximum messages per subject exceeded")}
	}
	seq := b.store(m.Key, m.Header, m.Body, now)
	if m.TTL > 0 {
		b.at(seq).Header[headerTTL] = fmt.Sprintf("%ds", int64(m.TTL/time.Second))
	}
	return seq, nil
}

// The headers with which the server shortens the life of a record, and marks its end.
const (
	headerTTL    = "Nats-TTL"
	headerMarker = "Nats-Marker-Reason"
)

// refuseErasing holds a message against that with which NATS would erase, shorten or
// postpone facts.
func (b *bucket) refuseErasing(m events.Message) *events.AppendError {
	if err := m.CheckTTL(); err != nil {
		return &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Code: 10165, Err: err}
	}
	if m.TTL > 0 && !b.limits.expires {
		return &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Code: 10166, Err: errors.New("per-message TTL is disabled")}
	}
	codes := map[string]int{"Nats-Rollup": 10111, headerTTL: 10166, "Nats-Schedule": 10188}
	for name, code := range codes {
		if m.Header[name] != "" {
			return &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Code: code, Err: errors.New(name + " is not permitted")}
		}
	}
	return nil
}

func (b *bucket) store(key string, h events.Header, body []byte, now time.Time) uint64 {
	r := &events.Record{Bucket: b.name, Key: key, Seq: b.last() + 1, Stored: now, Header: h, Body: body}
	b.records = append(b.records, r)
	b.index(r)
	if seqs := b.byKey[key]; b.limits.history > 0 && len(seqs) > b.limits.history && !b.limits.refuse {
		b.remove(seqs[0])
	}
	b.changed.fire()
	return r.Seq
}

func (b *bucket) index(r *events.Record) {
	guard := b.name.Guard(r.Key)
	b.byKey[r.Key] = append(b.byKey[r.Key], r.Seq)
	b.byGuard[guard] = append(b.byGuard[guard], r.Seq)
	if id := r.EventID(); !id.IsZero() {
		b.ids[id] = r.Seq
	}
}

func (b *bucket) remove(seq uint64) {
	r := b.at(seq)
	if r == nil {
		return
	}
	drop(b.byKey, r.Key, seq)
	drop(b.byGuard, b.name.Guard(r.Key), seq)
	if id := r.EventID(); b.ids[id] == seq {
		delete(b.ids, id)
	}
	b.records[seq-b.base-1] = nil
	for len(b.records) > 0 && b.records[0] == nil {
		b.records, b.base = b.records[1:], b.base+1
	}
}

func drop(index map[string][]uint64, name string, seq uint64) {
	rest := slices.DeleteFunc(index[name], func(s uint64) bool { return s == seq })
	if len(rest) == 0 {
		delete(index, name)
		return
	}
	index[name] = rest
}

// end takes out a record whose time is over. One that had the last word of its key leaves a
// marker, which itself leaves none.
func (b *bucket) end(seq uint64, now time.Time) (marker uint64) {
	r := b.at(seq)
	last := r != nil && newest(b.byKey[r.Key]) == seq
	b.remove(seq)
	if !last || r.Header[headerMarker] != "" {
		return 0
	}
	return b.store(r.Key, events.Header{headerMarker: "MaxAge", headerTTL: markerTTL.String()}, nil, now)
}

func (b *bucket) expire(upTo uint64) {
	for seq := b.first(); seq <= min(upTo, b.last()); seq++ {
		b.remove(seq)
	}
}

func (b *bucket) truncate(seq uint64) {
	keep, base := b.all(), min(b.base, seq)
	b.clear(base)
	for i := range keep {
		if keep[i].Seq <= seq {
			b.put(keep[i])
		}
	}
	b.life++
	b.changed.fire()
}

// put stores a record at its own sequence, which is above all others.
func (b *bucket) put(r events.Record) {
	for b.last()+1 < r.Seq {
		b.records = append(b.records, nil)
	}
	b.records = append(b.records, &r)
	b.index(&r)
}

func (b *bucket) rewrite(seq uint64, r events.Record) {
	keep, base := b.all(), b.base
	b.clear(base)
	for i := range keep {
		if keep[i].Seq == seq {
			r.Bucket, r.Seq, r.Stored = b.name, seq, keep[i].Stored
			keep[i] = r
		}
		b.put(keep[i])
	}
	b.life++
	b.changed.fire()
}
