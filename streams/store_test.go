package streams_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// actorsLog and actorsBus are the ports, as actors states them.
type (
	actorsLog interface {
		Append(ctx context.Context, m events.Message) (uint64, error)
		Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
		LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
		Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error
	}
	actorsBus interface {
		Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error)
		Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error
		Announce(ctx context.Context, subject string, w events.Wire) error
		Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error
	}
)

var (
	_ actorsLog = (*streams.Store)(nil)
	_ actorsBus = (*streams.Store)(nil)
)

const testBytes = 2 << 30

// testConfig is a store of network "net" in a directory of its own. LANDFALL_TEST_LOG=1
// shows what the store says.
func testConfig(t testing.TB) embedded.Config {
	t.Helper()
	c := embedded.Config{Dir: t.TempDir(), Network: "net", Creator: "up", MaxBytes: testBytes, Durability: streams.Lazy}
	if os.Getenv("LANDFALL_TEST_LOG") != "" {
		c.Logger = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return c
}

func openServer(t testing.TB, c embedded.Config) *embedded.Server {
	t.Helper()
	srv, err := embedded.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv
}

func connect(t testing.TB, c streams.Config) *streams.Store {
	t.Helper()
	st, err := streams.Connect(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

func ensured(t testing.TB, c streams.Config) *streams.Store {
	t.Helper()
	st := connect(t, c)
	if err := st.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	return st
}

// newStore is a fresh store of one node.
func newStore(t testing.TB) *streams.Store {
	t.Helper()
	return ensured(t, openServer(t, testConfig(t)).Connection())
}

// message is an unsigned fact: the store looks at no signature.
func message(b events.Bucket, key string, prev uint64) events.Message {
	return events.Message{
		Bucket: b, Key: key, Prev: prev,
		Header: events.Header{events.HeaderID: uuid.NewString(), events.HeaderType: "landfall.test.v1"},
		Body:   []byte("body"),
	}
}

func mustAppend(t testing.TB, st *streams.Store, m events.Message) uint64 {
	t.Helper()
	seq, err := st.Append(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func wantReason(t testing.TB, err error, reason events.AppendReason) *events.AppendError {
	t.Helper()
	var failed *events.AppendError
	if !errors.As(err, &failed) {
		t.Fatalf("got %v, want an AppendError %q", err, reason)
	}
	if failed.Reason != reason {
		t.Fatalf("got %v, want reason %q", err, reason)
	}
	return failed
}

// follower records a tail. Its channels have room for every test.
type follower struct {
	begins  chan bool
	records chan events.Record
	lives   chan uint64
	blinds  chan error
}

func newFollower() *follower {
	return &follower{begins: make(chan bool, 64), records: make(chan events.Record, 1<<16), lives: make(chan uint64, 64), blinds: make(chan error, 64)}
}

func (f *follower) Begin(_ events.StreamState, fork bool) { f.begins <- fork }
func (f *follower) Record(r events.Record) error          { f.records <- r; return nil }
func (f *follower) Live(last uint64)                      { f.lives <- last }
func (f *follower) Blind(err error)                       { f.blinds <- err }

// tailing starts a tail that ends with the test.
func tailing(t testing.TB, st *streams.Store, b events.Bucket, from events.TailStart) *follower {
	t.Helper()
	f := newFollower()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- st.Tail(ctx, b, from, f) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("tail ended with %v", err)
		}
	})
	return f
}

// receive takes the next value, or fails after 20 s.
func receive[T any](t testing.TB, what string, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("no %s after 20 s", what)
		panic("unreachable")
	}
}

func key(player, transfer int) string {
	return fmt.Sprintf("00000000-0000-4000-8000-%012d.00000000-0000-7000-8000-%012d", player, transfer)
}

func TestAppendLastAndTail(t *testing.T) {
	st := newStore(t)
	f := tailing(t, st, events.Transfers, events.TailStart{})
	if receive(t, "Begin", f.begins) {
		t.Fatal("a new stream is no fork")
	}
	receive(t, "Live", f.lives)
	first := mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
	second := mustAppend(t, st, message(events.Transfers, key(1, 2), first))
	_, err := st.Append(t.Context(), message(events.Transfers, key(1, 3), first))
	if failed := wantReason(t, err, events.Conflict); failed.Last != second {
		t.Errorf("conflict names %d, want %d", failed.Last, second)
	}
	last, ok, err := st.Last(t.Context(), events.Transfers, key(1, 9))
	if err != nil || !ok || last.Seq != second || last.Key != key(1, 2) {
		t.Errorf("last inside the guard: %+v %v %v, want sequence %d", last, ok, err, second)
	}
	for _, want := range []uint64{first, second} {
		if r := receive(t, "record", f.records); r.Seq != want || string(r.Body) != "body" || r.EventID().IsZero() {
			t.Errorf("tail gave %+v, want sequence %d", r, want)
		}
	}
}

func TestAskServeAnnounceListen(t *testing.T) {
	st := newStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	subject := events.ToBackend("b1", events.VerbReserve)
	if _, err := st.Ask(ctx, subject, events.Wire{}); !errors.Is(err, events.ErrNobody) {
		t.Fatalf("asking nobody: %v", err)
	}
	ready := make(chan struct{}, 2)
	ended := make(chan error, 2)
	heard := make(chan string, 10)
	go func() {
		ended <- st.Serve(ctx, events.ToBackend("b1", "*"), "q", func() { ready <- struct{}{} },
			func(_ context.Context, subject string, w events.Wire) events.Wire {
				return events.Wire{Header: w.Header, Body: append([]byte(subject+" "), w.Body...)}
			})
	}()
	go func() {
		ended <- st.Listen(ctx, events.NewsOf("*", "*"), func() { ready <- struct{}{} }, func(_ string, w events.Wire) { heard <- string(w.Body) })
	}()
	receive(t, "ready", ready)
	receive(t, "ready", ready)
	answer, err := st.Ask(ctx, subject, events.Wire{Header: events.Header{"ce-id": "7"}, Body: []byte("hello")})
	if err != nil || string(answer.Body) != subject+" hello" || answer.Header["ce-id"] != "7" {
		t.Fatalf("answer %+v %v", answer, err)
	}
	for i := range 3 {
		if err := st.Announce(ctx, events.NewsOf("b1", events.VerbJoined), events.Wire{Body: fmt.Append(nil, i)}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		if got := receive(t, "news", heard); got != fmt.Sprint(i) {
			t.Errorf("heard %s, want %d", got, i)
		}
	}
	cancel()
	for range 2 {
		if err := receive(t, "end", ended); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
}
