package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// seatLine are the logins that wait for a seat on any server, in the order in which they came.
type seatLine struct {
	mu      sync.Mutex
	waiting []*seatless
	passed  time.Time // when they were last looked at
}

// seatless is a login that waits for a seat.
type seatless struct {
	login Login
	back  bool
	seat  chan Route // has room for one
}

// seatPause is the least time between two looks at all who wait for a seat.
const seatPause = 100 * time.Millisecond

// awaitSeat holds a login until a server has a seat for it, nobody who came before wants it,
// and time is left.
func (d *Dispatcher) awaitSeat(ctx context.Context, l Login, back bool) Route {
	ctx, end := d.hold(ctx)
	defer end()
	x := &seatless{login: l, back: back, seat: make(chan Route, 1)}
	d.seats.enter(x)
	defer d.seats.leave(x)
	look := time.NewTicker(joinPause)
	defer look.Stop()
	for {
		select {
		case r := <-x.seat:
			return r
		case <-look.C:
			d.giveSeats()
		case <-ctx.Done():
			return nobodyTakes(events.NoCandidate)
		}
	}
}

// giveSeats gives the seats that are free now to those who wait, first come, first served.
func (d *Dispatcher) giveSeats() {
	d.seats.mu.Lock()
	defer d.seats.mu.Unlock()
	if d.Now().Sub(d.seats.passed) < seatPause {
		return
	}
	d.seats.passed = d.Now()
	d.seats.waiting = slices.DeleteFunc(d.seats.waiting, func(x *seatless) bool {
		r, ok := d.seatOf(x.login, x.back)
		if ok {
			x.seat <- r
		}
		return ok
	})
}

func (s *seatLine) enter(x *seatless) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, x)
}

func (s *seatLine) leave(x *seatless) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = slices.DeleteFunc(s.waiting, func(y *seatless) bool { return x == y })
}

// empty tells that nobody waits for a seat.
func (s *seatLine) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.waiting) == 0
}
