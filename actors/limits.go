package actors

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// limit gives the fact that stands at a key of limits as the log's leader has it, and the
// sequence that guards the next one. nil: there is none, it has expired, or it is not to be
// believed.
func (d *Dispatcher) limit(ctx context.Context, key string) (events.Fact, uint64, error) {
	r, found, err := d.log.Last(ctx, events.Limits, key)
	if err != nil || !found {
		return nil, 0, err
	}
	e, refusal := events.Open(d.Keys, r)
	if refusal == nil {
		return e.Fact, r.Seq, nil
	}
	if refusal.Code != events.Stray { // that is the marker of an end
		d.problem(projections.Problem{Bucket: events.Limits, Key: key, Seq: r.Seq, Source: r.Header[events.HeaderSource], Refusal: refusal})
	}
	return nil, r.Seq, nil
}

// amendment looks at the fact that stands at a key of limits, nil when none does, and gives
// the next one and how long it stands (0: for good), or nil when nothing is to be written.
type amendment func(now events.Fact) (next events.Fact, ttl time.Duration)

// amend lands the next fact of a key of limits on top of the newest one. Whoever else does
// so at the same time, nothing is lost: the amendment is asked again.
func (d *Dispatcher) amend(ctx context.Context, key string, next amendment) error {
	err := backoff.Retry(func() error { return d.amendOnce(ctx, key, next) }, againAfterConflict(ctx))
	if err != nil {
		return fmt.Errorf("amend %s: %w", key, err)
	}
	return nil
}

func (d *Dispatcher) amendOnce(ctx context.Context, key string, next amendment) error {
	now, guard, err := d.limit(ctx, key)
	if err != nil {
		return backoff.Permanent(err)
	}
	fact, ttl := next(now)
	if fact == nil {
		return nil
	}
	m, err := d.seal(d.NewID(), key, events.TransferID{}, guard, fact)
	if err != nil {
		return backoff.Permanent(err)
	}
	m.TTL = ttl
	_, err = d.appendSurely(ctx, m)
	var failed *events.AppendError
	if errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.InFlight) {
		return err
	}
	if err != nil {
		return backoff.Permanent(err)
	}
	return nil
}

// amendLater is amend for what nobody waits for. It goes on through outages until it has
// landed or the dispatcher ends.
func (d *Dispatcher) amendLater(key string, next amendment) {
	d.background(func(ctx context.Context) {
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
			err := d.amend(ctx, key, next)
			var failed *events.AppendError
			if err == nil || errors.As(err, &failed) && failed.Reason == events.NotAllowed {
				return
			}
			if !sleep(ctx, pause) {
				return
			}
		}
	})
}
