package streams_test

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// Tails and appends across pauses, restarts and broken connections, in bubbles of fake time
// with the real server: half a minute costs nothing there.

// bootable is a store that a test can stop and start again in its directory.
type bootable struct {
	cfg embedded.Config
	srv atomic.Pointer[embedded.Server] // nil: stopped
}

// InProcessConn makes it the place that connections go to, whichever server runs there.
func (b *bootable) InProcessConn() (net.Conn, error) {
	srv := b.srv.Load()
	if srv == nil {
		return nil, r1.ErrCut
	}
	return srv.Connection().InProcess.InProcessConn()
}

func (b *bootable) start(t *testing.T) {
	t.Helper()
	srv, err := embedded.Open(context.WithoutCancel(t.Context()), b.cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.srv.Store(srv)
}

func (b *bootable) stop(t *testing.T) {
	t.Helper()
	if srv := b.srv.Swap(nil); srv != nil {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// bubbledBootable is bubbled with a store that can be restarted, and a cable to it that can
// be cut.
func bubbledBootable(t *testing.T, test func(t *testing.T, b *bootable, g *r1.Cable, st *streams.Store)) {
	t.Helper()
	dir := t.TempDir()
	r1.ForgetTimers()
	defer r1.ForgetTimers()
	synctest.Test(t, func(t *testing.T) {
		name, password := streams.Login(secret, streams.RoleOperator, "host")
		b := &bootable{cfg: embedded.Config{
			Dir: dir, Network: "net", Creator: "up", MaxBytes: testBytes, Durability: streams.Lazy, NoListener: true,
			Users: []embedded.User{{Role: streams.RoleOperator, ID: "host", Name: name, Password: password}},
		}}
		b.start(t)
		g := r1.NewCable(b, 0)
		st, err := streams.Connect(t.Context(), streams.Config{
			InProcess: g, Role: streams.RoleOperator, ID: "host", User: name, Password: password, Network: "net", Creator: "up", Carrier: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		test(t, b, g, st)
		if err := st.Close(); err != nil {
			t.Error(err)
		}
		b.stop(t)
	})
}

// tailingIn is tailing inside a bubble, which must see the tail end: call stop.
func tailingIn(t *testing.T, st *streams.Store, from events.TailStart) (f *follower, stop func()) {
	t.Helper()
	f = newFollower()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- st.Tail(ctx, events.Transfers, from, f) }()
	return f, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("tail ended with %v", err)
		}
	}
}

// write appends n facts, one for each of so many players.
func write(t *testing.T, st *streams.Store, player, n int) (last uint64) {
	t.Helper()
	for i := range n {
		last = insist(t, st, message(events.Transfers, key(player+i, 1), 0))
	}
	return last
}

// insist appends, and again while they are on their way back.
func insist(t *testing.T, st *streams.Store, m events.Message) uint64 {
	t.Helper()
	for {
		seq, err := st.Append(t.Context(), m)
		if err == nil {
			return seq
		}
		var failed *events.AppendError
		if !errors.As(err, &failed) || failed.Reason != events.Unknown && failed.Reason != events.Unavailable {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond) // the connection needs the bubble's time
	}
}

// wantEach takes the records first to last, each once and in order.
func wantEach(t *testing.T, f *follower, first, last uint64) {
	t.Helper()
	for want := first; want <= last; want++ {
		if r := <-f.records; r.Seq != want {
			t.Fatalf("record %d came where %d belongs", r.Seq, want)
		}
	}
}

// busy is a follower that takes its time over some records.
type busy struct {
	*follower
	pauses map[uint64]time.Duration // by sequence
}

func (b *busy) Record(r events.Record) error {
	time.Sleep(b.pauses[r.Seq])
	return b.follower.Record(r)
}

// TestCase083_ABlockedReader (P13): while a fold works nobody pulls, and the store deletes a consumer
// that was idle for too long (half a minute). The tail goes on behind its last record all the
// same, neither leaving one out nor giving one twice.
func TestCase083_ABlockedReader(t *testing.T) {
	const facts = 3000
	for name, pause := range map[string]time.Duration{"12 s": 12 * time.Second, "a minute": time.Minute, "an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubbledBootable(t, func(t *testing.T, _ *bootable, _ *r1.Cable, st *streams.Store) {
				write(t, st, 1, facts)
				f := &busy{newFollower(), map[uint64]time.Duration{1: pause, 700: pause, facts: pause, facts + 1: pause}}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- st.Tail(ctx, events.Transfers, events.TailStart{}, f) }()
				<-f.lives
				last := write(t, st, facts+1, 2) // also while it is live
				wantEach(t, f.follower, 1, last)
				cancel()
				<-ended
				if len(f.begins) != 1 {
					t.Errorf("begun %d times: nothing was lost", len(f.begins))
				}
			})
		})
	}
}

// TestCase082_TheStoreIsAway (P13): the store is away for a moment, for half a minute, for an hour.
// Tails hear of it, go on without a gap or a repeat, and one consumer each is left.
func TestCase082_TheStoreIsAway(t *testing.T) {
	const tails, each = 3, 100
	bubbledBootable(t, func(t *testing.T, b *bootable, _ *r1.Cable, st *streams.Store) {
		var followers []*follower
		var stops []func()
		for range tails {
			f, stop := tailingIn(t, st, events.TailStart{})
			<-f.lives
			followers, stops = append(followers, f), append(stops, stop)
		}
		written := uint64(0)
		for round, away := range []time.Duration{time.Second, 30 * time.Second, time.Hour} {
			first := written + 1
			written = write(t, st, 1000*round, each)
			b.stop(t)
			for _, f := range followers {
				<-f.blinds
			}
			time.Sleep(away)
			b.start(t)
			for _, f := range followers {
				<-f.lives
				wantEach(t, f, first, written)
			}
		}
		for _, f := range followers {
			if len(f.begins) != 1 || len(f.records) != 0 {
				t.Errorf("begun %d times, %d records too many", len(f.begins), len(f.records))
			}
		}
		if n := b.consumers(t); n > tails {
			t.Errorf("%d consumers for %d tails", n, tails)
		}
		for _, stop := range stops {
			stop()
		}
	})
}

// TestConsumersAfterReconnects (P13): a storm of reconnects leaves no consumers behind. Those
// that could not be deleted, because the connection was away, end by themselves.
func TestConsumersAfterReconnects(t *testing.T) {
	const tails, reconnects = 3, 100
	bubbledBootable(t, func(t *testing.T, b *bootable, g *r1.Cable, st *streams.Store) {
		write(t, st, 1, 10)
		var followers []*follower
		var stops []func()
		for range tails {
			f, stop := tailingIn(t, st, events.TailStart{})
			<-f.lives
			followers, stops = append(followers, f), append(stops, stop)
		}
		for range reconnects {
			g.Bounce()
			for _, f := range followers {
				<-f.blinds
				<-f.lives
			}
		}
		if n := b.consumers(t); n > tails*(reconnects+1) {
			t.Errorf("%d consumers right after the storm", n)
		}
		time.Sleep(time.Minute)
		if n := b.consumers(t); n > tails {
			t.Errorf("%d consumers for %d tails, a minute after %d reconnects", n, tails, reconnects)
		}
		for _, f := range followers {
			wantEach(t, f, 1, 10)
			if len(f.records) != 0 || len(f.begins) != 1 {
				t.Errorf("%d records too many, begun %d times", len(f.records), len(f.begins))
			}
		}
		for _, stop := range stops {
			stop()
		}
	})
}

// TestRetryAfterARestart (P6): the acknowledgement was lost, the player has newer facts, the
// store was restarted. The same fact again, on its guard or a refreshed one, is stored once
// and its caller learns where.
func TestRetryAfterARestart(t *testing.T) {
	for _, c := range []struct {
		name      string
		away      time.Duration
		refreshed bool
	}{
		{"at once", 0, false},
		{"at once, refreshed", 0, true},
		{"long after the store's window", 10 * time.Minute, false},
		{"long after the store's window, refreshed", 10 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubbledBootable(t, func(t *testing.T, b *bootable, g *r1.Cable, st *streams.Store) {
				m := message(events.Transfers, key(1, 1), 0)
				g.CutAtAck()
				_, err := st.Append(t.Context(), m)
				wantReason(t, err, events.Unknown)
				g.Heal()
				newer := insist(t, st, message(events.Transfers, key(1, 2), 1))
				b.stop(t)
				time.Sleep(c.away)
				b.start(t)
				if c.refreshed {
					m.Prev = newer
				}
				if seq := insist(t, st, m); seq != 1 {
					t.Errorf("the retry got sequence %d, want 1", seq)
				}
				if state, err := st.Info(t.Context(), events.Transfers); err != nil || state.Last != 2 {
					t.Errorf("%d facts stored, want 2; %v", state.Last, err)
				}
			})
		})
	}
}

// consumers counts what reads transfers at the store, by its own word.
func (b *bootable) consumers(t *testing.T) int {
	t.Helper()
	stream, err := raw(t, b.srv.Load()).Stream(t.Context(), streams.StreamName(events.Transfers))
	if err != nil {
		t.Fatal(err)
	}
	return stream.CachedInfo().State.Consumers
}
