package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

// testSecret is the secret of streamtest.Keyring.
var testSecret = bytes.Repeat([]byte("landfall"), events.MinSecret/8)

// tapeStart is when the first record of a tape is stored.
var tapeStart = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// tape is a log whose stored times and ids are the test's own, so that what is printed of
// it can be compared to the letter.
type tape struct {
	tb      testing.TB
	clock   time.Duration // since tapeStart
	ids     uint64
	records map[events.Bucket][]events.Record
	first   map[events.Bucket]uint64
}

func newTape(tb testing.TB) *tape {
	return &tape{tb: tb, records: map[events.Bucket][]events.Record{}, first: map[events.Bucket]uint64{}}
}

// after lets time pass.
func (t *tape) after(d time.Duration) *tape { t.clock += d; return t }

// put seals a fact on top of what its guard holds, and stores it a millisecond later.
func (t *tape) put(key string, f events.Fact) uint64 {
	t.tb.Helper()
	source := streamtest.Source(events.SourceEdge, "e1")
	if c, ok := f.(*events.Claimed); ok {
		source = streamtest.Source(events.SourceEdge, c.Dispatcher)
	}
	return t.putBy(source, key, f)
}

func (t *tape) putBy(source events.Source, key string, f events.Fact) uint64 {
	t.tb.Helper()
	kind, err := events.KindOf(f)
	if err != nil {
		t.tb.Fatal(err)
	}
	return t.store(t.seal(source, key, t.last(kind.Bucket, key), f))
}

func (t *tape) seal(source events.Source, key string, prev uint64, f events.Fact) events.Message {
	t.tb.Helper()
	t.ids++
	var id events.EventID
	id[6], id[8] = 0x70, 0x80
	binary.BigEndian.PutUint32(id[12:], uint32(t.ids))
	_, transfer, _ := events.ParseTransferKey(key)
	now := tapeStart.Add(t.clock)
	return streamtest.Seal(t.tb, events.Envelope{ID: id, Source: source, Time: now, Key: key, Correlation: transfer, Prev: prev}, f)
}

// store takes any message, good or not.
func (t *tape) store(m events.Message) uint64 {
	t.clock += time.Millisecond
	rs := t.records[m.Bucket]
	seq := uint64(len(rs)) + 1
	t.records[m.Bucket] = append(rs, events.Record{Bucket: m.Bucket, Key: m.Key, Seq: seq, Stored: tapeStart.Add(t.clock), Header: m.Header, Body: m.Body})
	return seq
}

func (t *tape) last(b events.Bucket, key string) uint64 {
	boundary := strings.TrimSuffix(b.Guard(key), ">")
	for i := len(t.records[b]) - 1; i >= 0; i-- {
		if r := t.records[b][i]; strings.HasPrefix(b.Subject(r.Key)+".", strings.TrimSuffix(boundary, ".")+".") {
			return r.Seq
		}
	}
	return 0
}

// expire removes what lies below first, as retention does.
func (t *tape) expire(b events.Bucket, first uint64) { t.first[b] = first }

func (t *tape) Info(_ context.Context, b events.Bucket) (events.StreamState, error) {
	return events.StreamState{Incarnation: "tape", First: max(1, t.first[b]), Last: uint64(len(t.records[b])), Clock: tapeStart.Add(t.clock).UnixNano()}, nil
}

func (t *tape) History(_ context.Context, b events.Bucket, r streams.Range) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		given := 0
		for _, rec := range t.held(b, r.Newest) {
			if !inRange(rec, r) {
				continue
			}
			given++
			if !yield(rec, nil) || given == r.Limit {
				return
			}
		}
	}
}

func (t *tape) held(b events.Bucket, newest bool) (out []events.Record) {
	last := map[string]uint64{}
	for _, r := range t.records[b] {
		last[r.Key] = r.Seq
	}
	for _, r := range t.records[b] {
		if r.Seq >= t.first[b] && (!newest || last[r.Key] == r.Seq) {
			out = append(out, r)
		}
	}
	return out
}

func inRange(rec events.Record, r streams.Range) bool {
	return keyFits(r.Keys, rec.Key) && rec.Seq > r.After && (r.UpTo == 0 || rec.Seq <= r.UpTo) &&
		(r.Since.IsZero() || r.After > 0 || !rec.Stored.Before(r.Since)) && (r.Until.IsZero() || rec.Stored.Before(r.Until))
}
