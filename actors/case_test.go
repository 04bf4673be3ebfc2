package actors

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases that others reported of programs which do this job. Most are played on a whole network,
// in package sim; here are those that one part alone answers for. The number is that of the case
// in our list.

// TestCase019_WorldsOfTheDestination: a destination's world was named by what the origin calls
// its own world of that name. Here a world is what the destination calls it: only a destination
// that has it is asked for it, and a coordinate in any other is never promised.
func TestCase019_WorldsOfTheDestination(t *testing.T) {
	const overworld, nether = "minecraft:overworld", "minecraft:the_nether"
	t.Run("who has no such world is not chosen", func(t *testing.T) {
		has := map[string]int{}
		for _, wish := range []events.Wish{{World: nether}, {World: nether, Region: "wild"}, {World: "world_nether"}, {World: "5f3c1a2e-0000-4000-8000-000000000000"}, {World: overworld}} {
			b, c, q := destination("b", 3), destination("c", 3), anywhere()
			c.Regions[0].World, q.wish = nether, wish
			ranked, _ := choose(q, fleetOf(b, c))
			for _, x := range ranked {
				has[wish.World+" "+string(x.backend.Server)]++
			}
		}
		if len(has) != 2 || has[nether+" c"] != 2 || has[overworld+" b"] != 1 {
			t.Errorf("chosen: %v", has)
		}
	})
	t.Run("a promise is of the world that was asked for", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.stock(1)
			for i, world := range []string{"W", "minecraft:w", "uuid-of-the-origin", "w"} {
				want := events.NoCoordinate
				if world == "w" {
					want = events.Promised
				}
				a := s.inTime(ctx, uint64(i+1), func(q *events.ReserveAsk) { q.World, q.Region = world, "" })
				if a.Code != want || a.Code == events.Promised && a.At.World != "w" {
					t.Errorf("%q: %+v, want %s", world, a, want)
				}
			}
		})
	})
	t.Run("what the server finds elsewhere is not kept", func(t *testing.T) {
		bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
			ctx, cancel := context.WithCancel(ctx)
			p, g := newPool(twoRegions), &ground{}
			defer p.close()
			g.find = func(r Region) (events.Position, error) {
				if r.Name == "wild" {
					return events.Position{World: "uuid-of-the-origin"}, nil
				}
				return events.Position{World: r.World}, nil
			}
			done := make(chan error, 1)
			go func() { done <- p.refill(ctx, g, time.Now, logger(t), func() {}) }()
			passTime(time.Second)
			if p.kept("wild") != 0 || p.kept("wood") != 2 || len(g.forgot) == 0 {
				t.Errorf("%d kept in wild, %d in wood, %d let go; want 0, 2 and some", p.kept("wild"), p.kept("wood"), len(g.forgot))
			}
			cancel()
			<-done
		})
	})
	t.Run("nor given to who does not wait", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.ground.find = func(Region) (events.Position, error) { return events.Position{World: "elsewhere"}, nil }
			if a := s.inTime(ctx, 1, fresh); a.Code != events.NoCoordinate {
				t.Errorf("%+v, want NO_COORDINATE", a)
			}
			if n := s.life.pool.outstanding(); n != 0 {
				t.Errorf("%d promises", n)
			}
		})
	})
}

// TestCase059_LengthsDoNotJump: a jump of the clock broke the state of a cluster for good. Here
// every length is measured between readings of the clock that does not jump, which a moment holds
// until it is rounded, or put into another zone. (What a jump of the store's clock does is played
// in package sim.)
func TestCase059_LengthsDoNotJump(t *testing.T) {
	mem := streamtest.NewMemory()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := newSeer(t, ctx, mem, "e1")
	last := s.put(t, requested(), reserved(1), claimed(1, "e1"))
	beat := streamtest.Fact(t, events.BackendKey("b"), 0, &events.BackendBeat{Server: "b", Incarnation: lifeOf("b"), State: events.Ready})
	beaten, err := mem.Client("b").Append(ctx, beat)
	if err != nil {
		t.Fatal(err)
	}
	open := events.SessionOpened{Session: events.Session{Holder: "e1", HolderIncarnation: lifeOf("e1"), Kind: events.KindEdge, Server: "a", Name: "Steve"}}
	opened, err := mem.Client("somebody else").Append(ctx, streamtest.FactBy(t, edge("e1"), steve.String(), 0, &open))
	if err != nil {
		t.Fatal(err)
	}
	for b, seq := range map[events.Bucket]uint64{events.Transfers: last, events.Fleet: beaten, events.Sessions: opened} {
		if err := s.view.WaitFolded(ctx, b, seq); err != nil {
			t.Fatal(err)
		}
	}
	x, f := s.standing(steve), s.view.Fleet()
	for what, at := range map[string]time.Time{
		"now": s.watch().now, "requested": x.Active.Seen.Requested, "reserved": x.Active.Seen.Reserved, "claimed": x.Active.Seen.Claimed,
		"last": x.Active.Seen.Last, "session": x.Session.Seen, "opened": x.Session.OpenSeen, "beat": f.Backend("b").Seen, "watching since": f.Since, "heard": f.Heard,
	} {
		if !strings.Contains(at.String(), " m=") {
			t.Errorf("%s is a moment of the wall clock: %s", what, at)
		}
	}
}

// TestCase007_OneSeat: the last seat was given to two players who asked in the same moment. What
// asks here takes its seat first and then does what takes time: in every order there are no more
// promises than seats.
func TestCase007_OneSeat(t *testing.T) {
	t.Run("two places are looked for at once", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.ground.health = func() (Health, error) { return Health{MaxPlayers: 1}, nil }
			found := make(chan struct{})
			s.cfg.World = slowFinder{s.ground, found}
			answers := make(chan events.ReserveAnswer, 2)
			for place := range uint64(2) {
				go func() { answers <- s.inTime(ctx, place+1, fresh) }()
			}
			synctest.Wait()
			close(found)
			codes := []events.Code{(<-answers).Code, (<-answers).Code}
			slices.Sort(codes)
			if !slices.Equal(codes, []events.Code{events.Full, events.Promised}) {
				t.Errorf("answers %v, want one PROMISE and one FULL", codes)
			}
		})
	})
	t.Run("nothing is found for a seat", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.ground.health = func() (Health, error) { return Health{MaxPlayers: 1}, nil }
			s.ground.find = func(Region) (events.Position, error) { return events.Position{}, ErrUnsafe }
			if a := s.inTime(ctx, 1, fresh); a.Code != events.NoCoordinate {
				t.Errorf("%+v", a)
			}
			s.ground.find = nil
			if a := s.inTime(ctx, 2, fresh); a.Code != events.Promised {
				t.Errorf("the seat was not given back: %+v", a)
			}
		})
	})
	t.Run("somebody sits down while the players are counted", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.stock(2)
			s.ground.health = func() (Health, error) { return Health{MaxPlayers: 1}, nil }
			if a := s.inTime(ctx, 1, nil); a.Code != events.Promised {
				t.Fatal(a)
			}
			token := events.Token{Transfer: num[events.TransferID](1), Attempt: 1}
			s.ground.health = func() (Health, error) { // as it was a moment before the first one came
				spendAny(s.life.pool, token)
				s.life.pool.settle(token)
				return Health{MaxPlayers: 1}, nil
			}
			if a := s.inTime(ctx, 2, nil); a.Code != events.Full {
				t.Errorf("%+v, want FULL", a)
			}
			s.ground.health = func() (Health, error) { return Health{MaxPlayers: 2, Players: 1}, nil }
			if a := s.inTime(ctx, 3, nil); a.Code != events.Promised {
				t.Errorf("%+v, want the second seat", a)
			}
		})
	})
}

// slowFinder is a server on which a search takes until the channel is closed.
type slowFinder struct {
	*ground

	found <-chan struct{}
}

func (s slowFinder) Find(ctx context.Context, r Region) (events.Position, error) {
	<-s.found
	return s.ground.Find(ctx, r)
}
