package actors

import (
	"context"
	"slices"
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
				s.life.pool.spend(token)
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
