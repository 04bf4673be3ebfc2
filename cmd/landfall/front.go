package main

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// lead is who leads logins: a dispatcher, or a router, which knows only tokens.
type lead interface {
	Route(ctx context.Context, l actors.Login) actors.Route
	Drained() (drain *events.DrainSet, changed <-chan struct{})
	View() *projections.View
}

// front is what the edges of this process ask: its lead once there is one, the doors of
// network.yml before and without it.
type front struct {
	net   *network.Network
	doors *doors
	live  *live
	ready func() // called once, when there is a lead; may be nil

	mu         sync.Mutex
	lead       lead
	dispatcher *actors.Dispatcher           // that lead, nil when it is a router
	open       map[uint64]actors.Connection // spliced now
	letIn      map[uint64]string            // of those: let in by a server that does not see its players, with their native ids
	leads      map[uint64]actors.Lead       // the routes that connections follow whose players have not said who they are
	late       []lateEdge
}

var _ edge.Router = (*front)(nil)

func newFront(h *host) *front {
	return &front{net: h.net, doors: newDoors(h.net, h.live), live: h.live, open: map[uint64]actors.Connection{}, letIn: map[uint64]string{}, leads: map[uint64]actors.Lead{}}
}

// attach hands the front over to a lead; a dispatcher gets the connections that are open already.
func (f *front) attach(l lead) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lead = l
	f.dispatcher, _ = l.(*actors.Dispatcher)
	if f.ready != nil {
		f.ready()
	}
	if f.dispatcher == nil {
		return
	}
	for _, c := range f.open {
		f.dispatcher.Opened(c)
		if native, in := f.letIn[c.ID]; in {
			f.dispatcher.LetIn(c, native)
		}
	}
}

func (f *front) leader() lead {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lead
}

// players counts the connections that are spliced.
func (f *front) players() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.open)
}

// Route implements edge.Router.
func (f *front) Route(ctx context.Context, a edge.Arrival) edge.Decision {
	l := f.leader()
	if l == nil {
		return f.doors.inTurn(a.Game, a.Failed, string(events.TransportDown))
	}
	_, router := l.(*actors.Router)
	return f.decide(a, l.Route(ctx, loginOf(a)), router)
}

func (f *front) decide(a edge.Arrival, r actors.Route, router bool) edge.Decision {
	switch {
	case r.Server != "":
		return f.doors.to(string(r.Server), r.Address, string(r.Code))
	case router && !f.hasFallback(a), r.Code == events.TransportDown:
		return f.doors.inTurn(a.Game, a.Failed, string(r.Code))
	}
	return f.refuse(a, r)
}

// hasFallback tells that the file names a server for those whom nobody takes, which this
// login has not tried.
func (f *front) hasFallback(a edge.Arrival) bool {
	last := f.net.Edge.Fallback
	return last != "" && f.net.Hosts[last].Game == string(a.Game) && !slices.Contains(a.Failed, last)
}

// refuse sends a login that nobody takes to edge.fallback, if the file names one.
func (f *front) refuse(a edge.Arrival, r actors.Route) edge.Decision {
	if last := f.net.Edge.Fallback; f.hasFallback(a) {
		return f.doors.to(last, f.net.Hosts[last].Advertise, string(r.Code))
	}
	return edge.Decision{Refuse: f.live.text(r.Message, r.Args()), Code: string(r.Code)}
}

func loginOf(a edge.Arrival) actors.Login {
	l := actors.Login{Player: a.Player, Name: a.Name, Protocol: int(a.Protocol), Host: a.Host, Address: a.Remote.Addr()}
	if t, err := events.ParseToken(a.TokenLabel); err == nil {
		l.Token = t // a label that is none is a host name like any other
	}
	for _, id := range a.Failed {
		l.Failed = append(l.Failed, events.HostID(id))
	}
	return l
}

// Opened implements edge.Router.
func (f *front) Opened(c edge.Connection) {
	f.opens(connectionOf(c), c.Dialled)
}

func (f *front) opens(conn actors.Connection, dialled time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[conn.ID] = conn
	if f.dispatcher != nil {
		f.dispatcher.NoteRTT(conn.Server, dialled)
		f.dispatcher.Opened(conn)
	}
}

func connectionOf(c edge.Connection) actors.Connection {
	conn := actors.Connection{ID: c.ConnID, Name: c.Name, Player: c.Player, Server: events.HostID(c.Server), Protocol: int(c.Protocol)}
	if c.Game != edge.Minecraft {
		conn.Player, conn.Redirects, conn.Remote = nativePlayer(c.Game, c.NativeID), c.Game == edge.VintageStory, c.Remote
	}
	return conn
}

// Closed implements edge.Router.
func (f *front) Closed(c edge.Connection, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, c.ConnID)
	delete(f.letIn, c.ConnID)
	if f.dispatcher != nil {
		f.dispatcher.Closed(c.ConnID, reason)
	}
}

// Status implements edge.Router: the players of all servers that beat.
func (f *front) Status() edge.Status {
	return f.status(func(*projections.Backend) bool { return true })
}

// status is that of some of the servers.
func (f *front) status(counts func(*projections.Backend) bool) edge.Status {
	s := edge.Status{
		Description: f.live.text("status.line", []events.Arg{{Name: "network", Value: f.net.Network.Name}}),
		Version:     "Landfall",
	}
	l := f.leader()
	if l == nil {
		s.Online = f.players()
		s.Max = s.Online + 1
		return s
	}
	for _, b := range l.View().Fleet().Backends {
		if counts(b) && time.Since(b.Seen) < f.live.now().net.LoadBalancer.StaleAfterMs.Duration() {
			s.Online += b.Players
			s.Max += b.MaxPlayers
		}
	}
	return s
}

// listen opens the edges of this process: their ports are taken, nobody is let in yet.
func (h *host) listen(f *front) (servers []*edge.Server, err error) {
	limits := h.net.Edge.Limits
	trusted, err := prefixes(h.net.Edge.TrustedProxies)
	if err != nil {
		return nil, err
	}
	for _, l := range h.self.Proxy.Edges {
		for _, cfg := range h.edgesOf(f, l, edge.Config{
			Log: h.log, TrustedProxies: trusted, Game: edge.Game(l.Game),
			Pending: limits.Opening, PendingPerIP: limits.OpeningPerSource, PerSecond: limits.NewPerSecond,
		}) {
			s, err := edge.New(cfg)
			if err != nil {
				closeAll(servers)
				return nil, err
			}
			h.live.follow(func(now *changeable) { s.SetTexts(now.edgeTexts()) })
			h.log.Info("edge", "game", l.Game, "listen", s.Addr().String(), "domain", h.net.Edge.Domain, "identity", h.net.Edge.Identity)
			servers = append(servers, s)
			if l.SaysLate() {
				f.late = append(f.late, lateEdge{s, l})
			}
		}
	}
	return servers, nil
}

// edgesOf are the listening edges that an entry of the file stands for.
func (h *host) edgesOf(f *front, l network.Listener, c edge.Config) []edge.Config {
	c.Listen, c.Router, c.Domain, c.Identity = l.Listen, f, h.net.Edge.Domain, edge.Identity(h.net.Edge.Identity)
	if !l.SaysLate() {
		return []edge.Config{c}
	}
	c.Router, c.RedirectAddress = &tracer{front: f, listener: l}, redirectAddress(h.net, l)
	all := []edge.Config{c}
	for _, address := range slices.Sorted(maps.Keys(l.Dialled)) {
		c.Listen, c.StandsFor = address, l.Dialled[address]
		all = append(all, c)
	}
	return all
}

func closeAll(servers []*edge.Server) {
	for _, s := range servers {
		_ = s.Close() // a port that was never used
	}
}

func prefixes(cidrs []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, c := range cidrs {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, fmt.Errorf("edge.trustedProxies: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
