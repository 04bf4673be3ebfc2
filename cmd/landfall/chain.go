package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// chain follows the records of a bucket: each was written on top of the newest one inside its
// guard, and sequences are missing only where older revisions of a key were dropped.
type chain struct {
	bucket  events.Bucket
	first   uint64 // what lies below is gone
	last    uint64
	guards  map[[16]byte]uint64 // last sequence inside each guard
	missing []hole
	keys    map[[16]byte]held // of buckets that drop older revisions
}

// hole is a run of sequences of which no record is held.
type hole struct{ from, to uint64 }

// held is what is held of one key.
type held struct {
	count int
	first uint64
}

func newChain(b events.Bucket, first uint64) *chain {
	return &chain{bucket: b, first: first, last: max(first, 1) - 1, guards: map[[16]byte]uint64{}, keys: map[[16]byte]held{}}
}

// short is a name in little room; two of a log do not meet.
func short(name string) [16]byte {
	sum := sha256.Sum256([]byte(name))
	return [16]byte(sum[:16])
}

// follow takes in the next record. It gives the last sequence inside its guard, and whether
// prev may be that one: the one below may be gone, for the writer (then prev is 0) or for us.
func (c *chain) follow(key string, seq, prev uint64) (before uint64, ok bool) {
	if seq > c.last+1 {
		c.missing = append(c.missing, hole{c.last + 1, seq - 1})
	}
	c.last = seq
	if rolls(c.bucket) {
		k := c.keys[short(key)]
		if k.count++; k.first == 0 {
			k.first = seq
		}
		c.keys[short(key)] = k
	}
	guard := short(c.bucket.Guard(key))
	before = c.guards[guard]
	c.guards[guard] = seq
	if before != 0 {
		return before, prev == before
	}
	return before, prev < c.first || prev == 0 || rolls(c.bucket)
}

// rolls tells that a bucket drops the oldest revision of a key that has too many.
func rolls(b events.Bucket) bool { return b == events.Sessions || b == events.Control }

// holes are the missing sequences that nothing explains, up to the end of the stream.
func (c *chain) holes(end uint64) []hole {
	missing := c.missing
	if c.last < end {
		missing = append(missing, hole{c.last + 1, end})
	}
	if !rolls(c.bucket) {
		return missing
	}
	newest := uint64(0) // below it some key has lost revisions
	for _, k := range c.keys {
		if k.count >= events.MaxKeyFacts {
			newest = max(newest, k.first)
		}
	}
	return slices.DeleteFunc(missing, func(h hole) bool { return h.to < newest })
}

// seals holds the checkpoints against each other, against the facts they seal, and against
// those that hosts remember.
func (v *verifier) seals(ctx context.Context, remembered []events.Checkpoint) error {
	state, err := v.log.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	for i, c := range v.checkpoints {
		if i > 0 {
			v.chained(v.checkpoints[i-1], c)
		}
		v.sealed = max(v.sealed, c.To)
		if err := v.sealsWhatIsThere(ctx, c, state); err != nil {
			return err
		}
	}
	for _, m := range remembered {
		v.remembers(m, state)
	}
	return nil
}

func (v *verifier) chained(before, c events.Checkpoint) {
	if c.Number != before.Number+1 || c.Prev != before.Hash || c.From != before.To+1 {
		v.find(findCheckpoint, events.Transfers, min(c.From, before.To+1), fmt.Sprintf("checkpoint %d does not follow checkpoint %d", c.Number, before.Number))
	}
}

// sealsWhatIsThere works a checkpoint's hash out again, where all that it seals is held.
func (v *verifier) sealsWhatIsThere(ctx context.Context, c events.Checkpoint, state events.StreamState) error {
	switch {
	case c.To > state.Last:
		v.find(findLost, events.Transfers, state.Last+1, fmt.Sprintf("checkpoint %d seals facts up to %d, the log ends at %d", c.Number, c.To, state.Last))
		return nil
	case c.From < state.First:
		return nil // retention has begun to take it
	}
	segment := events.NewSegment(c.Prev)
	for rec, err := range v.log.History(ctx, events.Transfers, streams.Range{After: c.From - 1, UpTo: c.To}) {
		if err != nil {
			return err
		}
		segment.Add(rec)
	}
	if segment.Hash() != c.Hash || segment.Count() != c.Count {
		v.find(findCheckpoint, events.Transfers, v.firstWithin(c), fmt.Sprintf(
			"checkpoint %d sealed %s from %d to %d, and other ones are there (%d)", c.Number, plural(c.Count, "fact"), c.From, c.To, segment.Count()))
	}
	return nil
}

// firstWithin is the first bad sequence that is known inside a checkpoint, else its first.
func (v *verifier) firstWithin(c events.Checkpoint) uint64 {
	first := c.From
	for _, f := range v.findings {
		if f.Bucket == events.Transfers && f.Seq >= c.From && f.Seq <= c.To && (first == c.From || f.Seq < first) {
			first = f.Seq
		}
	}
	return first
}

// remembers holds the log against a checkpoint that a host has seen.
func (v *verifier) remembers(m events.Checkpoint, state events.StreamState) {
	i := slices.IndexFunc(v.checkpoints, func(c events.Checkpoint) bool { return c.Number == m.Number })
	switch {
	case i >= 0 && v.checkpoints[i].Hash != m.Hash:
		v.find(findCheckpoint, events.Transfers, m.From, fmt.Sprintf("a host remembers checkpoint %d with another hash: from there on this is another log", m.Number))
	case i < 0 && state.Last < m.To:
		v.find(findLost, events.Transfers, state.Last+1, fmt.Sprintf("a host remembers checkpoint %d, up to %d; the log ends at %d", m.Number, m.To, state.Last))
	case i < 0 && (len(v.checkpoints) == 0 || v.checkpoints[len(v.checkpoints)-1].Number < m.Number):
		v.find(findLost, events.Checkpoints, 0, fmt.Sprintf("a host remembers checkpoint %d, and the log does not hold it", m.Number))
	}
}
