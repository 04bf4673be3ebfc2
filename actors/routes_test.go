package actors

import (
	"bytes"
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

var (
	alex    = events.NativePlayer("vintagestory", "uid-alex")
	sam     = events.NativePlayer("vintagestory", "uid-sam")
	oneHome = netip.MustParseAddr("203.0.113.7")
)

// proxies runs a test on a network of two dispatchers and the servers a, b and c.
func proxies(t *testing.T, body func(t *testing.T, ctx context.Context, e1, e2 *seer)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		e1, e2 := newSeer(t, ctx, mem, "e1"), newSeer(t, ctx, mem, "e2")
		for _, s := range []*seer{e1, e2} {
			s.tasks.begin(ctx)
			defer s.tasks.end()
		}
		for _, id := range []events.HostID{"a", "b", "c"} {
			e1.beatsWith(t, id)
		}
		eventually(t, "the servers", func() bool {
			return len(e1.view.Fleet().Backends) == 3 && len(e2.view.Fleet().Backends) == 3
		})
		body(t, ctx, e1, e2)
	})
}

// beatsWith lets a server say that it is there.
func (s *seer) beatsWith(t *testing.T, id events.HostID) {
	t.Helper()
	source := streamtest.Source(events.SourceBackend, id)
	beat := &events.BackendBeat{
		Server: id, Incarnation: source.Incarnation, State: events.Ready, Accepting: true, Schema: events.SchemaVersion, Advertise: string(id) + ".example.net:42421",
		ProtocolMin: ProtocolVintageStory, ProtocolMax: ProtocolVintageStory, MaxPlayers: 20, Regions: []events.RegionBeat{{Name: "wild", World: "w", Kept: 8, Size: 8}},
	}
	if _, err := s.mem.Client(string(id)).Append(t.Context(), streamtest.FactBy(t, source, events.BackendKey(id), 0, beat)); err != nil {
		t.Fatal(err)
	}
}

func (s *seer) stages(t *testing.T, ctx context.Context, player events.PlayerID, server events.HostID, remote netip.Addr) [16]byte {
	t.Helper()
	marker, err := s.stage(ctx, staging{player: player, server: server, hops: 1, remote: remote})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return marker
}

// wantLead looks for a route and follows it.
func (s *seer) wantLead(t *testing.T, ctx context.Context, what string, tr Trace, player events.PlayerID, server events.HostID, how events.RouteHow) Lead {
	t.Helper()
	l := s.FindRoute(ctx, tr)
	if l.Server != server || l.How != how || l.Found() && l.Player != player {
		t.Errorf("%s: lead %+v, want %s to %q by %q", what, l, player, server, how)
	}
	synctest.Wait()
	return l
}

// TestRoutesOfTwoClientsBehindOneAddress: each reaches its own server by its marker, in the
// reverse order, and over another proxy than the one that staged it.
func TestRoutesOfTwoClientsBehindOneAddress(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		toB, toC := e1.stages(t, ctx, alex, "b", oneHome), e2.stages(t, ctx, sam, "c", oneHome)
		e1.wantLead(t, ctx, "sam", Trace{Marker: toC, Remote: oneHome}, sam, "c", events.ByMarker)
		e2.wantLead(t, ctx, "alex", Trace{Marker: toB, Remote: oneHome}, alex, "b", events.ByMarker)
	})
}

// TestCase062_SiblingsBehindOneNAT: without markers two expected players are nobody's guess; the one who is
// left when the other has come by a marker is led by the address.
func TestCase062_SiblingsBehindOneNAT(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		toB := e1.stages(t, ctx, alex, "b", oneHome)
		e2.stages(t, ctx, sam, "c", oneHome)
		e1.wantLead(t, ctx, "two expected", Trace{Remote: oneHome}, sam, "", "")
		e2.wantLead(t, ctx, "two expected, again", Trace{Remote: oneHome}, sam, "", "")
		e2.wantLead(t, ctx, "by marker", Trace{Marker: toB, Remote: oneHome}, alex, "b", events.ByMarker)
		e1.wantLead(t, ctx, "one expected", Trace{Remote: oneHome}, sam, "c", events.ByAddress)
		e1.wantLead(t, ctx, "nobody expected", Trace{Remote: oneHome}, sam, "", "")
	})
}

// TestCase061_AnonymousFirstFrame: marker, then player, then address, each alone.
func TestCase061_AnonymousFirstFrame(t *testing.T) {
	elsewhere := netip.MustParseAddr("198.51.100.9")
	for name, row := range map[string]struct {
		trace func(marker [16]byte) Trace
		how   events.RouteHow
	}{
		"marker":                        {func(m [16]byte) Trace { return Trace{Marker: m, Remote: elsewhere} }, events.ByMarker},
		"marker and player":             {func(m [16]byte) Trace { return Trace{Marker: m, Player: alex, Remote: oneHome} }, events.ByMarker},
		"unknown marker, player":        {func([16]byte) Trace { return Trace{Marker: [16]byte{9}, Player: alex} }, events.ByPlayer},
		"player":                        {func([16]byte) Trace { return Trace{Player: alex, Remote: elsewhere} }, events.ByPlayer},
		"unknown marker, address":       {func([16]byte) Trace { return Trace{Marker: [16]byte{9}, Remote: oneHome} }, events.ByAddress},
		"address":                       {func([16]byte) Trace { return Trace{Remote: oneHome} }, events.ByAddress},
		"the same address, mapped":      {func([16]byte) Trace { return Trace{Remote: netip.AddrFrom16(oneHome.As16())} }, events.ByAddress},
		"another address":               {func([16]byte) Trace { return Trace{Remote: elsewhere} }, ""},
		"no address":                    {func([16]byte) Trace { return Trace{} }, ""},
		"another player of the address": {func([16]byte) Trace { return Trace{Player: sam, Remote: oneHome} }, ""},
		"a server's own address":        {func([16]byte) Trace { return Trace{Dialled: "c", Remote: oneHome} }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
				marker := e1.stages(t, ctx, alex, "b", oneHome)
				want := events.HostID("b")
				if row.how == "" {
					want = ""
				}
				e2.wantLead(t, ctx, name, row.trace(marker), alex, want, row.how)
			})
		})
	}
}

// TestCase064_RouteIsFollowedOnce: the second use of a marker, by a retry or by a stranger, falls to the
// next rule, and the audit shows no more of it than a prefix of its name.
func TestCase064_RouteIsFollowedOnce(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		e1.wantLead(t, ctx, "first", Trace{Marker: marker, Remote: oneHome}, alex, "b", events.ByMarker)
		for _, s := range []*seer{e1, e2} {
			s.wantLead(t, ctx, "again", Trace{Marker: marker, Player: alex, Remote: oneHome}, alex, "", "")
			s.wantLead(t, ctx, "by address", Trace{Remote: oneHome}, alex, "", "")
		}
		audited := stored(t, e1.mem, events.Audit)
		if len(audited) == 0 {
			t.Fatal("nothing in the audit")
		}
		name := events.RouteName(marker)
		for _, e := range audited {
			r := e.Fact.(*events.Rejected)
			if r.Code != events.RouteTaken || !strings.Contains(r.Subject, name[:8]) || strings.Contains(r.Subject+" "+r.Detail, name[:9]) {
				t.Errorf("audited %+v", r)
			}
		}
	})
}

// TestRouteRace: of many who show one marker at once, through two proxies, one is led by it.
func TestRouteRace(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		var mu sync.Mutex
		var all sync.WaitGroup
		led := 0
		for i := range 20 {
			all.Go(func() {
				if l := []*seer{e1, e2}[i%2].FindRoute(ctx, Trace{Marker: marker}); l.Found() {
					mu.Lock()
					led++
					mu.Unlock()
				}
			})
		}
		all.Wait()
		if led != 1 {
			t.Errorf("%d were led by one marker", led)
		}
	})
}

// TestRoutesExpire: by the marker and the player after five minutes, by the address after one.
func TestRoutesExpire(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		trace func(marker [16]byte) Trace
		leads bool
	}{
		"address":       {addressTTL - 2*time.Second, func([16]byte) Trace { return Trace{Remote: oneHome} }, true},
		"address, over": {addressTTL + time.Second, func([16]byte) Trace { return Trace{Remote: oneHome} }, false},
		"marker":        {routeTTL - 2*time.Second, func(m [16]byte) Trace { return Trace{Marker: m} }, true},
		"marker, over":  {routeTTL + time.Second, func(m [16]byte) Trace { return Trace{Marker: m} }, false},
		"player":        {routeTTL - 2*time.Second, func([16]byte) Trace { return Trace{Player: alex} }, true},
		"player, over":  {routeTTL + time.Second, func([16]byte) Trace { return Trace{Player: alex} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
				marker := e1.stages(t, ctx, alex, "b", oneHome)
				passTime(row.after)
				if l := e2.FindRoute(ctx, row.trace(marker)); l.Found() != row.leads {
					t.Errorf("%+v, want a route: %t", l, row.leads)
				}
			})
		})
	}
}

// TestRouteGivenBack: who leaves before having said who it is has used nothing up, and gains no time by it.
func TestRouteGivenBack(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		l := e1.wantLead(t, ctx, "a probe", Trace{Remote: oneHome}, alex, "b", events.ByAddress)
		passTime(routeTTL - 3*time.Second)
		e1.GiveBack(l)
		synctest.Wait()
		e1.GiveBack(l) // again does nothing
		l = e2.wantLead(t, ctx, "the player", Trace{Marker: marker, Remote: oneHome}, alex, "b", events.ByMarker)
		e2.GiveBack(l)
		passTime(4 * time.Second)
		e2.wantLead(t, ctx, "too late", Trace{Marker: marker, Player: alex}, alex, "", "")
	})
}

// TestNewestRouteCounts: a player who is redirected twice before dialling again is led by the second alone.
func TestNewestRouteCounts(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		old := e1.stages(t, ctx, alex, "b", oneHome)
		l := e1.wantLead(t, ctx, "the first", Trace{Marker: old}, alex, "b", events.ByMarker)
		e1.GiveBack(l)
		synctest.Wait()
		e2.stages(t, ctx, alex, "c", oneHome)
		e1.wantLead(t, ctx, "the first, displaced", Trace{Marker: old}, alex, "", "")
		e1.GiveBack(l) // of a route that another one took the place of
		synctest.Wait()
		e1.wantLead(t, ctx, "the first, still", Trace{Marker: old}, alex, "", "")
		e2.wantLead(t, ctx, "the second", Trace{Remote: oneHome}, alex, "c", events.ByAddress)
	})
}

// TestRouteIsHeldAgainstItsTransfer: a route leads only where its transfer still does.
func TestRouteIsHeldAgainstItsTransfer(t *testing.T) {
	for name, row := range map[string]struct {
		facts  []events.TransferFact
		server events.HostID
		token  events.Token
		leads  bool
	}{
		"claimed":           {[]events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, "b", tokenOne, true},
		"not folded yet":    {[]events.TransferFact{requested()}, "b", tokenOne, true},
		"never heard of":    {nil, "b", tokenOne, true},
		"another server":    {[]events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, "c", tokenOne, false},
		"a later attempt":   {[]events.TransferFact{requested(), reserved(1), &events.Expired{Attempt: 1, Reason: events.TTLPassed}, reserved(2)}, "b", tokenOne, false},
		"over":              {[]events.TransferFact{requested(), &events.Cancelled{Code: events.Cancel}}, "b", tokenOne, false},
		"failed after move": {[]events.TransferFact{requested(), reserved(1), claimed(1, "e1"), &events.Failed{Code: events.NotArrived}}, "b", tokenOne, false},
	} {
		t.Run(name, func(t *testing.T) {
			proxies(t, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
				e1.put(t, row.facts...)
				synctest.Wait()
				marker, err := e1.stage(ctx, staging{player: steve, server: row.server, token: row.token, hops: 1, remote: oneHome})
				if err != nil {
					t.Fatal(err)
				}
				for _, tr := range []Trace{{Remote: oneHome}, {Player: steve}, {Marker: marker}} {
					l := e2.FindRoute(ctx, tr)
					if l.Found() != row.leads {
						t.Errorf("%+v: %+v, want a route: %t", tr, l, row.leads)
					}
					if e2.GiveBack(l); l.Found() {
						synctest.Wait()
					}
				}
			})
		})
	}
}

// TestRoutesWithoutTheLog: nobody waits longer than a moment, and is routed otherwise.
func TestRoutesWithoutTheLog(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		e1.log.Cut()
		began := time.Now()
		if l := e1.FindRoute(ctx, Trace{Marker: marker, Remote: oneHome}); l.Found() || time.Since(began) > 2*routePatience {
			t.Errorf("%+v after %v", l, time.Since(began))
		}
		e1.log.Heal()
		synctest.Wait()
		e1.wantLead(t, ctx, "once the log is back", Trace{Marker: marker}, alex, "b", events.ByMarker)
	})
}

// TestRouteIDsCollide: an id that is taken is not staged over.
func TestRouteIDsCollide(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		ids := [][16]byte{{1}, {1}, {2}}
		e1.marker = func() (id [16]byte) { id, ids = ids[0], ids[1:]; return id }
		first, second := e1.stages(t, ctx, alex, "b", oneHome), e1.stages(t, ctx, sam, "c", oneHome)
		if first != [16]byte{1} || second != [16]byte{2} {
			t.Fatalf("staged %x and %x", first, second)
		}
		e1.wantLead(t, ctx, "the first", Trace{Marker: first}, alex, "b", events.ByMarker)
	})
}

// TestCrowdBehindOneAddress: a list never grows beyond what is looked at.
func TestCrowdBehindOneAddress(t *testing.T) {
	list := &events.RoutesListed{}
	for i := range 3 * addressCrowd {
		list = listedWith(entriesOf(list), events.RouteEntry{Route: events.RouteName([16]byte{byte(i)}), Until: int64(1000 + i)}, 5)
	}
	if n := len(list.Routes); n > addressCrowd || !slices.IsSortedFunc(list.Routes, func(a, b events.RouteEntry) int { return strings.Compare(a.Route, b.Route) }) {
		t.Errorf("%d routes: %+v", n, list)
	}
	if list = listedWith(entriesOf(list), events.RouteEntry{Route: "x", Until: 5000}, 4000); len(list.Routes) != 1 {
		t.Errorf("expired ones stay: %+v", list)
	}
}

// TestMarkersAreNotInTheLog, nor an address, nor in what is written for operators: whoever reads either
// can follow nobody's route.
func TestMarkersAreNotInTheLog(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		var text bytes.Buffer
		e1.logger = slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug}))
		marker := e1.stages(t, ctx, alex, "b", oneHome)
		e1.FindRoute(ctx, Trace{Marker: marker})
		e1.FindRoute(ctx, Trace{Marker: marker})
		synctest.Wait()
		id, name := string(marker[:]), events.RouteName(marker)
		for _, b := range []events.Bucket{events.Routes, events.Audit} {
			for _, r := range e1.mem.Records(b) {
				if strings.Contains(string(r.Body)+r.Key, id) || strings.Contains(string(r.Body)+r.Key, oneHome.String()) {
					t.Errorf("%s holds what it must not: %s", b, r.Key)
				}
			}
		}
		if out := text.String(); !strings.Contains(out, name[:8]) || strings.Contains(out, name[:9]) {
			t.Errorf("log:\n%s", out)
		}
	})
}
