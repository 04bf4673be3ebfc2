package streams

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// importBatch is how many records are on their way at once.
const importBatch = 256

// holeKey takes what stands for missing sequences until the import is done.
const holeKey = "import.hole"

// Import makes the stream of a bucket, which must not exist yet, out of what another store
// held: each record at its own sequence, with its headers but for those that guarded its
// append, and nothing where nothing was. from is what that store said of its stream. Stored
// times are those of the import. Only a carrier may do it. When it fails the stream is of no
// use: begin again with an empty store.
func (s *Store) Import(ctx context.Context, b events.Bucket, from events.StreamState, records iter.Seq2[events.Record, error]) error {
	row, ok := rowOf(b)
	if !ok {
		return fmt.Errorf("import: there is no bucket %q", b)
	}
	want := row.config(s.cfg.Settings)
	want.Metadata = s.identity().metadata(uuid.NewString())
	want.FirstSeq = max(from.First, 1)
	open := want
	open.DenyDelete, open.DenyPurge = false, false // until the holes are made
	stream, err := s.js.CreateStream(ctx, open)
	if err != nil {
		return fmt.Errorf("import: create stream %s: %w", want.Name, err)
	}
	x := &importing{store: s, bucket: b, next: want.FirstSeq}
	if err := x.all(ctx, records, from.Last); err != nil {
		return fmt.Errorf("import of %s at sequence %d: %w", b, x.next, err)
	}
	if x.holes {
		if err := stream.Purge(ctx, jetstream.WithPurgeSubject(b.Subject(holeKey))); err != nil {
			return fmt.Errorf("import of %s: make its holes: %w", b, err)
		}
	}
	if _, err := s.js.UpdateStream(ctx, want); err != nil {
		return fmt.Errorf("import: close stream %s: %w", want.Name, err)
	}
	return nil
}

// importing is one stream being filled.
type importing struct {
	store  *Store
	bucket events.Bucket
	next   uint64 // sequence that the next message gets
	holes  bool
	acks   []jetstream.PubAckFuture
	first  uint64 // sequence of the first of them
}

func (x *importing) all(ctx context.Context, records iter.Seq2[events.Record, error], last uint64) error {
	for r, err := range records {
		if err != nil {
			return err
		}
		if r.Seq < x.next {
			return fmt.Errorf("record %d comes too late", r.Seq)
		}
		if err := x.skipTo(ctx, r.Seq); err != nil {
			return err
		}
		if err := x.put(ctx, imported(r)); err != nil {
			return err
		}
	}
	if err := x.skipTo(ctx, last+1); err != nil {
		return err
	}
	return x.settle(ctx)
}

// skipTo leaves a hole in front of a sequence.
func (x *importing) skipTo(ctx context.Context, seq uint64) error {
	for x.next < seq {
		x.holes = true
		if err := x.put(ctx, nats.NewMsg(x.bucket.Subject(holeKey))); err != nil {
			return err
		}
	}
	return nil
}

func (x *importing) put(ctx context.Context, m *nats.Msg) error {
	if len(x.acks) == 0 {
		x.first = x.next
	}
	ack, err := x.store.js.PublishMsgAsync(m, jetstream.WithExpectStream(StreamName(x.bucket)))
	if err != nil {
		return err
	}
	x.acks, x.next = append(x.acks, ack), x.next+1
	if len(x.acks) < importBatch {
		return nil
	}
	return x.settle(ctx)
}

// settle waits until what is on its way stands where it belongs.
func (x *importing) settle(ctx context.Context) error {
	for i, ack := range x.acks {
		select {
		case got := <-ack.Ok():
			if want := x.first + uint64(i); got.Sequence != want || got.Duplicate { //nolint:gosec // an index
				return fmt.Errorf("a record of sequence %d was stored at %d (duplicate: %v): did another process write to this store?", want, got.Sequence, got.Duplicate)
			}
		case err := <-ack.Err():
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	x.acks = x.acks[:0]
	return nil
}

// imported is a record as it is published again.
func imported(r events.Record) *nats.Msg {
	m := nats.NewMsg(r.Bucket.Subject(r.Key))
	for name, value := range r.Header {
		if lower := strings.ToLower(name); !strings.HasPrefix(lower, guardPrefix) && lower != "nats-ttl" {
			m.Header[name] = []string{value}
		}
	}
	m.Data = r.Body
	return m
}
