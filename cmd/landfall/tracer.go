package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/actors/edge/marker"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// tracer is what an edge asks whose clients say late who they are: the front, and the routes that such clients follow.
type tracer struct {
	*front

	listener network.Listener
}

var (
	_ edge.Tracer       = (*tracer)(nil)
	_ actors.Redirector = (*front)(nil)
)

// lateEdge is such an edge, and its entry in the file.
type lateEdge struct {
	*edge.Server

	listener network.Listener
}

// Route implements edge.Router.
func (t *tracer) Route(ctx context.Context, a edge.Arrival) edge.Decision {
	d := t.dispatches()
	if d == nil {
		return t.doors.inTurn(a.Game, a.Failed, string(events.TransportDown))
	}
	trace := traceOf(a)
	return t.decide(a, d.RouteTrace(ctx, trace, t.leadOf(ctx, d, a.ConnID, trace)), false)
}

// dispatches gives the dispatcher once it sees the log. (Such an edge is never a router's.)
func (f *front) dispatches() *actors.Dispatcher {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dispatcher
}

// leadOf gives the route that a connection follows; it is looked for once.
func (f *front) leadOf(ctx context.Context, d *actors.Dispatcher, conn uint64, trace actors.Trace) actors.Lead {
	f.mu.Lock()
	l, known := f.leads[conn]
	f.mu.Unlock()
	if known {
		return l
	}
	l = d.FindRoute(ctx, trace)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leads[conn] = l
	return l
}

func traceOf(a edge.Arrival) actors.Trace {
	t := actors.Trace{
		Marker: a.Marker, Player: nativePlayer(a.Game, a.NativeID), Name: a.Name, Remote: a.Remote.Addr(), Protocol: int(a.Protocol),
		Dialled: events.HostID(a.StandsFor),
	}
	for _, id := range a.Failed {
		t.Failed = append(t.Failed, events.HostID(id))
	}
	return t
}

// nativePlayer is the network's id of a player of a game with ids of its own; zero when the player is not known.
func nativePlayer(game edge.Game, native string) events.PlayerID {
	if native == "" {
		return events.PlayerID{}
	}
	return events.NativePlayer(string(game), native)
}

// Recognize implements edge.Tracer.
func (t *tracer) Recognize(ctx context.Context, a edge.Arrival, server string) edge.Again {
	d := t.dispatches()
	if d == nil {
		return edge.Again{}
	}
	t.mu.Lock()
	l := t.leads[a.ConnID]
	delete(t.leads, a.ConnID) // it is not given back any more: Recognize does what is to be done
	t.mu.Unlock()
	r := d.Recognize(ctx, actors.Recognized{
		Player: nativePlayer(a.Game, a.NativeID), Name: a.Name, Server: events.HostID(server), Trace: traceOf(a), Lead: l,
	})
	if r.Server == "" {
		return edge.Again{}
	}
	return again(t.net, t.listener, r)
}

// Opened implements edge.Router. Where nothing is read the client's own server tells it to dial again, and where.
func (t *tracer) Opened(c edge.Connection) {
	conn := connectionOf(c)
	if c.Game == edge.TCP {
		conn.Redial = redirectAddress(t.net, t.listener)
	}
	t.opens(conn, c.Dialled)
}

// LetIn implements edge.Tracer.
func (t *tracer) LetIn(c edge.Connection) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.letIn[c.ConnID] = c.NativeID
	if t.dispatcher != nil {
		t.dispatcher.LetIn(connectionOf(c), c.NativeID)
	}
}

// Gone implements edge.Tracer: who has not said who it is has used no route up.
func (t *tracer) Gone(conn uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.leads[conn]
	delete(t.leads, conn)
	if l.Found() && t.dispatcher != nil {
		t.dispatcher.GiveBack(l)
	}
}

// Status implements edge.Router: the players of this game alone.
func (t *tracer) Status() edge.Status {
	protocol, version := actors.ProtocolTCP, ""
	if t.listener.Game == string(edge.VintageStory) {
		protocol = actors.ProtocolVintageStory
	}
	s := t.status(func(b *projections.Backend) bool {
		if b.ProtocolMin != protocol {
			return false
		}
		_, version, _ = strings.Cut(b.Game, " ")
		return true
	})
	if version != "" {
		s.Version = version // a client compares it with its own
	}
	return s
}

// Redirect implements actors.Redirector.
func (f *front) Redirect(ctx context.Context, conn uint64, r actors.Redirection) error {
	for _, e := range f.late {
		err := e.Server.Redirect(ctx, conn, again(f.net, e.listener, r))
		switch {
		case err == nil:
			return nil
		case errors.Is(err, edge.ErrNotRedirected):
			return fmt.Errorf("%w: %w", actors.ErrNotSent, err)
		case errors.Is(err, edge.ErrRedirectUnknown):
			return fmt.Errorf("%w: %w", actors.ErrUnknown, err)
		}
	}
	return actors.ErrNotHere
}

// again is what a client is told: the name of the server with the marker's id, and where to dial. That is the
// server's own address on this host, if it has one: a client that knows no markers is led by it.
func again(n *network.Network, l network.Listener, r actors.Redirection) edge.Again {
	out := edge.Again{Name: marker.Announce(string(r.Server), r.Marker)}
	for address, id := range l.Dialled {
		if id == string(r.Server) {
			host, _, _ := net.SplitHostPort(redirectAddress(n, l)) // it is one: the file was checked
			_, port, _ := net.SplitHostPort(address)
			out.Address = net.JoinHostPort(host, port)
		}
	}
	return out
}

// redirectAddress is an edge as its players know it.
func redirectAddress(n *network.Network, l network.Listener) string {
	if l.RedirectAddress != "" {
		return l.RedirectAddress
	}
	_, port, _ := net.SplitHostPort(l.Listen) // it is one: the file was checked
	return net.JoinHostPort(n.Edge.Domain, port)
}
