package main

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// watcher follows a store and can say at any time how the network looks. Safe for concurrent use.
type watcher struct {
	src    source
	opener *opener

	mu      sync.Mutex
	view    *projections.View
	live    bool          // view follows the store, as far as it is not blind
	stopped bool          // no process has the store open
	lost    string        // why the store cannot be seen
	lostAt  time.Time     // since when
	seen    uint64        // last sequence of transfers that was counted
	offset  time.Duration // from the stream's clock to the own one
	pulses  pulses
}

func newWatcher(src source, o *opener) *watcher { return &watcher{src: src, opener: o} }

// look takes one picture of a store.
func (w *watcher) look(ctx context.Context, store *reader) error {
	if err := w.recall(ctx, store); err != nil {
		return err
	}
	v := w.newView(store, func(projections.Change) {})
	if err := foldOnce(ctx, v); err != nil {
		return err
	}
	w.show(v, false)
	w.stopped = !store.shared
	return nil
}

// recalled is how many of the last facts are read for rates and failures.
const recalled = 2000

// recall counts what has happened of late, as far as it was not counted.
func (w *watcher) recall(ctx context.Context, log history) error {
	state, err := log.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	w.mu.Lock()
	if state.Last < w.seen {
		w.seen, w.pulses = 0, pulses{} // another log
	}
	w.offset = time.Since(clockOf(state))
	after := w.seen
	if state.Last > recalled {
		after = max(after, state.Last-recalled)
	}
	if w.pulses.since.IsZero() && after == 0 {
		w.pulses.since = time.Now().Add(-topSpan) // all there is
	}
	w.mu.Unlock()
	if state.Last == 0 {
		return nil
	}
	for rec, err := range log.History(ctx, events.Transfers, streams.Range{After: after, UpTo: state.Last}) {
		if err != nil {
			return err
		}
		got := w.opener.open(rec)
		w.count(got.event, got.player(), rec.Seq, rec.Stored)
	}
	return nil
}

// count takes in a fact that was not counted before.
func (w *watcher) count(e events.Event, player events.PlayerID, seq uint64, stored time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if seq <= w.seen {
		return
	}
	w.seen = seq
	at := stored.Add(w.offset)
	if w.pulses.since.IsZero() {
		w.pulses.since = at
	}
	w.pulses.take(e, player, at)
}

// newView makes a fold of a store that tells of each change.
func (w *watcher) newView(store *reader, changed func(projections.Change)) *projections.View {
	return projections.NewView(projections.Config{
		Log: verifiedLog{store, w.opener}, Keys: w.opener.judge, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: changed,
	})
}

func (w *watcher) show(v *projections.View, live bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.view, w.live = v, live
	if live {
		w.lost, w.stopped = "", false
	}
}

// lose notes that the store cannot be seen, and since when.
func (w *watcher) lose(why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = false
	w.losing(why)
}

// losing wants w.mu held.
func (w *watcher) losing(why string) {
	if w.lost == "" {
		w.lostAt = time.Now()
	}
	w.lost = why
}

// follow keeps up with the store, through its restarts, until ctx ends or a fold cannot go on.
// It closes store.
func (w *watcher) follow(ctx context.Context, store *reader) error {
	return w.src.stay(ctx, w.src.holder(), store, w.lose, w.attend)
}

// attend follows one life of the store. It always ends with an error.
func (w *watcher) attend(ctx context.Context, store *reader) error {
	if err := w.recall(ctx, store); err != nil && ctx.Err() == nil {
		w.lose(oneLine(err)) // the view waits for a store that is gone
	}
	v := w.newView(store, func(c projections.Change) {
		if c.Bucket == events.Transfers && c.Event.Fact != nil {
			w.count(c.Event, c.Player, c.Seq, c.Event.Stored)
		}
	})
	ctx, end := context.WithCancel(ctx)
	var showing sync.WaitGroup
	defer showing.Wait()
	defer end()
	showing.Go(func() {
		if v.WaitLive(ctx) == nil {
			w.show(v, true)
		}
	})
	err := v.Run(ctx)
	w.lose("the store has ended")
	return err
}

// frame is how the network looks now.
func (w *watcher) frame(now time.Time) topFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case !w.live:
	case !w.view.Ready():
		w.losing("the store does not answer")
	default:
		w.lost = ""
	}
	f := frameOf(w.view, now)
	f.Store, f.Rates, f.Stopped = w.src.String(), w.pulses.rates(now), w.stopped
	f.Failures = w.pulses.failures(func(id events.PlayerID) string { return (&frozen{View: w.view}).nameOf(id, nil) })
	if w.lost != "" {
		f.Lost, f.LostMs = w.lost, now.Sub(w.lostAt).Milliseconds()
	}
	return f
}

// verifiedLog is a store whose records are given as the command's key can verify them.
type verifiedLog struct {
	store  projections.Log
	opener *opener
}

// Tail implements projections.Tailer.
func (l verifiedLog) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	live, ok := f.(events.LiveFollower)
	if !ok {
		return l.store.Tail(ctx, b, from, f)
	}
	return l.store.Tail(ctx, b, from, &verifiedTail{live, l.opener})
}

// LastOf implements projections.Log.
func (l verifiedLog) LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	return l.store.LastOf(ctx, b, key)
}

// verifiedTail hands records on as they can be verified.
type verifiedTail struct {
	events.LiveFollower
	opener *opener
}

// Newest implements events.LiveFollower.
func (f *verifiedTail) Newest(r events.Record) bool {
	return f.LiveFollower.Newest(f.opener.verifiable(r))
}

// Record implements events.Follower.
func (f *verifiedTail) Record(r events.Record) error {
	return f.LiveFollower.Record(f.opener.verifiable(r))
}
