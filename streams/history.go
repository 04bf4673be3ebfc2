package streams

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// Range says which records History gives. The zero value is everything.
type Range struct {
	Keys   string    // key pattern in NATS wildcards, such as "<player>.>"; "" is all keys
	After  uint64    // only records above this sequence
	Since  time.Time // only records stored at or after; ignored when After is given
	UpTo   uint64    // only records at or below this sequence; 0: the end as it is now
	Until  time.Time // only records stored before; zero: no bound
	Newest bool      // only the newest record of each key
	Heads  bool      // without their bodies, where the source can leave them out: key, sequence and headers are there
	Limit  int       // at most so many; 0: no bound
}

// History gives the records of a bucket in order, up to the stream's end as it was when
// the iteration began. It ends with an error when the connection breaks: what was given
// stands, ask again After the last sequence.
func (s *Store) History(ctx context.Context, b events.Bucket, r Range) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		err := s.history(ctx, b, r, func(rec events.Record) bool { return yield(rec, nil) })
		if err != nil {
			yield(events.Record{}, fmt.Errorf("history of %s: %w", b, err))
		}
	}
}

func (s *Store) history(ctx context.Context, b events.Bucket, r Range, give func(events.Record) bool) error {
	f := s.read.life()
	state, err := s.Info(ctx, b)
	if err != nil {
		return err
	}
	end := state.Last
	if r.UpTo > 0 {
		end = min(end, r.UpTo)
	}
	if end == 0 || r.After >= end || end < state.First {
		return nil
	}
	c, err := s.consume(ctx, b, f, r.consumer(b))
	if err != nil {
		return err
	}
	defer c.close()
	return r.read(ctx, c, end, give)
}

func (r Range) consumer(b events.Bucket) jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, HeadersOnly: r.Heads}
	if r.Keys != "" && r.Keys != ">" {
		cfg.FilterSubject = b.Subject(r.Keys)
	} else if r.Newest {
		cfg.FilterSubject = b.Subject(">") // the store wants one named
	}
	switch {
	case r.Newest:
		cfg.DeliverPolicy = jetstream.DeliverLastPerSubjectPolicy
	case r.After > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, r.After+1
	case !r.Since.IsZero():
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.Since
	}
	return cfg
}

func (r Range) read(ctx context.Context, c *consumer, end uint64, give func(events.Record) bool) error {
	ticker := time.NewTicker(liveCheck)
	defer ticker.Stop()
	given := 0
	for look := true; ; {
		if look {
			if done, err := c.drained(ctx, end); err != nil || done {
				return err
			}
		}
		d, ok, err := c.next(ctx, ticker.C)
		if err != nil {
			return err
		}
		if look = !ok; look {
			continue
		}
		rec := d.record
		if rec.Seq > end {
			return nil
		}
		if r.has(rec) {
			given++
			if !give(rec) || given == r.Limit {
				return nil
			}
		}
		if rec.Seq == end {
			return nil
		}
		look = d.pending == 0
	}
}

// has holds a record against the bounds that the consumer does not know.
func (r Range) has(rec events.Record) bool {
	return rec.Seq > r.After &&
		(r.Since.IsZero() || !rec.Stored.Before(r.Since)) &&
		(r.Until.IsZero() || rec.Stored.Before(r.Until))
}
