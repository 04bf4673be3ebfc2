package actors

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// parked are the transfers of this dispatcher that nobody could serve: they are tried again
// in the order of their places, whenever the fleet has changed.
type parked struct {
	mu     sync.Mutex
	byID   map[events.TransferID]projections.Transfer
	nudged chan struct{}
}

func (l *parked) init() {
	l.byID = map[events.TransferID]projections.Transfer{}
	l.nudged = make(chan struct{}, 1)
}

func (l *parked) park(t projections.Transfer) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byID[t.ID] = t
	l.nudge()
}

func (l *parked) leave(id events.TransferID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byID, id)
}

func (l *parked) waits(id events.TransferID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.byID[id]
	return ok
}

// before tells that somebody with a lower place waits for the same.
func (l *parked) before(t projections.Transfer) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.byID {
		if x.Place < t.Place && overlaps(x.Request.Wish, t.Request.Wish) {
			return true
		}
	}
	return false
}

// overlaps tells that one destination could serve both wishes.
func overlaps(a, b events.Wish) bool {
	meet := func(x, y string) bool { return x == "" || y == "" || x == y }
	return meet(a.Region, b.Region) && meet(a.World, b.World) && meet(string(a.Pin), string(b.Pin))
}

func (l *parked) nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// inOrder lists the parked transfers, lowest place first.
func (l *parked) inOrder() []projections.Transfer {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]projections.Transfer, 0, len(l.byID))
	for _, t := range l.byID {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b projections.Transfer) int { return cmp.Compare(a.Place, b.Place) })
	return out
}

// linePause is the least time between two passes over the line.
const linePause = 100 * time.Millisecond

// runLine passes over the line whenever the fleet or the controls have changed.
func (d *Dispatcher) runLine(ctx context.Context) error {
	for {
		select {
		case <-d.line.nudged:
			d.passLine(ctx)
		case <-ctx.Done():
			return ctx.Err()
		}
		if !sleep(ctx, linePause) {
			return ctx.Err()
		}
	}
}

// passLine offers each parked transfer, in order, to the workers, as long as somebody could
// serve it. Whoever stands behind a head that found the coordinates just taken, and could
// use the same ones, waits for the next pass.
func (d *Dispatcher) passLine(ctx context.Context) {
	var blocked []events.Wish
	for _, t := range d.line.inOrder() {
		s := d.standing(t.Player)
		if s.Active == nil || s.Active.ID != t.ID || !inPhases(s.Active.Phase, openPhases) || !holds(s, d.Source) {
			d.line.leave(t.ID)
			d.work.add(t.Player)
			continue
		}
		if s.Controls.Killed || slices.ContainsFunc(blocked, func(w events.Wish) bool { return overlaps(w, t.Request.Wish) }) {
			continue
		}
		ranked, _ := choose(d.question(s, &run{}), d.view.Fleet())
		if len(ranked) > 0 && !d.serveParked(ctx, s) {
			blocked = append(blocked, t.Request.Wish)
		}
	}
}

// serveParked tries to reserve for the transfer at the head; it stays parked when that fails.
func (d *Dispatcher) serveParked(ctx context.Context, s Standing) bool {
	t := *s.Active
	d.runs.end(t.ID)
	won, _, _ := d.reserveBest(ctx, s, d.runs.get(t.ID, d.view.Fleet()), false)
	if won {
		d.line.leave(t.ID)
		d.work.add(t.Player)
	}
	return won
}

func inPhases(p projections.Phase, list []projections.Phase) bool { return slices.Contains(list, p) }
