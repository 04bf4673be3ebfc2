package actors

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
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

// TestCase040_EqualServersShare: with all counts equal the same server was chosen again and again.
// Here what was chosen a moment ago counts, under every policy that has a choice: a hundred
// requests within one heartbeat are spread over equal servers, and the decision says by what.
func TestCase040_EqualServersShare(t *testing.T) {
	const servers, requests = 10, 100
	for name, cfg := range map[string]PolicyConfig{
		"as shipped": {}, "roundRobin": {Kind: RoundRobin}, "leastPlayers": {Kind: LeastPlayers},
		"by players alone": {Terms: []TermConfig{{Input: PlayerCount, Weight: 1}, {Input: RecentPicks, Weight: 0.5}}},
		"by nothing":       {Terms: []TermConfig{{Input: MSPT, Weight: 0}}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, players := range []int{0, 40} {
				var m memories
				m.init()
				pledged, got, damped := map[events.HostID]int{}, map[events.HostID]int{}, 0
				var all []*projections.Backend
				for i := range servers {
					b := destination(events.HostID(fmt.Sprintf("s%02d", i)), 60)
					b.Players = players
					all = append(all, b)
				}
				q := anywhere()
				q.policy, q.memories = policyOf(t, cfg), &m
				q.pledged = func(b *projections.Backend, _ string) int { return pledged[b.Server] }
				for range requests {
					ranked, d := choose(q, fleetOf(all...))
					id := ranked[0].backend.Server
					for _, x := range d.Candidates[len(d.Candidates)-1].Terms {
						if (x.Name == string(RecentPicks) || x.Name == termTurn || x.Name == termPlayers) && x.Raw > 0 {
							damped++
						}
					}
					m.picked(id, q.now, q.policy.rules().halfLife)
					pledged[id]++
					got[id]++
					q.now = q.now.Add(5 * time.Millisecond)
				}
				for _, b := range all {
					if n := got[b.Server]; n < requests/servers*9/10 || n > requests/servers*11/10 {
						t.Errorf("%s was chosen %d times of %d, want a tenth within 10 %%", b.Server, n, requests)
					}
				}
				if damped == 0 {
					t.Error("no decision says that earlier choices counted")
				}
			}
		})
	}
}

// TestCase047_NoCurveTurnsRound: a policy that was to fill servers up spread them instead, since a
// slope was taken for its opposite. Here no parameter turns an input round: whatever a valid policy
// says, who reports better is never ranked behind who reports worse, and what would turn it round is
// refused with the key.
func TestCase047_NoCurveTurnsRound(t *testing.T) {
	var curves []Curve
	for _, k := range []float64{0.1, 1, 8, 20} {
		curves = append(curves, Curve{Shape: Exponential, K: k}, Curve{Shape: Logarithmic, K: k}, Curve{Shape: Sigmoid, K: k, X0: 0.6}, Curve{Shape: Power, P: max(0.1, min(k, 5))})
	}
	curves = append(curves, Curve{Shape: Linear}, Curve{Shape: Step, Threshold: 0.5})
	loads := []float64{0, 0.1, 0.25, 0.5, 0.75, 0.9, 1, 5, 1e300} // of the input's own scale
	for _, m := range measures {
		if m.input == RecentPicks || m.input == StickyRegion || m.input == ProxyRTT {
			continue // not of the backend
		}
		for _, c := range curves {
			for _, scale := range []*Range{nil, {Min: m.low, Max: m.high * 2}} {
				cfg := PolicyConfig{Terms: []TermConfig{{Input: m.input, Weight: 3, Curve: c, Normalize: scale}}}
				p := policyOf(t, cfg).rules()
				last := -1.0
				for _, load := range loads {
					raw := m.low + load*(m.high-m.low)
					if m.moreBetter {
						raw = m.high - load*(m.high-m.low)
					}
					score := p.terms[0].of(raw)
					if score < last || math.IsNaN(score) || math.IsInf(score, 0) || score < 0 || score > 3 {
						t.Errorf("%s with %+v in %+v: %v scores %v after %v, want no less", m.input, c, scale, raw, score, last)
					}
					last = score
				}
				if p.terms[0].of(missing) < last {
					t.Errorf("%s with %+v: what is not reported is better than the worst", m.input, c)
				}
			}
		}
	}
	for name, turned := range map[string]TermConfig{
		"weight":         {Input: PlayerCount, Weight: -1},
		"curve.k":        {Input: PlayerCount, Weight: 1, Curve: Curve{Shape: Exponential, K: -3}},
		"curve.p":        {Input: PlayerCount, Weight: 1, Curve: Curve{Shape: Power, P: -1}},
		"curve.k: NaN":   {Input: PlayerCount, Weight: 1, Curve: Curve{Shape: Sigmoid, K: math.NaN(), X0: 0.5}},
		"weight: +Inf":   {Input: PlayerCount, Weight: math.Inf(1)},
		"normalize":      {Input: PlayerCount, Weight: 1, Normalize: &Range{Min: 100, Max: 0}},
		"normalize: 100": {Input: PlayerCount, Weight: 1, Normalize: &Range{Min: math.Inf(-1), Max: 100}},
	} {
		key, _, _ := strings.Cut(name, ":")
		if _, err := NewPolicy(PolicyConfig{Terms: []TermConfig{turned}}); err == nil || !strings.Contains(err.Error(), "loadBalancer.terms.playerCount."+key) {
			t.Errorf("%s: %v, want a refusal that names the key", name, err)
		}
	}
}

// TestCase056_SecondsForMilliseconds: a host sent seconds where milliseconds were read, and
// everything was stale, or nothing ever. Here a moment is written as one, a length of time has
// bounds, and what is outside them is refused with a code or cut to them: nothing overflows.
func TestCase056_SecondsForMilliseconds(t *testing.T) {
	t.Run("headers of a request", func(t *testing.T) {
		b := identity(events.SourceBackend, "b")
		for header, values := range map[string][]string{
			events.HeaderTime:     {"1764504000", "1764504000000", "1.7645e9", "yesterday", "2026-11-30", "0"},
			events.HeaderDeadline: {"-3", "3s", "3000000", "1e3", "9223372036854775807", "9223372036854775808"},
		} {
			for _, value := range values {
				w, _ := sealed(t, b, requestSubject, ask1())
				w.Header[header] = value
				w.Header[events.HeaderSig] = b.Keys.Sign(requestSubject, w.Header, w.Body)
				srv := newAnswering()
				if a, _ := opened(t, srv.handle(t.Context(), requestSubject, w)); a.Code != events.BadRequest || srv.reached > 0 || !strings.Contains(a.Detail, header) {
					t.Errorf("%s %q: %+v, want BAD_REQUEST that names it", header, value, a)
				}
			}
		}
	})
	t.Run("the length of a promise", func(t *testing.T) {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			s.stock(2)
			for _, ms := range []int64{-30, 0, maxTTL.Milliseconds() + 1, math.MaxInt64, math.MinInt64} {
				if a := s.inTime(ctx, 1, func(q *events.ReserveAsk) { q.TTLMs = ms }); a.Code != events.BadRequest {
					t.Errorf("%d ms: %+v", ms, a)
				}
			}
		})
		for ms, want := range map[int64]time.Duration{30_000: 30 * time.Second, math.MaxInt64: maxTTL} {
			if got := ttl(projections.Transfer{Reserved: &events.Reserved{TTLMs: ms}}); got != want {
				t.Errorf("a token of %d ms lasts %s, want %s", ms, got, want)
			}
		}
	})
	t.Run("how long an arrival waits", func(t *testing.T) {
		for ms, want := range map[int64]time.Duration{-1: 10 * time.Millisecond, 0: 10 * time.Millisecond, 200: 200 * time.Millisecond, 2_000_000: 10 * time.Second, math.MaxInt64: 10 * time.Second} {
			if got := waitOf(events.ArrivedAnswer{WaitMs: ms}); got != want {
				t.Errorf("%d ms: waits %s, want %s", ms, got, want)
			}
		}
	})
	t.Run("what a heartbeat measures", func(t *testing.T) {
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1), math.Inf(-1)} {
			b := reporting("b", bad, 0, 100, .5, 32)
			ranked, d := choose(anywhere(), fleetOf(b, reporting("c", 49, 0, 100, .5, 32)))
			if ranked[0].backend.Server != "c" || !termOf(t, d.Candidates[1], string(MSPT)).Missing {
				t.Errorf("%v ms a tick is no measurement, and %s is first", bad, ranked[0].backend.Server)
			}
		}
	})
}
