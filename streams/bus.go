package streams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// maxHandlers is how many requests one Serve works on at once; more wait in line.
const maxHandlers = 256

// Ask sends a request and waits for the answer, at most until ctx ends (5 s when it has
// no deadline). It fails with events.ErrNobody when no one serves the subject, or the
// request certainly did not leave this process; else with ctx's error or the transport's,
// and the request may have been carried out.
func (s *Store) Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return events.Wire{}, fmt.Errorf("ask %s: %w", subject, err)
	}
	answer, sent, err := s.read.request(ctx, wireMsg(subject, w))
	switch {
	case err == nil:
		return events.Wire{Header: flatten(answer.Header), Body: answer.Data}, nil
	case errors.Is(err, errDenied), sent:
		return events.Wire{}, fmt.Errorf("ask %s: %w", subject, err)
	}
	return events.Wire{}, fmt.Errorf("ask %s: %w: %w", subject, events.ErrNobody, err)
}

// Announce publishes news. It does not wait for anybody, and nothing is kept for later:
// without a connection it fails.
func (s *Store) Announce(ctx context.Context, subject string, w events.Wire) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("announce %s: %w", subject, err)
	}
	if err := s.read.nc.PublishMsg(wireMsg(subject, w)); err != nil {
		return fmt.Errorf("announce %s: %w", subject, err)
	}
	return nil
}

// Serve answers requests to a subject (wildcards allowed) until ctx ends; of several
// servers with the same queue one gets each request. handle runs concurrently with itself,
// at most 256 at once; its context ends with ctx or with the caller's deadline. What has
// arrived when ctx ends is still answered. Serve returns only after the last handle has
// returned. ready is called once the subscription stands at the server.
func (s *Store) Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error {
	var running sync.WaitGroup
	defer running.Wait()
	slots := make(chan struct{}, maxHandlers)
	work := func(m *nats.Msg) {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			s.answer(ctx, m, handle)
		})
	}
	return s.subscribe(ctx, subject, ready, func() (*nats.Subscription, error) { return s.read.nc.QueueSubscribe(subject, queue, work) })
}

func (s *Store) answer(ctx context.Context, m *nats.Msg, handle func(context.Context, string, events.Wire) events.Wire) {
	if ms, err := strconv.Atoi(m.Header.Get(events.HeaderDeadline)); err == nil && ms > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	out := handle(ctx, m.Subject, events.Wire{Header: flatten(m.Header), Body: m.Data})
	if m.Reply == "" || out.Silent() {
		return
	}
	if err := m.RespondMsg(wireMsg(m.Reply, out)); err != nil {
		s.log.Warn("answer not sent", "subject", m.Subject, "error", err)
	}
}

// Listen hears news in the order they arrive from each publisher, one at a time, until ctx
// ends. It returns after the last hear has returned.
func (s *Store) Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error {
	work := func(m *nats.Msg) { hear(m.Subject, events.Wire{Header: flatten(m.Header), Body: m.Data}) }
	return s.subscribe(ctx, subject, ready, func() (*nats.Subscription, error) { return s.read.nc.Subscribe(subject, work) })
}

// subscribe holds a subscription until ctx ends, then lets it finish what it has. The
// client renews it after each reconnect.
func (s *Store) subscribe(ctx context.Context, subject string, ready func(), open func() (*nats.Subscription, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	sub, err := open()
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	ended := make(chan struct{})
	sub.SetClosedHandler(func(string) { close(ended) })
	defer s.finish(sub, ended)
	if err := s.standing(ctx); err != nil {
		return fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	if ready != nil {
		ready()
	}
	<-ctx.Done()
	return ctx.Err()
}

// finish lets a subscription handle what has arrived and waits for it. Without a connection
// nothing more can arrive.
func (s *Store) finish(sub *nats.Subscription, ended <-chan struct{}) {
	f := s.read.life()
	if !s.read.nc.IsConnected() || sub.Drain() != nil {
		_ = sub.Unsubscribe() // fails only when it is gone already
	}
	select {
	case <-ended:
	case <-f.lost:
		_ = sub.Unsubscribe()
		<-ended
	}
}

// standing returns once the server has seen everything this connection has sent.
func (s *Store) standing(ctx context.Context) error {
	wait := newBackOff(0)
	for {
		flush, cancel := context.WithTimeout(ctx, time.Second)
		err := s.read.nc.FlushWithContext(flush)
		cancel()
		if err == nil {
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if !pause(ctx, wait.NextBackOff()) {
			return ctx.Err()
		}
	}
}

func wireMsg(subject string, w events.Wire) *nats.Msg {
	m := nats.NewMsg(subject)
	for name, value := range w.Header {
		m.Header[name] = []string{value}
	}
	m.Data = w.Body
	return m
}
