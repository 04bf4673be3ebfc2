package actors

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// A client of a game whose first bytes do not say who it is is told to dial again, and has to be led
// to its server before anybody has seen it log in. A route is staged for it, in the bucket routes, so that
// any proxy can lead it; it may be followed once. The truth about a route stands at one key,
// RouteKey; the lists by player and by address only say where to look.

const (
	// routeTTL is how long a route stands: by its marker, and by its player.
	routeTTL = 5 * time.Minute
	// addressTTL is how long a route is found by the address of its client, which others may share.
	addressTTL = time.Minute
	// maxHops is how often a player is told to dial again for one route.
	maxHops = 3
	// addressCrowd is how many routes of one address are looked at before it counts as ambiguous.
	addressCrowd = 16
	// routePatience is how long the log may take to say whether there is a route.
	routePatience = time.Second
)

// Trace is what a connection shows before its player has said who it is, or instead.
type Trace struct {
	Marker   [16]byte        // the id of the marker that came first; zero: none came
	Player   events.PlayerID // zero: has not said so
	Name     string
	Remote   netip.Addr // the client's address
	Game     string     // see Login
	Protocol int
	Dialled  events.HostID   // the server that the dialled address stands for; empty: it is no server's own
	Failed   []events.HostID // could not be dialled for this connection, oldest first
}

// Lead is a route that a connection follows. It is that connection's alone.
type Lead struct {
	Route  string // its name; empty: there is none
	How    events.RouteHow
	Player events.PlayerID // for whom it was staged
	Server events.HostID
	Token  events.Token
	Hops   int
	Until  int64
}

// Found tells that there is a route.
func (l Lead) Found() bool { return l.Route != "" }

// shortRoute is a route's name in logs.
func shortRoute(name string) string { return name[:min(len(name), 8)] }

// staging is a route that is to be staged.
type staging struct {
	player events.PlayerID
	server events.HostID
	token  events.Token
	hops   int
	remote netip.Addr // of the client, as it will dial again
}

// randomMarker is the id of a route: nobody can guess it, and it names nothing else.
func randomMarker() (id [16]byte) {
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// stage stages a route and gives the id of its marker. The player's route before it leads nowhere any more.
func (d *Dispatcher) stage(ctx context.Context, s staging) (marker [16]byte, err error) {
	until := d.Now().Add(routeTTL).Unix()
	for range 3 {
		marker = d.marker()
		fresh := false
		_, err = d.amend(ctx, events.Routes, events.RouteKey(events.RouteName(marker)), func(now events.Fact) (events.Fact, time.Duration) {
			if fresh = now == nil; !fresh {
				return nil, 0 // another one has it
			}
			return &events.RouteStaged{Player: s.player, Server: s.server, Token: s.token, Hops: s.hops, Until: until}, routeTTL
		})
		if err != nil {
			return marker, fmt.Errorf("stage a route of %s to %s: %w", s.player, s.server, err)
		}
		if fresh {
			return marker, d.list(ctx, s, events.RouteEntry{Route: events.RouteName(marker), Until: until, Token: s.token, Hops: s.hops})
		}
	}
	return marker, errors.New("stage a route: no id was free")
}

// list makes a route known by its player and its address.
func (d *Dispatcher) list(ctx context.Context, s staging, e events.RouteEntry) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		var before []events.RouteEntry
		_, err := d.amend(ctx, events.Routes, events.PlayerRoutesKey(s.player), func(now events.Fact) (events.Fact, time.Duration) {
			before = entriesOf(now)
			return &events.RoutesListed{Routes: []events.RouteEntry{e}}, routeTTL
		})
		for _, old := range before {
			d.displace(old.Route)
		}
		return err
	})
	if s.remote.IsValid() {
		near := e
		near.Until = d.Now().Add(addressTTL).Unix()
		g.Go(func() error {
			_, err := d.amend(ctx, events.Routes, d.addressKey(s.remote), func(now events.Fact) (events.Fact, time.Duration) {
				return listedWith(entriesOf(now), near, d.Now().Unix()), addressTTL
			})
			return err
		})
	}
	return g.Wait()
}

func entriesOf(f events.Fact) []events.RouteEntry {
	if l, ok := f.(*events.RoutesListed); ok {
		return l.Routes
	}
	return nil
}

// listedWith adds an entry to a list, without those whose time has passed. The newest stay when
// there are too many.
func listedWith(list []events.RouteEntry, e events.RouteEntry, now int64) *events.RoutesListed {
	out := slices.DeleteFunc(slices.Clone(list), func(x events.RouteEntry) bool { return x.Until <= now || x.Route == e.Route })
	slices.SortFunc(out, func(a, b events.RouteEntry) int { return int(b.Until - a.Until) })
	out = append(out[:min(len(out), addressCrowd-1)], e)
	slices.SortFunc(out, func(a, b events.RouteEntry) int { return strings.Compare(a.Route, b.Route) })
	return &events.RoutesListed{Routes: out}
}

// addressKey never holds the address itself.
func (d *Dispatcher) addressKey(a netip.Addr) string {
	return events.AddressRoutesKey(d.Keys.Hide("client address", a.Unmap().WithZone("").String()))
}

// displace ends a route whose player has another one now.
func (d *Dispatcher) displace(route string) {
	d.amendLater(events.Routes, events.RouteKey(route), func(now events.Fact) (events.Fact, time.Duration) {
		f, ok := now.(*events.RouteStaged)
		if !ok {
			return nil, 0
		}
		return used(f, events.Displaced), d.rest(f.Until)
	})
}

func used(f *events.RouteStaged, how events.RouteHow) *events.RouteUsed {
	return &events.RouteUsed{Player: f.Player, Server: f.Server, How: how, Until: f.Until}
}

// rest is how long a fact about a route still stands.
func (d *Dispatcher) rest(until int64) time.Duration {
	return max(time.Duration(until-d.Now().Unix())*time.Second, time.Second)
}

// FindRoute gives the route that a connection follows: that of its marker, else that of its player
// if it has said who it is, else the only one that leads from its address. It takes it: nobody
// else will get it, unless it is given back. Without the log there is none.
func (d *Dispatcher) FindRoute(ctx context.Context, t Trace) Lead {
	ctx, cancel := context.WithTimeout(ctx, routePatience)
	defer cancel()
	for _, rule := range []func(context.Context, Trace) (Lead, error){d.byMarker, d.byPlayer, d.byAddress} {
		l, err := rule(ctx, t)
		var refusal *events.Refusal
		switch {
		case l.Found():
			d.logger.Info("route followed", "route", shortRoute(l.Route), "how", l.How, "player", l.Player, "server", l.Server, "hops", l.Hops)
			return l
		case err == nil:
		case errors.As(err, &refusal):
			d.logger.Info("no route", "code", refusal.Code, "detail", refusal.Detail)
		default:
			d.logger.Warn("no route", "code", events.TransportDown, "error", err)
			return Lead{}
		}
	}
	return Lead{}
}

func (d *Dispatcher) byMarker(ctx context.Context, t Trace) (Lead, error) {
	if t.Marker == [16]byte{} {
		return Lead{}, nil
	}
	l, err := d.follows(ctx, events.RouteName(t.Marker), events.ByMarker)
	var refusal *events.Refusal
	if errors.As(err, &refusal) && refusal.Code == events.RouteTaken {
		name := events.RouteName(t.Marker)
		d.audit(events.Rejected{
			Source: d.Source.String(), Code: refusal.Code, Subject: events.Routes.Subject(events.RouteKey(shortRoute(name))),
			Detail: "a marker was shown again; the connection is led by the next rule",
		})
	}
	return l, err
}

func (d *Dispatcher) byPlayer(ctx context.Context, t Trace) (Lead, error) {
	if t.Player.IsZero() {
		return Lead{}, nil
	}
	e, err := d.standsAt(ctx, events.Routes, events.PlayerRoutesKey(t.Player))
	list := entriesOf(e.Fact)
	if err != nil || len(list) == 0 {
		return Lead{}, err
	}
	return d.follows(ctx, list[0].Route, events.ByPlayer)
}

// byAddress gives the route of an address from which only one leads. Two clients may be one
// behind the other there: then it is anybody's guess, and nobody makes it.
func (d *Dispatcher) byAddress(ctx context.Context, t Trace) (Lead, error) {
	if !t.Remote.IsValid() || t.Dialled != "" || !t.Player.IsZero() {
		return Lead{}, nil
	}
	e, err := d.standsAt(ctx, events.Routes, d.addressKey(t.Remote))
	if err != nil {
		return Lead{}, err
	}
	only, players := "", map[events.PlayerID]bool{}
	for _, x := range entriesOf(e.Fact) {
		if x.Until <= d.Now().Unix() {
			continue
		}
		e, err := d.standsAt(ctx, events.Routes, events.RouteKey(x.Route))
		if err != nil {
			return Lead{}, err
		}
		if f, ok := e.Fact.(*events.RouteStaged); ok && d.leads(f) == nil {
			only, players[f.Player] = x.Route, true
		}
	}
	switch len(players) {
	case 0:
		return Lead{}, nil
	case 1:
		return d.follows(ctx, only, events.ByAddress)
	}
	return Lead{}, events.Refuse(events.RouteAmbiguous, fmt.Sprintf("%d players are expected from this address", len(players)))
}

// follows takes a route, if it can still be followed.
func (d *Dispatcher) follows(ctx context.Context, name string, how events.RouteHow) (Lead, error) {
	var l Lead
	var refusal *events.Refusal
	_, err := d.amend(ctx, events.Routes, events.RouteKey(name), func(now events.Fact) (events.Fact, time.Duration) {
		l, refusal = Lead{}, nil
		f, staged := now.(*events.RouteStaged)
		switch {
		case staged:
			if refusal = d.leads(f); refusal != nil {
				return nil, 0
			}
			l = Lead{Route: name, How: how, Player: f.Player, Server: f.Server, Token: f.Token, Hops: f.Hops, Until: f.Until}
			return used(f, how), d.rest(f.Until)
		case now == nil:
			refusal = events.Refuse(events.RouteUnknown, "route "+shortRoute(name))
		default:
			refusal = events.Refuse(events.RouteTaken, "route "+shortRoute(name))
		}
		return nil, 0
	})
	if err != nil {
		return Lead{}, err
	}
	if refusal != nil {
		return Lead{}, refusal
	}
	return l, nil
}

// leads holds a route against the transfer it was staged for: when that has ended, or leads
// elsewhere by now, the route is over. What the fold does not show yet is believed.
func (d *Dispatcher) leads(f *events.RouteStaged) *events.Refusal {
	if f.Token.IsZero() {
		return nil
	}
	t, known := d.view.Transfer(f.Token.Transfer)
	switch {
	case !known, t.Attempts < f.Token.Attempt && !t.Phase.Terminal():
		return nil
	case t.Player != f.Player, t.Phase.Terminal(), t.Token != f.Token, t.Destination() != f.Server:
		return events.Refuse(events.RouteOver, "transfer "+f.Token.Transfer.Short()+" does not lead to "+string(f.Server)+" any more")
	}
	return nil
}

// GiveBack returns a route that came to nothing: the connection ended before its player had said
// who it is. It stands as long as it would have stood. It does not block.
func (d *Dispatcher) GiveBack(l Lead) { d.restage(l, l.Hops) }

func (d *Dispatcher) restage(l Lead, hops int) {
	d.amendLater(events.Routes, events.RouteKey(l.Route), func(now events.Fact) (events.Fact, time.Duration) {
		f, ok := now.(*events.RouteUsed)
		if !ok || f.How != l.How || f.Until <= d.Now().Unix() {
			return nil, 0
		}
		return &events.RouteStaged{Player: l.Player, Server: l.Server, Token: l.Token, Hops: hops, Until: l.Until}, d.rest(l.Until)
	})
}
