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

	prev   uint64
	first  bool // a beat of this life has landed
	mute   bool // the last one did not, and that was said
	unsure bool // one more may have landed: its acknowledgement did not come
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

func (b *beater) once(ctx context.Context) error {
	for range 3 {
		m, err := b.seal(b.NewID(), b.key, events.TransferID{}, b.prev, b.beat())
		if err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, b.every)
		seq, err := b.log.Append(once, m)
		cancel()
		if err == nil {
			b.prev, b.first, b.mute, b.unsure = seq, true, false, false
			if b.landed != nil {
				b.landed()
			}
			return nil
		}
		if ctx.Err() != nil {
			b.unsure = true // it may have landed all the same
			return nil      //nolint:nilerr // run sees that ctx has ended, and says goodbye
		}
		if retry, err := b.refused(err); !retry {
			return err
		}
	}
	return nil
}

// refused sorts out a beat that did not land.
func (b *beater) refused(err error) (retry bool, _ error) {
	var failed *events.AppendError
	if !errors.As(err, &failed) || failed.Reason != events.Conflict {
		if !b.mute {
			b.mute = true
			b.logger.Warn("heartbeats are not acknowledged", "error", err)
		}
		b.unsure = b.unsure || failed != nil && failed.Reason == events.Unknown
		return false, nil
	}
	if b.first && failed.Last > b.prev && !b.unsure {
		return false, ErrDuplicateID
	}
	// The first beat of this life; or the store has lost the tail of an unsynced stream; or
	// the newer beat is our own. Was it not, this takes over, and the other life stops.
	b.prev, b.unsure = failed.Last, false
	return true, nil
}
