package main

import (
	"crypto/sha256"
	"slices"

	"github.com/landfall/landfall/events"
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
