package actors

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// LineRules say how players wait who cannot be served at once. The zero value takes the
// shipped rules.
type LineRules struct {
	Enabled bool // false: who cannot be served at once is refused
	MaxSize int  // who would be further back is refused; who is in line already never is
	// Notify is how often a waiting player hears the position at least.
	Notify time.Duration
	// MaxBypass is how many may be given a place ahead of one who waits for the same.
	MaxBypass int
	// DrainPerSecond is how many places each destination gives in a second, see
	// BackendConfig. A dispatcher does not ask for more than that; 0: as many as there are.
	DrainPerSecond float64
}

// ShippedLineRules hold unless an operator says otherwise.
func ShippedLineRules() LineRules {
	return LineRules{Enabled: true, MaxSize: 1024, Notify: 5 * time.Second, MaxBypass: 3}
}

// SetLine replaces the rules of the line. It does not block; it holds from the next dispatch on.
func (d *Dispatcher) SetLine(r LineRules) {
	if r == (LineRules{}) {
		r = ShippedLineRules()
	}
	d.lineRules.Store(&r)
}

// parked are the transfers of this dispatcher that wait for their turn, and what it knows
// beside the log of those who wait. A cache: losing it costs a question.
type parked struct {
	mu        sync.Mutex
	byID      map[events.TransferID]events.PlayerID
	heads     map[events.TransferID]time.Time // others' players who stand first somewhere, and since when
	corrected map[projections.Spot]correction
	calls     map[events.TransferID]chan struct{} // called up, and not yet served or parked again
	nudged    chan struct{}
}

// correction is what a destination's own answer said of a spot; it holds until there is a
// newer heartbeat than the one that led to the question.
type correction struct {
	beat uint64 // that one
	kept int
}

func (l *parked) init() {
	l.byID = map[events.TransferID]events.PlayerID{}
	l.heads = map[events.TransferID]time.Time{}
	l.corrected = map[projections.Spot]correction{}
	l.calls = map[events.TransferID]chan struct{}{}
	l.nudged = make(chan struct{}, 1)
}

func (l *parked) park(t projections.Transfer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[t.ID] = t.Player
	l.nudge()
}

func (l *parked) leave(id events.TransferID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

// call takes a transfer out of the parked. The channel is closed when its dispatch has ended.
func (l *parked) call(id events.TransferID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
	done := make(chan struct{})
	l.calls[id] = done
	return done
}

// dispatched says that a dispatch has ended, whether it was called for or not.
func (l *parked) dispatched(id events.TransferID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if done, ok := l.calls[id]; ok {
		close(done)
		delete(l.calls, id)
	}
}

func (l *parked) waits(id events.TransferID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.byID[id]
	return ok
}

func (l *parked) all() map[events.TransferID]events.PlayerID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.byID)
}

// nudge asks for another pass. It never blocks.
func (l *parked) nudge() { nudge(l.nudged) }

// nudge wakes who waits for a channel that has room for one. It never blocks.
func nudge(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// correct takes in what a destination said when it had no place to give.
func (l *parked) correct(at projections.Spot, c correction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.corrected[at] = c
}

// keptAt is what a heartbeat says of a spot, or the destination has said since.
func (l *parked) keptAt(b *projections.Backend, r *events.RegionBeat) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := r.Kept
	for _, at := range []projections.Spot{{Server: b.Server, Region: r.Name}, {Server: b.Server}} {
		c, ok := l.corrected[at]
		switch {
		case !ok:
		case b.Seq > c.beat:
			delete(l.corrected, at)
		default:
			kept = min(kept, c.kept)
		}
	}
	return kept
}

// noteHeads takes in who stands first at the spots now. A player of another dispatcher who
// has stood there for longer than it takes to be served is not waited for any more.
func (l *parked) noteHeads(now time.Time, first map[events.TransferID]bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.heads {
		if !first[id] {
			delete(l.heads, id)
		}
	}
	for id := range first {
		if _, known := l.heads[id]; !known {
			l.heads[id] = now
		}
	}
}

func (l *parked) silentHeads(now time.Time, after time.Duration) map[events.TransferID]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := map[events.TransferID]bool{}
	for id, since := range l.heads {
		if now.Sub(since) > after {
			out[id] = true
		}
	}
	return out
}

// linePause is the least time between two passes over the line. A pass that took long is
// followed by a longer one: it must not take more than a tenth of a processor.
const linePause = 20 * time.Millisecond

// runLine passes over the line whenever the log, the fleet or the controls have changed.
func (d *Dispatcher) runLine(ctx context.Context) error {
	for {
		select {
		case <-d.line.nudged:
		case <-ctx.Done():
			return ctx.Err()
		}
		began := d.Now()
		d.passLine(ctx)
		if !sleep(ctx, max(linePause, 10*d.Now().Sub(began))) {
			return ctx.Err()
		}
	}
}

// passLine calls up those of the parked whose turn has come, and those who are no longer in
// line or no longer ours: whoever attends to them finds out.
func (d *Dispatcher) passLine(ctx context.Context) {
	waiting := d.line.all()
	if len(waiting) == 0 {
		return
	}
	t := d.newTurns(events.Wish{}, d.watch())
	var called []projections.InLine
	first := map[events.TransferID]bool{}
	d.view.InOrder(func(q projections.Queued) bool {
		_, parked := waiting[q.Transfer]
		delete(waiting, q.Transfer)
		ours := t.ours(q)
		switch {
		case parked && !ours, parked && t.open(q):
			called = append(called, q.InLine)
		case t.silent[q.Transfer]:
			first[q.Transfer] = true
		}
		if t.counts(q) && t.take(q) && !ours {
			first[q.Transfer] = true
		}
		return true
	})
	d.line.noteHeads(d.Now(), first)
	for _, x := range called {
		d.callUp(ctx, x.Transfer, x.Player)
	}
	for id, player := range waiting {
		d.callUp(ctx, id, player)
	}
}

// callStep is how long the next in line is kept back for the one before: long enough to be
// asked for first, and no longer, since that one's destination may not answer.
const callStep = 3 * time.Millisecond

func (d *Dispatcher) callUp(ctx context.Context, id events.TransferID, player events.PlayerID) {
	done := d.line.call(id)
	defer d.line.dispatched(id)
	d.work.add(player)
	step := time.NewTimer(callStep)
	defer step.Stop()
	select {
	case <-done:
	case <-step.C:
	case <-ctx.Done():
	}
}

func inPhases(p projections.Phase, list []projections.Phase) bool { return slices.Contains(list, p) }
