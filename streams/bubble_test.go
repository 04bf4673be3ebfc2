package streams_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// retention of the bubbled stores.
const retention = 10 * time.Minute

// bubbled runs a test with a store of its own inside a bubble of fake time. A goroutine
// that outlives Close panics the bubble: constructors and Close are tested with it. No
// Serve or Listen in here: ending a subscription takes a timer that the NATS client shares
// between all connections of a process, and then a test outside would get this bubble's.
func bubbled(t *testing.T, test func(t *testing.T, st *streams.Store)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		srv, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Network: "net", Creator: "up", MaxBytes: testBytes, Durability: streams.Lazy, NoListener: true, Settings: streams.Settings{Retention: retention, TelemetryRetention: retention}})
		if err != nil {
			t.Fatal(err)
		}
		st, err := streams.Connect(t.Context(), srv.Connection())
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, st)
		if err := errors.Join(st.Close(), srv.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestCase092_AnExpiryMarkerIsNoValue: limits and routes carry their own time to live.
func TestCase092_AnExpiryMarkerIsNoValue(t *testing.T) {
	bubbled(t, func(t *testing.T, st *streams.Store) {
		f := newFollower()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- st.Tail(ctx, events.Routes, events.TailStart{}, f) }()
		<-f.lives
		m := message(events.Routes, "marker", 0)
		m.TTL = 300 * time.Second
		seq := mustAppend(t, st, m)
		if r := <-f.records; r.Seq != seq {
			t.Errorf("got %d, want %d", r.Seq, seq)
		}
		began := time.Now()
		r := <-f.records
		if r.Header["Nats-Marker-Reason"] != "MaxAge" || time.Since(began) > 302*time.Second || time.Since(began) < 299*time.Second {
			t.Errorf("after %s: %+v", time.Since(began), r)
		}
		mustAppend(t, st, message(events.Routes, "marker", r.Seq))
		cancel()
		<-ended
	})
}

// TestGuardIsZeroAfterRetention: a player whose last fact was taken is new again.
func TestGuardIsZeroAfterRetention(t *testing.T) {
	bubbled(t, func(t *testing.T, st *streams.Store) {
		seq := mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
		time.Sleep(2 * retention)
		_, err := st.Append(t.Context(), message(events.Transfers, key(1, 2), seq))
		var failed *events.AppendError
		if !errors.As(err, &failed) || failed.Reason != events.Conflict || failed.Last != 0 {
			t.Errorf("got %v, want a conflict that names 0", err)
		}
		mustAppend(t, st, message(events.Transfers, key(1, 2), 0))
	})
}

// TestLateRetryIsStoredOnce: the store's own window against doubles is over.
func TestLateRetryIsStoredOnce(t *testing.T) {
	bubbled(t, func(t *testing.T, st *streams.Store) {
		m := message(events.Transfers, key(1, 1), 0)
		seq := mustAppend(t, st, m)
		after := mustAppend(t, st, message(events.Transfers, key(1, 2), seq))
		time.Sleep(3 * time.Minute)
		if again := mustAppend(t, st, m); again != seq {
			t.Errorf("the retry got %d, want %d", again, seq)
		}
		if r, ok, err := st.Last(t.Context(), events.Transfers, key(1, 1)); err != nil || !ok || r.Seq != after {
			t.Errorf("last %d %v %v, want %d", r.Seq, ok, err, after)
		}
	})
}
