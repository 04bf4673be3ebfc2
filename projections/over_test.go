package projections

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// whole is a log whose tails begin with everything, whatever they ask for.
type whole struct{ Log }

func (w whole) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	if from.Mode == events.TailLive {
		from.Mode = events.TailAll
	}
	return w.Log.Tail(ctx, b, from, f)
}

// viewed is what a View that follows a log holds once it has caught up, and what it refused.
func viewed(t *rapid.T, log Log, then func(*View)) map[uint64]bool {
	refused := map[uint64]bool{}
	v := NewView(Config{
		Log: log, Keys: streamtest.Keyring(), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Problem: func(p Problem) { refused[p.Seq] = true },
	})
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	if err := v.WaitLive(ctx); err != nil {
		t.Fatal(err)
	}
	then(v)
	cancel()
	<-done
	return refused
}

// inject stores an event as it is, sealed when a signer would; what nobody would sign is
// stored with a broken signature.
func inject(mem *streamtest.Memory, e events.Event) {
	key := e.Key
	if key == "" {
		key = "x"
	}
	env := e.Envelope
	env.Source, env.Key, env.Time = writerOf(e.Fact), key, e.Stored
	kind, err := events.KindOf(e.Fact)
	m, errSeal := events.Seal(streamtest.Keyring(), env, e.Fact)
	switch {
	case err != nil || errSeal != nil:
		m.Header = events.Header{"KV-Operation": "DEL"}
	case kind.Bucket != events.Transfers:
		m.Body = append(m.Body, 0)
	}
	mem.Inject(events.Transfers, key, m.Header, m.Body)
}

// held is what a View says of a player: the guard, and the transfer under way.
func held(v *View, player events.PlayerID) string {
	p := v.Player(player)
	if p.Active == nil {
		return fmt.Sprintf("guard %d, nothing under way", p.Guard)
	}
	return fmt.Sprintf("guard %d, position %d, %s", p.Guard, v.Position(p.Active.Place), timeless(*p.Active))
}

// A View that begins with what is alive holds the guards and the transfers under way of one
// that has read everything. Excepted are players of whom a verified end that the fold does
// not take (an impossible one, or one past the guard) stands last under a key: no
// guarded writer puts it there.
func TestLiveBootHoldsWhatMatters(t *testing.T) {
	players := []events.PlayerID{id[events.PlayerID](1), id[events.PlayerID](2)}
	rapid.Check(t, func(t *rapid.T) {
		mem := streamtest.NewMemory()
		history := drawHistory(t, events.Transfers)
		cut := rapid.IntRange(0, len(history)).Draw(t, "written before the boot")
		for _, e := range history[:cut] {
			inject(mem, e)
		}
		want := map[events.PlayerID]string{}
		refused := viewed(t, whole{mem.Client("whole")}, func(v *View) {
			for _, p := range players {
				want[p] = held(v, p)
			}
		})
		excepted := impossibleEnds(mem, refused)
		viewed(t, mem.Client("live"), func(v *View) {
			for _, p := range players {
				if got := held(v, p); got != want[p] && !excepted[p] {
					t.Fatalf("%s\nfrom what is alive: %s\nfrom everything:    %s", p, got, want[p])
				}
			}
		})
	})
}

func impossibleEnds(mem *streamtest.Memory, refused map[uint64]bool) map[events.PlayerID]bool {
	newest, out := map[string]events.Record{}, map[events.PlayerID]bool{}
	for _, r := range mem.Records(events.Transfers) {
		newest[r.Key] = r
	}
	for key, r := range newest {
		if _, over := Over(streamtest.Keyring(), r); over && refused[r.Seq] {
			player, _, _ := events.ParseTransferKey(key)
			out[player] = true
		}
	}
	return out
}

func TestOver(t *testing.T) {
	w := newWatch(t)
	key := events.TransferKey(steve, first)
	record := func(f events.Fact, change func(*events.Record)) events.Record {
		m := w.seal(key, f)
		r := events.Record{Bucket: m.Bucket, Key: m.Key, Seq: 9, Header: m.Header, Body: m.Body}
		if change != nil {
			change(&r)
		}
		return r
	}
	as := func(change func(e *events.Envelope)) func(*events.Record) {
		return func(r *events.Record) {
			e := events.Envelope{ID: streamtest.NewID[events.EventID](), Source: writerOf(completed(1)), Time: noon, Key: key, Correlation: first}
			change(&e)
			m := streamtest.Seal(t, e, completed(1))
			*r = events.Record{Bucket: m.Bucket, Key: m.Key, Seq: 9, Header: m.Header, Body: m.Body}
		}
	}
	rows := []struct {
		name string
		r    events.Record
		want Phase
		code events.Code
	}{
		{"completed", record(completed(1), nil), Completed, events.OK},
		{"failed", record(&events.Failed{Code: events.NotArrived}, nil), Failed, events.NotArrived},
		{"cancelled", record(&events.Cancelled{Code: events.GraceOver}, nil), Cancelled, events.GraceOver},
		{"superseded", record(&events.Superseded{By: next}, nil), Superseded, events.Replaced},
		{"under way", record(claimed(1), nil), "", ""},
		{"of a session", record(opened("a"), nil), "", ""},
		{"a marker", record(completed(1), func(r *events.Record) { r.Header = events.Header{"KV-Operation": "DEL"} }), "", ""},
		{"tampered", record(completed(1), func(r *events.Record) { r.Body = append(slices.Clone(r.Body), 0) }), "", ""},
		{"under another key", record(completed(1), func(r *events.Record) { r.Key = events.TransferKey(steve, next) }), "", ""},
		{"for another transfer", record(completed(1), as(func(e *events.Envelope) { e.Correlation = next })), "", ""},
		{"misspelt", record(completed(1), as(func(e *events.Envelope) { e.Key = strings.ToUpper(key) })), "", ""},
	}
	for _, row := range rows {
		fact, over := Over(streamtest.Keyring(), row.r)
		phase, code := Ending(fact)
		if over != (row.want != "") || phase != row.want || code != row.code {
			t.Errorf("%s: %v, %q (%s); want %q (%s)", row.name, over, phase, code, row.want, row.code)
		}
	}
	for _, k := range events.Catalog {
		if f, ok := k.New().(events.TransferFact); ok && !events.Terminal(f) {
			if phase, code := Ending(f); phase != "" || code != "" {
				t.Errorf("%s ends as %q (%s)", k.Type, phase, code)
			}
		}
	}
}

// What was settled is a guard and nothing else, until it is forgotten.
func TestSettle(t *testing.T) {
	j := NewJourneys(1)
	j.Settle(events.TransferKey(steve, first), 7, noon)
	j.Settle("kill", 8, noon)
	if p := j.Player(steve); p.Guard != 7 || p.Active != nil || p.Done != nil || len(j.players) != 0 {
		t.Errorf("%+v", p)
	}
	l := newTape()
	l.seq = 8
	l.of(steve, next, requested())
	l.newest().Prev = 6
	wantRefusal(t, "past the guard", j.Apply(*l.newest(), noon), events.WrongPrev)
	j.Settle(events.TransferKey(alex, first), 10, noon)
	j.Forget(noon)
	if p := j.Player(alex); p.Guard != 10 {
		t.Errorf("forgotten at its own moment: %+v", p)
	}
	j.Forget(noon.Add(time.Second))
	if p := j.Player(alex); p.Guard != 0 {
		t.Errorf("not forgotten: %+v", p)
	}
	l.of(alex, next, requested())
	l.newest().Prev = 10
	wantRefusal(t, "after forgetting", j.Apply(*l.newest(), noon), events.OK)
}

// A host that begins holds no history of those with whom nothing is under way, and goes on
// from where their guards stand.
func TestViewBeginsWithWhatIsAlive(t *testing.T) {
	w := newWatch(t).fill()
	w.of(alex, first, requested(), &events.Failed{Code: events.NotArrived})
	guard := w.of(alex, next, requested(), &events.Cancelled{Code: events.GraceOver})
	w.run().live()
	if p := w.view.Player(alex); p.Guard != guard || p.Active != nil || len(p.Done) != 0 {
		t.Errorf("%+v", p)
	}
	if p := w.view.Player(steve); p.Active == nil || p.Active.Phase != Pending || p.Active.Facts != 2 {
		t.Errorf("%+v", p)
	}
	third := id[events.TransferID](77)
	if err := w.view.WaitFolded(t.Context(), events.Transfers, w.of(alex, third, requested())); err != nil {
		t.Fatal(err)
	}
	if p := w.view.Player(alex); p.Active == nil || p.Active.ID != third || len(w.problems) != 0 {
		t.Errorf("%+v, problems %+v", p, w.problems)
	}
	w.stop()
}
