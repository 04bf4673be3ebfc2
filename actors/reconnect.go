package actors

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// RouteTrace decides where a connection goes whose player may not have said who it is: where its
// route leads, else to the server that the dialled address stands for, else as Route does. It may be
// asked again with another server in t.Failed.
func (d *Dispatcher) RouteTrace(ctx context.Context, t Trace, l Lead) Route {
	login := Login{Player: t.Player, Name: t.Name, Protocol: t.Protocol, Failed: t.Failed}
	switch {
	case l.Found() && !l.Token.IsZero():
		login.Player, login.Token = l.Player, l.Token
	case l.Found() && !slices.Contains(t.Failed, l.Server):
		if r, ok := d.routeTo(l.Server); ok {
			return r
		}
	case t.Dialled != "" && !slices.Contains(t.Failed, t.Dialled):
		if r, ok := d.routeTo(t.Dialled); ok {
			return r
		}
	}
	return d.Route(ctx, login)
}

// Recognized is a client that has said who it is, on a connection that leads to a server by now.
type Recognized struct {
	Player events.PlayerID
	Name   string
	Server events.HostID
	Trace  Trace
	Lead   Lead // the route that led it there
}

// Redirection is where a client is told to dial again for. Without a server it stays.
type Redirection struct {
	Server events.HostID
	Marker [16]byte // to be announced
	// Code is why a player stays who should be elsewhere.
	Code events.Code
}

// Recognize holds who a client turned out to be against where it was led. Somebody else's route is given
// back to its owner, and the client stays where it is: the server decides whom it lets in. A client that
// belongs elsewhere is to dial again, a bounded number of times. The server has not seen the login yet.
func (d *Dispatcher) Recognize(ctx context.Context, r Recognized) Redirection {
	ctx, cancel := context.WithTimeout(ctx, routePatience)
	defer cancel()
	if l := r.Lead; l.Found() && l.Player != r.Player {
		d.logger.Warn("a route led somebody else: it goes back to its owner",
			"route", shortRoute(l.Route), "how", l.How, "owner", l.Player, "player", r.Player, "server", r.Server)
		if l.Hops < maxHops {
			d.restage(l, l.Hops+1)
		}
		d.unlist(r.Trace, l.Route)
	}
	own, err := d.ownRoute(ctx, r)
	if err != nil {
		d.logger.Warn("a player stays where the connection led", "player", r.Player, "server", r.Server, "error", err)
		return Redirection{Code: events.TransportDown}
	}
	to := reconcile(r.Server, d.view.Player(r.Player).Active, own)
	if to.code != "" {
		d.logger.Warn("a player stays where the connection led", "player", r.Player, "server", r.Server, "code", to.code)
	}
	if to.server == "" {
		return Redirection{Code: to.code}
	}
	if _, known := d.routeTo(to.server); !known {
		return Redirection{Code: events.Unreachable}
	}
	marker, err := d.stage(ctx, staging{player: r.Player, server: to.server, token: to.token, hops: to.hops, remote: r.Trace.Remote})
	if err != nil {
		d.logger.Warn("a player stays where the connection led", "player", r.Player, "server", r.Server, "error", err)
		return Redirection{Code: events.TransportDown}
	}
	d.logger.Info("a player dials again", "player", r.Player, "from", r.Server, "server", to.server, "hops", to.hops)
	return Redirection{Server: to.server, Marker: marker}
}

// ownRoute is what is staged for a player: where to, and how often the player has dialled for it.
type ownRoute struct {
	staged *events.RouteStaged // nil: none can be followed
	entry  events.RouteEntry   // the newest, followed or not
}

// ownRoute takes the player's own route, unless the player has just come by it.
func (d *Dispatcher) ownRoute(ctx context.Context, r Recognized) (own ownRoute, err error) {
	e, err := d.standsAt(ctx, events.Routes, events.PlayerRoutesKey(r.Player))
	list := entriesOf(e.Fact)
	if err != nil || len(list) == 0 {
		return own, err
	}
	own.entry = list[0]
	if r.Lead.Route == own.entry.Route {
		return own, nil
	}
	l, err := d.follows(ctx, own.entry.Route, events.ByPlayer)
	if _, refused := err.(*events.Refusal); err != nil && !refused { //nolint:errorlint // follows gives refusals as they are
		return own, err
	}
	if l.Found() {
		own.staged = &events.RouteStaged{Player: l.Player, Server: l.Server, Token: l.Token, Hops: l.Hops, Until: l.Until}
		own.entry.Hops = max(own.entry.Hops, l.Hops)
	}
	return own, nil
}

// unlist takes a route out of the list of an address: whoever comes from there next is not led by it.
func (d *Dispatcher) unlist(t Trace, route string) {
	if !t.Remote.IsValid() {
		return
	}
	d.amendLater(events.Routes, d.addressKey(t.Remote), func(now events.Fact) (events.Fact, time.Duration) {
		list := entriesOf(now)
		rest := slices.DeleteFunc(slices.Clone(list), func(e events.RouteEntry) bool { return e.Route == route })
		if len(rest) == len(list) {
			return nil, 0
		}
		return &events.RoutesListed{Routes: rest}, addressTTL
	})
}

// again is a decision to let a client dial again; none when the server is empty.
type again struct {
	server events.HostID
	token  events.Token
	hops   int
	code   events.Code
}

// reconcile says where a player belongs who was led to a server: where the transfer that was claimed
// leads, else where the player's own route does. It is pure.
func reconcile(here events.HostID, active *projections.Transfer, own ownRoute) again {
	var to again
	switch {
	case active != nil && active.Phase == projections.Claimed:
		to.server, to.token = active.Destination(), active.Token
	case own.staged != nil:
		to.server, to.token = own.staged.Server, own.staged.Token
	}
	if to.server == "" || to.server == here {
		return again{}
	}
	if own.entry.Route != "" && own.entry.Token == to.token {
		to.hops = own.entry.Hops
	}
	if to.hops++; to.hops > maxHops {
		return again{code: events.RouteBounced}
	}
	return to
}

// Redirector sends a client away over the connection it came by.
type Redirector interface {
	// Redirect tells the client of a connection to dial again, and ends the connection. nil: the
	// client was told. ErrNotHere, ErrNotSent, ErrUnknown.
	Redirect(ctx context.Context, conn uint64, r Redirection) error
}

// connectionOf gives the connection of a session, if this dispatcher's edges have it.
func (d *Dispatcher) connectionOf(session uint64) (held, bool) {
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	for _, h := range d.conns.byID {
		if session != 0 && h.number == session && !h.closed {
			return *h, true
		}
	}
	return held{}, false
}

// redirects gives the connection of a session if this dispatcher's edge can redirect it.
func (d *Dispatcher) redirects(session uint64) (held, bool) {
	h, ok := d.connectionOf(session)
	return h, ok && h.Redirects && d.cfg.Redirector != nil
}

func (d *Dispatcher) canRedirect(session uint64) bool {
	_, ok := d.redirects(session)
	return ok
}

// redial is where a client dials again whose edge reads nothing; "": it came otherwise.
func (d *Dispatcher) redial(session uint64) string {
	h, _ := d.connectionOf(session)
	return h.Redial
}

// redirect carries out a move for which the origin has answered SENT: it has let the player go, and will
// not for an older claim. The route is staged before the client hears of it.
func (d *Dispatcher) redirect(ctx context.Context, h held, t projections.Transfer, marker [16]byte) events.Answer {
	err := d.cfg.Redirector.Redirect(ctx, h.ID, Redirection{Server: t.Destination(), Marker: marker})
	return sendAnswer(err)
}

// stageMove stages the route that a redirected client will follow.
func (d *Dispatcher) stageMove(ctx context.Context, h held, t projections.Transfer) ([16]byte, error) {
	marker, err := d.stage(ctx, staging{player: t.Player, server: t.Destination(), token: t.Token, hops: 1, remote: h.Remote.Addr()})
	if err != nil {
		return marker, fmt.Errorf("redirect of %s: %w", t.Player, err)
	}
	return marker, nil
}
