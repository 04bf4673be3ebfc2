package sim_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landfall/landfall/events"
)

// gate stands between a host and its connection and holds single steps up, so that a test
// can let somebody die exactly between two of them.
type gate struct {
	conn

	// answered hears of every question that was answered: when it was asked, and what came.
	answered atomic.Pointer[func(asked time.Time, subject string, q, a events.Wire)]
	// served hears of every request that this host has answered: when it came, and what was said.
	served func(came time.Time, subject string, q, a events.Wire)

	// forge changes what leaves the host; nil: nothing.
	forge atomic.Pointer[func(events.Message) events.Message]

	mu    sync.Mutex
	holds []*hold
}

// hold stops matching steps before they leave the host.
type hold struct {
	match   func(step string) bool
	reached chan struct{} // closed when a step stands at the gate
	open    chan struct{} // closed to let it go on
	once    sync.Once
}

// hold arms the gate: the next step whose name contains text waits. Steps are named by the
// wire type of the fact, or by the subject of the request.
func (g *gate) hold(text string) *hold {
	h := &hold{
		match:   func(step string) bool { return strings.Contains(step, text) },
		reached: make(chan struct{}), open: make(chan struct{}),
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.holds = append(g.holds, h)
	return h
}

func (h *hold) release() { close(h.open) }

func (h *hold) isReached() bool {
	select {
	case <-h.reached:
		return true
	default:
		return false
	}
}

func (g *gate) pass(ctx context.Context, step string) error {
	g.mu.Lock()
	var here *hold
	for _, h := range g.holds {
		if h.match(step) && !h.isReached() {
			here = h
			here.once.Do(func() { close(h.reached) })
			break
		}
	}
	g.mu.Unlock()
	if here == nil {
		return nil
	}
	select {
	case <-here.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) Append(ctx context.Context, m events.Message) (uint64, error) {
	if err := g.pass(ctx, m.Header[events.HeaderType]); err != nil {
		return 0, &events.AppendError{Reason: events.Unavailable, Key: m.Key, Err: err}
	}
	if forge := g.forge.Load(); forge != nil {
		m = (*forge)(m)
	}
	return g.conn.Append(ctx, m)
}

func (g *gate) Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error) {
	if err := g.pass(ctx, subject); err != nil {
		return events.Wire{}, err
	}
	asked := time.Now()
	a, err := g.conn.Ask(ctx, subject, w)
	if hear := g.answered.Load(); hear != nil && err == nil {
		(*hear)(asked, subject, w, a)
	}
	return a, err
}

func (g *gate) Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error {
	if g.served == nil {
		return g.conn.Serve(ctx, subject, queue, ready, handle)
	}
	return g.conn.Serve(ctx, subject, queue, ready, func(ctx context.Context, subject string, q events.Wire) events.Wire {
		came := time.Now()
		a := handle(ctx, subject, q)
		g.served(came, subject, q, a)
		return a
	})
}
