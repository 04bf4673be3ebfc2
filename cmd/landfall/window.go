package main

import (
	"fmt"
	"strconv"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// bound is one end of what is read: a sequence, a time, or a length before the stream's now.
type bound struct {
	seq uint64
	at  time.Time
	ago time.Duration
	set bool
}

// parseBound reads the value of --since or --until.
func parseBound(name, text string) (b bound, err error) {
	if text == "" {
		return b, nil
	}
	b.set = true
	if b.seq, err = strconv.ParseUint(text, 10, 64); err == nil {
		if b.seq == 0 {
			return b, usageError("%s 0: sequences begin at 1", name)
		}
		return b, nil
	}
	if b.ago, err = time.ParseDuration(text); err == nil {
		if b.ago < 0 {
			return b, usageError("%s %s: want a length before now, such as 10m", name, text)
		}
		return b, nil
	}
	if b.at, err = time.Parse(time.RFC3339Nano, text); err == nil {
		return b, nil
	}
	return b, usageError("%s %q: want a length (10m), a sequence (1234) or a time (2026-01-31T15:04:05.000Z)", name, text)
}

// bySeq tells that the bound is a sequence, which means something in one bucket only.
func (b bound) bySeq() bool { return b.set && b.seq > 0 }

// time is the bound on the stream's own clock; zero for a sequence.
func (b bound) time(s events.StreamState) time.Time {
	if b.seq > 0 || !b.set {
		return time.Time{}
	}
	if b.at.IsZero() {
		return clockOf(s).Add(-b.ago)
	}
	return b.at
}

// window is what of a bucket is read.
type window struct{ since, until bound }

// span is the window on a bucket as it is now. The end is where the stream ends now.
func (w window) span(s events.StreamState) streams.Range {
	r := streams.Range{UpTo: s.Last, Since: w.since.time(s), Until: w.until.time(s)}
	if w.since.bySeq() {
		r.After = w.since.seq - 1
	}
	if w.until.bySeq() {
		r.UpTo = min(r.UpTo, w.until.seq)
	}
	return r
}

// gone says what of the window is not there any more, or not there yet. It says nothing
// when everything that was asked for is there, or nobody asked for a beginning.
func (w window) gone(b events.Bucket, s events.StreamState) string {
	switch asked := w.since.seq; {
	case asked == 0:
		return ""
	case asked > s.Last+1:
		return fmt.Sprintf("%s ends at sequence %d, %d is not there yet: is it the right store?", b, s.Last, asked)
	case s.First > asked:
		return fmt.Sprintf("%s: %s gone (retention): asked for sequence %d, the first held is %d", b, plural(s.First-asked, "message"), asked, s.First)
	}
	return ""
}
