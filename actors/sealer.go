package actors

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// Records reads the log as it is held. Implementation: streams, by way of cmd.
type Records interface {
	// Info tells where a bucket begins and ends, as the log's leader knows it.
	Info(ctx context.Context, b events.Bucket) (events.StreamState, error)
	// Records gives what is held above after, up to upTo, in order.
	Records(ctx context.Context, b events.Bucket, after, upTo uint64) iter.Seq2[events.Record, error]
}

// SealerConfig makes a Sealer.
type SealerConfig struct {
	Identity
	Log     Log
	Records Records
	Logger  *slog.Logger
	// Every is the longest time, and Facts the most sequences, between two checkpoints.
	// Default 10 minutes and 10,000.
	Every time.Duration
	Facts uint64
	// Look is how often it is looked whether one is due. Default 10 s.
	Look time.Duration
	// Remembered is the newest checkpoint that this host has seen in an earlier life; zero:
	// none. Remember keeps the newest one for the next; it must not block. May be nil.
	Remembered events.Checkpoint
	Remember   func(events.Checkpoint)
	// Lost is told when the log does not hold what is remembered. It must not block. May be nil.
	Lost func(detail string)
}

// Sealer writes the checkpoints of transfers. Any number of them work on one log: the key of a
// checkpoint is its number and takes one fact, so of two that seal at once one wins, and the
// other goes on behind it.
type Sealer struct {
	cfg SealerConfig

	mu     sync.Mutex
	newest events.Checkpoint // zero: none
	seen   time.Time         // when it was seen, or the sealer began
	broken error             // the number behind the newest is taken by something else
	live   chan struct{}     // closed once the checkpoints that were there have been seen
	moved  chan struct{}     // something was seen
}

// NewSealer validates the configuration. It starts nothing.
func NewSealer(cfg SealerConfig) (*Sealer, error) {
	if cfg.Log == nil || cfg.Records == nil || cfg.Keys == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Logger == nil {
		return nil, errors.New("sealer: log, records, keys, clock, id maker and logger are mandatory")
	}
	for _, d := range []struct {
		of *time.Duration
		as time.Duration
	}{{&cfg.Every, 10 * time.Minute}, {&cfg.Look, 10 * time.Second}} {
		if *d.of == 0 {
			*d.of = d.as
		}
	}
	if cfg.Facts == 0 {
		cfg.Facts = 10_000
	}
	if cfg.Remember == nil {
		cfg.Remember = func(events.Checkpoint) {}
	}
	if cfg.Lost == nil {
		cfg.Lost = func(string) {}
	}
	return &Sealer{cfg: cfg, live: make(chan struct{}), moved: make(chan struct{}, 1)}, nil
}

// Run seals until ctx ends. It returns ctx's error, or that of a checkpoint that cannot be read.
func (s *Sealer) Run(ctx context.Context) error {
	s.mu.Lock()
	s.seen = s.cfg.Now()
	s.mu.Unlock()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return s.cfg.Log.Tail(ctx, events.Checkpoints, events.TailStart{Mode: events.TailAll}, s)
	})
	g.Go(func() error {
		select {
		case <-s.live:
		case <-ctx.Done():
			return ctx.Err()
		}
		for sleep(ctx, s.cfg.Look+jitterOf(s.cfg.Source)) {
			if err := s.seal(ctx); err != nil && ctx.Err() == nil {
				s.cfg.Logger.Warn("no checkpoint was written, trying again", "error", err)
			}
		}
		return ctx.Err()
	})
	return g.Wait()
}

// Newest is the newest checkpoint that was seen, zero when there is none.
func (s *Sealer) Newest() events.Checkpoint {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// seal writes the checkpoints that are due.
func (s *Sealer) seal(ctx context.Context) error {
	for {
		state, err := s.cfg.Records.Info(ctx, events.Transfers)
		if err != nil {
			return err
		}
		next, due := s.due(state)
		if !due {
			return nil
		}
		segment := events.NewSegment(next.Prev)
		for rec, err := range s.cfg.Records.Records(ctx, events.Transfers, next.From-1, next.To) {
			if err != nil {
				return err
			}
			segment.Add(rec)
		}
		next.Hash, next.Count = segment.Hash(), segment.Count()
		if err := s.write(ctx, next); err != nil {
			return err
		}
	}
}

// due says what the next checkpoint seals, and whether it is time.
func (s *Sealer) due(state events.StreamState) (events.Checkpoint, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := events.Checkpoint{Number: s.newest.Number + 1, From: s.newest.To + 1, Prev: s.newest.Hash}
	if s.newest.Number == 0 {
		next.From = max(state.First, 1)
	}
	if state.Last < next.From {
		return next, false
	}
	next.To = min(state.Last, next.From+s.cfg.Facts-1)
	full := next.To-next.From+1 == s.cfg.Facts
	return next, full || s.cfg.Now().Sub(s.seen) >= s.cfg.Every
}

// write lands a checkpoint, or finds that another sealer was faster. Either way the tail says
// what stands there before it returns.
func (s *Sealer) write(ctx context.Context, c events.Checkpoint) error {
	m, err := s.cfg.seal(s.cfg.NewID(), events.CheckpointKey(c.Number), events.TransferID{}, 0, &c)
	if err != nil {
		return err
	}
	_, err = s.cfg.Log.Append(ctx, m)
	var failed *events.AppendError
	if err != nil && !(errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.KeyIsFull)) {
		return err
	}
	for {
		if done, err := s.reached(c.Number); done || err != nil {
			return err
		}
		select {
		case <-s.moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Sealer) reached(number uint64) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest.Number >= number, s.broken
}

// Begin implements events.Follower.
func (s *Sealer) Begin(events.StreamState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.broken = events.Checkpoint{}, nil
}

// Record implements events.Follower. What is no good checkpoint is reported and left out.
// Nobody skips the number that it has taken: sealing stops loudly, and no other chain begins.
func (s *Sealer) Record(r events.Record) error {
	e, refusal := events.Open(s.cfg.Keys, r)
	if refusal != nil && (refusal.Code == events.UnknownType || refusal.Code == events.UnknownKey) {
		return fmt.Errorf("sequence %d of %s: %w", r.Seq, events.Checkpoints, refusal)
	}
	c, ok := e.Fact.(*events.Checkpoint)
	s.mu.Lock()
	defer s.mu.Unlock()
	if refusal != nil || !ok || e.Key != events.CheckpointKey(c.Number) || s.newest.Number != 0 && !c.Follows(s.newest) {
		s.broken = fmt.Errorf("sequence %d of checkpoints (key %s) is not the one that follows number %d", r.Seq, r.Key, s.newest.Number)
		s.lost(s.broken.Error())
		s.signal()
		return nil
	}
	s.newest, s.seen = *c, s.cfg.Now()
	if m := s.cfg.Remembered; m.Number == c.Number && m.Hash != c.Hash {
		s.lost(fmt.Sprintf("checkpoint %d is not the one that this host has seen: this is another log from sequence %d on", m.Number, m.From))
	}
	if s.isLive() {
		s.remember()
	}
	s.signal()
	return nil
}

func (s *Sealer) isLive() bool {
	select {
	case <-s.live:
		return true
	default:
		return false
	}
}

// remember wants s.mu held.
func (s *Sealer) remember() {
	if s.newest.Number > s.cfg.Remembered.Number {
		s.cfg.Remembered = s.newest
		s.cfg.Remember(s.newest)
	}
}

func (s *Sealer) signal() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

func (s *Sealer) lost(detail string) {
	s.cfg.Logger.Error("the log is not the one that this host has seen", "detail", detail)
	s.cfg.Lost(detail)
}

// Live implements events.Follower.
func (s *Sealer) Live(uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.cfg.Remembered; m.Number > s.newest.Number {
		s.lost(fmt.Sprintf("this host has seen checkpoint %d, which seals facts up to %d; the log's last one is %d, up to %d", m.Number, m.To, s.newest.Number, s.newest.To))
		s.cfg.Remembered = events.Checkpoint{} // said once; what comes is remembered again
	}
	s.remember()
	if !s.isLive() {
		close(s.live)
	}
}

// Blind implements events.Follower.
func (s *Sealer) Blind(error) {}
