package actors

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/landfall/landfall/events"
)

// beater publishes a host's heartbeat as a compare-and-swap on the host's own key: the first
// beat of a new life takes over, and the life that is then refused knows that it was replaced.
type beater struct {
	Identity
	log    Log
	logger *slog.Logger
	every  time.Duration
	key    string
	beat   func() events.Fact
	landed func() // after each acknowledged beat; may be nil
	now    <-chan struct{}

	beaten
	mute bool // the last beat did not land, and that was said
}

// beaten is what a process knows of its own beats; it outlives the lives of its game server.
type beaten struct {
	prev  uint64          // the last one that landed, and the guard of the next
	first bool            // one has landed
	doubt *events.Message // may have landed: its acknowledgement did not come
	since time.Time       // since when it is in doubt
}

// run beats until ctx ends (then ctx's error, after a last beat) or another life takes the
// key (ErrDuplicateID).
func (b *beater) run(ctx context.Context) error {
	for {
		if err := b.once(ctx); err != nil {
			return err
		}
		pause := time.NewTimer(time.Duration(float64(b.every) * (0.9 + 0.2*rand.Float64()))) //nolint:gosec // spreading, not secrecy
		select {
		case <-pause.C:
		case <-b.now:
			pause.Stop()
		case <-ctx.Done():
			pause.Stop()
			b.goodbye(ctx)
			return ctx.Err()
		}
	}
}

// goodbye lands one more beat, which says SHUTTING_DOWN when the host left in order.
func (b *beater) goodbye(ctx context.Context) {
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = b.once(last)
}

// once lands a beat, after the one before it whose fate is unknown: the same message again
// lands at most once, and says whether somebody else has beaten meanwhile.
func (b *beater) once(ctx context.Context) error {
	for range 3 {
		m, again := b.doubt, b.doubt != nil
		if !again {
			fresh, err := b.seal(b.NewID(), b.key, events.TransferID{}, b.prev, b.beat())
			if err != nil {
				return err
			}
			m = &fresh
		}
		once, cancel := context.WithTimeout(ctx, b.every)
		seq, err := b.log.Append(once, *m)
		cancel()
		switch {
		case err == nil && again:
			b.prev, b.first, b.doubt = seq, true, nil
			continue
		case err == nil:
			b.prev, b.first, b.mute = seq, true, false
			if b.landed != nil {
				b.landed()
			}
			return nil
		case ctx.Err() != nil:
			b.wonder(m)
			return nil //nolint:nilerr // run sees that ctx has ended, and says goodbye
		}
		if retry, err := b.refused(m, err); !retry {
			return err
		}
	}
	return nil
}

// wonder remembers a beat that may have landed.
func (b *beater) wonder(m *events.Message) {
	if b.doubt == nil {
		b.doubt, b.since = m, b.Now()
	}
}

// doubtFor is how long the store surely knows a message that comes again.
const doubtFor = time.Minute

// refused sorts out a beat that did not land.
func (b *beater) refused(m *events.Message, err error) (retry bool, _ error) {
	var failed *events.AppendError
	if !errors.As(err, &failed) || failed.Reason != events.Conflict {
		if !b.mute {
			b.mute = true
			b.logger.Warn("heartbeats are not acknowledged", "error", err)
		}
		if failed != nil && failed.Reason == events.Unknown {
			b.wonder(m)
		}
		return false, nil
	}
	own := b.doubt != nil && b.Now().Sub(b.since) > doubtFor // the newer beat may be the one in doubt
	if b.first && failed.Last > b.prev && !own {
		return false, ErrDuplicateID
	}
	// The first beat of this process; or the store has lost the tail of an unsynced stream;
	// or the newer beat is our own. Was it not, this takes over, and the other process stops.
	b.prev, b.doubt = failed.Last, nil
	return true, nil
}
