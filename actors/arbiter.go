package actors

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// maxPending is how many requests may wait for their slots at one destination: fewer than a
// Bus serves at once, so that a lower place always gets through.
const maxPending = 128

// arbiter gives the slots of a destination: so many in a second, each to the lowest place that
// is waiting for one. Who comes when a slot is free need not wait; a second's worth of slots
// may be saved up. Safe for concurrent use.
type arbiter struct {
	now func() time.Time

	mu      sync.Mutex
	rate    float64 // slots in a second, 0: no pace
	saved   float64 // slots that are free, as of at
	at      time.Time
	pending []*entrant // lowest place first
	timer   *time.Timer
}

// entrant is one request that waits for a slot.
type entrant struct {
	place   uint64
	granted chan bool // buffered; false: sent away
}

// newArbiter gives perSecond slots in a second, 0 for no pace. All that can be are saved up.
func newArbiter(perSecond float64, now func() time.Time) *arbiter {
	a := &arbiter{now: now, rate: max(perSecond, 0), at: now()}
	a.saved = a.burst()
	return a
}

// setRate changes the pace.
func (a *arbiter) setRate(perSecond float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accrue(a.now())
	a.rate = max(perSecond, 0)
	a.serve()
}

func (a *arbiter) burst() float64 { return max(a.rate, 1) }

// accrue must be called with the lock held, as everything below.
func (a *arbiter) accrue(now time.Time) {
	a.saved = min(a.saved+a.rate*max(now.Sub(a.at), 0).Seconds(), a.burst())
	a.at = now
}

// enter waits for a slot, in the order of places, and reports whether it got one before the
// deadline of ctx came near: the answer has to travel back.
func (a *arbiter) enter(ctx context.Context, place uint64) bool {
	e := a.join(place)
	if e == nil {
		return true
	}
	if at, ok := ctx.Deadline(); ok {
		wait := time.Until(at)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, wait-min(wait/5, answerTravels))
		defer cancel()
	}
	select {
	case granted := <-e.granted:
		return granted
	case <-ctx.Done():
		return a.quit(e)
	}
}

// answerTravels is how long before the caller's deadline an answer is given.
const answerTravels = 250 * time.Millisecond

// join gives nil when a slot was free.
func (a *arbiter) join(place uint64) *entrant {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.rate == 0 {
		return nil
	}
	a.accrue(a.now())
	if len(a.pending) == 0 && a.saved >= 1 {
		a.saved--
		return nil
	}
	e := &entrant{place: place, granted: make(chan bool, 1)}
	i, _ := slices.BinarySearchFunc(a.pending, place, func(x *entrant, p uint64) int { return cmp.Compare(x.place, p) })
	a.pending = slices.Insert(a.pending, i, e)
	if len(a.pending) > maxPending {
		last := len(a.pending) - 1
		a.pending[last].granted <- false
		a.pending = a.pending[:last]
	}
	a.serve()
	return e
}

// quit takes a request out that waits no longer. It reports whether it was granted a slot at
// the last moment.
func (a *arbiter) quit(e *entrant) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if i := slices.Index(a.pending, e); i >= 0 {
		a.pending = slices.Delete(a.pending, i, i+1)
		return false
	}
	return <-e.granted
}

// giveBack returns a slot that came to nothing.
func (a *arbiter) giveBack() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.accrue(a.now())
	a.saved = min(a.saved+1, a.burst())
	a.serve()
}

// serve grants what is free, and wakes itself for the next slot.
func (a *arbiter) serve() {
	for len(a.pending) > 0 && (a.rate == 0 || a.saved >= 1) {
		a.saved = max(a.saved-1, 0)
		a.pending[0].granted <- true
		a.pending = a.pending[1:]
	}
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.pending) == 0 {
		return
	}
	next := time.Duration((1 - a.saved) / a.rate * float64(time.Second))
	a.timer = time.AfterFunc(next+time.Microsecond, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.accrue(a.now())
		a.serve()
	})
}

// close stops the clock of a life that is over, and sends everybody away.
func (a *arbiter) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, e := range a.pending {
		e.granted <- false
	}
	a.pending = nil
	if a.timer != nil {
		a.timer.Stop()
	}
}
