package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/landfall/landfall/actors/edge/vintage"
)

// Clients of Vintage Story, and of other games over plain TCP, do not say in their first bytes who they are,
// and the server that answers those bytes is the only one that can let them in. So a server is chosen by
// what they came by (a marker, an address), before it sees a byte, and who they are is learnt as they
// pass by.

// Protocols of such games, as Arrival.Protocol gives them. Those of Minecraft are below, its snapshots above.
const (
	ProtocolVintageStory = 0x20000001
	ProtocolTCP          = 0x20000002
)

func (c *client) tracer() Tracer { return c.s.cfg.Router.(Tracer) } // Validate has looked

// serveLate leads one client of such a game to a server.
func (c *client) serveLate(ctx context.Context) {
	e := &endable{Conn: c.conn}
	release := onDone(ctx, e.end)
	var o prelude
	err := c.openLate(e, &o)
	release()
	switch {
	case err != nil:
		c.countFailure(ctx, err)
	case o.first.Kind == vintage.ServerQuery:
		c.answerQuery()
	case ctx.Err() == nil:
		c.lead(ctx, o)
	}
}

func (c *client) openLate(conn net.Conn, o *prelude) error {
	if c.trusted {
		if err := conn.SetDeadline(time.Now().Add(c.s.cfg.OpeningTimeout)); err != nil {
			return err
		}
		if err := c.believeProxy(); err != nil {
			return err
		}
	}
	return o.open(conn, c.r, c.s.cfg.Game, c.s.cfg.FirstFrameWait, c.s.cfg.OpeningTimeout)
}

// answerQuery shows a server list what the whole network is.
func (c *client) answerQuery() {
	s := c.s.status()
	_ = c.conn.SetDeadline(time.Now().Add(lingerTime)) // fails on a closed connection, as the write then does
	_, _ = c.conn.Write(vintage.AppendQueryAnswer(nil, vintage.Answer{
		Name: s.Description, MOTD: s.Description, Players: s.Online, Max: s.Max, Version: s.Version,
	}))
}

// lead asks the router for a server and passes the client on, again while nobody has answered it.
func (c *client) lead(ctx context.Context, o prelude) {
	a := c.lateArrival(o)
	defer c.tracer().Gone(c.id)
	for {
		held, cancel := context.WithTimeoutCause(ctx, c.s.cfg.RouteTimeout, errSlow)
		d := c.s.cfg.Router.Route(held, a)
		switch {
		case held.Err() != nil:
			c.refuse(a, d, reasonOf(held))
		case d.Server == "":
			c.refuse(a, d, errRefused)
		default:
			backend, err := c.dialLate(held, d)
			if err == nil {
				cancel()
				c.relayTo(ctx, a, d, o, backend)
				return
			}
			c.s.counts.undialled.Add(1)
			c.s.log.Warn("backend not reachable", "conn", c.id, "err", err)
			if a.Failed = append(a.Failed, d.Server); len(a.Failed) <= c.s.cfg.Redials {
				cancel()
				continue
			}
			c.refuse(a, d, errUnreachable)
		}
		cancel()
		return
	}
}

func (c *client) lateArrival(o prelude) Arrival {
	a := Arrival{
		ConnID: c.id, Name: o.first.Name, NativeID: o.first.UID, Remote: c.remote, Game: c.s.cfg.Game, Marker: o.marker, StandsFor: c.s.cfg.StandsFor,
		Protocol: ProtocolTCP,
	}
	if a.Game == VintageStory {
		a.Protocol = ProtocolVintageStory
	}
	return a
}

// dialLate connects to a server. It sees the PROXY header, if it wants one, and nothing else yet.
func (c *client) dialLate(ctx context.Context, d Decision) (*net.TCPConn, error) {
	conn, err := c.dial(ctx, d)
	if err != nil || !d.ProxyV2 {
		return conn, err
	}
	if _, err := conn.Write(AppendProxyV2(nil, c.remote, c.local)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("PROXY header to server %s: %w", d.Server, err)
	}
	return conn, nil
}

func (c *client) lateConnection(a Arrival, d Decision) Connection {
	return Connection{
		ConnID: c.id, Name: a.Name, Server: d.Server, Protocol: a.Protocol, Remote: a.Remote, Dialled: c.dialled, Game: a.Game, NativeID: a.NativeID,
	}
}

// relayTo passes the client on to a server that has accepted.
func (c *client) relayTo(ctx context.Context, a Arrival, d Decision, o prelude, backend *net.TCPConn) {
	if c.s.cfg.Game == VintageStory && !o.opaque {
		c.relayFrames(ctx, a, d, o, backend)
		return
	}
	l := &link{TCPConn: backend, known: c.lateConnection(a, d)}
	_ = c.conn.SetDeadline(time.Time{}) // fails on a closed connection, as the copying then does
	c.s.cfg.Router.Opened(l.known)
	if _, err := backend.Write(o.frames.Rest()); err != nil {
		backend.Close()
		c.s.cfg.Router.Closed(l.known, ClosedByBackend)
		return
	}
	c.play(ctx, l)
}

// farewell is what ends a connection on which the server has said nothing yet.
func (s *Server) farewell(text string) []byte {
	switch s.cfg.Game {
	case VintageStory:
		return vintage.AppendDisconnect(nil, text)
	case TCP:
		return nil
	case Minecraft:
	}
	return appendDisconnect(nil, text)
}

// How a redirect ends that has not reached the client.
var (
	// ErrNoConnection: this server has no such connection, or it has ended.
	ErrNoConnection = errors.New("edge: no such connection")
	// ErrNotRedirected: the client was not told, and will not be.
	ErrNotRedirected = errors.New("edge: the redirect was not sent")
	// ErrRedirectUnknown: the client may have been told.
	ErrRedirectUnknown = errors.New("edge: the redirect may have been sent")
)

// Redirect tells a client of Vintage Story to dial again, and ends its connection. It returns when the client
// was told: as soon as the frame that the server is sending has passed.
func (s *Server) Redirect(ctx context.Context, connID uint64, to Again) error {
	s.mu.Lock()
	r := s.late[connID]
	s.mu.Unlock()
	if r == nil {
		return ErrNoConnection
	}
	return r.say(ctx, s.redirectFrame(to))
}

func (s *Server) redirectFrame(to Again) []byte {
	return vintage.AppendRedirect(nil, to.Name, vintage.HostOf(or(to.Address, s.cfg.RedirectAddress)))
}
