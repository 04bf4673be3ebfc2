package r1

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

var (
	errAckLost  = errors.New("the acknowledgement was lost")
	errInjected = errors.New("injected by the test")
)

// Client is the connection of one host, with faults that strike this host alone; they mean
// what they mean at a streamtest.Client. Safe for concurrent use.
type Client struct {
	n         *Network
	cable     *Cable
	connected chan struct{} // closed once st is there, or Close was called before
	st        *streams.Store
	ctx       context.Context // ends with Close
	end       context.CancelFunc
	ended     sync.WaitGroup

	mu       sync.Mutex
	stopped  chan struct{} // closed to resume; nil: runs
	delay    time.Duration
	loseAcks int
	failures []events.AppendReason
}

var _ streamtest.Conn = (*Client)(nil)

// connectPatience is longer than any outage of a test.
const connectPatience = 24 * time.Hour

func newClient(n *Network, id events.HostID) *Client {
	c := &Client{n: n, cable: NewCable(n, n.latency), connected: make(chan struct{})}
	c.ctx, c.end = context.WithCancel(n.ctx)
	role := n.roles[id]
	cfg := streams.Config{
		InProcess: c.cable, Role: role, ID: id, Network: n.cfg.Network, Creator: n.cfg.Creator, NoRead: role == streams.RoleBackend,
		Durability: n.cfg.Durability, Patience: connectPatience, Logger: n.cfg.Logger,
	}
	cfg.User, cfg.Password = streams.Login(secret, role, id)
	c.ended.Go(func() {
		defer close(c.connected)
		st, err := streams.Connect(c.ctx, cfg)
		if err != nil {
			if c.ctx.Err() == nil {
				n.tb.Errorf("%s cannot connect: %v", id, err)
			}
			return
		}
		c.st = st
	})
	return c
}

// Close ends the connection. Its calls must have ended.
func (c *Client) Close() {
	c.end()
	c.Resume()
	c.ended.Wait()
	if c.st != nil {
		_ = c.st.Close() // it always gives nil
	}
}

// store gives the connection once it was made.
func (c *Client) store(ctx context.Context) (*streams.Store, error) {
	select {
	case <-c.connected:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if c.st == nil {
		return nil, ErrCut
	}
	return c.st, nil
}

// Stop freezes the host as SIGSTOP does.
func (c *Client) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped == nil {
		c.stopped = make(chan struct{})
		c.cable.Freeze()
	}
}

// Resume ends Stop.
func (c *Client) Resume() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped != nil {
		close(c.stopped)
		c.stopped = nil
		c.cable.Thaw()
	}
}

// Cut breaks the host's connection.
func (c *Client) Cut() { c.cable.Cut() }

// Heal ends Cut.
func (c *Client) Heal() { c.cable.Heal() }

// LoseNextAck makes the next n appends that succeed report Unknown.
func (c *Client) LoseNextAck(n int) { c.set(func() { c.loseAcks = n }) }

// DelayAppend makes each append from now on leave d later.
func (c *Client) DelayAppend(d time.Duration) { c.set(func() { c.delay = d }) }

// FailAppend makes the next n appends fail with a reason. Nothing of them is stored.
func (c *Client) FailAppend(reason events.AppendReason, n int) {
	c.set(func() { c.failures = append(c.failures, slices.Repeat([]events.AppendReason{reason}, n)...) })
}

func (c *Client) set(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
}

// running blocks while the host is stopped.
func (c *Client) running(ctx context.Context) error {
	for {
		c.mu.Lock()
		stopped := c.stopped
		c.mu.Unlock()
		if stopped == nil {
			return nil
		}
		select {
		case <-stopped:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// enter is where each call begins.
func (c *Client) enter(ctx context.Context) (*streams.Store, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := c.running(ctx); err != nil {
		return nil, err
	}
	return c.store(ctx)
}

// Append implements streamtest.Conn.
func (c *Client) Append(ctx context.Context, m events.Message) (uint64, error) {
	fail := func(reason events.AppendReason, err error) (uint64, error) {
		return 0, &events.AppendError{Reason: reason, Key: m.Key, Err: err}
	}
	st, err := c.enter(ctx)
	if err != nil {
		return fail(events.Unavailable, err)
	}
	if reason := c.nextFailure(); reason != "" {
		return fail(reason, errInjected)
	}
	seq, err := c.appendLater(ctx, st, m)
	if stopped := c.running(ctx); stopped != nil {
		return fail(events.Unknown, stopped)
	}
	if err == nil && c.losesAck() {
		return fail(events.Unknown, errAckLost)
	}
	return seq, err
}

// appendLater appends after the delay. What its caller gives up meanwhile still arrives.
func (c *Client) appendLater(ctx context.Context, st *streams.Store, m events.Message) (uint64, error) {
	c.mu.Lock()
	delay := c.delay
	c.mu.Unlock()
	if delay == 0 {
		return st.Append(ctx, m)
	}
	type outcome struct {
		seq uint64
		err error
	}
	answer := make(chan outcome, 1)
	c.ended.Go(func() {
		if pause(c.ctx, delay) {
			seq, err := st.Append(c.ctx, m)
			answer <- outcome{seq, err}
		}
	})
	select {
	case out := <-answer:
		return out.seq, out.err
	case <-ctx.Done():
		return 0, &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: ctx.Err()}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (c *Client) nextFailure() (reason events.AppendReason) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.failures) > 0 {
		reason, c.failures = c.failures[0], c.failures[1:]
	}
	return reason
}

func (c *Client) losesAck() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.loseAcks == 0 {
		return false
	}
	c.loseAcks--
	return true
}

// Last implements streamtest.Conn.
func (c *Client) Last(ctx context.Context, b events.Bucket, key string) (r events.Record, ok bool, err error) {
	st, err := c.enter(ctx)
	if err == nil {
		r, ok, err = st.Last(ctx, b, key)
	}
	return r, ok, errors.Join(err, c.running(ctx))
}

// LastOf implements streamtest.Conn.
func (c *Client) LastOf(ctx context.Context, b events.Bucket, key string) (r events.Record, ok bool, err error) {
	st, err := c.enter(ctx)
	if err == nil {
		r, ok, err = st.LastOf(ctx, b, key)
	}
	return r, ok, errors.Join(err, c.running(ctx))
}

// Tail implements streamtest.Conn.
func (c *Client) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	st, err := c.enter(ctx)
	if err != nil {
		return err
	}
	held := follower{Follower: f, c: c, ctx: ctx}
	if live, ok := f.(events.LiveFollower); ok {
		return st.Tail(ctx, b, from, liveFollower{follower: held, live: live})
	}
	return st.Tail(ctx, b, from, held)
}

// Ask implements streamtest.Conn.
func (c *Client) Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error) {
	st, err := c.enter(ctx)
	lost := errors.Is(err, ErrCut) || err == nil && c.n.rules.Drops(subject)
	var answer events.Wire
	if err == nil && !lost {
		lost = c.n.rules.Loses(subject)
		answer, err = st.Ask(ctx, subject, w)
	}
	if lost {
		<-ctx.Done()
		return events.Wire{}, fmt.Errorf("ask %s: %w", subject, ctx.Err())
	}
	return answer, errors.Join(err, c.running(ctx))
}

// Announce implements streamtest.Conn.
func (c *Client) Announce(ctx context.Context, subject string, w events.Wire) error {
	st, err := c.enter(ctx)
	if err != nil || c.n.rules.Drops(subject) {
		return err
	}
	return st.Announce(ctx, subject, w)
}

// Serve implements streamtest.Conn.
func (c *Client) Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error {
	st, err := c.enter(ctx)
	if err != nil {
		return err
	}
	return st.Serve(ctx, subject, queue, ready, func(ctx context.Context, subject string, w events.Wire) events.Wire {
		if c.running(ctx) != nil {
			return events.Silence()
		}
		answer := handle(ctx, subject, w)
		if c.running(ctx) != nil {
			return events.Silence()
		}
		return answer
	})
}

// Listen implements streamtest.Conn.
func (c *Client) Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error {
	st, err := c.enter(ctx)
	if err != nil {
		return err
	}
	return st.Listen(ctx, subject, ready, func(subject string, w events.Wire) {
		if c.running(ctx) == nil {
			hear(subject, w)
		}
	})
}

// follower waits while its host is stopped.
type follower struct {
	events.Follower
	c   *Client
	ctx context.Context
}

func (f follower) Begin(state events.StreamState, fork bool) {
	if f.c.running(f.ctx) == nil {
		f.Follower.Begin(state, fork)
	}
}

func (f follower) Record(r events.Record) error {
	if err := f.c.running(f.ctx); err != nil {
		return err
	}
	return f.Follower.Record(r)
}

func (f follower) Live(last uint64) {
	if f.c.running(f.ctx) == nil {
		f.Follower.Live(last)
	}
}

func (f follower) Blind(err error) {
	if f.c.running(f.ctx) == nil {
		f.Follower.Blind(err)
	}
}

type liveFollower struct {
	follower
	live events.LiveFollower
}

func (f liveFollower) Newest(r events.Record) bool {
	return f.c.running(f.ctx) == nil && f.live.Newest(r)
}

func (f liveFollower) Settled(key string, seq uint64) {
	if f.c.running(f.ctx) == nil {
		f.live.Settled(key, seq)
	}
}
