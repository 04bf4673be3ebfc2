package streamtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
)

var (
	errNoConnection = errors.New("no connection to the store")
	errAckLost      = errors.New("the acknowledgement was lost")
	errInjected     = errors.New("injected by the test")
)

// Client is the connection of one host to a Memory: a log and a bus, with faults that
// strike this host alone. Safe for concurrent use.
type Client struct {
	m    *Memory
	name string

	// Guarded by m.mu.
	stopped  bool
	cut      bool
	delay    time.Duration
	loseAcks int
	failures []events.AppendReason
	changed  signal
}

// Stop freezes the host as SIGSTOP does: none of its calls begins or returns, nothing is
// delivered to it. What it has sent goes on at the store, and what others send it waits.
// A call that is held ends early only with its context.
func (c *Client) Stop() { c.set(func() { c.stopped = true }) }

// Resume ends Stop.
func (c *Client) Resume() { c.set(func() { c.stopped = false }) }

// Cut breaks the host's connection: appends fail Unavailable (Unknown, when they had
// left), tails go blind, nobody reaches what it serves, answers and news are lost.
func (c *Client) Cut() { c.set(func() { c.cut = true }) }

// Heal ends Cut: tails and subscriptions stand again.
func (c *Client) Heal() { c.set(func() { c.cut = false }) }

// LoseNextAck makes the next n appends that succeed report Unknown.
func (c *Client) LoseNextAck(n int) { c.set(func() { c.loseAcks = n }) }

// DelayAppend makes each append from now on arrive d later. One whose caller gives up
// meanwhile (Unknown) still arrives, as bytes do that have left.
func (c *Client) DelayAppend(d time.Duration) { c.set(func() { c.delay = d }) }

// FailAppend makes the next n appends fail with a reason. Nothing of them is stored.
func (c *Client) FailAppend(reason events.AppendReason, n int) {
	c.set(func() { c.failures = append(c.failures, slices.Repeat([]events.AppendReason{reason}, n)...) })
}

func (c *Client) set(change func()) {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	change()
	c.changed.fire()
}

// up wants m.mu held.
func (c *Client) up() bool { return !c.cut && !c.m.down }

func (c *Client) connected() bool {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.up()
}

// until blocks until a condition, looked at under m.mu, holds. It fails with ctx's error.
func (c *Client) until(ctx context.Context, holds func() bool) error {
	for {
		c.m.mu.Lock()
		ok, changed := holds(), c.changed.wait()
		c.m.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// running blocks while the host is stopped.
func (c *Client) running(ctx context.Context) error {
	return c.until(ctx, func() bool { return !c.stopped })
}

// enter is where each call begins: it must neither be stopped nor cut off.
func (c *Client) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.running(ctx); err != nil {
		return err
	}
	if !c.connected() {
		return errNoConnection
	}
	return nil
}

// await waits for what comes back over the connection. Also an answer that lies ready is
// not seen by a host that is stopped, nor by one whose connection broke first.
func await[T any](ctx context.Context, c *Client, answer <-chan T) (out T, err error) {
	for {
		c.m.mu.Lock()
		ok, changed := c.up(), c.changed.wait()
		c.m.mu.Unlock()
		if !ok {
			return out, errNoConnection
		}
		select {
		case out = <-answer:
			return out, c.running(ctx)
		case <-changed:
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// after runs f once d has passed, at once when that is nothing. Nobody waits for it.
func after(d time.Duration, f func()) {
	if d <= 0 {
		f()
		return
	}
	time.AfterFunc(d, f)
}

type outcome struct {
	seq    uint64
	failed *events.AppendError
}

// Append stores m if m.Prev is still the last sequence inside its guard. The same event
// id again returns the sequence of the first. It fails with *events.AppendError.
func (c *Client) Append(ctx context.Context, m events.Message) (uint64, error) {
	if err := c.enter(ctx); err != nil {
		return 0, &events.AppendError{Reason: events.Unavailable, Key: m.Key, Err: err}
	}
	m.Header, m.Body = maps.Clone(m.Header), slices.Clone(m.Body)
	answer := make(chan outcome, 1)
	after(c.journey(), func() {
		out := c.land(m)
		after(c.m.latency, func() { answer <- out })
	})
	out, err := await(ctx, c, answer)
	if err != nil {
		return 0, &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: err}
	}
	if out.failed != nil {
		return 0, out.failed
	}
	return out.seq, nil
}

func (c *Client) journey() time.Duration {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	return c.m.latency + c.delay
}

// land is the moment at which a message reaches the store.
func (c *Client) land(m events.Message) outcome {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	if c.m.down {
		return outcome{failed: &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: errNoConnection}}
	}
	if len(c.failures) > 0 {
		reason := c.failures[0]
		c.failures = c.failures[1:]
		return outcome{failed: &events.AppendError{Reason: reason, Key: m.Key, Err: errInjected}}
	}
	seq, failed := c.m.append(m)
	if failed == nil && c.loseAcks > 0 {
		c.loseAcks--
		failed = &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: errAckLost}
	}
	return outcome{seq: seq, failed: failed}
}

// Last gives the newest record inside the guard of key.
func (c *Client) Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	return c.read(ctx, b, key, func(in *bucket) []uint64 { return in.byGuard[b.Guard(key)] })
}

// LastOf gives the newest record of key itself.
func (c *Client) LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	return c.read(ctx, b, key, func(in *bucket) []uint64 { return in.byKey[key] })
}

// read gives the newest record of those that which names, as the store has them when the
// question reaches it.
func (c *Client) read(ctx context.Context, b events.Bucket, key string, which func(*bucket) []uint64) (events.Record, bool, error) {
	if err := c.enter(ctx); err != nil {
		return events.Record{}, false, fmt.Errorf("last %s %s: %w", b, key, err)
	}
	answer := make(chan *events.Record, 1)
	after(c.m.latency, func() {
		r := c.newest(b, which)
		after(c.m.latency, func() { answer <- r })
	})
	r, err := await(ctx, c, answer)
	switch {
	case err != nil:
		return events.Record{}, false, fmt.Errorf("last %s %s: %w", b, key, err)
	case r == nil:
		return events.Record{}, false, nil
	}
	return *r, true, nil
}

func (c *Client) newest(name events.Bucket, which func(*bucket) []uint64) *events.Record {
	c.m.mu.Lock()
	defer c.m.mu.Unlock()
	b := c.m.bucket(name)
	return b.at(newest(which(b)))
}
