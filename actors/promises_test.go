package actors

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

var many = seats{free: 1000} // more than any test promises

var twoRegions = []Region{{Name: "wild", World: "w", Keep: 3}, {Name: "wood", World: "x", Keep: 2}}

func tokenN(n int) events.Token {
	return events.Token{Transfer: num[events.TransferID](byte(n)), Attempt: 1}
} //nolint:gosec // small

// TestPoolConserves: whatever happens in whatever order, each coordinate found is ready,
// promised, placed or dropped, and no coordinate is in two places.
func TestPoolConserves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := newPool(twoRegions)
		defer p.close()
		made := 0
		token := func() events.Token { return tokenN(rapid.IntRange(1, 4).Draw(t, "token")) }
		region := func() string { return rapid.SampledFrom([]string{"", "wild", "wood"}).Draw(t, "region") }
		check := func() {
			n := p.count()
			if n.Found != n.Ready+n.Promised+n.Placed+n.Dropped || p.busy() != len(p.promises) {
				t.Fatalf("lost or doubled: %+v, in hand %v", n, p.inHand)
			}
			seen := map[float64]bool{}
			for _, list := range p.ready {
				for _, at := range list {
					if seen[at.X] {
						t.Fatalf("coordinate %v is twice there", at.X)
					}
					seen[at.X] = true
				}
			}
			for _, x := range p.promises {
				if seen[x.at.X] {
					t.Fatalf("coordinate %v is ready and promised", x.at.X)
				}
				seen[x.at.X] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"find": func(*rapid.T) {
				made++
				p.found(rapid.SampledFrom([]string{"wild", "wood"}).Draw(t, "where"), events.Position{X: float64(made)})
			},
			"promise": func(*rapid.T) {
				r, at, code := p.take(region(), "", many)
				if code == events.OK {
					p.promise(token(), Player{ID: steve}, r, at, time.Hour)
				}
			},
			"drop": func(*rapid.T) {
				if r, _, code := p.take(region(), "", many); code == events.OK {
					p.dropped(r)
				}
			},
			"put back": func(*rapid.T) {
				if r, at, code := p.take(region(), "", many); code == events.OK {
					p.put(r, at)
				}
			},
			"give back": func(*rapid.T) { takeBack(p, token()) },
			"spend":     func(*rapid.T) { spendAny(p, token()) },
			"settle":    func(*rapid.T) { p.settle(token()) },
			"":          func(*rapid.T) { check() },
		})
	})
}

// standing gives the promise of a token, the zero one when there is none.
func standing(p *pool, token events.Token) promise {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.promises[token]; x != nil {
		return *x
	}
	return promise{}
}

func takeBack(p *pool, token events.Token) { p.giveBack(token, standing(p, token).number) }

func spendAny(p *pool, token events.Token) { p.spend(token, standing(p, token).at) }

// TestPoolConservesUnderRace: the same, with everybody at once and promises that expire.
func TestPoolConservesUnderRace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(twoRegions)
		for i := range 20 {
			p.found("wild", events.Position{X: float64(i)})
		}
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				for n := range 50 {
					token := tokenN((i+n)%8 + 1)
					if r, at, code := p.take("", "", many); code == events.OK {
						p.promise(token, Player{ID: steve}, r, at, time.Duration(n)*time.Millisecond)
					}
					switch n % 4 {
					case 0:
						takeBack(p, token)
					case 1:
						spendAny(p, token)
					case 2:
						p.settle(token)
					case 3:
						time.Sleep(time.Millisecond)
					}
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Second)
		synctest.Wait()
		n := p.count()
		if n.Found != 20 || n.Found != n.Ready+n.Promised+n.Placed+n.Dropped || n.Promised != 0 {
			t.Errorf("lost or doubled: %+v", n)
		}
	})
}

// TestPoolWantsNoMoreThanItKeeps: wherever a coordinate is until it is a player's, no other one
// is looked for in its stead.
func TestPoolWantsNoMoreThanItKeeps(t *testing.T) {
	p := newPool([]Region{{Name: "wild", Keep: 1}})
	wants := func(when string, want int) {
		t.Helper()
		if n := len(p.wanting()); n != want {
			t.Errorf("%s: %d regions want one, want %d", when, n, want)
		}
	}
	wants("empty", 1)
	p.found("wild", events.Position{X: 1})
	wants("ready", 0)
	r, at, _ := p.take("", "", many)
	wants("in hand", 0)
	p.put(r, at)
	wants("put back", 0)
	r, at, _ = p.take("", "", many)
	x := p.promise(tokenN(1), Player{ID: steve}, r, at, time.Hour)
	defer x.timer.Stop()
	wants("promised", 0)
	p.spend(tokenN(1), at)
	wants("a player's", 1)
	p.found("wild", events.Position{X: 2})
	r, _, _ = p.take("", "", many)
	p.dropped(r)
	wants("unsafe", 1)
	p.sit(many)
	wants("looked for freshly", 1)
	p.adopt("wild")
	wants("found freshly", 0)
}

// TestPromiseExpiresOnce: at its end, by the backend's own clock, and never after that.
func TestPromiseExpiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(twoRegions)
		p.found("wild", events.Position{X: 1})
		r, at, _ := p.take("", "", many)
		p.promise(tokenN(1), Player{ID: steve}, r, at, 35*time.Second)
		time.Sleep(35*time.Second - 1)
		synctest.Wait()
		if n := p.count(); n.Promised != 1 || n.Ready != 0 {
			t.Errorf("before its end: %+v", n)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if n := p.count(); n.Promised != 0 || n.Ready != 1 {
			t.Errorf("at its end: %+v", n)
		}
		if p.giveBack(tokenN(1), 1) {
			t.Error("an expired promise was given back once more")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := p.count(); n.Ready != 1 {
			t.Errorf("an hour later: %+v", n)
		}
	})
}

// TestPromiseSpentDoesNotExpire: a recorded arrival owns its coordinate for good.
func TestPromiseSpentDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(twoRegions)
		p.found("wild", events.Position{X: 1})
		r, at, _ := p.take("", "", many)
		p.promise(tokenN(1), Player{ID: steve}, r, at, time.Second)
		p.spend(tokenN(1), at)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := p.count(); n.Placed != 1 || n.Ready != 0 || n.Promised != 0 || p.giveBack(tokenN(1), 1) {
			t.Errorf("a spent promise came back: %+v", n)
		}
		if p.outstanding() != 1 {
			t.Error("a seat is free before the placement is settled")
		}
		p.settle(tokenN(1))
		if held, _ := p.held(steve); p.outstanding() != 0 || len(held) != 0 {
			t.Error("a settled promise is still held")
		}
	})
}

// TestPoolTake: the region asked for, else the fitting one that has most.
func TestPoolTake(t *testing.T) {
	p := newPool(twoRegions)
	for i := range 3 {
		p.found("wood", events.Position{X: float64(i)})
	}
	p.found("wild", events.Position{X: 9})
	for _, row := range []struct{ region, world, want string }{
		{"", "", "wood"}, {"wild", "", "wild"}, {"wild", "", ""}, {"", "x", "wood"}, {"", "w", ""}, {"wood", "w", ""}, {"none", "", ""}, {"wood", "x", "wood"}, {"", "", ""},
	} {
		if got, _, code := p.take(row.region, row.world, many); got != row.want || (code == events.OK) != (row.want != "") {
			t.Errorf("take(%q, %q) gives %q, want %q", row.region, row.world, got, row.want)
		}
	}
}

// TestPoolBeat: what a heartbeat offers is bounded by the seats that are free.
func TestPoolBeat(t *testing.T) {
	p := newPool(twoRegions)
	for range 3 {
		p.found("wild", events.Position{})
	}
	for seats, want := range map[int]int{10: 3, 2: 2, 0: 0, -4: 0} {
		if regions, _ := p.beat(seats); regions[0].Kept != want || regions[0].Size != 3 || regions[1].Kept != 0 {
			t.Errorf("with %d seats: %+v, want %d kept", seats, regions, want)
		}
	}
	p.take("", "", many)
	p.promise(tokenN(1), Player{}, "wild", events.Position{}, time.Hour)
	defer p.close()
	if _, number := p.beat(1); number != 1 {
		t.Errorf("last promise is number %d, want 1", number)
	}
}

// TestPoolRefills: it searches until every region keeps what it should, and again when a
// coordinate is gone for good; failures are repeated more and more rarely.
func TestPoolRefills(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, _ *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		p, g := newPool(twoRegions), &ground{}
		var searched []time.Time
		broken := true
		g.find = func(r Region) (events.Position, error) {
			searched = append(searched, time.Now())
			if broken {
				return events.Position{}, ErrUnsafe
			}
			return events.Position{World: r.World, X: float64(len(searched))}, nil
		}
		ended := make(chan error, 1)
		changed := 0
		go func() { ended <- p.refill(ctx, g, time.Now, logger(t), func() { changed++ }) }()
		time.Sleep(8 * time.Second)
		synctest.Wait()
		if !p.isDry() || len(searched) != 8 { // of each region at 0, 1, 3, 7 s
			t.Errorf("dry %v after %d searches, want 8", p.isDry(), len(searched))
		}
		g.mu.Lock()
		broken = false
		g.mu.Unlock()
		eventually(t, "pool full", func() bool { return p.count().Ready == 5 })
		if p.isDry() || p.kept("wild") != 3 || p.kept("wood") != 2 || changed != 5 {
			t.Errorf("dry %v, kept %d and %d, %d changes", p.isDry(), p.kept("wild"), p.kept("wood"), changed)
		}
		r, at, _ := p.take("wild", "", many)
		p.promise(tokenN(1), Player{}, r, at, time.Hour)
		synctest.Wait()
		if n := p.count(); n.Found != 5 {
			t.Errorf("a promised coordinate was replaced: %+v", n)
		}
		p.spend(tokenN(1), at)
		p.settle(tokenN(1))
		eventually(t, "placed one replaced", func() bool { return p.count().Found == 6 })
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("refill ended with %v", err)
		}
	})
}

// --- reserve ---

// TestReserveAnswers: each code of a destination, and that a refusal costs no coordinate.
func TestReserveAnswers(t *testing.T) {
	sick := func() (Health, error) { return Health{}, ErrDown }
	rows := []struct {
		name string
		with func(s *site, q *events.ReserveAsk)
		want events.Code
	}{
		{"a promise", func(*site, *events.ReserveAsk) {}, events.Promised},
		{"any region", func(_ *site, q *events.ReserveAsk) { q.Region = "" }, events.Promised},
		{"another life", func(_ *site, q *events.ReserveAsk) { q.Incarnation = lifeOf("b before") }, events.WrongIncarnation},
		{"no such region", func(_ *site, q *events.ReserveAsk) { q.Region = "wood" }, events.NoCoordinate},
		{"another world", func(_ *site, q *events.ReserveAsk) { q.World = "x" }, events.NoCoordinate},
		{"nothing kept", func(s *site, _ *events.ReserveAsk) { s.life.pool.ready = map[string][]events.Position{} }, events.NoCoordinate},
		{"no seat", func(s *site, _ *events.ReserveAsk) {
			s.ground.health = func() (Health, error) { return Health{Players: 9, MaxPlayers: 9}, nil }
		}, events.Full},
		{"the last seat is promised", func(s *site, _ *events.ReserveAsk) {
			s.ground.health = func() (Health, error) { return Health{Players: 8, MaxPlayers: 9}, nil }
			r, at, _ := s.life.pool.take("", "", many)
			s.life.pool.promise(tokenN(7), Player{}, r, at, time.Hour)
		}, events.Full},
		{"server down", func(s *site, _ *events.ReserveAsk) { s.ground.health = sick }, events.NotReady},
		{"starting", func(s *site, _ *events.ReserveAsk) { s.worldID = "" }, events.NotReady},
		{"leaving", func(s *site, _ *events.ReserveAsk) { s.Leave() }, events.NotReady},
		{"cannot be checked", func(s *site, _ *events.ReserveAsk) { s.ground.check = func(events.Position) error { return ErrDown } }, events.NotReady},
		{"no ttl", func(_ *site, q *events.ReserveAsk) { q.TTLMs = 0 }, events.BadRequest},
		{"a ttl of a day", func(_ *site, q *events.ReserveAsk) { q.TTLMs = 86_400_000 }, events.BadRequest},
		{"attempt 0", func(_ *site, q *events.ReserveAsk) { q.Attempt = 0 }, events.BadRequest},
		{"attempt 65", func(_ *site, q *events.ReserveAsk) { q.Attempt = events.MaxAttempts + 1 }, events.BadRequest},
	}
	for _, row := range rows {
		t.Run(row.name, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				s.stock(3)
				q := events.ReserveAsk{
					Player: steve, Name: "Steve", Transfer: first, Attempt: 1, Region: "wild", TTLMs: 30_000, Incarnation: s.life.Source.Incarnation,
				}
				row.with(s, &q)
				before := s.Tally()
				a := s.answerReserve(ctx, s.life, q)
				if a.Code != row.want || a.Server != "b" || a.Incarnation != s.life.Source.Incarnation {
					t.Fatalf("answer %+v, want %s of b", a, row.want)
				}
				after := s.Tally()
				if a.Code == events.Promised {
					before.Ready, before.Promised = before.Ready-1, before.Promised+1
				}
				if after != before {
					t.Errorf("coordinates %+v, want %+v", after, before)
				}
			})
		})
	}
}

// TestReserveIsIdempotent: the same attempt, the same promise, also from two at once.
func TestReserveIsIdempotent(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.stock(3)
		s.ground.check = func(events.Position) error { // both are at it at the same time
			time.Sleep(time.Millisecond)
			return nil
		}
		answers := make(chan events.ReserveAnswer, 2)
		for range 2 {
			go func() { answers <- s.reserve(ctx, 1) }()
		}
		x, y := <-answers, <-answers
		z := s.reserve(ctx, 1)
		if x.Code != events.Promised || x.At != y.At || x.Promise != y.Promise || x.At != z.At || x.Promise != z.Promise {
			t.Errorf("promises differ:\n%+v\n%+v\n%+v", x, y, z)
		}
		if n := s.Tally(); n.Promised != 1 || n.Found != n.Ready+n.Promised {
			t.Errorf("coordinates %+v, want one promised and none lost", n)
		}
		if next := s.reserve(ctx, 2); next.Promise != x.Promise+1 || next.At == x.At {
			t.Errorf("attempt 2 gets %+v", next)
		}
		time.Sleep(35 * time.Second)
		synctest.Wait()
		if n := s.Tally(); n.Promised != 0 || n.Ready != 3 {
			t.Errorf("after ttl + 5 s: %+v", n)
		}
	})
}

// TestReserveLastSeat: of two who ask at once for the last seat, one gets it.
func TestReserveLastSeat(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.stock(4)
		s.ground.health = func() (Health, error) { return Health{Players: 8, MaxPlayers: 9}, nil }
		s.ground.check = func(events.Position) error {
			time.Sleep(time.Millisecond)
			return nil
		}
		answers := make(chan events.Code, 3)
		for n := range 3 {
			go func() { answers <- s.reserve(ctx, n+1).Code }()
		}
		got := []events.Code{<-answers, <-answers, <-answers}
		slices.Sort(got)
		if !slices.Equal(got, []events.Code{events.Full, events.Full, events.Promised}) {
			t.Errorf("answers %v, want one promise", got)
		}
	})
}

// TestReserveUnsafe: an unsafe coordinate is replaced once, then UNSAFE; each is let go.
func TestReserveUnsafe(t *testing.T) {
	for bad, want := range map[int]events.Code{1: events.Promised, 2: events.Unsafe} {
		t.Run(fmt.Sprintf("%d unsafe", bad), func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				s.stock(3)
				looked := 0
				s.ground.check = func(events.Position) error {
					if looked++; looked <= bad {
						return ErrUnsafe
					}
					return nil
				}
				if a := s.reserve(ctx, 1); a.Code != want {
					t.Errorf("answer %+v, want %s", a, want)
				}
				synctest.Wait()
				if n := s.Tally(); n.Dropped != bad || n.Found != n.Ready+n.Promised+n.Dropped || len(s.ground.forgot) != bad {
					t.Errorf("coordinates %+v, %d let go; want %d dropped", n, len(s.ground.forgot), bad)
				}
			})
		})
	}
}

// TestReserveExpects: a promised player is looked for closely until the promise ends or is
// given back.
func TestReserveExpects(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.stock(1)
		s.reserve(ctx, 1)
		if d := s.ground.expected[steve]; d != 35*time.Second {
			t.Errorf("expected for %s, want ttl + 5 s", d)
		}
		ask := events.ReleaseAsk{Player: steve, Transfer: first, Attempt: 1, Incarnation: s.life.Source.Incarnation, Promise: 1, Reason: events.LostRace}
		if a := s.answerRelease(s.life, ask); a.Code != events.OK {
			t.Errorf("release: %+v", a)
		}
		if d := s.ground.expected[steve]; d != 0 {
			t.Errorf("still expected for %s", d)
		}
		if a := s.answerRelease(s.life, ask); a.Code != events.NotKnown {
			t.Errorf("a second release: %+v, want UNKNOWN", a)
		}
		if n := s.Tally(); n.Ready != 1 {
			t.Errorf("coordinates %+v", n)
		}
	})
}

// TestReleaseOfAnotherPromise: who gives a promise back does not take the one that the same
// attempt has got since, in this life or from a new one.
func TestReleaseOfAnotherPromise(t *testing.T) {
	for name, row := range map[string]struct {
		life   events.Incarnation
		number uint64
		want   events.Code
	}{
		"of an earlier life": {lifeOf("a life before"), 2, events.NotKnown},
		"an earlier one":     {lifeOf("b"), 1, events.NotKnown},
		"this one":           {lifeOf("b"), 2, events.OK},
	} {
		t.Run(name, func(t *testing.T) {
			onSite(t, func(t *testing.T, ctx context.Context, s *site) {
				s.stock(1)
				s.reserve(ctx, 1)
				time.Sleep(40 * time.Second) // it ends
				synctest.Wait()
				s.reserve(ctx, 1)
				a := s.answerRelease(s.life, events.ReleaseAsk{Player: steve, Transfer: first, Attempt: 1, Incarnation: row.life, Promise: row.number, Reason: events.LostRace})
				if n := s.Tally(); a.Code != row.want || (n.Promised == 0) != (row.want == events.OK) {
					t.Errorf("%+v, coordinates %+v; want %s", a, n, row.want)
				}
			})
		})
	}
}

// TestSpendAnotherCoordinate: a token that has got another promise since does not open the
// coordinate of the one before, which may be somebody else's.
func TestSpendAnotherCoordinate(t *testing.T) {
	p := newPool(twoRegions)
	p.found("wild", events.Position{X: 1})
	r, at, _ := p.take("", "", many)
	x := p.promise(tokenN(1), Player{ID: steve}, r, at, time.Hour)
	defer x.timer.Stop()
	if first, stands := p.spend(tokenN(1), events.Position{X: 2}); first || stands {
		t.Errorf("another coordinate: first %t, stands %t", first, stands)
	}
	if first, stands := p.spend(tokenN(1), at); !first || !stands {
		t.Errorf("its own: first %t, stands %t", first, stands)
	}
}

// TestHeldTokens are those that a player may still arrive with.
func TestHeldTokens(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.stock(2)
		s.reserve(ctx, 1)
		s.reserve(ctx, 2)
		held, listed := s.life.pool.held(steve)
		if alex, _ := s.life.pool.held(events.OfflinePlayer("Alex")); len(held) != 2 || listed != 2 || !slices.Contains(held, tokenOne) || len(alex) != 0 {
			t.Errorf("held %v", held)
		}
		spendAny(s.life.pool, tokenOne)
		if held, _ := s.life.pool.held(steve); len(held) != 1 || held[0].Attempt != 2 {
			t.Errorf("held %v after the arrival", held)
		}
	})
}

// TestPromiseAskedForAgain: it is the same promise, held anew, and ends once.
func TestPromiseAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(twoRegions)
		p.found("wild", events.Position{X: 1})
		r, at, _ := p.take("", "", many)
		x := p.promise(tokenN(1), Player{ID: steve}, r, at, 35*time.Second)
		time.Sleep(34 * time.Second)
		if again := p.renew(tokenN(1), 35*time.Second); again != x {
			t.Fatalf("another promise: %+v", again)
		}
		time.Sleep(34 * time.Second)
		synctest.Wait()
		if n := p.count(); n.Promised != 1 {
			t.Errorf("before its new end: %+v", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := p.count(); n.Promised != 0 || n.Ready != 1 || p.renew(tokenN(1), time.Second) != nil {
			t.Errorf("after it: %+v", n)
		}
	})
}
