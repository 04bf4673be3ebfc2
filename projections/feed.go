package projections

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// fold is what a feed drives: one bucket's state.
type fold interface {
	reset(s events.StreamState, fork bool)
	apply(e events.Event, seen time.Time) *events.Refusal
	skip(key string, seq uint64)
	sight(live bool, now time.Time)
}

// settler is a fold that can do without what is over.
type settler interface {
	settle(key string, seq uint64, now time.Time)
}

// feed is a fold and its runner in one handle, so that a reader cannot wait on the
// position of another fold. It is single-use.
type feed struct {
	view   *View
	bucket events.Bucket
	fold   fold

	mu      sync.Mutex
	applied uint64
	live    bool // connected and caught up
	onceUp  bool // was live at least once
	failed  error
	changed chan struct{} // closed and replaced at each change of the above

	// of the tail's goroutine only
	ctx      context.Context //nolint:containedctx // that of run: a Follower is given none
	stream   events.StreamState
	askedAt  time.Time
	catching bool
}

func newFeed(v *View, b events.Bucket, f fold) *feed {
	return &feed{view: v, bucket: b, fold: f, changed: make(chan struct{}), catching: true}
}

func (f *feed) run(ctx context.Context) error {
	f.ctx = ctx
	mode := events.TailLive // what is over stays in the log
	if f.bucket == events.Fleet || f.bucket == events.Sessions || f.bucket == events.Control {
		mode = events.TailLastPerKey // the last fact of a key is the whole state
	}
	err := f.view.cfg.Log.Tail(ctx, f.bucket, events.TailStart{Mode: mode}, f)
	if ctx.Err() != nil {
		err = context.Cause(ctx) // another fold's failure ends this one too, and is what its waiters hear
	} else {
		err = fmt.Errorf("fold %s: %w", f.bucket, err)
	}
	f.set(func() { f.failed, f.live = err, false })
	return err
}

// Begin implements events.Follower.
func (f *feed) Begin(s events.StreamState, fork bool) {
	if fork {
		f.view.cfg.Logger.Error("the log is not the one that was folded: folding anew", "bucket", f.bucket, "first", s.First, "last", s.Last)
	}
	f.stream, f.askedAt, f.catching = s, f.view.cfg.Now(), true
	f.set(func() { f.applied, f.live = 0, false }) // first: who waits must not find the old position on an empty fold
	if fork && f.bucket == events.Control {
		f.view.cfg.Keys.Forget()
	}
	f.fold.reset(s, fork)
	f.view.notify(Change{Bucket: f.bucket, Reset: true})
}

// Newest implements events.LiveFollower.
func (f *feed) Newest(r events.Record) bool {
	_, over := Over(f.view.cfg.Keys, r)
	return !over
}

// Settled implements events.LiveFollower.
func (f *feed) Settled(key string, seq uint64) {
	if s, ok := f.fold.(settler); ok {
		s.settle(key, seq, f.view.cfg.Now())
	}
}

// Record implements events.Follower.
func (f *feed) Record(r events.Record) error {
	e, refusal, err := f.introduced(r)
	if err != nil {
		return fmt.Errorf("sequence %d of %s: %w", r.Seq, f.bucket, err)
	}
	change := Change{Bucket: f.bucket, Seq: r.Seq, Event: e}
	switch {
	case refusal == nil:
		if refusal = f.fold.apply(e, f.seen(r)); refusal == nil && isIdentity(e) && f.view.cfg.Keys.Keyed() {
			f.view.learn(r)
		}
	case f.mayStop(refusal):
		return fmt.Errorf("sequence %d of %s: %w", r.Seq, f.bucket, refusal)
	default:
		f.fold.skip(r.Key, r.Seq)
	}
	if refusal != nil {
		f.view.report(Problem{Bucket: f.bucket, Key: r.Key, Seq: r.Seq, Source: r.Header[events.HeaderSource], Refusal: refusal})
	}
	f.set(func() { f.applied = r.Seq })
	change.Player = playerOf(f.bucket, r.Key)
	f.view.notify(change)
	return nil
}

func isIdentity(e events.Event) bool {
	_, ok := e.Fact.(*events.IdentitySet)
	return ok
}

// mayStop tells that a record which cannot be judged yet stops the fold. Not so a heartbeat:
// each host writes its own, the next one is the whole state again, and no backend shall be
// able to stop a dispatcher.
func (f *feed) mayStop(refusal *events.Refusal) bool {
	return f.bucket != events.Fleet && (refusal.Code == events.UnknownType || refusal.Code == events.UnknownKey)
}

// seen is when this reader may say it saw a record: now, or while catching up as long ago
// as the stream's own clock says.
func (f *feed) seen(r events.Record) time.Time {
	now := f.view.cfg.Now()
	if !f.catching {
		return now
	}
	age := time.Duration(f.stream.Clock-r.Stored.UnixNano()) + now.Sub(f.askedAt)
	return now.Add(-max(age, 0))
}

// Live implements events.Follower.
func (f *feed) Live(last uint64) {
	f.catching = false
	f.fold.sight(true, f.view.cfg.Now())
	f.set(func() { f.applied, f.live, f.onceUp = max(f.applied, last), true, true })
	f.view.notify(Change{Bucket: f.bucket, Seq: last, Live: true})
}

// Blind implements events.Follower.
func (f *feed) Blind(err error) {
	f.view.cfg.Logger.Warn("tail lost its store", "bucket", f.bucket, "error", err)
	f.catching = true // what comes next is older than its arrival; stream and askedAt still tell the stream's clock
	f.fold.sight(false, f.view.cfg.Now())
	f.set(func() { f.live = false })
	f.view.notify(Change{Bucket: f.bucket})
}

func (f *feed) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *feed) position() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.applied
}

func (f *feed) isLive() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.live && f.failed == nil
}

func (f *feed) waitFolded(ctx context.Context, seq uint64) error {
	return f.wait(ctx, func() bool { return f.applied >= seq })
}

func (f *feed) waitLive(ctx context.Context) error {
	return f.wait(ctx, func() bool { return f.onceUp })
}

func (f *feed) wait(ctx context.Context, done func() bool) error {
	for {
		f.mu.Lock()
		failed, ok, changed := f.failed, done(), f.changed
		f.mu.Unlock()
		if failed != nil {
			return failed
		}
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func playerOf(b events.Bucket, key string) events.PlayerID {
	var id events.PlayerID
	if b == events.Transfers {
		id, _, _ = events.ParseTransferKey(key)
	}
	if b == events.Sessions {
		id, _ = events.ParseID[events.PlayerID](key)
	}
	return id
}

func (v *View) notify(c Change) {
	if v.cfg.Changed != nil {
		v.cfg.Changed(c)
	}
}

func (v *View) report(p Problem) {
	v.cfg.Logger.Warn("a message of the log was refused", "bucket", p.Bucket, "seq", p.Seq, "source", p.Source, "code", p.Refusal.Code, "detail", p.Refusal.Detail)
	if v.cfg.Problem != nil {
		v.cfg.Problem(p)
	}
}
