package streams

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/landfall/landfall/events"
)

const (
	pullBatch       = 1024
	pullExpiry      = 10 * time.Second
	pullHeartbeat   = 2 * time.Second // silence of twice this ends a consumer
	inactivity      = 30 * time.Second
	deliveryBacklog = 256
)

var (
	errGap        = errors.New("the store skipped a message")
	errDisordered = errors.New("the store delivered a sequence twice")
)

// delivery is one message of a consumer.
type delivery struct {
	record  events.Record
	number  uint64 // counted by the consumer, from 1 without a gap
	pending uint64
}

// consumer is one short life of a pull consumer on one life of the connection: it is never
// mended, only replaced, so that whoever reads it can look first at what the stream is now.
type consumer struct {
	s      *Store
	bucket events.Bucket
	stream string
	name   string
	life   life
	inner  jetstream.Consumer
	flow   jetstream.ConsumeContext
	out    chan delivery
	failed chan error    // has room for the first failure
	quit   chan struct{} // of flow
	stop   sync.Once
	got    uint64 // running number of the last delivery taken
	seq    uint64 // and its sequence
	newest bool   // gives the newest record of each key, then everything that follows
	start  uint64 // gives nothing below
	sees   bool   // no filter hides the last record of the stream from it

	unheard int
	wait    *backoff.ExponentialBackOff
}

// consume starts a consumer in memory, without acknowledgements: order is checked here.
func (s *Store) consume(ctx context.Context, b events.Bucket, f life, cfg jetstream.ConsumerConfig) (*consumer, error) {
	c := &consumer{s: s, bucket: b, stream: StreamName(b), life: f, out: make(chan delivery, deliveryBacklog), failed: make(chan error, 1), wait: newBackOff(0)}
	c.newest = cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy
	c.sees = (cfg.FilterSubject == "" || cfg.FilterSubject == b.Subject(">")) && len(cfg.FilterSubjects) == 0 && cfg.OptStartTime == nil
	c.start = max(cfg.OptStartSeq, 1)
	c.name = ReadsAs(s.cfg.Role, s.cfg.ID) + nuid.Next()
	cfg.Name = c.name
	cfg.AckPolicy = jetstream.AckNonePolicy
	cfg.MemoryStorage = true
	cfg.Replicas = 1
	cfg.InactiveThreshold = inactivity
	creating, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	var err error
	if c.inner, err = s.js.CreateConsumer(creating, c.stream, cfg); err != nil {
		return nil, fmt.Errorf("read %s: %w", c.stream, err)
	}
	if err := c.pull(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *consumer) pull() (err error) {
	quit := make(chan struct{})
	c.quit = quit
	c.flow, err = c.inner.Consume(func(m jetstream.Msg) { c.take(m, quit) },
		jetstream.PullMaxMessages(pullBatch), jetstream.PullExpiry(pullExpiry), jetstream.PullHeartbeat(pullHeartbeat),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) { c.fail(err) }))
	if err != nil {
		return fmt.Errorf("read %s: %w", c.stream, err)
	}
	return nil
}

// pullAgain: in a cluster the node we are connected to may not yet know that the consumer,
// on another node, waits for pulls. Nothing was delivered, so nothing can be lost.
func (c *consumer) pullAgain(ctx context.Context, err error) error {
	if !errors.Is(err, nats.ErrNoResponders) || c.got > 0 || c.unheard >= maxUnheard {
		return fmt.Errorf("read %s: %w", c.stream, err)
	}
	c.unheard++
	c.stopFlow()
	if !pause(ctx, c.wait.NextBackOff()) {
		return ctx.Err()
	}
	return c.pull()
}

// maxUnheard is how many pulls may find nobody before the consumer counts as lost.
const maxUnheard = 8

// take runs on the subscription's goroutine. It blocks while the reader is busy.
func (c *consumer) take(m jetstream.Msg, quit <-chan struct{}) {
	r, number, pending, err := delivered(m)
	if err != nil {
		c.fail(err)
		return
	}
	select {
	case c.out <- delivery{record: r, number: number, pending: pending}:
	case <-quit:
	}
}

func (c *consumer) fail(err error) {
	select {
	case c.failed <- err:
	default:
	}
}

// next gives the next message. idle, when it is not nil, ends the wait with no message.
//
// Below a busy writer the store follows the newest records of the keys with what was
// written while it collected them, from the beginning: what is older than a record that was
// given has a newer one, or was given itself.
func (c *consumer) next(ctx context.Context, idle <-chan time.Time) (d delivery, ok bool, err error) {
	for {
		last := c.seq
		if d, ok, err = c.receive(ctx, idle); err != nil || !ok || d.record.Seq > last {
			return d, ok, err
		}
	}
}

func (c *consumer) receive(ctx context.Context, idle <-chan time.Time) (d delivery, ok bool, err error) {
	select {
	case d := <-c.out:
		return d, true, c.check(d)
	default:
	}
	select {
	case d := <-c.out:
		return d, true, c.check(d)
	case err := <-c.failed:
		return d, false, c.pullAgain(ctx, err)
	case <-c.life.lost:
		return d, false, fmt.Errorf("read %s: %w", c.stream, errLinkLost)
	case <-ctx.Done():
		return d, false, ctx.Err()
	case <-idle:
		return d, false, nil
	}
}

// check lets nothing pass that came over another life of the connection, out of order, or
// after something that did not come.
func (c *consumer) check(d delivery) error {
	switch {
	case !c.s.read.alive(c.life):
		return fmt.Errorf("read %s: %w", c.stream, errLinkLost)
	case d.number != c.got+1:
		return fmt.Errorf("read %s: %w: message %d came after %d", c.stream, errGap, d.number, c.got)
	case d.record.Seq <= c.seq && !c.newest:
		return fmt.Errorf("read %s: %w: %d came after %d", c.stream, errDisordered, d.record.Seq, c.seq)
	}
	c.got, c.seq = d.number, max(c.seq, d.record.Seq)
	return nil
}

// drained asks the store whether everything the consumer has to deliver up to the sequence
// end has been taken. That the consumer has nothing more is not enough: in a cluster it may
// live on a node that does not hold yet what the leader does.
func (c *consumer) drained(ctx context.Context, end uint64) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	info, err := c.inner.Info(ctx)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", c.stream, err)
	}
	if info.NumPending > 0 || info.Delivered.Consumer != c.got {
		return false, nil
	}
	if !c.sees || max(c.seq, c.start-1) >= end {
		return true, nil
	}
	_, held, err := c.s.at(ctx, c.bucket, end)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", c.stream, err)
	}
	return !held, nil
}

// close ends the consumer here and, when it can be reached, at the store.
func (c *consumer) close() {
	c.stop.Do(func() {
		c.stopFlow()
		if c.s.read.nc.IsConnected() {
			c.s.forget(c.stream, c.name)
		}
	})
}

func (c *consumer) stopFlow() {
	if c.flow == nil {
		return
	}
	close(c.quit)
	closed := c.flow.Closed()
	c.flow.Stop()
	<-closed
	c.flow = nil
}

// forget deletes a consumer at the store; one that cannot be deleted ends by inactivity.
func (s *Store) forget(stream, name string) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := s.js.DeleteConsumer(ctx, stream, name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
		s.log.Debug("consumer not deleted", "stream", stream, "consumer", name, "error", err)
	}
}
