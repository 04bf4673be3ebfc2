package streamtest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// Memory is a network in memory: the buckets of the log, and the bus between hosts.
// Hosts use it through their Client; its own methods are for tests, which look at it and
// break it. Safe for concurrent use. It starts no goroutine and reads no clock but
// time.Now, so it works inside a testing/synctest bubble when it is made there.
type Memory struct {
	latency time.Duration

	mu      sync.Mutex
	rng     *rand.Rand
	down    bool
	skew    time.Duration
	buckets map[events.Bucket]*bucket
	clients map[string]*Client
	subs    []*subscription
	rules   Rules
}

// Option changes how a Memory is made.
type Option func(*Memory)

// WithLatency makes everything take d from a host to the store and d back. Default 0.
func WithLatency(d time.Duration) Option { return func(m *Memory) { m.latency = d } }

// WithSeed seeds the choice between servers of one queue. Default 1.
func WithSeed(seed uint64) Option {
	return func(m *Memory) { m.rng = rand.New(rand.NewPCG(seed, 0)) }
}

// NewMemory gives an empty network.
func NewMemory(options ...Option) *Memory {
	m := &Memory{
		rng:     rand.New(rand.NewPCG(1, 0)),
		buckets: map[events.Bucket]*bucket{},
		clients: map[string]*Client{},
	}
	for i, name := range events.Buckets {
		m.buckets[name] = newBucket(name, incarnation(i, 1))
	}
	for _, option := range options {
		option(m)
	}
	return m
}

func incarnation(bucket, life int) string { return fmt.Sprintf("memory-%d-%d", bucket, life) }

// Client is the connection of one host. The same name gives the same connection.
func (m *Memory) Client(name string) *Client {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.clients[name]
	if !ok {
		c = &Client{m: m, name: name}
		m.clients[name] = c
	}
	return c
}

// Records is what a bucket holds now, oldest first. Do not change headers and bodies.
func (m *Memory) Records(b events.Bucket) []events.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bucket(b).all()
}

// append wants m.mu held.
func (m *Memory) append(message events.Message) (uint64, *events.AppendError) {
	b := m.bucket(message.Bucket)
	last := b.last()
	seq, failed := b.append(message, m.now())
	if failed == nil && seq > last && message.TTL > 0 {
		m.endAfter(message.TTL, b, b.at(seq))
	}
	return seq, failed
}

// markerTTL is how long it can be read that a record has expired.
const markerTTL = time.Minute

// endAfter takes a record out when its time is over, unless it is gone by then.
func (m *Memory) endAfter(ttl time.Duration, in *bucket, r *events.Record) {
	time.AfterFunc(ttl, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		b := m.bucket(in.name)
		if now := b.at(r.Seq); b.incarnation != in.incarnation || now == nil || now.Key != r.Key || now.EventID() != r.EventID() {
			return
		}
		if marker := b.end(r.Seq, m.now()); marker != 0 {
			m.endAfter(markerTTL, b, b.at(marker))
		}
	})
}

// Outage takes the whole store away: to every client it is as if its connection were cut.
func (m *Memory) Outage() { m.setDown(true) }

// Restore ends an outage. Everything that was stored is there.
func (m *Memory) Restore() { m.setDown(false) }

func (m *Memory) setDown(down bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = down
	for _, c := range m.clients {
		c.changed.fire()
	}
}

// Recreate empties a bucket and gives it a new incarnation, as deleting and making the
// stream again does. Sequences begin at 1 again; tails go blind and find the fork.
func (m *Memory) Recreate(b events.Bucket) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.bucket(b)
	fresh := newBucket(b, incarnation(slices.Index(events.Buckets, b), old.life+2))
	fresh.life = old.life + 1
	m.buckets[b] = fresh
	old.changed.fire()
}

// Truncate drops every record above seq, as a store does that lost its unflushed end. The
// sequences are used again; the incarnation stays. Tails go blind and find the fork.
func (m *Memory) Truncate(b events.Bucket, seq uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bucket(b).truncate(seq)
}

// Rewrite puts another record at the sequence of a stored one. Tails go blind, and those
// that stood exactly there find the fork.
func (m *Memory) Rewrite(b events.Bucket, seq uint64, r events.Record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bucket(b).rewrite(seq, r)
}

// Replace makes a bucket again, with these messages from sequence 1 on. With
// keepIncarnation it looks like the same stream with another past.
func (m *Memory) Replace(b events.Bucket, keepIncarnation bool, messages []events.Message) {
	if keepIncarnation {
		m.Truncate(b, 0)
	} else {
		m.Recreate(b)
	}
	for _, message := range messages {
		m.Inject(b, message.Key, message.Header, message.Body)
	}
}

// Expire removes every record up to and including seq, as retention does. Tails do not notice.
func (m *Memory) Expire(b events.Bucket, upTo uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bucket(b).expire(upTo)
}

// Inject stores a record past every guard and limit, as somebody with the operator's
// rights could by hand, and returns its sequence.
func (m *Memory) Inject(b events.Bucket, key string, h events.Header, body []byte) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.bucket(b).store(key, maps.Clone(h), slices.Clone(body), m.now())
}

// StepClock moves the store's clock, in either direction, as a change of leader may.
func (m *Memory) StepClock(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.skew += d
}

func (m *Memory) now() time.Time { return time.Now().Add(m.skew) }

// DropRequest loses the next n requests or news whose subject matches: they never arrive,
// and the one who asked waits until its context ends.
func (m *Memory) DropRequest(match func(subject string) bool, n int) { m.rules.Drop(match, n) }

// LoseAnswer loses the answers to the next n requests whose subject matches: they are
// carried out, and the one who asked waits until its context ends.
func (m *Memory) LoseAnswer(match func(subject string) bool, n int) { m.rules.Lose(match, n) }

// bucket wants m.mu held. An unknown bucket is a mistake of the caller.
func (m *Memory) bucket(name events.Bucket) *bucket {
	b, ok := m.buckets[name]
	if !ok {
		panic(fmt.Sprintf("streamtest: there is no bucket %q", name))
	}
	return b
}

// signal wakes everybody who waits for a change. The zero value is ready; guarded by Memory.mu.
type signal struct{ ch chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.ch == nil {
		s.ch = make(chan struct{})
	}
	return s.ch
}

func (s *signal) fire() {
	if s.ch != nil {
		close(s.ch)
		s.ch = nil
	}
}
