package sim

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// Network is the world outside: which servers and edges exist, and where an address leads.
type Network struct {
	ctx       context.Context
	reconnect time.Duration // from the transfer packet to the new login

	mu      sync.Mutex
	worlds  map[events.HostID]*World
	edges   map[events.HostID]*Edge
	order   []events.HostID
	clients map[events.PlayerID]*Client
	turn    int
	tasks   sync.WaitGroup
	// Choose picks the edge a reconnecting client reaches (what DNS would do). The default
	// takes the living ones in turn.
	choose func(c *Client, alive []events.HostID) events.HostID
}

// NewNetwork makes an empty network that lives until ctx ends. reconnect is how long a
// client needs from the transfer packet to its next login.
func NewNetwork(ctx context.Context, reconnect time.Duration) *Network {
	return &Network{
		ctx: ctx, reconnect: reconnect, worlds: map[events.HostID]*World{}, edges: map[events.HostID]*Edge{},
		clients: map[events.PlayerID]*Client{},
	}
}

// AddWorld puts a game server on the network.
func (n *Network) AddWorld(w *World) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.worlds[w.id] = w
}

// AddEdge opens a front door that is led by a dispatcher.
func (n *Network) AddEdge(id events.HostID, r Router) *Edge {
	n.mu.Lock()
	defer n.mu.Unlock()
	e := &Edge{net: n, id: id, router: r, conns: map[uint64]*Client{}}
	if n.edges[id] == nil {
		n.order = append(n.order, id)
	}
	n.edges[id] = e
	return e
}

// AddClient makes a player whose client follows transfers.
func (n *Network) AddClient(name string, protocol int) *Client {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := &Client{ID: events.OfflinePlayer(name), Name: name, Protocol: protocol, net: n, changed: make(chan struct{}), follow: true}
	n.clients[c.ID] = c
	return c
}

// World gives a game server, nil when there is none of that name.
func (n *Network) World(id events.HostID) *World {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.worlds[id]
}

// Edge gives a front door.
func (n *Network) Edge(id events.HostID) *Edge {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.edges[id]
}

// ChooseEdge sets which edge reconnecting clients reach.
func (n *Network) ChooseEdge(choose func(c *Client, alive []events.HostID) events.HostID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.choose = choose
}

// Wait blocks until all reconnects have ended. Call it after the network's context has.
func (n *Network) Wait() { n.tasks.Wait() }

// Alive lists the edges that take logins.
func (n *Network) Alive() []events.HostID {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []events.HostID
	for _, id := range n.order {
		if !n.edges[id].isDead() {
			out = append(out, id)
		}
	}
	return out
}

// WorldAddress is the address under which a server of the simulation is known.
func WorldAddress(id events.HostID) string { return string(id) + ".sim:25565" }

// arrive resolves an address as a client would and logs in there, again for a while when
// the door it reached is gone.
func (n *Network) arrive(c *Client, address string) {
	ctx, done := c.begin(n.ctx)
	defer done()
	if !pause(ctx, n.reconnect) {
		return
	}
	host, _, _ := strings.Cut(address, ":")
	label, rest, _ := strings.Cut(host, ".")
	if rest == "sim" {
		if w := n.World(events.HostID(label)); w != nil {
			if err := c.enter(ctx, w, nil, 0); err != nil {
				c.change(func() { c.lost = append(c.lost, err.Error()) })
			}
		}
		return
	}
	token, _ := events.ParseToken(label)
	for range 20 {
		edge := n.pick(c)
		if edge == nil {
			return
		}
		err := edge.login(ctx, c, token)
		if err == nil {
			return
		}
		c.change(func() { c.lost = append(c.lost, err.Error()) })
		if !pause(ctx, time.Second) {
			return
		}
	}
}

func (n *Network) pick(c *Client) *Edge {
	alive := n.Alive()
	if len(alive) == 0 {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.choose != nil {
		return n.edges[n.choose(c, alive)]
	}
	n.turn++
	return n.edges[alive[n.turn%len(alive)]]
}
