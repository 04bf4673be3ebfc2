package streamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// Recorder is a Follower that keeps what it is told, and holds it against the order that
// the contract promises. Safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	calls   []string // "begin", "fork", "record", "live", "blind"
	state   events.StreamState
	records []events.Record // since the last begin
	lives   []uint64
	isLive  bool
	broken  error
	fail    error         // what Record returns
	hold    chan struct{} // Record waits for it when set
	changed signal
}

// Begin drops what was recorded.
func (r *Recorder) Begin(state events.StreamState, fork bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	call := "begin"
	if fork {
		call = "fork"
	}
	r.state, r.records = state, nil
	r.told(call, false)
}

// Record keeps a record. It must be newer than all since Begin.
func (r *Recorder) Record(record events.Record) error {
	r.mu.Lock()
	hold := r.hold
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.records); n > 0 && r.records[n-1].Seq >= record.Seq {
		r.fault("record %d after record %d", record.Seq, r.records[n-1].Seq)
	}
	r.records = append(r.records, record)
	r.told("record", r.isLive)
	return r.fail
}

// Live is told once after each Begin or Blind.
func (r *Recorder) Live(last uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isLive {
		r.fault("live twice without blind or begin between")
	}
	r.lives = append(r.lives, last)
	r.told("live", true)
}

// Blind ends live.
func (r *Recorder) Blind(error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.told("blind", false)
}

// told wants r.mu held.
func (r *Recorder) told(call string, live bool) {
	if len(r.calls) == 0 && call != "begin" && call != "fork" {
		r.fault("%s before begin", call)
	}
	r.calls, r.isLive = append(r.calls, call), live
	r.changed.fire()
}

func (r *Recorder) fault(format string, args ...any) {
	if r.broken == nil {
		r.broken = fmt.Errorf(format, args...)
	}
}

// until waits until holds, looked at with r.mu held, is true.
func (r *Recorder) until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		r.mu.Lock()
		ok, broken, changed := holds(), r.broken, r.changed.wait()
		r.mu.Unlock()
		if broken != nil {
			t.Fatalf("tail broke its promise: %v", broken)
		}
		if ok {
			return
		}
		select {
		case <-ctx.Done():
			r.mu.Lock()
			defer r.mu.Unlock()
			t.Fatalf("gave up waiting for %s; %d records since begin, last calls %v", what, len(r.records), r.calls[max(0, len(r.calls)-8):])
		case <-changed:
		}
	}
}

// count of one call so far.
func (r *Recorder) count(call string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counted(call)
}

func (r *Recorder) counted(call string) (n int) {
	for _, c := range r.calls {
		if c == call {
			n++
		}
	}
	return n
}

// has tells that seq was recorded since the last begin. It wants r.mu held.
func (r *Recorder) has(seq uint64) bool {
	_, ok := slices.BinarySearchFunc(r.records, seq, func(r events.Record, seq uint64) int { return int(r.Seq) - int(seq) }) //nolint:gosec // small in tests
	return ok
}

// waitFor waits until the record of a sequence came.
func (r *Recorder) waitFor(t *testing.T, seq uint64) {
	t.Helper()
	r.until(t, fmt.Sprintf("sequence %d", seq), func() bool { return r.has(seq) })
}

// waitCalls waits until a call was made n times.
func (r *Recorder) waitCalls(t *testing.T, call string, n int) {
	t.Helper()
	r.until(t, fmt.Sprintf("%q number %d", call, n), func() bool { return r.counted(call) >= n })
}

// mine gives the sequences recorded since the last begin under these keys.
func (r *Recorder) mine(keys ...string) (seqs []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.records {
		if slices.Contains(keys, record.Key) {
			seqs = append(seqs, record.Seq)
		}
	}
	return seqs
}

func (r *Recorder) incarnation() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.state.Incarnation
}

// following is a Tail under way.
type following struct {
	*Recorder
	cancel context.CancelFunc
	done   chan error
}

// follow starts a tail and ends it with the test at the latest.
func follow(t *testing.T, c Conn, b events.Bucket, from events.TailStart) *following {
	t.Helper()
	return followWith(t, c, b, from, &Recorder{})
}

func followWith(t *testing.T, c Conn, b events.Bucket, from events.TailStart, r *Recorder) *following {
	t.Helper()
	return followInto(t, c, b, from, r, r)
}

// followInto tails into to, which tells r.
func followInto(t *testing.T, c Conn, b events.Bucket, from events.TailStart, to events.Follower, r *Recorder) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{Recorder: r, cancel: cancel, done: make(chan error, 1)}
	go func() { f.done <- c.Tail(ctx, b, from, to) }()
	t.Cleanup(func() { f.stop(t) })
	return f
}

// stop ends the tail, waits for it and checks what it said.
func (f *following) stop(t *testing.T) {
	t.Helper()
	f.cancel()
	select {
	case err := <-f.done:
		f.done <- nil
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("tail ended with %v, want its context's error", err)
		}
	case <-time.After(patience):
		t.Errorf("tail did not end with its context")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broken != nil {
		t.Errorf("tail broke its promise: %v", f.broken)
	}
}
