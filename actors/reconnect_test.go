package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// TestReconcile: where a player belongs who was led to server a, and how often the player is told so.
func TestReconcile(t *testing.T) {
	moving := func(facts ...events.TransferFact) *projections.Transfer {
		tr := journey(t, facts...)
		return &tr
	}
	toB := moving(reserved(1), claimed(1, "e1"))
	route := func(server events.HostID, token events.Token, hops int, followed bool) ownRoute {
		own := ownRoute{entry: events.RouteEntry{Route: "r", Token: token, Hops: hops}}
		if !followed {
			own.staged = &events.RouteStaged{Server: server, Token: token, Hops: hops}
		}
		return own
	}
	none := events.Token{}
	for name, row := range map[string]struct {
		here   events.HostID
		active *projections.Transfer
		own    ownRoute
		want   again
	}{
		"nothing is known of the player":            {here: "a"},
		"a route, and no transfer":                  {"a", nil, route("b", none, 1, false), again{server: "b", hops: 2}},
		"a route to where the player is":            {"b", nil, route("b", none, 1, false), again{}},
		"the player came by the only route":         {"a", nil, route("a", none, 1, true), again{}},
		"a route that was followed, no transfer":    {"a", nil, route("b", none, 1, true), again{}},
		"a claim, and no route":                     {"a", toB, ownRoute{}, again{server: "b", token: tokenOne, hops: 1}},
		"a claim, its route was followed once":      {"a", toB, route("b", tokenOne, 1, true), again{server: "b", token: tokenOne, hops: 2}},
		"a claim, the second time":                  {"a", toB, route("b", tokenOne, 2, true), again{server: "b", token: tokenOne, hops: 3}},
		"a claim, the fourth time":                  {"a", toB, route("b", tokenOne, 3, true), again{code: events.RouteBounced}},
		"a route that bounced the player too often": {"a", nil, route("b", none, 3, false), again{code: events.RouteBounced}},
		"a claim, the route is of another attempt":  {"a", toB, route("c", tokenTwo, 3, false), again{server: "b", token: tokenOne, hops: 1}},
		"a claim that leads where the player is":    {"b", toB, route("b", tokenOne, 3, true), again{}},
		"a promise that nobody has claimed":         {"a", moving(reserved(1)), ownRoute{}, again{}},
		"an arrival":                                {"a", moving(reserved(1), claimed(1, "e1"), consumed(1)), ownRoute{}, again{}},
	} {
		if got := reconcile(row.here, row.active, row.own); got != row.want {
			t.Errorf("%s: %+v, want %+v", name, got, row.want)
		}
	}
}

var tokenTwo = events.Token{Transfer: first, Attempt: 2}

func (s *seer) recognizes(t *testing.T, ctx context.Context, player events.PlayerID, server events.HostID, l Lead) Redirection {
	t.Helper()
	to := s.Recognize(ctx, Recognized{Player: player, Name: "x", Server: server, Trace: Trace{Remote: oneHome}, Lead: l})
	synctest.Wait()
	return to
}

// TestRouteTakenBySomebodyElse: the one who took it stays, and is asked by the server who it is; the owner's route survives
// under the owner's own name and marker, not under the address that both come from.
func TestRouteTakenBySomebodyElse(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		l := e2.wantLead(t, ctx, "sam, by the address", Trace{Remote: oneHome}, alex, "b", events.ByAddress)
		if to := e2.recognizes(t, ctx, sam, "b", l); to.Server != "" {
			t.Errorf("sam is sent on: %+v", to)
		}
		e1.wantLead(t, ctx, "the address", Trace{Remote: oneHome}, alex, "", "")
		l = e1.wantLead(t, ctx, "alex", Trace{Marker: marker, Remote: oneHome}, alex, "b", events.ByMarker)
		if l.Hops != 2 {
			t.Errorf("hops %d, want 2: who takes a route over and over must end", l.Hops)
		}
		if to := e1.recognizes(t, ctx, alex, "b", l); to.Server != "" {
			t.Errorf("alex, who is there, is sent on: %+v", to)
		}
	})
}

// TestMarkerOfAnotherPlayer: A's marker shown by B leads B there once, and A still arrives.
func TestMarkerOfAnotherPlayer(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		l := e2.wantLead(t, ctx, "a thief", Trace{Marker: marker}, alex, "b", events.ByMarker)
		e2.recognizes(t, ctx, sam, "b", l)
		e1.wantLead(t, ctx, "alex", Trace{Marker: marker}, alex, "b", events.ByMarker)
	})
}

// TestLateFallback: a player whom nothing led comes to some server, is sent on as soon as it is known who
// it is, and comes to rest when that is in vain.
func TestLateFallback(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		e1.put(t, requested(), reserved(1), claimed(1, "e1"))
		synctest.Wait()
		for i, s := range []*seer{e1, e2, e1} {
			to := s.recognizes(t, ctx, steve, "a", Lead{})
			if to.Server != "b" || to.Marker == [16]byte{} {
				t.Fatalf("time %d: %+v", i+1, to)
			}
		}
		if to := e2.recognizes(t, ctx, steve, "a", Lead{}); to.Server != "" || to.Code != events.RouteBounced {
			t.Fatalf("the fourth time: %+v", to)
		}
	})
}

// TestRecognizedWithoutTheLog: the player stays, and nobody waits long.
func TestRecognizedWithoutTheLog(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.stages(t, ctx, alex, "b", oneHome)
		e1.log.Cut()
		began := time.Now()
		if to := e1.recognizes(t, ctx, alex, "a", Lead{}); to.Server != "" || to.Code != events.TransportDown || time.Since(began) > 2*routePatience {
			t.Errorf("%+v after %v", to, time.Since(began))
		}
	})
}

// TestRouteTrace: the route, the dialled address, the policy, in this order; who cannot be dialled is not tried again.
func TestRouteTrace(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.put(t, requested(), reserved(1), claimed(1, "e1"))
		synctest.Wait()
		toC, byToken := Lead{Route: "r", Player: alex, Server: "c"}, Lead{Route: "r", Player: steve, Server: "b", Token: tokenOne}
		for name, row := range map[string]struct {
			trace Trace
			lead  Lead
			want  events.HostID
		}{
			"a route":                                {Trace{}, toC, "c"},
			"a route, whatever was dialled":          {Trace{Dialled: "a"}, toC, "c"},
			"a dialled address":                      {Trace{Dialled: "c"}, Lead{}, "c"},
			"a dialled server that cannot be dialed": {Trace{Dialled: "c", Failed: []events.HostID{"c", "a"}}, Lead{}, "b"},
			"a route to who cannot be dialled":       {Trace{Failed: []events.HostID{"c", "a"}}, toC, "b"},
			"a token":                                {Trace{}, byToken, "b"},
			"the player's transfer":                  {Trace{Player: steve}, Lead{}, "b"},
		} {
			row.trace.Protocol = ProtocolVintageStory
			if r := e1.RouteTrace(ctx, row.trace, row.lead); r.Server != row.want {
				t.Errorf("%s: %+v, want %s", name, r, row.want)
			}
		}
		if r := e1.RouteTrace(ctx, Trace{Protocol: ProtocolTCP}, Lead{}); r.Server != "" || r.Code != events.NoCandidate {
			t.Errorf("a client of another game: %+v", r)
		}
	})
}

// TestSpeaksOtherGames: nobody is sent to a server of another game.
func TestSpeaksOtherGames(t *testing.T) {
	for _, row := range []struct {
		low, high, protocol int
		want                bool
	}{
		{767, 774, 767, true},
		{0, 0, 767, true},
		{0, 0, ProtocolVintageStory, false},
		{767, 774, ProtocolVintageStory, false},
		{ProtocolVintageStory, ProtocolVintageStory, ProtocolVintageStory, true},
		{ProtocolVintageStory, ProtocolVintageStory, 767, false},
		{ProtocolVintageStory, ProtocolVintageStory, snapshotsOfVersion + 200, false},
		{ProtocolTCP, ProtocolTCP, ProtocolVintageStory, false},
		{0, 0, snapshotsOfVersion + 200, true},
	} {
		if got := speaks(row.low, row.high, row.protocol); got != row.want {
			t.Errorf("%d..%d speaks %d: %t", row.low, row.high, row.protocol, got)
		}
	}
}
