package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/events"
)

// Lease is the right to do a job now. It only saves doubled work: a holder that was
// stopped may believe in it too long, so whatever it does must be fenced by Epoch or by a
// guard of its own.
type Lease struct {
	Name   string `json:"name"`
	Holder string `json:"holder"`
	Epoch  uint64 `json:"epoch"` // sequence of the acquisition: each holder has a higher one
	last   uint64
}

// HeldError says who has the lease.
type HeldError struct {
	Name   string
	Holder string // "" when it was taken this moment
}

func (e *HeldError) Error() string { return fmt.Sprintf("lease %s is held by %q", e.Name, e.Holder) }

// Acquire takes a lease for ttl (whole seconds, at least 1) when nobody holds it. It fails
// with *HeldError when somebody does, the caller's own earlier life included.
func (s *Store) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (Lease, error) {
	last, ok, err := s.Last(ctx, events.Leases, name)
	if err != nil {
		return Lease{}, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	l := Lease{Name: name, Holder: holder}
	if ok {
		if held, err := leaseOf(last); err == nil {
			return Lease{}, &HeldError{Name: name, Holder: held.Holder}
		}
		l.last = last.Seq // a marker of its end
	}
	l, err = s.putLease(ctx, l, ttl)
	if err != nil {
		return Lease{}, fmt.Errorf("acquire lease %s: %w", name, err)
	}
	l.Epoch = l.last
	return l, nil
}

// Renew prolongs a lease by ttl from now. It fails with *HeldError when it was lost.
func (s *Store) Renew(ctx context.Context, l Lease, ttl time.Duration) (Lease, error) {
	l, err := s.putLease(ctx, l, ttl)
	if err != nil {
		return l, fmt.Errorf("renew lease %s: %w", l.Name, err)
	}
	return l, nil
}

// Release gives a lease back before its time. One that was lost already is no error.
func (s *Store) Release(ctx context.Context, l Lease) error {
	m := leaseMessage(l, time.Second)
	m.Body = nil
	m.Header["KV-Operation"] = "DEL"
	var failed *events.AppendError
	_, err := s.Append(ctx, m)
	if errors.As(err, &failed) && failed.Reason == events.Conflict {
		return nil
	}
	if err != nil {
		return fmt.Errorf("release lease %s: %w", l.Name, err)
	}
	return nil
}

func (s *Store) putLease(ctx context.Context, l Lease, ttl time.Duration) (Lease, error) {
	seq, err := s.Append(ctx, leaseMessage(l, ttl))
	var failed *events.AppendError
	if errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.InFlight) {
		return l, &HeldError{Name: l.Name}
	}
	if err != nil {
		return l, err
	}
	l.last = seq
	return l, nil
}

func leaseMessage(l Lease, ttl time.Duration) events.Message {
	body, _ := json.Marshal(l) //nolint:errchkjson // strings and a number
	return events.Message{
		Bucket: events.Leases,
		Key:    l.Name,
		Prev:   l.last,
		Header: events.Header{events.HeaderID: uuid.NewString()},
		Body:   body,
		TTL:    max(ttl.Round(time.Second), time.Second),
	}
}

func leaseOf(r events.Record) (l Lease, err error) {
	if r.Header["KV-Operation"] != "" || r.Header["Nats-Marker-Reason"] != "" {
		return l, errors.New("the lease has ended")
	}
	if err := json.Unmarshal(r.Body, &l); err != nil {
		return l, err
	}
	l.last = r.Seq
	return l, nil
}
