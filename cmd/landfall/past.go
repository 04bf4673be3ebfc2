package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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

// freeze folds the log up to a moment. The end of a store is folded as a dispatcher begins: from
// what is alive, so that it takes no longer the more has happened. A moment of the past, and a
// file, are folded out of all that was before, and what is over is forgotten on the way: memory
// holds what was alive. Without a key to verify with, nothing is verified.
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
	past.over = f.Forget
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
	over   func(before time.Time)        // forgets the transfers that had ended
}

// Tail implements projections.Tailer: the bucket up to the moment, and then nothing more.
func (p *past) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	if store, ok := p.log.(projections.Tailer); ok && !p.moment.set {
		return p.boot(ctx, store, b, from, f)
	}
	state, err := p.log.Info(ctx, b)
	if err != nil {
		return err
	}
	state.Clock = p.clock.UnixNano()
	f.Begin(state, false)
	give := &giving{follower: f, opener: p.opener}
	if from.Mode == events.TailLastPerKey {
		err = p.newest(ctx, b, p.span(b, state), give)
	} else {
		err = p.all(ctx, b, p.span(b, state), give)
	}
	if err != nil {
		return err
	}
	p.at[b].Seq = give.last
	f.Live(give.last)
	<-ctx.Done()
	return ctx.Err()
}

// giving hands records to a follower as it can verify them.
type giving struct {
	follower events.Follower
	opener   *opener
	last     uint64
	count    int
}

func (g *giving) record(r events.Record) error {
	g.last = r.Seq
	g.count++
	return g.follower.Record(g.opener.verifiable(r))
}

// forgetEvery is how many facts are folded until what is over is forgotten.
const forgetEvery = 4096

// all gives every record of a span.
func (p *past) all(ctx context.Context, b events.Bucket, span streams.Range, give *giving) error {
	for rec, err := range p.log.History(ctx, b, span) {
		if err == nil {
			err = give.record(rec)
		}
		if err != nil {
			return err
		}
		if give.count%forgetEvery == 0 {
			p.over(rec.Stored)
		}
	}
	return nil
}

// newest gives the last record of each key in a span: the whole state of that key.
func (p *past) newest(ctx context.Context, b events.Bucket, span streams.Range, give *giving) error {
	span.Newest = !p.moment.set
	keys := map[string]events.Record{}
	for rec, err := range p.log.History(ctx, b, span) {
		if err != nil {
			return err
		}
		keys[rec.Key] = rec
	}
	for _, rec := range slices.SortedFunc(maps.Values(keys), func(a, b events.Record) int { return cmp.Compare(a.Seq, b.Seq) }) {
		if err := give.record(rec); err != nil {
			return err
		}
	}
	return nil
}

// boot follows a store as a dispatcher does that begins now. A store that is lost meanwhile ends it.
func (p *past) boot(ctx context.Context, store projections.Tailer, b events.Bucket, from events.TailStart, f events.Follower) error {
	live, ok := f.(events.LiveFollower)
	if !ok {
		return fmt.Errorf("fold %s: %T cannot tell what is alive", b, f)
	}
	sighted, blind := context.WithCancelCause(ctx)
	defer blind(nil)
	err := store.Tail(sighted, b, from, &booting{verifiedTail: &verifiedTail{live, p.opener}, at: p.at[b], blind: blind})
	if ctx.Err() == nil && sighted.Err() != nil {
		return fmt.Errorf("the store was lost while it was read: %w", context.Cause(sighted))
	}
	return err
}

// booting notes how far a tail is, and ends it where it is blind.
type booting struct {
	*verifiedTail
	at    *standpoint
	live  bool
	blind context.CancelCauseFunc
}

// Record implements events.Follower. What comes later than the state that is shown is left out.
func (f *booting) Record(r events.Record) error {
	if f.live {
		return nil
	}
	return f.verifiedTail.Record(r)
}

// Live implements events.Follower.
func (f *booting) Live(last uint64) {
	if !f.live {
		f.live, f.at.Seq = true, last
		f.LiveFollower.Live(last)
	}
}

// Blind implements events.Follower.
func (f *booting) Blind(err error) { f.blind(err) }

// LastOf implements projections.Log: it reads control alone, where who a host is stands.
func (p *past) LastOf(ctx context.Context, b events.Bucket, key string) (last events.Record, found bool, err error) {
	for r, err := range p.log.History(ctx, b, streams.Range{}) {
		if err != nil {
			return last, false, err
		}
		if r.Key == key {
			last, found = r, true
		}
	}
	return last, found, nil
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
