package streams_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

// kept is what a store holds of a bucket, without the headers that guarded the appends.
func kept(t *testing.T, st *streams.Store, b events.Bucket, after uint64) (out []events.Record) {
	t.Helper()
	for r, err := range st.History(t.Context(), b, streams.Range{After: after}) {
		if err != nil {
			t.Fatal(err)
		}
		maps.DeleteFunc(r.Header, func(name, _ string) bool { return strings.HasPrefix(strings.ToLower(name), "nats-expected-") })
		out = append(out, r)
	}
	return out
}

func given(records []events.Record) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestImportKeepsEverySequence: a stream that begins late, and one with holes, stand in the
// new store as they stood, with the settings of every other stream, and go on.
func TestImportKeepsEverySequence(t *testing.T) {
	old := connect(t, openServer(t, testConfig(t)).Connection())
	if err := old.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	busy, other := streamtest.NewID[events.PlayerID](), streamtest.NewID[events.PlayerID]()
	var last uint64
	put := func(m events.Message) uint64 {
		seq, err := old.Append(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		return seq
	}
	put(streamtest.Fact(t, other.String(), 0, &events.SessionOpened{}))
	for range events.MaxKeyFacts + 5 {
		last = put(streamtest.Fact(t, busy.String(), last, &events.SessionOpened{}))
	}
	for range 6 {
		put(streamtest.Fact(t, events.TransferKey(streamtest.NewID[events.PlayerID](), streamtest.NewID[events.TransferID]()), 0, &events.Requested{Trigger: events.TriggerCommand}))
	}
	want := map[events.Bucket][]events.Record{events.Sessions: kept(t, old, events.Sessions, 0), events.Transfers: kept(t, old, events.Transfers, 3)}
	if n := len(want[events.Sessions]); n != events.MaxKeyFacts+1 {
		t.Fatalf("the old store holds %d sessions", n)
	}

	fresh := connect(t, openServer(t, testConfig(t)).Connection())
	for b, records := range want {
		state := events.StreamState{First: records[0].Seq, Last: records[len(records)-1].Seq + 2} // and two were lost at the end
		if err := fresh.Import(t.Context(), b, state, given(records)); err != nil {
			t.Fatal(err)
		}
		got, err := fresh.Info(t.Context(), b)
		if err != nil || got.First != state.First || got.Last != state.Last {
			t.Errorf("%s is %d to %d, %v, want %d to %d", b, got.First, got.Last, err, state.First, state.Last)
		}
	}
	if err := fresh.Ensure(t.Context()); err != nil { // makes the others, and finds these as they should be
		t.Fatal(err)
	}
	for b, records := range want {
		got := kept(t, fresh, b, 0)
		if !slices.EqualFunc(got, records, equalRecords) {
			t.Errorf("%s holds %d records, want %d, or other ones", b, len(got), len(records))
		}
	}
	next := streamtest.Fact(t, busy.String(), last, &events.SessionOpened{})
	if seq, err := fresh.Append(t.Context(), next); err != nil || seq != last+3 {
		t.Errorf("the next fact: %d, %v, want %d", seq, err, last+3)
	}
	if err := fresh.Import(t.Context(), events.Sessions, events.StreamState{}, given(nil)); err == nil {
		t.Error("a stream that is there was made again")
	}
}

func equalRecords(a, b events.Record) bool {
	return a.Bucket == b.Bucket && a.Key == b.Key && a.Seq == b.Seq && maps.Equal(a.Header, b.Header) && string(a.Body) == string(b.Body)
}
