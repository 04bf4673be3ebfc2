package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// maxHandlers is how many handlers of one Serve run at once.
const maxHandlers = 256

// subscription is one Serve or Listen call. Guarded by Memory.mu.
type subscription struct {
	c       *Client
	subject string
	queue   string
	serves  bool
	pending []delivery
	arrived signal
}

type delivery struct {
	subject string
	wire    events.Wire
	at      time.Time
	answer  chan<- reply // of a request whose answer is not lost; has room for the first
}

type reply struct {
	wire events.Wire
	err  error
}

// Ask sends a request and waits for the first answer. It fails with events.ErrNobody when
// no one serves the subject, else with ctx's error.
func (c *Client) Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error) {
	err := c.enter(ctx)
	if err == nil {
		answer := make(chan reply, 1)
		after(c.m.latency, func() { c.m.request(subject, w, answer) })
		var r reply
		if r, err = await(ctx, c, answer); err == nil {
			err = r.err
		}
		if err == nil {
			return r.wire, nil
		}
	}
	if errors.Is(err, errNoConnection) {
		<-ctx.Done()
		err = ctx.Err()
	}
	return events.Wire{}, fmt.Errorf("ask %s: %w", subject, err)
}

// request is the moment at which a request reaches the store.
func (m *Memory) request(subject string, w events.Wire, answer chan<- reply) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.down || m.rules.Drops(subject) {
		return
	}
	servers := m.choose(subject)
	if len(servers) == 0 {
		after(m.latency, func() { offer(answer, reply{err: events.ErrNobody}) })
		return
	}
	d := delivery{subject: subject, wire: w, at: time.Now().Add(m.latency), answer: answer}
	if m.rules.Loses(subject) {
		d.answer = nil
	}
	for _, s := range servers {
		s.push(d)
	}
}

// choose gives the servers of a subject that can be reached: one of each queue, all of those without.
func (m *Memory) choose(subject string) []*subscription {
	var out []*subscription
	queues := map[string][]*subscription{}
	var names []string
	for _, s := range m.subs {
		switch {
		case !s.serves || !s.c.up() || !matches(s.subject, subject):
		case s.queue == "":
			out = append(out, s)
		default:
			if queues[s.queue] == nil {
				names = append(names, s.queue)
			}
			queues[s.queue] = append(queues[s.queue], s)
		}
	}
	for _, name := range names {
		of := queues[name]
		out = append(out, of[m.rng.IntN(len(of))])
	}
	return out
}

// offer answers unless somebody has answered already.
func offer(answer chan<- reply, r reply) {
	select {
	case answer <- r:
	default:
	}
}

// push wants m.mu held.
func (s *subscription) push(d delivery) {
	s.pending = append(s.pending, d)
	s.arrived.fire()
}

// Serve answers requests to a subject (wildcards allowed) until ctx ends, and returns
// ctx's error after the last handle has returned. What has arrived when ctx ends is still
// handled, unless the host is stopped or cut off then: to kill a host, cut it off first.
func (c *Client) Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error {
	s, err := c.subscribe(ctx, &subscription{c: c, subject: subject, queue: queue, serves: true}, ready)
	if err != nil {
		return err
	}
	var handlers sync.WaitGroup
	defer handlers.Wait()
	slots := make(chan struct{}, maxHandlers)
	work := func(d delivery) {
		slots <- struct{}{}
		handlers.Go(func() {
			defer func() { <-slots }()
			c.answer(ctx, d, handle(ctx, d.subject, d.wire))
		})
	}
	for {
		d, err := s.next(ctx)
		if err != nil {
			s.drain(work)
			return err
		}
		work(d)
	}
}

// drain ends the subscription with what it has received.
func (s *subscription) drain(work func(delivery)) {
	s.leave()
	for {
		s.c.m.mu.Lock()
		if len(s.pending) == 0 || s.c.stopped || !s.c.up() || s.pending[0].at.After(time.Now()) {
			s.c.m.mu.Unlock()
			return
		}
		d := s.pending[0]
		s.pending = s.pending[1:]
		s.c.m.mu.Unlock()
		work(d)
	}
}

// answer sends a reply, as soon as the host is not stopped, if it is connected then.
func (c *Client) answer(ctx context.Context, d delivery, w events.Wire) {
	if c.running(ctx) != nil || d.answer == nil || w.Silent() || !c.connected() {
		return
	}
	after(2*c.m.latency, func() { offer(d.answer, reply{wire: w}) })
}

// Announce publishes news. It does not wait for anybody, and fails only when the host is
// not connected.
func (c *Client) Announce(ctx context.Context, subject string, w events.Wire) error {
	if err := c.enter(ctx); err != nil {
		return fmt.Errorf("announce %s: %w", subject, err)
	}
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.rules.Drops(subject) {
		return nil
	}
	at := time.Now().Add(2 * c.m.latency)
	for _, s := range c.m.subs {
		if !s.serves && s.c.up() && matches(s.subject, subject) {
			s.push(delivery{subject: subject, wire: w, at: at})
		}
	}
	return nil
}

// Listen hears news in the order they arrive from each publisher, one at a time, until
// ctx ends; it returns ctx's error.
func (c *Client) Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error {
	s, err := c.subscribe(ctx, &subscription{c: c, subject: subject}, ready)
	if err != nil {
		return err
	}
	defer s.leave()
	for {
		d, err := s.next(ctx)
		if err != nil {
			return err
		}
		hear(d.subject, d.wire)
	}
}

func (c *Client) subscribe(ctx context.Context, s *subscription, ready func()) (*subscription, error) {
	if err := c.until(ctx, func() bool { return c.up() && !c.stopped }); err != nil {
		return nil, err
	}
	c.m.mu.Lock()
	c.m.subs = append(c.m.subs, s)
	c.m.mu.Unlock()
	if ready != nil {
		ready()
	}
	return s, nil
}

func (s *subscription) leave() {
	m := s.c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	m.subs = slices.DeleteFunc(m.subs, func(other *subscription) bool { return other == s })
}

// next waits for a delivery to arrive at a host that is not stopped.
func (s *subscription) next(ctx context.Context) (delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return delivery{}, err
		}
		at, arrived := s.peek()
		if arrived == nil {
			if err := sleepUntil(ctx, at); err != nil {
				return delivery{}, err
			}
			if err := s.c.running(ctx); err != nil {
				return delivery{}, err
			}
			return s.pop(), nil
		}
		select {
		case <-ctx.Done():
		case <-arrived:
		}
	}
}

// peek says when the oldest delivery arrives, or what to wait for when there is none.
func (s *subscription) peek() (time.Time, <-chan struct{}) {
	s.c.m.mu.Lock()
	defer s.c.m.mu.Unlock()
	if len(s.pending) == 0 {
		return time.Time{}, s.arrived.wait()
	}
	return s.pending[0].at, nil
}

// pop takes the oldest delivery. Only the goroutine of Serve or Listen does.
func (s *subscription) pop() delivery {
	s.c.m.mu.Lock()
	defer s.c.m.mu.Unlock()
	d := s.pending[0]
	s.pending = s.pending[1:]
	return d
}

// matches tells whether a subject falls under a pattern with the wildcards * and >.
func matches(pattern, subject string) bool {
	for pattern != "" && subject != "" {
		var p, s string
		p, pattern, _ = strings.Cut(pattern, ".")
		if p == ">" {
			return true
		}
		s, subject, _ = strings.Cut(subject, ".")
		if p != "*" && p != s {
			return false
		}
	}
	return pattern == "" && subject == ""
}
