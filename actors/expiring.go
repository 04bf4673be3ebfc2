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

// standsAt gives what stands at a key of a bucket whose facts expire, as the log's leader has it. Without a
// fact nothing does: there never was any, it has expired, or it is not to be believed. The
// sequence guards the next one either way.
func (d *Dispatcher) standsAt(ctx context.Context, b events.Bucket, key string) (events.Event, error) {
	r, found, err := d.log.Last(ctx, b, key)
	if err != nil || !found {
		return events.Event{}, err
	}
	e, refusal := events.Open(d.Keys, r)
	if refusal == nil {
		return e, nil
	}
	if refusal.Code != events.Stray { // that is the marker of an end
		d.problem(projections.Problem{Bucket: b, Key: key, Seq: r.Seq, Source: r.Header[events.HeaderSource], Refusal: refusal})
	}
	return events.Event{Seq: r.Seq}, nil
}

// amendment looks at the fact that stands at such a key, nil when none does, and gives
// the next one and how long it stands (0: for good), or nil when nothing is to be written.
type amendment func(now events.Fact) (next events.Fact, ttl time.Duration)

// amend lands the next fact of a key on top of the newest one, and gives the one
// that stands then. Whoever else does so at the same time, nothing is lost: the amendment is
// asked again.
func (d *Dispatcher) amend(ctx context.Context, b events.Bucket, key string, next amendment) (stands events.Fact, err error) {
	err = backoff.Retry(func() error {
		stands, err = d.amendOnce(ctx, b, key, next)
		return err
	}, againAfterConflict(ctx))
	if err != nil {
		return nil, fmt.Errorf("amend %s: %w", key, err)
	}
	return stands, nil
}

func (d *Dispatcher) amendOnce(ctx context.Context, b events.Bucket, key string, next amendment) (events.Fact, error) {
	now, err := d.standsAt(ctx, b, key)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	fact, ttl := next(now.Fact)
	if fact == nil {
		return now.Fact, nil
	}
	m, err := d.seal(d.NewID(), key, events.TransferID{}, now.Seq, fact)
	if err != nil {
		return nil, backoff.Permanent(err)
	}
	m.TTL = ttl
	_, err = d.appendSurely(ctx, m)
	var failed *events.AppendError
	if err != nil && !(errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.InFlight)) {
		return nil, backoff.Permanent(err)
	}
	return fact, err
}

// amendLater is amend for what nobody waits for. It goes on through outages until it has
// landed or the dispatcher ends.
func (d *Dispatcher) amendLater(b events.Bucket, key string, next amendment) {
	d.background(func(ctx context.Context) {
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, 10*time.Second) {
			_, err := d.amend(ctx, b, key, next)
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
