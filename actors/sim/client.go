package sim

import (
	"context"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Client is a player with a stock client: it stands on one server, can ask for a move, and
// reconnects when it is told to.
type Client struct {
	ID       events.PlayerID
	Name     string
	Protocol int

	net *Network

	mu       sync.Mutex
	world    *World
	edge     *Edge
	conn     uint64
	server   events.HostID
	position events.Position
	texts    []string
	lost     []string // why connections ended
	changed  chan struct{}
	follow   bool
}

// View is what a client sees of itself at one moment.
type View struct {
	Server   events.HostID // empty while not connected
	Position events.Position
	Texts    []string
	Lost     []string
}

func (c *Client) player() actors.Player { return actors.Player{ID: c.ID, Name: c.Name} }

// Look tells where the client is and what it has read.
func (c *Client) Look() View {
	c.mu.Lock()
	defer c.mu.Unlock()
	return View{Server: c.server, Position: c.position, Texts: append([]string(nil), c.texts...), Lost: append([]string(nil), c.lost...)}
}

// Until blocks until what the client sees satisfies want, or ctx ends. It reports which.
func (c *Client) Until(ctx context.Context, want func(View) bool) bool {
	for {
		c.mu.Lock()
		ch := c.changed
		c.mu.Unlock()
		if want(c.Look()) {
			return true
		}
		select {
		case <-ch:
		case <-ctx.Done():
			return want(c.Look())
		}
	}
}

// Follow sets whether the client reconnects by itself when it is sent elsewhere.
func (c *Client) Follow(yes bool) { c.change(func() { c.follow = yes }) }

// Join connects through an edge, with or without a token. It blocks while the edge holds
// the login.
func (c *Client) Join(ctx context.Context, edge events.HostID, token events.Token) error {
	return c.net.Edge(edge).login(ctx, c, token)
}

// JoinDirect connects to a server without an edge.
func (c *Client) JoinDirect(server events.HostID) error {
	w := c.net.World(server)
	c.attach(w, nil, 0)
	if err := w.connect(c); err != nil {
		c.detach(w)
		return err
	}
	return nil
}

// Ask types the command for a move. region "" is any.
func (c *Client) Ask(region string) {
	c.mu.Lock()
	w := c.world
	c.mu.Unlock()
	if w != nil {
		w.ask(c, region)
	}
}

// Quit disconnects.
func (c *Client) Quit() { c.disconnect("quit") }

func (c *Client) disconnect(reason string) {
	c.mu.Lock()
	w, e, conn := c.world, c.edge, c.conn
	c.world, c.edge, c.conn, c.server = nil, nil, 0, ""
	c.signal()
	c.mu.Unlock()
	if w != nil {
		w.leave(c, reason)
	}
	if e != nil {
		e.end(conn, reason)
	}
}

// attach is called before the server lets the client in.
func (c *Client) attach(w *World, e *Edge, conn uint64) {
	c.change(func() { c.world, c.edge, c.conn, c.server, c.position = w, e, conn, w.id, Spawn })
}

// detach is called when the server did not let the client in after all.
func (c *Client) detach(w *World) {
	c.change(func() {
		if c.world == w {
			c.world, c.edge, c.conn, c.server = nil, nil, 0, ""
		}
	})
}

// sentTo is the transfer packet: the client leaves and reconnects.
func (c *Client) sentTo(from *World, address string) {
	c.mu.Lock()
	there := c.world == from
	follow := c.follow
	c.mu.Unlock()
	if !there {
		return
	}
	c.net.tasks.Go(func() {
		c.disconnect("transfer")
		if !follow || !c.net.pause(c.net.reconnect) {
			return
		}
		c.net.arrive(c, address)
	})
}

// dropped says that the server ended the connection.
func (c *Client) dropped(w *World, reason string) {
	c.mu.Lock()
	there := c.world == w
	c.mu.Unlock()
	if there {
		c.change(func() { c.lost = append(c.lost, reason) })
		c.disconnect(reason)
	}
}

// lostEdge says that the edge broke the connection.
func (c *Client) lostEdge(e *Edge) {
	c.mu.Lock()
	there := c.edge == e
	c.mu.Unlock()
	if there {
		c.change(func() { c.lost = append(c.lost, "connection reset") })
		c.disconnect("connection reset")
	}
}

func (c *Client) placed(server events.HostID, at events.Position) {
	c.change(func() {
		if c.server == server {
			c.position = at
		}
	})
}

func (c *Client) heard(text string) { c.change(func() { c.texts = append(c.texts, text) }) }

func (c *Client) change(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
	c.signal()
}

// signal must be called with the lock held.
func (c *Client) signal() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// pause waits, or tells that the network ended first.
func (n *Network) pause(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-n.ctx.Done():
		return false
	}
}
