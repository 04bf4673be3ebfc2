package streams_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// gated is a store reached over a cable that a test can cut.
func gated(t *testing.T) (*streams.Store, *r1.Cable, streams.Config) {
	t.Helper()
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	c := srv.Connection()
	g := r1.NewCable(c.InProcess, 0)
	c.InProcess = g
	return connect(t, c), g, srv.Connection()
}

// TestTailHearsOfEveryBounce: a connection that is back within milliseconds was lost all
// the same, and whoever counts silence must know; consumers do not pile up at the store.
func TestTailHearsOfEveryBounce(t *testing.T) {
	st, g, direct := gated(t)
	other := connect(t, direct)
	f := tailing(t, st, events.Transfers, events.TailStart{})
	receive(t, "Live", f.lives)
	prev := uint64(0)
	const bounces = 20
	for range bounces {
		g.Bounce()
		receive(t, "Blind", f.blinds)
		prev = mustAppend(t, other, message(events.Transfers, key(1, 1), prev))
		if r := receive(t, "record", f.records); r.Seq != prev {
			t.Fatalf("got %d, want %d", r.Seq, prev)
		}
		receive(t, "Live", f.lives)
	}
	if len(f.begins) != 1 {
		t.Errorf("begun %d times: nothing was lost", len(f.begins))
	}
	js := rawConfig(t, direct)
	stream, err := js.Stream(t.Context(), streams.StreamName(events.Transfers))
	if err != nil {
		t.Fatal(err)
	}
	// Those that could not be deleted while the connection was away end by inactivity.
	if n := stream.CachedInfo().State.Consumers; n > bounces+1 {
		t.Errorf("%d consumers after %d bounces", n, bounces)
	}
}

func TestAppendOverABounceIsKnown(t *testing.T) {
	st, g, _ := gated(t)
	prev := uint64(0)
	for range 10 {
		g.LoseAck()
		prev = mustAppend(t, st, message(events.Transfers, key(1, 1), prev))
	}
	if got := len(history(t, st, events.Transfers, streams.Range{})); got != 10 {
		t.Errorf("%d facts, want 10", got)
	}
}

func TestAppendFailsAtOnceWithoutAConnection(t *testing.T) {
	st, g, direct := gated(t)
	g.Cut()
	m := message(events.Transfers, key(1, 1), 0)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := st.Append(ctx, m)
	var failed *events.AppendError
	if !errors.As(err, &failed) || (failed.Reason != events.Unavailable && failed.Reason != events.Unknown) {
		t.Fatalf("got %v", err)
	}
	if st.Connected() {
		t.Fatal("the store does not know that it was cut off")
	}
	_, err = st.Append(t.Context(), message(events.Transfers, key(1, 3), 0))
	wantReason(t, err, events.Unavailable)
	if failed.Reason == events.Unknown { // then so is a retry, although it did not leave
		_, err = st.Append(t.Context(), m)
		wantReason(t, err, events.Unknown)
	}
	g.Heal()
	other := connect(t, direct)
	mustAppend(t, other, message(events.Transfers, key(1, 2), 0))
	if got := history(t, other, events.Transfers, streams.Range{}); len(got) != 1 {
		t.Errorf("%d facts: an abandoned append landed late", len(got))
	}
}

func history(t *testing.T, st *streams.Store, b events.Bucket, r streams.Range) (seqs []uint64) {
	t.Helper()
	for rec, err := range st.History(t.Context(), b, r) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, rec.Seq)
	}
	return seqs
}

// A scan that asks only whose a record is has its head, and leaves the body in the store.
func TestHistoryOfHeads(t *testing.T) {
	st := newStore(t)
	want := message(events.Transfers, key(1, 1), 0)
	mustAppend(t, st, want)
	for r, err := range st.History(t.Context(), events.Transfers, streams.Range{Heads: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Key != want.Key || r.Seq != 1 || r.Stored.IsZero() || r.Header[events.HeaderID] != want.Header[events.HeaderID] || len(r.Body) != 0 {
			t.Errorf("got %+v", r)
		}
		return
	}
	t.Error("nothing came")
}

func TestHistoryRanges(t *testing.T) {
	st := newStore(t)
	if got := history(t, st, events.Transfers, streams.Range{}); len(got) != 0 {
		t.Fatalf("an empty bucket gave %v", got)
	}
	for player := range 3 {
		prev := uint64(0)
		for range 4 {
			prev = mustAppend(t, st, message(events.Transfers, key(player, 1), prev))
		}
	}
	player1 := key(1, 1)[:36] + ".>"
	for name, c := range map[string]struct {
		r    streams.Range
		want []uint64
	}{
		"all":                 {streams.Range{}, []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		"after":               {streams.Range{After: 10}, []uint64{11, 12}},
		"after the end":       {streams.Range{After: 12}, nil},
		"up to":               {streams.Range{UpTo: 2}, []uint64{1, 2}},
		"between":             {streams.Range{After: 3, UpTo: 5}, []uint64{4, 5}},
		"one player":          {streams.Range{Keys: player1}, []uint64{5, 6, 7, 8}},
		"one player up to":    {streams.Range{Keys: player1, UpTo: 6}, []uint64{5, 6}},
		"one player, none":    {streams.Range{Keys: key(9, 9)[:36] + ".>"}, nil},
		"limit":               {streams.Range{Limit: 3}, []uint64{1, 2, 3}},
		"newest":              {streams.Range{Newest: true}, []uint64{4, 8, 12}},
		"newest of one":       {streams.Range{Newest: true, Keys: player1}, []uint64{8}},
		"newest after":        {streams.Range{Newest: true, After: 4}, []uint64{8, 12}},
		"since the future":    {streams.Range{Since: time.Now().Add(time.Hour)}, nil},
		"until the past":      {streams.Range{Until: time.Now().Add(-time.Hour)}, nil},
		"since the past":      {streams.Range{Since: time.Now().Add(-time.Hour), Limit: 1}, []uint64{1}},
		"player after, limit": {streams.Range{Keys: player1, After: 5, Limit: 2}, []uint64{6, 7}},
	} {
		if got := history(t, st, events.Transfers, c.r); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

func TestHistoryEndsWhileWritingGoesOn(t *testing.T) {
	st := newStore(t)
	first := mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
	n := 0
	for _, err := range st.History(t.Context(), events.Transfers, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		first = mustAppend(t, st, message(events.Transfers, key(1, 1), first)) // each record makes a new one
	}
	if n != 1 {
		t.Errorf("history gave %d records, want the one that was there", n)
	}
}

func TestHistoryEndsWithItsError(t *testing.T) {
	st, g, _ := gated(t)
	for i := range 3 {
		mustAppend(t, st, message(events.Transfers, key(i, 1), 0))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	g.Cut()
	var last error
	for _, err := range st.History(ctx, events.Transfers, streams.Range{}) {
		last = err
	}
	if last == nil {
		t.Error("a history without a connection ended as if it were whole")
	}
	g.Heal()
}

// TestFleetIsAlwaysReadFromTheNewest, whatever the caller asks for.
func TestFleetIsAlwaysReadFromTheNewest(t *testing.T) {
	st := newStore(t)
	prev := uint64(0)
	for range 5 {
		prev = mustAppend(t, st, message(events.Fleet, events.BackendKey("b1"), prev))
	}
	state, err := st.Info(t.Context(), events.Fleet)
	if err != nil || state.Last != prev || state.First != 1 || state.Clock == 0 || state.Incarnation == "" {
		t.Fatalf("%+v %v", state, err)
	}
	from := events.TailStart{Mode: events.TailResume, Cursor: events.Cursor{Seq: 2, Incarnation: state.Incarnation}}
	f := tailing(t, st, events.Fleet, from)
	receive(t, "Live", f.lives)
	if r := receive(t, "beat", f.records); r.Seq != prev || len(f.records) != 0 {
		t.Errorf("got %d and %d more, want the newest", r.Seq, len(f.records))
	}
}

// TestTailGoesLiveOverRecordsThatExpire: what it waits for may be gone.
func TestTailOfAnEmptyBucketGoesLive(t *testing.T) {
	st := newStore(t)
	for _, b := range events.Buckets {
		t.Run(string(b), func(t *testing.T) {
			f := tailing(t, st, b, events.TailStart{})
			if last := receive(t, "Live", f.lives); last != 0 || len(f.blinds) != 0 {
				t.Errorf("live at %d, blind %d times", last, len(f.blinds))
			}
		})
	}
}

func TestManyWritersOneWinnerEach(t *testing.T) {
	st := newStore(t)
	const writers, rounds = 16, 20
	prev := uint64(0)
	for range rounds {
		won := make(chan uint64, writers)
		done := make(chan error, writers)
		for range writers {
			go func() {
				seq, err := st.Append(t.Context(), message(events.Sessions, "p", prev))
				if err == nil {
					won <- seq
				}
				done <- err
			}()
		}
		for range writers {
			if err := receive(t, "append", done); err != nil {
				wantReason(t, err, events.Conflict)
			}
		}
		if len(won) != 1 {
			t.Fatalf("%d winners", len(won))
		}
		prev = <-won
	}
}

func TestErrorsCarryTheKey(t *testing.T) {
	st := newStore(t)
	mustAppend(t, st, message(events.Sessions, "player-1", 0))
	_, err := st.Append(t.Context(), message(events.Sessions, "player-1", 0))
	if failed := wantReason(t, err, events.Conflict); failed.Key != "player-1" || failed.Code != 10071 || failed.Err == nil {
		t.Errorf("%+v", failed)
	}
	if got := fmt.Sprint(err); got == "" {
		t.Error("no text")
	}
}
