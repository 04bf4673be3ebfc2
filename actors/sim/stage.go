package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// domain is where the clients of a simulated network reconnect.
const domain = "play.sim.invalid"

// StageConfig makes a Stage.
type StageConfig struct {
	Proxies  []events.HostID
	Backends []events.HostID
	Keep     int           // coordinates each backend keeps ready
	Seats    int           // players each backend takes
	Tick     time.Duration // what an act on a game server costs
	// Shape replaces Keep and Seats for single backends; nil: for none.
	Shape func(id events.HostID) Shape
	// Line says how players wait, and its pace is that of every backend; the zero value: as shipped.
	Line actors.LineRules
	// Raised is called when a part of the network works, before the next one is begun; nil: nobody
	// wants to know.
	Raised func(ctx context.Context, part Part)
	// Reconnect is what a client needs from the transfer packet to its next login.
	Reconnect time.Duration
	Timing    actors.Timing
	// Connect gives the connection of one host; the caller closes it after Run.
	Connect  func(ctx context.Context, kind events.SourceKind, id events.HostID) (Conn, error)
	Identity func(kind events.SourceKind, id events.HostID) actors.Identity
	Logger   *slog.Logger
	Version  string
}

// Shape is what a backend has to offer.
type Shape struct {
	Seats, Keep int  // without anything to keep it is a lobby
	Down        bool // until its world is restarted
}

// Part is a role of a network.
type Part string

// The parts of a stage, in the order in which they are begun.
const (
	BackendsUp Part = "backends"
	ProxiesUp  Part = "proxies"
)

func (cfg *StageConfig) shape(id events.HostID) Shape {
	if cfg.Shape != nil {
		return cfg.Shape(id)
	}
	return Shape{Seats: cfg.Seats, Keep: cfg.Keep}
}

func (cfg *StageConfig) raised(ctx context.Context, part Part) {
	if cfg.Raised != nil {
		cfg.Raised(ctx, part)
	}
}

// Stage is a whole simulated network: its hosts run the real dispatchers and backends.
type Stage struct {
	cfg   StageConfig
	net   *Network
	ready chan struct{}

	mu      sync.Mutex
	proxies map[events.HostID]*proxy
	worlds  map[events.HostID]*World
}

// proxy is one dispatcher with its edge.
type proxy struct {
	dispatcher *actors.Dispatcher
	edge       *Edge
	cable      *cable
	end        context.CancelFunc
	dead       bool
}

// NewStage makes a network; Run brings it to life. The clients live until ctx ends.
func NewStage(ctx context.Context, cfg StageConfig) *Stage {
	return &Stage{
		cfg: cfg, net: NewNetwork(ctx, cfg.Reconnect), ready: make(chan struct{}),
		proxies: map[events.HostID]*proxy{}, worlds: map[events.HostID]*World{},
	}
}

// RegionOf is the one region that a simulated backend offers.
func RegionOf(backend events.HostID) string { return "region-of-" + string(backend) }

// Run runs every host until ctx ends, or one of them fails. It returns when all have ended.
func (s *Stage) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	failed := make(chan error, len(s.cfg.Proxies)+len(s.cfg.Backends))
	spawn := func(what string, run func(context.Context) error, ctx context.Context) {
		wg.Go(func() {
			if err := run(ctx); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("%s: %w", what, err)
				cancel()
			}
		})
	}
	err := s.raise(ctx, spawn)
	if err != nil {
		cancel()
	} else {
		close(s.ready)
	}
	wg.Wait()
	close(failed)
	for e := range failed {
		err = errors.Join(err, e)
	}
	return err
}

// raise starts every host and waits until all of them can work.
func (s *Stage) raise(ctx context.Context, spawn func(string, func(context.Context) error, context.Context)) error {
	for _, id := range s.cfg.Backends {
		b, err := s.addBackend(ctx, id)
		if err != nil {
			return err
		}
		spawn(string(id), b.Run, ctx)
	}
	s.cfg.raised(ctx, BackendsUp)
	for _, id := range s.cfg.Proxies {
		p, hostCtx, err := s.addProxy(ctx, id)
		if err != nil {
			return err
		}
		spawn(string(id), p.dispatcher.Run, hostCtx)
	}
	if err := s.awaitReady(ctx); err != nil {
		return err
	}
	s.cfg.raised(ctx, ProxiesUp)
	return nil
}

func (s *Stage) addProxy(ctx context.Context, id events.HostID) (*proxy, context.Context, error) {
	conn, err := s.cfg.Connect(ctx, events.SourceEdge, id)
	if err != nil {
		return nil, nil, fmt.Errorf("connect %s: %w", id, err)
	}
	p := &proxy{cable: &cable{Conn: conn}}
	p.dispatcher, err = actors.NewDispatcher(actors.DispatcherConfig{
		Identity: s.cfg.Identity(events.SourceEdge, id), Log: p.cable, Bus: p.cable, Logger: s.cfg.Logger, Timing: s.cfg.Timing, Line: s.cfg.Line,
		Kind: events.KindEdge, Domain: domain, Port: 25565, Players: func() int { return p.edge.Players() }, Version: s.cfg.Version,
	})
	if err != nil {
		return nil, nil, err
	}
	p.edge = s.net.AddEdge(id, p.dispatcher)
	hostCtx, end := context.WithCancel(ctx)
	p.end = end
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proxies[id] = p
	return p, hostCtx, nil
}

func (s *Stage) addBackend(ctx context.Context, id events.HostID) (*actors.Backend, error) {
	conn, err := s.cfg.Connect(ctx, events.SourceBackend, id)
	if err != nil {
		return nil, fmt.Errorf("connect %s: %w", id, err)
	}
	shape := s.cfg.shape(id)
	w := NewWorld(id, shape.Seats, s.cfg.Tick)
	if shape.Down {
		w.Kill()
	}
	s.net.AddWorld(w)
	s.mu.Lock()
	s.worlds[id] = w
	s.mu.Unlock()
	var regions []actors.Region
	if shape.Keep > 0 {
		regions = []actors.Region{{Name: RegionOf(id), World: "minecraft:overworld", MinRadius: 500, MaxRadius: 5000, Keep: shape.Keep}}
	}
	return actors.NewBackend(actors.BackendConfig{
		Identity: s.cfg.Identity(events.SourceBackend, id), Log: conn, Bus: conn, World: w, Logger: s.cfg.Logger, Timing: s.cfg.Timing,
		Regions: regions, Pace: s.cfg.Line.DrainPerSecond,
		Advertise: WorldAddress(id), Public: WorldAddress(id), Adapter: "sim", Version: s.cfg.Version,
	})
}

// awaitReady waits until every dispatcher is live and sees every backend ready.
func (s *Stage) awaitReady(ctx context.Context) error {
	for {
		if s.allReady() {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *Stage) allReady() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.proxies {
		if p.dead {
			continue
		}
		if !p.dispatcher.Ready() {
			return false
		}
		for _, id := range s.cfg.Backends {
			b, shape := p.dispatcher.View().Fleet().Backend(id), s.cfg.shape(id)
			if shape.Down {
				continue
			}
			if b == nil || !b.Live || b.State != events.Ready || b.Kept() == 0 && shape.Keep > 0 {
				return false
			}
		}
	}
	return true
}

// Ready is closed once every host can work.
func (s *Stage) Ready() <-chan struct{} { return s.ready }

// Net is the world outside the hosts.
func (s *Stage) Net() *Network { return s.net }

// Kill ends a proxy as kill -9 does: nothing leaves it any more, its connections break.
func (s *Stage) Kill(id events.HostID) {
	s.mu.Lock()
	p := s.proxies[id]
	p.dead = true
	s.mu.Unlock()
	p.cable.cut()
	p.edge.Kill()
	p.end()
}

// Observer is a dispatcher that is alive, to read from; nil when there is none.
func (s *Stage) Observer() *actors.Dispatcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range s.cfg.Proxies {
		if p := s.proxies[id]; p != nil && !p.dead {
			return p.dispatcher
		}
	}
	return nil
}

// Worlds are the game servers, by their backends.
func (s *Stage) Worlds() map[events.HostID]*World {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[events.HostID]*World, len(s.worlds))
	maps.Copy(out, s.worlds)
	return out
}
