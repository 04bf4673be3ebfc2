package actors

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestTellsOfTheEnd: who holds the player tells of the end, whoever has written it; who does
// not leaves it to the one who does, unless that one is gone.
func TestTellsOfTheEnd(t *testing.T) {
	for name, row := range map[string]struct {
		holder events.HostID
		later  events.HostID // takes over when the first holder's silence was noticed
		beats  events.HostID // begins to live after the end
		want   int
	}{
		"holder":                        {"e1", "e1", "", 1},
		"another one holds":             {"e2", "e2", "", 0},
		"held later":                    {"e2", "e1", "", 1},
		"the player goes on":            {"e1", "e2", "", 1},
		"nobody takes the player":       {"e3", "e3", "", 0},
		"to one who has not heard":      {"e3", "e2", "e2", 1},
		"another one has not heard":     {"e2", "e2", "e3", 0},
		"from one who has not, to ours": {"e2", "e1", "e2", 1},
	} {
		t.Run(name, func(t *testing.T) {
			mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
				s.tasks.begin(ctx)
				var mu sync.Mutex
				var told []string
				ear := s.mem.Client("a")
				go func() {
					_ = ear.Serve(ctx, events.ToBackend("a", events.VerbTell), "", func() {}, answerWith(identity(events.SourceBackend, "a"), fromDispatcher, refusePlain,
						func(_ context.Context, _ events.HostID, q events.TellAsk) events.Answer {
							mu.Lock()
							defer mu.Unlock()
							told = append(told, q.Message)
							return events.Answer{Code: events.OK}
						}))
				}()
				s.goesTo(t, row.holder)
				if row.later == "e2" && row.holder == "e1" {
					ear.Cut() // what e1 says does not arrive before the player has gone on
				}
				s.put(t, &events.Failed{Code: events.NotArrived})
				time.Sleep(time.Second)
				if row.beats != "" {
					s.beginsToBeat(t, row.beats)
				}
				s.goesTo(t, row.later)
				ear.Heal()
				time.Sleep(time.Minute)
				synctest.Wait()
				mu.Lock()
				defer mu.Unlock()
				if len(told) != row.want || row.want > 0 && told[0] != "failed.NOT_ARRIVED" {
					t.Errorf("told %q, want %d times", told, row.want)
				}
			})
		})
	}
}

// beginsToBeat lets another dispatcher beat for the first time.
func (s *seer) beginsToBeat(t *testing.T, id events.HostID) {
	t.Helper()
	b := beating(t, s.mem.Client(string(id)), id)
	b.key = events.ProxyKey(id)
	b.Source.ID = id
	b.beat = func() events.Fact {
		return &events.ProxyBeat{Proxy: id, Incarnation: b.Source.Incarnation, State: events.Ready, Schema: events.SchemaVersion, Kinds: []events.SessionKind{events.KindEdge}}
	}
	if err := b.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the beat of "+string(id), func() bool { return s.view.Fleet().Proxy(id) != nil })
}

// TestTellsForAHolderThatCouldNot: a holder whose player's server is silent has told nobody; if
// it dies before that server answers again, whoever holds the player next tells. Where the server
// answers, the living holder has told, and nobody repeats it.
func TestTellsForAHolderThatCouldNot(t *testing.T) {
	for name, row := range map[string]struct{ silent, told bool }{
		"the server is silent": {silent: true, told: true},
		"the server answers":   {},
	} {
		t.Run(name, func(t *testing.T) {
			mutating(t, []events.TransferFact{requested()}, func(t *testing.T, ctx context.Context, s *seer) {
				s.tasks.begin(ctx)
				heard := make(chan string, 10)
				go func() {
					_ = s.mem.Client("a").Serve(ctx, events.ToBackend("a", events.VerbTell), "", func() {}, answerWith(identity(events.SourceBackend, "a"), fromDispatcher, refusePlain,
						func(_ context.Context, _ events.HostID, q events.TellAsk) events.Answer {
							heard <- q.Message
							return events.Answer{Code: events.OK}
						}))
				}()
				alive := func() { // e2 for as long as it holds the player, and the server unless it is silent
					s.beginsToBeat(t, "e2")
					if !row.silent {
						beat := destination("a", 4).BackendBeat
						c := s.mem.Client("beats of a")
						last, _, err := c.LastOf(ctx, events.Fleet, events.BackendKey("a"))
						if err == nil {
							_, err = c.Append(ctx, streamtest.Fact(t, events.BackendKey("a"), last.Seq, &beat))
						}
						if err != nil {
							t.Fatal(err)
						}
					}
					time.Sleep(time.Second)
				}
				for range 6 { // longer than it takes to judge somebody dead
					alive()
				}
				s.goesTo(t, "e2")
				s.put(t, &events.Failed{Code: events.MoveRefused})
				for range 8 {
					alive()
				}
				s.goesTo(t, "e1")
				time.Sleep(time.Minute)
				synctest.Wait()
				if told := len(heard) > 0; told != row.told || len(heard) > 1 {
					t.Errorf("told %d times, want told: %t", len(heard), row.told)
				}
			})
		})
	}
}
