package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// liveCheck is how often one who waits for what is stored already asks whether anything is
// left: it may have expired meanwhile, or the store's node may not have it yet.
const liveCheck = 50 * time.Millisecond

// Tail delivers a bucket to f until ctx ends (it then returns ctx's error) or f fails (then
// with f's error). All calls to f come from the caller's goroutine. A lost connection is
// mended inside, with growing pauses; before it goes on the tail looks whether the stream
// still holds what was delivered. In the mode TailLive f must be an events.LiveFollower. Fleet and leases are always read from the newest record
// of each key, whatever from says: after a crash their sequences may have been used twice.
func (s *Store) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	if _, ok := rowOf(b); !ok {
		return fmt.Errorf("tail: there is no bucket %q", b)
	}
	t := &tail{s: s, bucket: b, mode: from.Mode, f: f, anew: true}
	if lastPerKey(b) {
		t.mode = events.TailLastPerKey
	}
	if t.mode == events.TailResume {
		t.cursor = from.Cursor
	}
	return t.run(ctx)
}

// tail is one Tail call. Only the caller's goroutine touches it.
type tail struct {
	s      *Store
	bucket events.Bucket
	mode   events.TailMode
	f      events.Follower
	cursor events.Cursor // the last record that was delivered, and of which life of the stream
	begun  bool
	anew   bool // the follower is still to be told that it begins
	forked bool // because of a fork
	blind  bool
	wait   *backoff.ExponentialBackOff
}

// followerError is an error of the follower, which ends the tail.
type followerError struct{ error }

func (t *tail) run(ctx context.Context) error {
	t.wait = newBackOff(0)
	for {
		err := t.attach(ctx)
		var theirs followerError
		switch {
		case errors.As(err, &theirs):
			return theirs.error
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if t.begun && !t.blind {
			t.blind = true
			t.f.Blind(fmt.Errorf("tail %s: %w", t.bucket, err))
		}
		t.s.log.Debug("tail interrupted", "bucket", string(t.bucket), "error", err)
		if !pause(ctx, t.wait.NextBackOff()) {
			return ctx.Err()
		}
	}
}

// attach follows the stream for one life of the connection. It always ends with an error.
func (t *tail) attach(ctx context.Context) error {
	f := t.s.read.life()
	info, err := t.s.streamInfo(ctx, t.bucket)
	if err != nil {
		return err
	}
	state := stateOf(info)
	start, err := t.start(ctx, state)
	if err != nil {
		return err
	}
	if t.anew && t.mode == events.TailLive {
		return t.attachLive(ctx, f, state)
	}
	c, err := t.s.consume(ctx, t.bucket, f, start)
	if err != nil {
		return err
	}
	defer c.close()
	if !t.s.read.alive(f) {
		return errLinkLost // what was looked at may be another life's
	}
	t.cursor.Incarnation = state.Incarnation
	if t.anew {
		t.begin(state)
	}
	return t.follow(ctx, c, state)
}

func (t *tail) begin(state events.StreamState) {
	t.cursor.Incarnation = state.Incarnation
	fork := t.forked
	t.begun, t.anew, t.forked = true, false, false
	t.f.Begin(state, fork)
}

// start settles where to follow from, and whether that is a beginning for the follower.
func (t *tail) start(ctx context.Context, state events.StreamState) (jetstream.ConsumerConfig, error) {
	if t.mode == events.TailLastPerKey {
		t.anew = true
		return jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, FilterSubject: t.bucket.Subject(">")}, nil
	}
	fork, missed, err := t.examine(ctx, state)
	if err != nil {
		return jetstream.ConsumerConfig{}, err
	}
	if fork || missed {
		t.anew, t.forked = true, t.forked || fork
		t.cursor.Seq, t.cursor.ID = 0, events.EventID{}
	}
	return t.behindCursor(), nil
}

func (t *tail) behindCursor() jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: t.cursor.Seq + 1}
}

// examine holds the stream against the cursor. A fork is another life of the stream, a
// shorter one, or another fact at the cursor's place; missed says that retention took
// records which this tail had not delivered.
func (t *tail) examine(ctx context.Context, state events.StreamState) (fork, missed bool, err error) {
	if t.cursor.Incarnation == "" && t.cursor.Seq == 0 {
		return false, false, nil
	}
	if t.cursor.Incarnation != state.Incarnation || t.cursor.Seq > state.Last {
		return true, false, nil
	}
	if t.cursor.Seq == 0 {
		return false, false, nil
	}
	if t.cursor.Seq < state.First {
		return false, t.cursor.Seq+1 < state.First, nil
	}
	r, ok, err := t.s.at(ctx, t.bucket, t.cursor.Seq)
	switch {
	case err != nil:
		return false, false, err
	case ok:
		return r.EventID() != t.cursor.ID, false, nil
	}
	return t.goneForNoReason(ctx)
}

// goneForNoReason: the record at the cursor is not there. Retention may have come in the
// meantime, and in some buckets a newer record of the key takes its place.
func (t *tail) goneForNoReason(ctx context.Context) (fork, missed bool, err error) {
	r, _ := rowOf(t.bucket)
	if r.mayHaveHoles() {
		return false, false, nil
	}
	info, err := t.s.streamInfo(ctx, t.bucket)
	if err != nil {
		return false, false, err
	}
	return t.cursor.Seq >= info.State.FirstSeq, false, nil
}

// follow delivers until something breaks. state is the stream as it was at the start.
func (t *tail) follow(ctx context.Context, c *consumer, state events.StreamState) error {
	live := false
	ticker := time.NewTicker(liveCheck)
	defer ticker.Stop()
	look := true // ask at once: an empty stream delivers nothing that could tell
	for {
		if look && !live {
			done, err := c.drained(ctx, state.Last)
			if err != nil {
				return err
			}
			if done {
				live = t.live(state.Last)
			}
		}
		d, ok, err := c.next(ctx, idle(live, ticker))
		if err != nil {
			return err
		}
		if look = !ok; look {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.f.Record(d.record); err != nil {
			return followerError{err}
		}
		if t.mode != events.TailLastPerKey {
			t.cursor.Seq, t.cursor.ID = d.record.Seq, d.record.EventID()
		}
		if !live && d.record.Seq >= state.Last {
			live = t.live(state.Last)
		}
		look = d.pending == 0
	}
}

// idle gives a tail that is live no reason to wake.
func idle(live bool, ticker *time.Ticker) <-chan time.Time {
	if live {
		return nil
	}
	return ticker.C
}

func (t *tail) live(last uint64) bool {
	t.blind = false
	t.wait.Reset()
	t.f.Live(last)
	return true
}
