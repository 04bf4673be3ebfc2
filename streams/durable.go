package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// Durability says when an acknowledged fact is on the disk of the store.
type Durability string

// Durabilities. "" is not known: by whoever connects without the network's file.
const (
	Always  Durability = "always"  // before the store acknowledges it
	Grouped Durability = "grouped" // later, together with others; Append waits for it
	Lazy    Durability = "lazy"    // within minutes
)

// Durabilities are those that a carrier can have.
var Durabilities = []Durability{Always, Grouped, Lazy}

// DurableSubject is where a carrier that groups is asked to make durable what it has acknowledged of a bucket.
const DurableSubject = "landfall.store.durable"

// DurableAsk is the question. What whoever asks had heard acknowledged before is on the disk before the answer.
type DurableAsk struct {
	Bucket events.Bucket `json:"bucket"`
}

// DurableAnswer is the answer.
type DurableAnswer struct {
	Error string `json:"error,omitempty"` // "" when it is on the disk
}

const (
	// durableTimeout bounds one question: a disk may be slow, and whoever waits has a deadline of his own.
	durableTimeout = 10 * time.Second
	// durablePatience is how long a carrier that has just come up may take until it answers.
	durablePatience = 10 * time.Second
)

var errNotOffered = errors.New("the carrier of this store does not offer it")

// barrier holds appends back until the carrier has said that they are on its disk. About one
// bucket one question is on its way at a time; appends that come meanwhile share the next,
// so that groups grow with the load. Safe for concurrent use.
type barrier struct {
	ask func(ctx context.Context, f life, b events.Bucket) error

	running sync.WaitGroup
	mu      sync.Mutex
	buckets map[events.Bucket]*asking
}

// asking is what goes on about one bucket.
type asking struct {
	busy bool
	next *question // not asked yet; nil: nobody waits for one
}

// question is one that appends wait for.
type question struct {
	life life // of the connection on which all of them were acknowledged
	done chan struct{}
	err  error
}

func newBarrier(ask func(context.Context, life, events.Bucket) error) *barrier {
	return &barrier{ask: ask, buckets: map[events.Bucket]*asking{}}
}

// wait returns once everything is durable that the bucket's stream has acknowledged so far on
// the connection's life f. A carrier that has been away may have lost it, so of an earlier life
// it is not asked.
func (b *barrier) wait(ctx context.Context, f life, bucket events.Bucket) error {
	q := b.join(f, bucket)
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *barrier) join(f life, bucket events.Bucket) *question {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.buckets[bucket]
	if a == nil {
		a = &asking{}
		b.buckets[bucket] = a
	}
	if a.next != nil && a.next.life != f { // the connection was replaced a moment ago
		q := &question{life: f, done: make(chan struct{})}
		b.running.Go(func() { b.answer(q, bucket) })
		return q
	}
	if a.next == nil {
		a.next = &question{life: f, done: make(chan struct{})}
	}
	if !a.busy {
		a.busy = true
		b.running.Go(func() { b.run(bucket, a) })
	}
	return a.next
}

// run asks as long as somebody waits.
func (b *barrier) run(bucket events.Bucket, a *asking) {
	for {
		b.mu.Lock()
		q := a.next
		a.next, a.busy = nil, q != nil
		b.mu.Unlock()
		if q == nil {
			return
		}
		b.answer(q, bucket)
	}
}

func (b *barrier) answer(q *question, bucket events.Bucket) {
	ctx, cancel := context.WithTimeout(context.Background(), durableTimeout)
	defer cancel()
	q.err = b.ask(ctx, q.life, bucket)
	close(q.done)
}

// needsBarrier tells that acknowledged facts of a bucket must survive a power cut: all but heartbeats.
func needsBarrier(b events.Bucket) bool {
	r, _ := rowOf(b)
	return r.kind != telemetry
}

// settled waits until what was acknowledged on the connection's life f is durable. Nothing
// that fails here is a refusal: the fact stands in the log.
func (s *Store) settled(ctx context.Context, f life, m events.Message) *events.AppendError {
	if !needsBarrier(m.Bucket) {
		return nil
	}
	var err error
	switch {
	case s.cfg.Durable != nil:
		err = s.cfg.Durable(ctx, m.Bucket)
	case s.barrier != nil:
		err = s.barrier.wait(ctx, f, m.Bucket)
	}
	if err == nil || s.cfg.Durability == "" && errors.Is(err, errNotOffered) {
		return nil
	}
	return &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: fmt.Errorf("it is in the log, but perhaps not on the disk: %w", err)}
}

// askDurable asks the carrier over the connection.
func (s *Store) askDurable(ctx context.Context, f life, b events.Bucket) error {
	body, err := json.Marshal(DurableAsk{Bucket: b})
	if err != nil {
		return err
	}
	m := nats.NewMsg(DurableSubject)
	m.Data = body
	got, _, err := s.append.requestIn(ctx, f, m)
	if errors.Is(err, nats.ErrNoResponders) {
		return errNotOffered
	}
	if err != nil {
		return err
	}
	var answer DurableAnswer
	if err := json.Unmarshal(got.Data, &answer); err != nil {
		return fmt.Errorf("answer of the store: %w", err)
	}
	if answer.Error != "" {
		return errors.New(answer.Error)
	}
	return nil
}

// checkDurability holds what this host believes of the carrier against what the carrier does.
func (s *Store) checkDurability(ctx context.Context) error {
	if s.cfg.Durability == "" || s.cfg.NoRead || s.cfg.Durable != nil {
		return nil
	}
	patience := durablePatience
	if s.cfg.Durability != Grouped {
		patience = 0
	}
	err := retry(ctx, patience, func() error {
		ctx, cancel := context.WithTimeout(ctx, tryTimeout)
		defer cancel()
		return s.askDurable(ctx, s.append.life(), events.Control)
	})
	switch {
	case s.cfg.Durability == Grouped && err != nil:
		return fmt.Errorf("store.durability is grouped here, and that was asked of the store in vain: %w: give all hosts the same version and the same network.yml", err)
	case s.cfg.Durability != Grouped && err == nil:
		return fmt.Errorf("store.durability is %s here, and the carrier of this store has it grouped: give all hosts the same network.yml", s.cfg.Durability)
	}
	return nil
}
