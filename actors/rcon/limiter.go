package rcon

import (
	"context"
	"sync"
	"time"
)

// Class is why a command is sent. A game server runs commands on its main
// thread, so what merely looks must not crowd out what a player waits for.
type Class int

const (
	// Urgent commands act on a player who waits: they never wait here. Polls
	// pay for them afterwards, up to one second's worth.
	Urgent Class = iota
	// Poll commands look. Which look comes first is the Sidecar's own schedule.
	Poll
	// Paid is the command of a poll whose turn the schedule has already waited for.
	Paid
	// Work prepares coordinates: not a poll, so it has a pace of its own.
	Work
)

const (
	defaultPolls = 3.0
	defaultWork  = 20.0 // one a tick
)

// Limiter paces the commands of all recipes. Safe for concurrent use; it owns
// no goroutine.
type Limiter struct {
	polls, work pace
}

// NewLimiter takes commands per second; 0 means 3 polls and 20 work commands.
func NewLimiter(polls, work float64) *Limiter {
	if polls <= 0 {
		polls = defaultPolls
	}
	if work <= 0 {
		work = defaultWork
	}
	return &Limiter{polls: newPace(polls), work: newPace(work)}
}

// Wait blocks until a command of the class may be sent, or ctx ends.
func (l *Limiter) Wait(ctx context.Context, class Class) error {
	switch class {
	case Urgent:
		l.polls.charge()
		return context.Cause(ctx)
	case Paid:
		return context.Cause(ctx)
	case Work:
		return l.work.wait(ctx)
	default:
		return l.polls.wait(ctx)
	}
}

// pace is a token bucket of one token, kept as the moment of the next one:
// commands are spread evenly, never bunched.
type pace struct {
	every time.Duration
	mu    sync.Mutex
	next  time.Time
}

func newPace(perSecond float64) pace {
	return pace{every: time.Duration(float64(time.Second) / perSecond)}
}

// take books the next free moment.
func (p *pace) take() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	at := p.next
	if at.Before(now) {
		at = now
	}
	p.next = at.Add(p.every)
	return at.Sub(now)
}

// charge books a moment that is used now, and owes at most a second.
func (p *pace) charge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.next.Before(now) {
		p.next = now
	}
	if limit := now.Add(time.Second); p.next.Before(limit) {
		p.next = p.next.Add(p.every)
	}
}

// wait uses up its moment even when ctx ends first.
func (p *pace) wait(ctx context.Context) error {
	delay := p.take()
	if delay <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
