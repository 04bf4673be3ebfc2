package actors

import (
	"context"
	"sync"

	"github.com/landfall/landfall/events"
)

// maxWorkers bounds how many players are attended to at once.
const maxWorkers = 512

// workers attends to players: one at a time for each player, and again when something
// changed meanwhile.
type workers struct {
	mu    sync.Mutex
	jobs  map[events.PlayerID]*job
	queue []events.PlayerID
	wake  chan struct{}
}

type job struct{ again bool }

func (w *workers) init() {
	w.jobs = map[events.PlayerID]*job{}
	w.wake = make(chan struct{}, 1)
}

// add asks that a player be attended to. It never blocks.
func (w *workers) add(p events.PlayerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if j, ok := w.jobs[p]; ok {
		j.again = true
		return
	}
	w.jobs[p] = &job{}
	w.queue = append(w.queue, p)
	w.signal()
}

func (w *workers) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *workers) busy() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.jobs)
}

// run attends until ctx ends, and returns when the last attendance has ended.
func (w *workers) run(ctx context.Context, attend func(context.Context, events.PlayerID)) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, maxWorkers)
	for {
		for p, ok := w.next(); ok; p, ok = w.next() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			wg.Go(func() {
				defer func() { <-slots }()
				attend(ctx, p)
				w.done(p)
			})
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (w *workers) next() (events.PlayerID, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return events.PlayerID{}, false
	}
	p := w.queue[0]
	w.queue = w.queue[1:]
	return p, true
}

func (w *workers) done(p events.PlayerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	j := w.jobs[p]
	if !j.again {
		delete(w.jobs, p)
		return
	}
	j.again = false
	w.queue = append(w.queue, p)
	w.signal()
}

// wakers lets a goroutine wait for the next fold that concerns one player.
type wakers struct {
	mu    sync.Mutex
	chans map[events.PlayerID]*waker
}

type waker struct {
	ch   chan struct{}
	refs int
}

func (w *wakers) init() { w.chans = map[events.PlayerID]*waker{} }

func (w *wakers) wake(p events.PlayerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k, ok := w.chans[p]; ok {
		close(k.ch)
		k.ch = make(chan struct{})
	}
}

// until blocks until cond holds, looked at now and after each fold that concerns the player,
// or ctx ends. It reports whether cond held.
func (w *wakers) until(ctx context.Context, p events.PlayerID, cond func() bool) bool {
	k := w.hold(p)
	defer w.letGo(p)
	for {
		w.mu.Lock()
		ch := k.ch
		w.mu.Unlock()
		if cond() {
			return true
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return cond()
		}
	}
}

func (w *wakers) hold(p events.PlayerID) *waker {
	w.mu.Lock()
	defer w.mu.Unlock()
	k, ok := w.chans[p]
	if !ok {
		k = &waker{ch: make(chan struct{})}
		w.chans[p] = k
	}
	k.refs++
	return k
}

func (w *wakers) letGo(p events.PlayerID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.chans[p]; k != nil {
		if k.refs--; k.refs == 0 {
			delete(w.chans, p)
		}
	}
}
