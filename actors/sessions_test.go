package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestSessionOfAQuickReturn: a client that is back on its server before the backend has seen
// it go. The edge knows better than the backend, whose word comes late and in any order.
func TestSessionOfAQuickReturn(t *testing.T) {
	const old, again = 1, 2
	joined := func(s *seer, n byte) {
		s.conns.joined(s.Dispatcher, "a", events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](n)})
		synctest.Wait()
	}
	left := func(s *seer, n byte) {
		s.conns.left(s.Dispatcher, "a", events.Left{Player: steve, Name: "Steve", Join: num[events.JoinID](n), Reason: "gone"})
		synctest.Wait()
	}
	opened := func(s *seer, id uint64) {
		s.Opened(Connection{ID: id, Name: "Steve", Player: steve, Server: "a", Protocol: 767})
	}
	closed := func(s *seer, id uint64) {
		s.Closed(id, "client left")
		synctest.Wait()
	}
	for _, row := range []struct {
		name   string
		before func(s *seer) // the first join stands; conn 1 holds it
		conn   uint64        // holds the player afterwards
	}{
		{"seen to leave and to come", func(s *seer) { closed(s, 1); opened(s, 2); left(s, old); joined(s, again) }, 2},
		{"the old join is repeated", func(s *seer) { closed(s, 1); opened(s, 2); joined(s, old); left(s, old); joined(s, again) }, 2},
		{"the old join is repeated before its connection ends", func(s *seer) { opened(s, 2); joined(s, old); closed(s, 1); left(s, old); joined(s, again) }, 2},
		{"the new join comes first", func(s *seer) { opened(s, 2); joined(s, again); left(s, old); closed(s, 1) }, 2},
		{"the backend alone saw a change", func(s *seer) { left(s, old); joined(s, again) }, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
				s := newSeer(t, ctx, mem, "e1")
				s.tasks.begin(ctx)
				opened(s, 1)
				joined(s, old)
				s.holdsJoin(t, old, true)
				row.before(s)
				s.holdsJoin(t, again, true)
				closed(s, row.conn)
				s.holdsJoin(t, again, false)
			})
		})
	}
}

// holdsJoin checks the newest session of the player.
func (s *seer) holdsJoin(t *testing.T, n byte, open bool) {
	t.Helper()
	var now projections.Session
	eventually(t, "the session", func() bool {
		now, _ = s.view.Session(steve)
		return now.Join == num[events.JoinID](n) && now.Open == open
	})
	if now.Holder != "e1" || now.Server != "a" || now.Protocol != 767 {
		t.Errorf("session %+v", now)
	}
}

// TestSessionClosedInError: a leave that was none (a backend that slept announced what it
// saw long ago) is mended once the backend repeats that the player is there.
func TestSessionClosedInError(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.tasks.begin(ctx)
		there := events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](1)}
		s.Opened(Connection{ID: 1, Name: "Steve", Player: steve, Server: "a", Protocol: 767})
		s.conns.joined(s.Dispatcher, "a", there)
		s.holdsJoin(t, 1, true)
		s.conns.left(s.Dispatcher, "a", events.Left{Player: steve, Name: "Steve", Join: there.Join, Reason: "long ago"})
		s.holdsJoin(t, 1, false)
		s.conns.joined(s.Dispatcher, "a", there) // a repetition that was under way
		time.Sleep(announceEvery)
		synctest.Wait()
		s.holdsJoin(t, 1, false)
		s.conns.joined(s.Dispatcher, "a", there)
		s.holdsJoin(t, 1, true)
		s.Closed(1, "quit")
		s.holdsJoin(t, 1, false)
	})
}

// opening is a session of the player on a server, as e1 writes it.
func opening(server events.HostID) *events.SessionOpened {
	return &events.SessionOpened{Session: events.Session{
		Holder: "e1", HolderIncarnation: lifeOf("e1"), Kind: events.KindEdge, Server: server, Name: "Steve",
	}}
}

// intrude lets another dispatcher write that it holds the player.
func (s *seer) intrude(t *testing.T) {
	t.Helper()
	c := s.mem.Client("somebody else")
	last, _, err := c.LastOf(t.Context(), events.Sessions, steve.String())
	if err != nil {
		t.Fatal(err)
	}
	open := events.SessionOpened{Session: events.Session{Holder: "e2", HolderIncarnation: lifeOf("e2"), Kind: events.KindEdge, Server: "a", Name: "Steve"}}
	if _, err := c.Append(t.Context(), streamtest.FactBy(t, edge("e2"), steve.String(), last.Seq, &open)); err != nil {
		t.Fatal(err)
	}
}

// TestSessionOnTopOfAnother: an equal session fact keeps its id when it is written on a newer
// guard; one that was decided anew and differs is another event.
func TestSessionOnTopOfAnother(t *testing.T) {
	for _, row := range []struct {
		name   string
		second events.HostID // the server of the fact that is decided after the conflict
		equal  bool
	}{{"equal", "a", true}, {"decided anew", "b", false}} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
				s := newSeer(t, ctx, mem, "e1")
				s.log.before = func(try int, _ events.Message) {
					if try == 1 {
						s.intrude(t)
					}
				}
				seq, ok := s.writeSession(ctx, steve, func(_ projections.Session, known bool) events.Fact {
					if known {
						return opening(row.second)
					}
					return opening("a")
				})
				if now, _ := s.view.Session(steve); !ok || now.Number != seq || now.Server != row.second || now.Holder != "e1" {
					t.Fatalf("written: %t at %d, session %+v", ok, seq, now)
				}
				if id := ids(s.log.tries()); len(id) != 2 || (id[0] == id[1]) != row.equal {
					t.Errorf("ids %v, want two, equal: %t", id, row.equal)
				}
			})
		})
	}
}

// TestSessionInDoubt: a time-out says nothing of a session fact. One that has landed is not
// written again, also when another session has been written over it meanwhile; one that has
// not lands once the store answers.
func TestSessionInDoubt(t *testing.T) {
	for name, row := range map[string]struct {
		doubt func(t *testing.T, s *seer, try int)
		own   uint64 // the sequence at which the fact of e1 stands
		facts int
	}{
		"landed, unheard": {func(_ *testing.T, s *seer, try int) {
			if try == 1 {
				s.log.LoseNextAck(1)
			}
		}, 1, 1},
		"landed, unheard, written over": {func(t *testing.T, s *seer, try int) {
			if try == 1 {
				s.log.LoseNextAck(1)
			} else if n := len(s.mem.Records(events.Sessions)); n == 1 {
				s.intrude(t)
			}
		}, 1, 2},
		"not landed": {func(_ *testing.T, s *seer, try int) {
			if try == 1 {
				s.log.FailAppend(events.Unknown, 1)
			}
		}, 1, 1},
		"not landed, and somebody else was first": {func(t *testing.T, s *seer, try int) {
			switch try {
			case 1:
				s.log.FailAppend(events.Unknown, 1)
			case 2:
				s.intrude(t)
			}
		}, 2, 2},
		"under way": {func(_ *testing.T, s *seer, try int) {
			if try == 1 {
				s.log.FailAppend(events.InFlight, 1)
			}
		}, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
				s := newSeer(t, ctx, mem, "e1")
				s.log.before = func(try int, _ events.Message) { row.doubt(t, s, try) }
				seq, ok := s.writeSession(ctx, steve, func(projections.Session, bool) events.Fact { return opening("a") })
				facts := stored(t, mem, events.Sessions)
				if !ok || seq != row.own || len(facts) != row.facts {
					t.Fatalf("written: %t at %d, %d facts; want %d of %d", ok, seq, len(facts), row.own, row.facts)
				}
				if facts[seq-1].Source.ID != "e1" {
					t.Errorf("sequence %d is of %s", seq, facts[seq-1].Source)
				}
			})
		})
	}
}

// TestSessionAfterRetention: the store has forgotten a player's last session, and the fold of a
// dispatcher that has run for longer has not.
func TestSessionAfterRetention(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.holdsSession(t)
		mem.Expire(events.Sessions, 1)
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		if seq, ok := s.writeSession(ctx, steve, func(projections.Session, bool) events.Fact { return opening("b") }); !ok || seq != 2 {
			t.Fatalf("written: %t at %d, want 2", ok, seq)
		}
		if now, _ := s.view.Session(steve); now.Server != "b" || now.Number != 2 {
			t.Errorf("session %+v", now)
		}
	})
}
