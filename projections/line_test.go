package projections

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// queue is a history of many players, one fact after the other.
type queue struct {
	t    *testing.T
	j    *Journeys
	last map[events.PlayerID]uint64
	seq  uint64
}

func newQueue(t *testing.T) *queue {
	return &queue{t: t, j: NewJourneys(1), last: map[events.PlayerID]uint64{}}
}

func someone(n int) events.PlayerID { return events.OfflinePlayer(fmt.Sprint("Player", n)) }

func transferOf(n int) events.TransferID {
	id := events.TransferID{}
	copy(id[:], fmt.Sprintf("transfer-%07d", n))
	return id
}

// add folds one fact of player n at a moment, and gives its sequence.
func (q *queue) add(n int, fact events.TransferFact, at time.Time) uint64 {
	q.t.Helper()
	q.seq++
	p := someone(n)
	e := events.Event{Envelope: events.Envelope{Key: events.TransferKey(p, transferOf(n)), Prev: q.last[p], Correlation: transferOf(n)}, Seq: q.seq, Fact: fact}
	q.last[p] = q.seq
	if r := q.j.Apply(e, at); r != nil {
		q.t.Fatalf("%T of player %d: %v", fact, n, r)
	}
	return q.seq
}

func (q *queue) ask(n int, region string) uint64 {
	return q.add(n, &events.Requested{Wish: events.Wish{Region: region}}, noon)
}

func (q *queue) positions(places ...uint64) []int {
	var out []int
	for _, p := range places {
		out = append(out, q.j.line.Position(p))
	}
	return out
}

func TestLinePositions(t *testing.T) {
	q := newQueue(t)
	a, b, c, d := q.ask(1, ""), q.ask(2, "east"), q.ask(3, ""), q.ask(4, "east")
	if got := q.positions(a, b, c, d); !slices.Equal(got, []int{1, 1, 2, 2}) {
		t.Errorf("two lanes: %v", got)
	}
	q.add(3, &events.Waitlisted{}, noon)
	q.add(1, &events.Reserved{Attempt: 1, Server: "s", Region: "east"}, noon)
	if got := q.positions(a, b, c, d); !slices.Equal(got, []int{0, 1, 1, 2}) {
		t.Errorf("the first has a token: %v", got)
	}
	q.add(1, &events.Expired{Attempt: 1}, noon)
	if got := q.positions(a, b, c, d); !slices.Equal(got, []int{1, 1, 2, 2}) {
		t.Errorf("the token expired, the place stands: %v", got)
	}
	q.add(2, &events.Cancelled{Code: events.Cancel}, noon)
	if got := q.positions(a, b, c, d); !slices.Equal(got, []int{1, 0, 2, 1}) {
		t.Errorf("one left: %v", got)
	}
	if q.j.line.Len() != 3 || q.j.line.Ahead(d) != 2 {
		t.Errorf("%d in line, %d before the last", q.j.line.Len(), q.j.line.Ahead(d))
	}
}

// Who was sent away once is served by the edge that holds the login, or not at all.
func TestLineLeavesOutTheMoved(t *testing.T) {
	q := newQueue(t)
	a := q.ask(1, "")
	q.add(1, &events.Reserved{Attempt: 1, Server: "s", Region: "east"}, noon)
	q.add(1, &events.Claimed{Attempt: 1}, noon)
	q.add(1, &events.Transferred{Attempt: 1, Result: events.MoveSent}, noon)
	q.add(1, &events.Released{Attempt: 1, Reason: events.Unreachable}, noon)
	if q.j.Player(someone(1)).Active.Phase != Requested || q.j.line.Position(a) != 0 {
		t.Errorf("position %d", q.j.line.Position(a))
	}
}

func TestLineCountsBypasses(t *testing.T) {
	q := newQueue(t)
	at := Spot{"s", "east"}
	bypasses := func(n int, region string) {
		q.add(n, &events.Requested{Bypass: true}, noon)
		q.add(n, &events.Reserved{Attempt: 1, Server: "s", Region: region}, noon)
	}
	bypasses(1, "east") // nobody waited
	q.ask(2, "west")
	q.add(3, &events.Requested{Bypass: true}, noon) // came before the one it will be held against
	q.ask(4, "east")
	q.ask(5, "")
	q.add(3, &events.Reserved{Attempt: 1, Server: "s", Region: "east"}, noon)
	if n, _ := q.j.line.Bypassed(at, "w"); n != 0 {
		t.Errorf("%d, want none: it came first", n)
	}
	bypasses(6, "east")
	bypasses(7, "east")
	bypasses(8, "west")
	if n, _ := q.j.line.Bypassed(at, "w"); n != 2 {
		t.Errorf("%d, want 2", n)
	}
	if n, _ := q.j.line.Bypassed(Spot{"s", "west"}, "w"); n != 1 {
		t.Errorf("the other lane: %d, want 1", n)
	}
	q.add(4, &events.Reserved{Attempt: 1, Server: "s", Region: "east"}, noon)
	if n, _ := q.j.line.Bypassed(at, "w"); n != 2 {
		t.Errorf("who waits for any place was passed as well: %d", n)
	}
	for _, n := range []int{2, 5} {
		q.add(n, &events.Cancelled{Code: events.Cancel}, noon)
	}
	if _, waited := q.j.line.Bypassed(at, "w"); waited || len(q.j.line.bypasses) != 0 {
		t.Errorf("nobody waits, and %v is remembered", q.j.line.bypasses)
	}
}

func TestLineETA(t *testing.T) {
	q := newQueue(t)
	lane := events.Wish{Region: "east"}
	if _, ok := q.j.line.ETA(lane, 1, noon); ok {
		t.Error("an estimate out of nothing")
	}
	for n := range 40 {
		q.ask(n, "east")
		q.add(n, &events.Waitlisted{}, noon)
		q.add(n, &events.Reserved{Attempt: 1, Server: "s", Region: "east"}, noon.Add(time.Duration(n)*time.Second))
	}
	now := noon.Add(39 * time.Second)
	if eta, ok := q.j.line.ETA(lane, 5, now); !ok || eta != 5*time.Second {
		t.Errorf("at one a second, position 5: %s, %v", eta, ok)
	}
	if eta, ok := q.j.line.ETA(lane, 5, now.Add(31*time.Second)); !ok || eta != 10*time.Second {
		t.Errorf("after a stand as long as the measure: %s, %v", eta, ok)
	}
	if _, ok := q.j.line.ETA(lane, 1, now.Add(time.Hour)); ok {
		t.Error("an hour's stand is no pace")
	}
	if _, ok := q.j.line.ETA(events.Wish{}, 1, now); ok {
		t.Error("the pace of another lane")
	}
}

// Three hosts that fold the same log give the same positions, whenever they began.
func TestLineIsTheSameEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		mem := streamtest.NewMemory()
		writer := mem.Client("writer")
		var done []chan error
		view := func(name string) *View {
			v := NewView(Config{Log: mem.Client(name), Keys: streamtest.Keyring(), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
			end := make(chan error, 1)
			done = append(done, end)
			go func() { end <- v.Run(ctx) }()
			return v
		}
		views := []*View{view("one"), view("two")}
		var places []uint64
		last := map[events.PlayerID]uint64{}
		write := func(n int, fact events.TransferFact) uint64 {
			p := someone(n)
			seq, err := writer.Append(ctx, streamtest.Seal(t, events.Envelope{
				ID: streamtest.NewID[events.EventID](), Source: streamtest.Source(events.SourceEdge, "e1"), Time: time.Now(),
				Key: events.TransferKey(p, transferOf(n)), Correlation: transferOf(n), Prev: last[p],
			}, fact))
			if err != nil {
				t.Fatal(err)
			}
			last[p] = seq
			return seq
		}
		for n := range 30 {
			places = append(places, write(n, &events.Requested{Trigger: events.TriggerCommand, Wish: events.Wish{Region: []string{"", "east", "west"}[n%3]}}))
			if n%4 == 3 {
				write(n-2, &events.Cancelled{Code: events.Cancel})
			}
		}
		views = append(views, view("late"))
		for n := 0; n < 30; n += 5 {
			if n%4 != 1 {
				write(n, &events.Reserved{Attempt: 1, Server: "s", Region: "east"})
			}
		}
		synctest.Wait()
		for i, v := range views {
			for k, place := range places {
				if got, want := v.Position(place), views[0].Position(place); got != want {
					t.Errorf("view %d, player %d: position %d, elsewhere %d", i, k, got, want)
				}
			}
			if n := v.Ahead(places[29]); n != views[0].Ahead(places[29]) || n < 5 {
				t.Errorf("view %d: %d ahead", i, n)
			}
		}
		cancel()
		for _, end := range done {
			<-end
		}
	})
}
