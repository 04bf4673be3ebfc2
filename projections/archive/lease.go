package archive

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// leaseTTL is how long a file stays taken when its writer has vanished.
const leaseTTL = 15 * time.Second

// LeaseLog is the part of a log that leases are kept in.
type LeaseLog interface {
	LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
	Append(ctx context.Context, m events.Message) (uint64, error)
}

// HeldError says that another process writes a file.
type HeldError struct{ Name, Holder string }

func (e *HeldError) Error() string {
	return fmt.Sprintf("%s is being written by %s", e.Name, e.Holder)
}

// ErrLeaseLost is returned when a lease could not be prolonged in time.
var ErrLeaseLost = errors.New("the lease of the archive was lost")

// Lease is the right to write one file of one archive: a record of the bucket leases that
// ends by itself. A holder that was stopped may believe in it too long; it is fenced off by
// the file itself, see Open.
type Lease struct {
	log    LeaseLog
	key    string
	holder string
	newID  func() [16]byte
	last   uint64
}

// LeaseKey is the key in leases of a file of an archive.
func LeaseKey(view, file string) string { return view + "." + strings.TrimSuffix(file, ".db") }

// Acquire takes the lease. It fails with *HeldError when somebody has it.
func Acquire(ctx context.Context, log LeaseLog, key, holder string, newID func() [16]byte) (*Lease, error) {
	l := &Lease{log: log, key: key, holder: holder, newID: newID}
	r, found, err := log.LastOf(ctx, events.Leases, key)
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", key, err)
	}
	if found && len(r.Body) > 0 {
		return nil, &HeldError{Name: key, Holder: string(r.Body)}
	}
	l.last = r.Seq
	var failed *events.AppendError
	err = l.put(ctx, leaseTTL, []byte(holder))
	if errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.InFlight) {
		if r, _, err := log.LastOf(ctx, events.Leases, key); err == nil {
			return nil, &HeldError{Name: key, Holder: string(r.Body)}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("lease %s: %w", key, err)
	}
	return l, nil
}

// Hold prolongs the lease until ctx ends, and then gives it back and returns nil. It fails
// with ErrLeaseLost when that could not be done in time.
func (l *Lease) Hold(ctx context.Context) error {
	defer l.giveBack()
	renewed := time.Now()
	tick := time.NewTicker(leaseTTL / 5)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		began := time.Now()
		err := l.put(ctx, leaseTTL, []byte(l.holder))
		var failed *events.AppendError
		switch {
		case err == nil:
			renewed = began
		case errors.As(err, &failed) && failed.Reason == events.Conflict, time.Since(renewed) > leaseTTL:
			return fmt.Errorf("%w: %s: %w", ErrLeaseLost, l.key, err)
		}
	}
}

func (l *Lease) giveBack() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = l.put(ctx, time.Second, nil) // it ends by itself all the same
}

func (l *Lease) put(ctx context.Context, ttl time.Duration, holder []byte) error {
	seq, err := l.log.Append(ctx, events.Message{
		Bucket: events.Leases, Key: l.key, Prev: l.last, TTL: ttl, Body: holder,
		Header: events.Header{events.HeaderID: events.EventID(l.newID()).String()},
	})
	if err == nil {
		l.last = seq
	}
	return err
}

// Held gives who writes a file now; "" when nobody does.
func Held(ctx context.Context, log LeaseLog, key string) (string, error) {
	r, found, err := log.LastOf(ctx, events.Leases, key)
	if err != nil || !found {
		return "", err
	}
	return string(r.Body), nil
}
