package sim

import (
	"context"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// grounds are the game servers of a Chronicle: how many players stand where, what is promised,
// and what their heartbeats and those of the dispatchers say of it. Safe for concurrent use.
type grounds struct {
	beating sync.Mutex        // one round of heartbeats at a time
	beats   uint64            // rounds
	prev    map[string]uint64 // last heartbeat of each key

	mu      sync.Mutex
	servers map[events.HostID]*ground
	order   []events.HostID
	pledges *projections.Pledges
	fleet   *projections.Fleet
}

// ground is one game server.
type ground struct {
	self        actors.Identity
	players     int
	seats       int
	promise     uint64 // number of the last one
	outstanding int
	dry         bool // it has no coordinates for now
}

// keptByGround is how many coordinates a game server of a Chronicle keeps.
const keptByGround = 64

func newGrounds(cfg ChronicleConfig) *grounds {
	g := &grounds{
		prev: map[string]uint64{}, servers: map[events.HostID]*ground{}, order: cfg.Backends,
		pledges: projections.NewPledges(), fleet: (&projections.Fleet{}).WithSight(true, cfg.Identity(events.SourceBackend, cfg.Backends[0]).Now()),
	}
	for _, id := range cfg.Backends {
		g.servers[id] = &ground{self: cfg.Identity(events.SourceBackend, id), seats: 2 * cfg.Players / len(cfg.Backends)}
	}
	return g
}

// rank chooses for a wish by the newest heartbeats.
func (g *grounds) rank(w events.Wish, home events.HostID, self actors.Identity) ([]projections.Spot, events.Decision) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return actors.Policy{}.Rank(w, actors.Outlook{
		Fleet: g.fleet, Home: home, Now: self.Now(), Stale: time.Hour, // nobody is silent here, however slow the disk
		Pledged: func(b *projections.Backend, region string) int { return g.pledges.Count(&b.BackendBeat, region) },
	})
}

// promise gives a coordinate of a spot, as its server would answer.
func (g *grounds) promise(at projections.Spot, ttlMs int64, d events.Decision) events.Reserved {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.servers[at.Server]
	s.promise++
	s.outstanding++
	f := events.Reserved{
		Server: at.Server, Incarnation: s.self.Source.Incarnation, Promise: s.promise, Region: at.Region, TTLMs: ttlMs, Decision: d,
		At: events.Position{World: "minecraft:overworld", X: 500.5 + float64(16*s.promise%9000), Y: 64 + float64(s.promise%40), Z: 0.5 + float64(s.promise%9000)},
	}
	g.pledges.Reserved(&f)
	return f
}

// freed says that a promise has ended.
func (g *grounds) freed(server events.HostID) { g.change(server, func(s *ground) { s.outstanding-- }) }

// moved says that a player stands on a server, or does no longer.
func (g *grounds) moved(server events.HostID, by int) {
	g.change(server, func(s *ground) { s.players += by })
}

func (g *grounds) change(server events.HostID, how func(*ground)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	how(g.servers[server])
}

// lifeOf is the life of a game server.
func (g *grounds) lifeOf(server events.HostID) events.Incarnation {
	return g.servers[server].self.Source.Incarnation
}

// beat lands one heartbeat of every host.
func (c *Chronicle) beat(ctx context.Context) error {
	g := c.grounds
	g.beating.Lock()
	defer g.beating.Unlock()
	g.beats++
	for i, id := range g.order {
		f := g.backendBeat(i, id)
		if err := c.land(ctx, g.servers[id].self, events.BackendKey(id), f); err != nil {
			return err
		}
	}
	for _, p := range c.proxies {
		f := &events.ProxyBeat{
			Proxy: p.Source.ID, Incarnation: p.Source.Incarnation, State: events.Ready, Version: "chronicle", Schema: events.SchemaVersion,
			Kinds: []events.SessionKind{c.cfg.Kind}, Players: c.cfg.Players / len(c.proxies), InFlight: c.cfg.Writers / len(c.proxies), Folded: c.count.written.Load(),
		}
		if err := c.land(ctx, p, events.ProxyKey(p.Source.ID), f); err != nil {
			return err
		}
	}
	return nil
}

// dryFor is how many heartbeats a server goes without coordinates, one server after the other.
const dryFor = 4

func (g *grounds) backendBeat(i int, id events.HostID) *events.BackendBeat {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.servers[id]
	s.dry = int(g.beats/dryFor)%(3*len(g.order)) == 3*i+1 //nolint:gosec // a count of rounds
	kept := max(keptByGround-s.outstanding, 0)
	if s.dry {
		kept = 0
	}
	load := float64(s.players) / float64(s.seats)
	heap, heapMax := int64(load*6e9)+1e9, int64(8e9)
	return &events.BackendBeat{
		Server: id, Incarnation: s.self.Source.Incarnation, State: events.Ready, Accepting: true, Adapter: "sim", Version: "chronicle", Schema: events.SchemaVersion,
		Game: "simulated", Advertise: WorldAddress(id), Public: WorldAddress(id), Players: s.players, MaxPlayers: s.seats, Promise: s.promise, Outstanding: max(s.outstanding, 0),
		Regions: []events.RegionBeat{{Name: RegionOf(id), World: "minecraft:overworld", Kept: kept, Size: keptByGround}},
		MSPT:    new(12 + 30*load), TPS: new(20.0), HeapUsed: &heap, HeapMax: &heapMax,
	}
}

// land appends a heartbeat, and takes it into the snapshot that choices are made from.
func (c *Chronicle) land(ctx context.Context, by actors.Identity, key string, f events.Fact) error {
	g := c.grounds
	e, err := c.write(ctx, by, key, events.TransferID{}, g.prev[key], f)
	if err != nil {
		return err
	}
	g.prev[key] = e.Seq
	g.mu.Lock()
	defer g.mu.Unlock()
	if beat, ok := f.(*events.BackendBeat); ok {
		g.pledges.Beat(beat)
	}
	g.fleet, _ = g.fleet.Apply(e, e.Time)
	return nil
}
