package sim

import (
	"context"
	"fmt"
	"net/netip"
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
	Host     string     // what it dials
	Address  netip.Addr // where it comes from, as edges see it; the zero value is nowhere

	net *Network

	mu       sync.Mutex
	world    *World
	edge     *Edge
	conn     uint64
	visits   uint64 // numbers its stays on servers
	server   events.HostID
	position events.Position
	texts    []string
	lost     []string // why connections ended
	history  []Moment
	changed  chan struct{}
	follow   bool
	entry    *entry // the login under way, or the last one
}

// entry is one login of a client. A client has one at a time.
type entry struct {
	end  context.CancelFunc // gives up
	done chan struct{}      // closed when it is over
}

// Moment is one thing that happened to a client: it was let in to a server, it lost its
// connection (Server and Text are empty), or it read a text.
type Moment struct {
	At     time.Time
	Server events.HostID
	Edge   events.HostID // over which it was let in; empty without one
	Text   string
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

// History is what happened to the client, oldest first.
func (c *Client) History() []Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Moment(nil), c.history...)
}

// Join connects through an edge, with or without a token. It blocks while the edge holds
// the login, and ends whatever connection or login the client had before.
func (c *Client) Join(ctx context.Context, edge events.HostID, token events.Token) error {
	ctx, done := c.begin(ctx)
	defer done()
	return c.net.Edge(edge).login(ctx, c, token)
}

// JoinDirect connects to a server without an edge.
func (c *Client) JoinDirect(server events.HostID) error {
	ctx, done := c.begin(c.net.ctx)
	defer done()
	return c.enter(ctx, c.net.World(server), nil, 0)
}

// begin starts a login after the one before it, if any, has given up. done must be called.
func (c *Client) begin(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	e := &entry{end: cancel, done: make(chan struct{})}
	c.mu.Lock()
	before := c.entry
	c.entry = e
	c.mu.Unlock()
	if before != nil {
		before.end()
		<-before.done
	}
	c.leave("another login", func() bool { return true })
	return ctx, func() {
		cancel()
		close(e.done)
	}
}

// enter connects to a server. An error means that the client is not there.
func (c *Client) enter(ctx context.Context, w *World, e *Edge, conn uint64) error {
	c.mu.Lock()
	if err := ctx.Err(); err != nil {
		c.mu.Unlock()
		return fmt.Errorf("login of %s: %w", c.Name, err)
	}
	c.visits++
	number := c.visits
	c.world, c.edge, c.conn, c.server, c.position = w, e, conn, w.id, Spawn
	in := Moment{Server: w.id}
	if e != nil {
		in.Edge = e.id
	}
	c.note(in)
	c.mu.Unlock()
	here := func() bool { return c.world == w && c.visits == number }
	if err := w.connect(c, number); err != nil {
		c.leave(err.Error(), here)
		return err
	}
	c.mu.Lock()
	stays := here()
	c.mu.Unlock()
	if !stays {
		w.leave(c, number, "gone again")
		return fmt.Errorf("login of %s: the client has gone", c.Name)
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

// Cancel takes back what was asked for.
func (c *Client) Cancel() {
	c.mu.Lock()
	w := c.world
	c.mu.Unlock()
	if w != nil {
		w.cancel(c)
	}
}

// Quit disconnects, and gives up a login that is under way.
func (c *Client) Quit() {
	c.mu.Lock()
	if c.entry != nil {
		c.entry.end()
	}
	c.mu.Unlock()
	c.leave("quit", func() bool { return true })
}

// leave ends the connection that the client has, if that is the one meant. It reports
// whether there was one to end.
func (c *Client) leave(reason string, meant func() bool) bool {
	c.mu.Lock()
	w, e, conn, number := c.world, c.edge, c.conn, c.visits
	if w == nil || !meant() {
		c.mu.Unlock()
		return false
	}
	c.world, c.edge, c.conn, c.server = nil, nil, 0, ""
	c.note(Moment{})
	c.mu.Unlock()
	w.leave(c, number, reason)
	if e != nil {
		e.end(conn, reason)
	}
	return true
}

// sentTo is the transfer packet: the client leaves and reconnects. It reports whether the
// client was there to get it.
func (c *Client) sentTo(from *World, address string) bool {
	c.mu.Lock()
	there, number, follow := c.world == from, c.visits, c.follow
	c.mu.Unlock()
	if !there {
		return false
	}
	c.net.tasks.Go(func() {
		left := c.leave("transfer", func() bool { return c.world == from && c.visits == number })
		if left && follow {
			c.net.arrive(c, address)
		}
	})
	return true
}

// dropped says that the server ended the connection.
func (c *Client) dropped(w *World, reason string) {
	c.broken(reason, func() bool { return c.world == w })
}

// lostEdge says that the edge broke the connection.
func (c *Client) lostEdge(e *Edge) {
	c.broken("connection reset", func() bool { return c.edge == e })
}

func (c *Client) broken(reason string, meant func() bool) {
	if c.leave(reason, meant) {
		c.change(func() { c.lost = append(c.lost, reason) })
	}
}

func (c *Client) placed(server events.HostID, at events.Position) {
	c.change(func() {
		if c.server == server {
			c.position = at
		}
	})
}

func (c *Client) heard(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.texts = append(c.texts, text)
	c.note(Moment{Server: c.server, Text: text})
}

// note must be called with the lock held.
func (c *Client) note(m Moment) {
	m.At = time.Now()
	c.history = append(c.history, m)
	c.signal()
}

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

// pause waits, or tells that ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
