package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Appender is the part of a log that a Chronicle writes to.
type Appender interface {
	// Append stores m if m.Prev is still the last sequence inside its guard.
	Append(ctx context.Context, m events.Message) (uint64, error)
}

// ChronicleConfig makes a Chronicle.
type ChronicleConfig struct {
	Log      Appender // whose buckets are empty
	Identity func(kind events.SourceKind, id events.HostID) actors.Identity
	// Kind is how the dispatchers hold their players.
	Kind     events.SessionKind
	Proxies  []events.HostID
	Backends []events.HostID
	Players  int
	// Facts is how many facts of transfers are written. The last lives are cut off there, as if
	// the network had stopped.
	Facts   uint64
	Writers int // lives that are written at a time
	Seed    uint64
}

// Chronicle writes the log of a network that has been at work for long, as fast as the store
// takes it: the lives of many players, each fact decided, signed and chained as dispatchers do
// it. No host runs and nobody waits for anything: what takes a life's hours takes milliseconds.
type Chronicle struct {
	cfg     ChronicleConfig
	proxies []actors.Identity
	grounds *grounds

	taken atomic.Uint64 // facts that somebody writes or has written
	count struct{ written, transfers, completed, ended atomic.Uint64 }

	mu      sync.Mutex
	example events.Token // of the last arrival
}

// ChronicleReport is what a Chronicle has written.
type ChronicleReport struct {
	Facts     uint64       `json:"facts"` // of transfers
	Transfers uint64       `json:"transfers"`
	Completed uint64       `json:"completed"`
	Ended     uint64       `json:"ended"` // otherwise
	Example   events.Token `json:"example"`
}

// Open is how many transfers are still under way.
func (r ChronicleReport) Open() uint64 { return r.Transfers - r.Completed - r.Ended }

// NewChronicle makes a Chronicle. It writes nothing yet.
func NewChronicle(cfg ChronicleConfig) *Chronicle {
	cfg.Writers = max(1, min(cfg.Writers, cfg.Players))
	c := &Chronicle{cfg: cfg, grounds: newGrounds(cfg)}
	for _, id := range cfg.Proxies {
		c.proxies = append(c.proxies, cfg.Identity(events.SourceKind(cfg.Kind), id))
	}
	return c
}

// errEnough says that all facts are written.
var errEnough = errors.New("as many facts as were wanted")

// Run writes until there are enough facts, ctx ends or an append fails.
func (c *Chronicle) Run(ctx context.Context) error {
	if err := c.beat(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for i := range c.cfg.Writers {
		group.Go(func() error {
			for w := c.writer(i); ; {
				if err := w.next(ctx); errors.Is(err, errEnough) {
					return nil
				} else if err != nil {
					return err
				}
			}
		})
	}
	return group.Wait()
}

// writer makes the i-th writer: each player is written by one of them.
func (c *Chronicle) writer(i int) *writer {
	w := newWriter(c, rand.New(rand.NewPCG(c.cfg.Seed, uint64(i)))) //nolint:gosec // lives that can be repeated
	for n := i; n < c.cfg.Players; n += c.cfg.Writers {
		name := fmt.Sprintf("Player%06d", n+1)
		w.idle = append(w.idle, &person{id: events.OfflinePlayer(name), name: name})
	}
	return w
}

// Report is what was written so far. Safe for concurrent use.
func (c *Chronicle) Report() ChronicleReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ChronicleReport{
		Facts: c.count.written.Load(), Transfers: c.count.transfers.Load(), Completed: c.count.completed.Load(), Ended: c.count.ended.Load(),
		Example: c.example,
	}
}

// factsPerBeat is how many facts are written between two heartbeats of a host.
const factsPerBeat = 1000

// take gives the right to write one more fact of transfers. The hosts beat now and then.
func (c *Chronicle) take(ctx context.Context) error {
	n := c.taken.Add(1)
	if n > c.cfg.Facts {
		return errEnough
	}
	if n%factsPerBeat == 0 {
		return c.beat(ctx)
	}
	return nil
}

// counted takes in a fact that stands in the log.
func (c *Chronicle) counted(transfer events.TransferID, f events.TransferFact) {
	c.count.written.Add(1)
	switch f := f.(type) {
	case *events.Requested:
		c.count.transfers.Add(1)
	case *events.Completed:
		c.count.completed.Add(1)
		c.mu.Lock()
		c.example = events.Token{Transfer: transfer, Attempt: f.Attempt}
		c.mu.Unlock()
	case *events.Failed, *events.Cancelled, *events.Superseded:
		c.count.ended.Add(1)
	default:
	}
}

// write signs a fact in the name of one host and appends it.
func (c *Chronicle) write(ctx context.Context, by actors.Identity, key string, transfer events.TransferID, prev uint64, f events.Fact) (events.Event, error) {
	now := by.Now()
	e := events.Event{Envelope: events.Envelope{ID: by.NewID(), Source: by.Source, Time: now, Key: key, Correlation: transfer, Prev: prev}, Stored: now, Fact: f}
	m, err := events.Seal(by.Keys, e.Envelope, f)
	if err != nil {
		return e, err
	}
	e.Bucket = m.Bucket
	e.Seq, err = c.cfg.Log.Append(ctx, m)
	return e, err
}
