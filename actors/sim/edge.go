package sim

import (
	"context"
	"fmt"
	"sync"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Router is the part of a dispatcher that an edge needs.
type Router interface {
	Route(ctx context.Context, l actors.Login) actors.Route
	Opened(c actors.Connection)
	Closed(id uint64, reason string)
}

// Edge is a front door without sockets: it asks its dispatcher where a login goes and
// connects the client there.
type Edge struct {
	net    *Network
	id     events.HostID
	router Router

	mu    sync.Mutex
	dead  bool
	next  uint64
	conns map[uint64]*Client
}

// redials is how many destinations a login tries after the first.
const redials = 3

// login connects a client through this edge, or says why not.
func (e *Edge) login(ctx context.Context, c *Client, token events.Token) error {
	l := actors.Login{Player: c.ID, Name: c.Name, Protocol: c.Protocol, Token: token, Host: c.Host, Address: c.Address}
	for range 1 + redials {
		if e.isDead() {
			return fmt.Errorf("edge %s is gone", e.id)
		}
		r := e.router.Route(ctx, l)
		if r.Server == "" {
			return fmt.Errorf("edge %s refuses: %s", e.id, r.Message)
		}
		err := e.dial(ctx, c, r.Server)
		if err == nil || ctx.Err() != nil {
			return err
		}
		l.Failed = append(l.Failed, r.Server)
	}
	return fmt.Errorf("edge %s reached no server", e.id)
}

func (e *Edge) dial(ctx context.Context, c *Client, server events.HostID) error {
	w := e.net.World(server)
	if w == nil {
		return fmt.Errorf("no server %s", server)
	}
	e.mu.Lock()
	if e.dead {
		e.mu.Unlock()
		return fmt.Errorf("edge %s is gone", e.id)
	}
	e.next++
	id := e.next
	e.conns[id] = c
	e.mu.Unlock()
	e.router.Opened(actors.Connection{ID: id, Name: c.Name, Player: c.ID, Server: server, Protocol: c.Protocol})
	if err := c.enter(ctx, w, e, id); err != nil {
		e.end(id, "not connected")
		return err
	}
	if e.isDead() {
		c.lostEdge(e) // it died while the client was let in
	}
	return nil
}

// end forgets a connection and tells the dispatcher.
func (e *Edge) end(id uint64, reason string) {
	e.mu.Lock()
	_, known := e.conns[id]
	delete(e.conns, id)
	dead := e.dead
	e.mu.Unlock()
	if known && !dead {
		e.router.Closed(id, reason)
	}
}

// Players counts the connections.
func (e *Edge) Players() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.conns)
}

// Kill ends the edge as kill -9 does: connections break, nobody is told.
func (e *Edge) Kill() {
	e.mu.Lock()
	e.dead = true
	gone := make([]*Client, 0, len(e.conns))
	for _, c := range e.conns {
		gone = append(gone, c)
	}
	e.mu.Unlock()
	for _, c := range gone {
		c.lostEdge(e)
	}
}

func (e *Edge) isDead() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dead
}
