package rcon

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/landfall/landfall/actors"
)

// vitals is what the polls last saw. Safe for concurrent use.
type vitals struct {
	mu     sync.Mutex
	up     bool
	cause  error // why it is down
	health actors.Health
}

// setDown is true when that is news.
func (v *vitals) setDown(cause error) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	news := v.up || v.cause == nil
	v.up, v.cause, v.health = false, cause, actors.Health{}
	return news
}

func (v *vitals) setUp(game string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.up, v.cause, v.health.Game = true, nil, game
}

func (v *vitals) set(change func(*actors.Health)) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change(&v.health)
}

func (v *vitals) get() (actors.Health, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.up:
		return v.health, nil
	case v.cause != nil:
		return actors.Health{}, fmt.Errorf("%w: %w", actors.ErrDown, v.cause)
	}
	return actors.Health{}, fmt.Errorf("not asked yet: %w", actors.ErrDown)
}

// Health returns what the polls of Run last measured, at most a few seconds
// old. It sends nothing and does not block. actors.ErrDown while the server
// does not answer. What the server has no command for stays nil: heap and
// protocol always do.
func (s *Sidecar) Health(context.Context) (actors.Health, error) { return s.sample() }

func (s *Sidecar) sample() (actors.Health, error) { return s.vitals.get() }

// pollHealth asks for one figure. Paper tells two, by two commands, in turn.
func (s *Sidecar) pollHealth(ctx context.Context) error {
	if !s.console.paper.Load() {
		return s.pollTick(ctx)
	}
	s.askTPS = !s.askTPS
	if s.askTPS {
		return s.pollOne(ctx, "mspt", parseMSPT, func(h *actors.Health, v *float64) { h.MSPT = v })
	}
	return s.pollOne(ctx, "tps", parseTPS, func(h *actors.Health, v *float64) { h.TPS = v })
}

func (s *Sidecar) pollOne(ctx context.Context, command string, parse func(string) (float64, bool), put func(*actors.Health, *float64)) error {
	reply, err := s.console.run(ctx, Paid, command)
	if err != nil {
		return err
	}
	v, ok := parse(reply)
	s.vitals.set(func(h *actors.Health) { put(h, measured(v, ok)) })
	return nil
}

// pollTick reads vanilla's own figures: it ticks at the target rate or as fast
// as a tick takes. Servers before 1.20.3 tell neither.
func (s *Sidecar) pollTick(ctx context.Context) error {
	reply, err := s.console.run(ctx, Paid, "tick query")
	if err != nil {
		return err
	}
	mspt, target, ok := parseTickQuery(reply)
	tps := target
	if mspt > 0 {
		tps = math.Min(target, 1000/mspt)
	}
	s.vitals.set(func(h *actors.Health) { h.MSPT, h.TPS = measured(mspt, ok), measured(tps, ok) })
	return nil
}

func measured(v float64, ok bool) *float64 {
	if !ok {
		return nil
	}
	return &v
}
