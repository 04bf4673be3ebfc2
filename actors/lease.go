package actors

import (
	"context"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
)

// lease is the right to do a job that one dispatcher at a time should do: a record of leases
// that ends by itself. It only saves doubled work: a holder that was stopped may believe in
// it too long, so the job must be one that two may do at once. For one goroutine.
type lease struct {
	d    *Dispatcher
	name string
	ttl  time.Duration // whole seconds

	held    bool
	last    uint64    // sequence of the record
	renewed time.Time // before it was written
}

// take tells that the job is this dispatcher's now. It takes the lease when nobody has it, and
// prolongs it in good time.
func (l *lease) take(ctx context.Context) bool {
	now := l.d.Now()
	age := now.Sub(l.renewed)
	if l.held && age < l.ttl/3 {
		return true
	}
	if !l.held {
		r, found, err := l.d.log.Last(ctx, events.Leases, l.name)
		if err != nil || found && len(r.Body) > 0 {
			return false
		}
		l.last = r.Seq // of what marks its end, if anything
	}
	seq, err := l.put(ctx, l.ttl, []byte(l.d.Source.String()))
	var failed *events.AppendError
	switch {
	case err == nil:
		l.held, l.last, l.renewed = true, seq, now
	case errors.As(err, &failed) && failed.Reason == events.Conflict:
		l.held = false
	default: // nobody knows: it stands for as long as it was written for
		l.held = l.held && age < l.ttl
	}
	return l.held
}

// giveBack ends the lease before its time. One that was lost already is not touched.
func (l *lease) giveBack(ctx context.Context) {
	if !l.held {
		return
	}
	l.held = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if _, err := l.put(ctx, time.Second, nil); err != nil {
		l.d.logger.Debug("lease not given back, it ends by itself", "lease", l.name, "error", err)
	}
}

func (l *lease) put(ctx context.Context, ttl time.Duration, holder []byte) (uint64, error) {
	return l.d.log.Append(ctx, events.Message{
		Bucket: events.Leases, Key: l.name, Prev: l.last, TTL: ttl, Body: holder,
		Header: events.Header{events.HeaderID: events.EventID(l.d.NewID()).String()},
	})
}
