package actors

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// ground is a game server that does what a test says. The zero value is healthy, finds a
// coordinate whenever it is asked, and keeps all it is told.
type ground struct {
	mu       sync.Mutex
	health   func() (Health, error)
	find     func(r Region) (events.Position, error)
	check    func(at events.Position) error
	place    func(p Player, at events.Position) (events.Position, error)
	send     func(ctx context.Context, p Player, address string) error
	run      func(ctx context.Context, h WorldEvents) error
	found    int
	sent     []string
	told     []string
	placed   []events.Position
	forgot   []events.Position
	expected map[events.PlayerID]time.Duration
}

func (g *ground) Run(ctx context.Context, h WorldEvents) error {
	if g.run != nil {
		return g.run(ctx, h)
	}
	h.Up("a life")
	<-ctx.Done()
	return ctx.Err()
}

func (g *ground) Health(context.Context) (Health, error) {
	if g.health != nil {
		return g.health()
	}
	return Health{MaxPlayers: 100}, nil
}

func (g *ground) Find(_ context.Context, r Region) (events.Position, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.find != nil {
		return g.find(r)
	}
	g.found++
	return events.Position{World: r.World, X: float64(g.found)}, nil
}

func (g *ground) Check(_ context.Context, at events.Position) error {
	if g.check != nil {
		return g.check(at)
	}
	return nil
}

func (g *ground) Forget(_ context.Context, at events.Position) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forgot = append(g.forgot, at)
	return nil
}

func (g *ground) Expect(p Player, within time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.expected == nil {
		g.expected = map[events.PlayerID]time.Duration{}
	}
	g.expected[p.ID] = within
}

func (g *ground) Place(_ context.Context, p Player, at events.Position) (events.Position, error) {
	g.mu.Lock()
	g.placed = append(g.placed, at)
	g.mu.Unlock()
	if g.place != nil {
		return g.place(p, at)
	}
	return at, nil
}

func (g *ground) Send(ctx context.Context, p Player, address string) error {
	g.mu.Lock()
	g.sent = append(g.sent, address)
	g.mu.Unlock()
	if g.send != nil {
		return g.send(ctx, p, address)
	}
	return nil
}

func (g *ground) Tell(_ context.Context, _ Player, text string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, text)
	return nil
}

func (g *ground) texts() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]string(nil), g.told...)
}

func (g *ground) sends() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.sent)
}

// site is a backend "b" on its game server, without its loops: its answers are called directly.
type site struct {
	*Backend
	ground *ground
	life   *life
	mem    *streamtest.Memory
	// asks are the dispatchers' answers, in package actors' own types.
	state   func(q events.StateAsk) events.StateAnswer
	arrived func(q events.ArrivedAsk) events.ArrivedAnswer
	placed  func(q events.PlacedAsk) events.Answer
}

func newSite(t *testing.T, ctx context.Context, mem *streamtest.Memory) *site {
	t.Helper()
	g := &ground{}
	client := mem.Client("b")
	b, err := NewBackend(BackendConfig{
		Identity: identity(events.SourceBackend, "b"), Log: client, Bus: client, World: g, Logger: logger(t),
		Regions: []Region{{Name: "wild", World: "w", Keep: 4}}, Allowed: func(address string) bool { return address == "play:25565" },
	})
	if err != nil {
		t.Fatal(err)
	}
	b.tasks.begin(ctx)
	b.up, b.worldID = true, "a life"
	l := b.newLife(ctx, b.cfg.Source.Incarnation)
	b.life.Store(l)
	always := time.Now().Add(time.Hour)
	l.beaten.Store(&always) // it beats, as far as these tests care
	t.Cleanup(l.pool.close)
	return &site{Backend: b, ground: g, life: l, mem: mem}
}

// stock makes coordinates ready.
func (s *site) stock(n int) {
	for range n {
		at, _ := s.ground.Find(context.Background(), s.cfg.Regions[0])
		s.life.pool.found("wild", at)
	}
}

func (s *site) reserve(ctx context.Context, attempt int) events.ReserveAnswer {
	return s.answerReserve(ctx, s.life, events.ReserveAsk{
		Player: steve, Name: "Steve", Transfer: first, Attempt: attempt, Region: "wild", TTLMs: 30_000, Incarnation: s.life.Source.Incarnation,
	})
}

// serve lets a dispatcher answer this backend's asks until ctx ends.
func (s *site) serve(ctx context.Context) {
	who, client := identity(events.SourceEdge, "e1"), s.mem.Client("e1")
	serve := func(v events.Verb, handle func(context.Context, string, events.Wire) events.Wire) {
		go func() { _ = client.Serve(ctx, events.AskOf("b", v), dispatcherQueue, func() {}, handle) }()
	}
	serve(events.VerbState, answerWith(who, fromBackend(events.VerbState), refuseState, func(_ context.Context, _ events.HostID, q events.StateAsk) events.StateAnswer {
		return s.state(q)
	}))
	serve(events.VerbArrived, answerWith(who, fromBackend(events.VerbArrived), refuseArrived, func(_ context.Context, _ events.HostID, q events.ArrivedAsk) events.ArrivedAnswer {
		return s.arrived(q)
	}))
	serve(events.VerbPlaced, answerWith(who, fromBackend(events.VerbPlaced), refusePlain, func(_ context.Context, _ events.HostID, q events.PlacedAsk) events.Answer {
		return s.placed(q)
	}))
}

// onSite runs a test body with a backend whose dispatcher says that claim 5 of the first
// token is the latest, that every arrival is a plain join, and that every placement is taken.
func onSite(t *testing.T, body func(t *testing.T, ctx context.Context, s *site)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSite(t, ctx, mem)
		s.state = func(events.StateAsk) events.StateAnswer {
			return events.StateAnswer{Code: events.OK, Token: tokenOne, Claim: 5}
		}
		s.arrived = func(events.ArrivedAsk) events.ArrivedAnswer { return events.ArrivedAnswer{Code: events.NoPlace} }
		s.placed = func(events.PlacedAsk) events.Answer { return events.Answer{Code: events.OK} }
		s.serve(ctx)
		synctest.Wait()
		body(t, ctx, s)
	})
}

var tokenOne = events.Token{Transfer: first, Attempt: 1}

// comes puts a player on the server, without announcing it.
func (s *site) comes() presence {
	p := presence{Player: Player{ID: steve, Name: "Steve"}, join: num[events.JoinID](9)}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present[steve] = &p
	return p
}
