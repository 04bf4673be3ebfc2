package main

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// viewBuckets are those that a View folds.
var viewBuckets = []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Fleet}

// moment is one state of the log: a sequence of one bucket, or a time on the streams' clocks;
// zero is the end.
type moment struct {
	bucket events.Bucket // whose sequence it is
	bound
}

// frozen is the log as it stood at a moment, folded as every dispatcher folds it.
type frozen struct {
	*projections.View
	// At is where each bucket stood: the last sequence that was folded, and the time by its
	// stream's clock.
	At map[events.Bucket]standpoint
}

// standpoint is how far a bucket was folded.
type standpoint struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"`
}

// freeze folds the log up to a moment. Without a key to verify with, nothing is verified.
func freeze(ctx context.Context, log history, o *opener, m moment) (*frozen, error) {
	clock, err := m.clock(ctx, log)
	if err != nil {
		return nil, err
	}
	f := &frozen{At: map[events.Bucket]standpoint{}}
	past := &past{log: log, opener: o, moment: m, clock: clock, at: map[events.Bucket]*standpoint{}}
	for _, b := range viewBuckets {
		past.at[b] = &standpoint{Time: clock}
	}
	f.View = projections.NewView(projections.Config{
		Log: past, Keys: o.judge, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return clock },
	})
	if err := foldOnce(ctx, f.View); err != nil {
		return nil, err
	}
	for b, at := range past.at {
		f.At[b] = *at
	}
	return f, nil
}

// foldOnce runs a View until it has caught up, and ends it.
func foldOnce(ctx context.Context, v *projections.View) error {
	ctx, cancel := context.WithCancel(ctx)
	var tails sync.WaitGroup
	tails.Go(func() { _ = v.Run(ctx) }) // why it ended is what WaitLive says
	defer tails.Wait()
	defer cancel()
	return v.WaitLive(ctx)
}

// clock is the moment on the streams' clocks.
func (m moment) clock(ctx context.Context, log history) (time.Time, error) {
	b := m.bucket
	if b == "" {
		b = events.Transfers
	}
	state, err := log.Info(ctx, b)
	switch {
	case err != nil:
		return time.Time{}, err
	case !m.set:
		return clockOf(state), nil
	case !m.bySeq():
		return m.time(state), nil
	case m.seq < state.First || m.seq > state.Last:
		return time.Time{}, exitWith(statusIncomplete, fmt.Errorf("sequence %d of %s: the log holds %d to %d", m.seq, b, state.First, state.Last))
	}
	for rec, err := range log.History(ctx, b, streams.Range{After: m.seq - 1, UpTo: m.seq}) {
		return rec.Stored, err
	}
	return time.Time{}, exitWith(statusIncomplete, fmt.Errorf("sequence %d of %s is not held any more", m.seq, b))
}

// past is a log that ends at a moment, for a View to follow.
type past struct {
	log    history
	opener *opener
	moment moment
	clock  time.Time
	at     map[events.Bucket]*standpoint // each is written by the tail of its bucket
}

// Tail implements projections.Tailer: all of the bucket up to the moment, and then nothing more.
func (p *past) Tail(ctx context.Context, b events.Bucket, _ events.TailStart, f events.Follower) error {
	state, err := p.log.Info(ctx, b)
	if err != nil {
		return err
	}
	state.Clock = p.clock.UnixNano()
	f.Begin(state, false)
	last := uint64(0)
	for rec, err := range p.log.History(ctx, b, p.span(b, state)) {
		if err != nil {
			return err
		}
		if err := f.Record(p.opener.verifiable(rec)); err != nil {
			return err
		}
		last = rec.Seq
	}
	p.at[b].Seq = last
	f.Live(last)
	<-ctx.Done()
	return ctx.Err()
}

// span is what of a bucket lies before the moment.
func (p *past) span(b events.Bucket, s events.StreamState) streams.Range {
	r := streams.Range{UpTo: s.Last}
	switch {
	case !p.moment.set:
	case p.moment.bySeq() && p.moment.bucket == b:
		r.UpTo = min(r.UpTo, p.moment.seq)
	default:
		r.Until = p.clock.Add(time.Nanosecond)
	}
	return r
}
