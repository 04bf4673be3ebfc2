package actors

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// BackendConfig makes a Backend.
type BackendConfig struct {
	Identity // the source's incarnation is that of the process; each life of the game server gets its own
	// Log is used for the heartbeat alone: a backend writes nothing else and reads nothing.
	Log    Log
	Bus    Bus
	World  World
	Logger *slog.Logger
	Timing Timing
	// Regions a player may be sent to. None: the backend is a lobby, it only asks.
	Regions []Region
	// Lobby says that this server only asks, although it may have regions.
	Lobby     bool
	Advertise string // host:port that edges dial
	Public    string // host:port that clients dial in a network without a front
	Adapter   string // what stands behind World
	Version   string
	Messages  Languages
	// Pace is how many places are given in a second to those who wait in line; up to a
	// second's worth at once. 0: as many as are asked for.
	Pace float64
	// RequestRate is how many requests of its players are passed on in a second, and
	// RequestBurst how many at once; who is beyond that is refused (RATE_LIMITED). 0: all.
	RequestRate  float64
	RequestBurst int
	// Allowed tells that players may be sent to an address, whoever asks.
	Allowed func(address string) bool
	// Settings is what operators can push to this host.
	Settings Settings
	// HeartbeatEvery is 1 s when zero.
	HeartbeatEvery time.Duration
}

// Backend is one game server on the network: it promises coordinates, sends players away,
// receives them, and says how it is. It writes no facts.
type Backend struct {
	cfg    BackendConfig
	logger *slog.Logger
	timing atomic.Pointer[Timing]
	life   atomic.Pointer[life]

	mu       sync.Mutex
	present  map[events.PlayerID]*presence
	moves    map[events.PlayerID]*move
	up       bool
	worldID  string
	missed   bool          // the game server was once found not to answer
	reborn   chan struct{} // the game server was restarted: a new life begins
	leaving  atomic.Bool
	paced    atomic.Uint64 // bits of the pace
	requests tokenBucket
	errands  errands
	messages atomic.Pointer[Languages]
	tasks    tasks
	beatSoon chan struct{}
	retune   chan struct{} // there may be another pushed configuration
	settled  chan struct{} // closed once the pushed configuration is obeyed
	beaten   beaten        // of the lives before this one; one life runs at a time

	strangers introductions
}

// life is one life of the backend: of this process or of the game server, whichever is shorter.
type life struct {
	Identity
	pool  *pool
	slots *arbiter
	// serving says that whoever reads READY in a heartbeat finds somebody who answers.
	serving atomic.Bool
	ctx     context.Context
	// beaten is when the newest beat was made that the log has taken: until then nobody else
	// had begun to live under this id.
	beaten atomic.Pointer[time.Time]
	// back is when the first beat was made that was taken after an outage, nil: there was none.
	back atomic.Pointer[time.Time]
}

// standsSure tells that this life was the one of its id a moment ago: whoever slept, or is
// cut off, finds out first whether it was replaced.
func (l *life) standsSure(within time.Duration) bool {
	at := l.beaten.Load()
	return at != nil && l.Now().Sub(*at) <= within
}

// presence is one player on the server.
type presence struct {
	Player
	join  events.JoinID
	waits bool // in line, as far as a dispatcher has told the player
}

// NewBackend validates the configuration. It starts nothing.
func NewBackend(cfg BackendConfig) (*Backend, error) {
	if cfg.Log == nil || cfg.Bus == nil || cfg.World == nil || cfg.Keys == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Logger == nil {
		return nil, errors.New("backend: log, bus, world, keys, clock, id maker and logger are mandatory")
	}
	if cfg.HeartbeatEvery == 0 {
		cfg.HeartbeatEvery = time.Second
	}
	if cfg.Messages == nil {
		cfg.Messages = ShippedLanguages()
	}
	if cfg.Allowed == nil {
		cfg.Allowed = func(string) bool { return true }
	}
	cfg.Regions = slices.Clone(cfg.Regions)
	slices.SortFunc(cfg.Regions, func(a, b Region) int { return strings.Compare(a.Name, b.Name) })
	b := &Backend{
		cfg: cfg, logger: cfg.Logger.With("backend", cfg.Source.ID),
		present: map[events.PlayerID]*presence{}, moves: map[events.PlayerID]*move{},
		reborn: make(chan struct{}, 1), beatSoon: make(chan struct{}, 1),
		retune: make(chan struct{}, 1), settled: make(chan struct{}),
	}
	b.cfg.Introduce = b.introduce
	b.SetTiming(cfg.Timing)
	b.SetPace(cfg.Pace)
	b.SetRequestRate(cfg.RequestRate, cfg.RequestBurst)
	b.SetMessages(cfg.Messages)
	return b, nil
}

// Run serves until ctx ends. It returns ctx's error, ErrDuplicateID, or the World's error
// when a person must mend a setting. It returns only when all it started has ended.
func (b *Backend) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	b.tasks.begin(ctx)
	defer b.tasks.end()
	b.life.Store(b.newLife(ctx, b.cfg.Source.Incarnation))
	g.Go(func() error { return b.cfg.World.Run(ctx, b) })
	g.Go(func() error { return b.followSettings(ctx, sync.OnceFunc(func() { close(b.settled) })) })
	g.Go(func() error {
		for inc := b.cfg.Source.Incarnation; ; inc = events.Incarnation(b.cfg.NewID()) {
			if err := b.runLife(ctx, inc); err != nil {
				return err
			}
			b.logger.Warn("the game server was restarted: its promises died with it")
		}
	})
	return g.Wait()
}

func (b *Backend) newLife(ctx context.Context, inc events.Incarnation) *life {
	id := b.cfg.Identity
	id.Source.Incarnation = inc
	l := &life{Identity: id, pool: newPool(b.cfg.Regions), slots: newArbiter(b.pace(), b.cfg.Now), ctx: ctx}
	l.pool.longer = func() time.Duration { return l.longer(*b.timing.Load()) }
	return l
}

// runLife serves one life; nil means that the game server was restarted.
func (b *Backend) runLife(ctx context.Context, inc events.Incarnation) error {
	lifeCtx, end := context.WithCancel(ctx)
	defer end()
	l := b.newLife(lifeCtx, inc)
	defer l.pool.close()
	defer l.slots.close()
	b.life.Store(l)
	g, groupCtx := errgroup.WithContext(lifeCtx)
	g.Go(func() error {
		select {
		case <-b.reborn:
			end()
		case <-groupCtx.Done():
		}
		return groupCtx.Err()
	})
	first := make(chan struct{})
	g.Go(func() error { return b.beats(groupCtx, l, sync.OnceFunc(func() { close(first) })) })
	g.Go(func() error { return l.pool.refill(groupCtx, b.cfg.World, l.Now, b.logger, b.beatNow) })
	g.Go(func() error { return b.announceAgain(groupCtx, l) })
	g.Go(func() error { return b.tellOutages(groupCtx, l) })
	g.Go(func() error {
		// Promises are made only once the network knows this life, and this life what operators pushed.
		for _, done := range []<-chan struct{}{first, b.settled} {
			select {
			case <-done:
			case <-groupCtx.Done():
				return groupCtx.Err()
			}
		}
		return b.serve(groupCtx, l)
	})
	err := g.Wait()
	if ctx.Err() == nil && lifeCtx.Err() != nil && errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// serve answers the dispatchers.
func (b *Backend) serve(ctx context.Context, l *life) error {
	g, ctx := errgroup.WithContext(ctx)
	var standing atomic.Int32
	stands := func() {
		if int(standing.Add(1)) == len(events.BackendVerbs) {
			l.serving.Store(true)
			b.beatNow()
		}
	}
	answer := func(v events.Verb, handle func(context.Context, string, events.Wire) events.Wire) {
		g.Go(func() error {
			return b.cfg.Bus.Serve(ctx, events.ToBackend(l.Source.ID, v), "", sync.OnceFunc(stands), handle)
		})
	}
	answer(events.VerbReserve, answerWith(l.Identity, fromDispatcher, refuseReserve, func(ctx context.Context, _ events.HostID, q events.ReserveAsk) events.ReserveAnswer {
		return b.answerReserve(ctx, l, q)
	}))
	answer(events.VerbRelease, answerWith(l.Identity, fromDispatcher, refusePlain, func(_ context.Context, _ events.HostID, q events.ReleaseAsk) events.Answer {
		return b.answerRelease(l, q)
	}))
	answer(events.VerbMove, answerWith(l.Identity, fromDispatcher, refusePlain, func(ctx context.Context, _ events.HostID, q events.MoveAsk) events.Answer {
		return b.answerMove(ctx, l, q)
	}))
	answer(events.VerbTell, answerWith(l.Identity, fromDispatcher, refusePlain, func(ctx context.Context, _ events.HostID, q events.TellAsk) events.Answer {
		return b.answerTell(ctx, q)
	}))
	answer(events.VerbSeen, answerWith(l.Identity, fromDispatcher, refusePlain, func(_ context.Context, _ events.HostID, q events.SeenAsk) events.Answer {
		return b.answerSeen(q)
	}))
	answer(events.VerbConfig, answerWith(l.Identity, fromDispatcher, refusePlain, func(context.Context, events.HostID, events.ConfigAsk) events.Answer {
		return b.answerConfig()
	}))
	return g.Wait()
}

// answerSeen passes on what a front has seen.
func (b *Backend) answerSeen(q events.SeenAsk) events.Answer {
	w, ok := b.cfg.World.(Witness)
	if !ok {
		return events.Answer{Code: events.NotKnown}
	}
	w.Seen(Player{ID: q.Player, Name: q.Name, NativeID: q.NativeID}, q.Connection, q.Here)
	return events.Answer{Code: events.OK}
}

func refuseReserve(r *events.Refusal) events.ReserveAnswer {
	return events.ReserveAnswer{Code: r.Code, Detail: r.Detail}
}

// SetTiming replaces the lengths of the deadlines: those of what begins from now on. It does
// not block.
func (b *Backend) SetTiming(t Timing) {
	t = t.WithDefaults()
	b.timing.Store(&t)
}

// SetPace changes how many places are given in a second. It does not block.
func (b *Backend) SetPace(perSecond float64) {
	b.paced.Store(math.Float64bits(perSecond))
	if l := b.life.Load(); l != nil {
		l.slots.setRate(perSecond)
	}
}

// SetRequestRate changes how many requests are passed on, see BackendConfig. It does not block.
func (b *Backend) SetRequestRate(perSecond float64, burst int) {
	b.requests.set(b.cfg.Now(), perSecond, burst)
}

func (b *Backend) pace() float64 { return math.Float64frombits(b.paced.Load()) }

// SetMessages replaces the texts for players: those said from now on follow it. It does not block.
func (b *Backend) SetMessages(l Languages) { b.messages.Store(&l) }

// text renders a message for a player.
func (b *Backend) text(p Player, key string, args []events.Arg) string {
	return b.messages.Load().In(p.Locale).Text(key, args)
}

// Leave makes the next heartbeats say SHUTTING_DOWN.
func (b *Backend) Leave() {
	b.leaving.Store(true)
	b.beatNow()
}

// Tally counts the coordinates of the present life.
func (b *Backend) Tally() Tally { return b.life.Load().pool.count() }

// Incarnation is the present life.
func (b *Backend) Incarnation() events.Incarnation { return b.life.Load().Source.Incarnation }

func (b *Backend) beatNow() {
	select {
	case b.beatSoon <- struct{}{}:
	default:
	}
}

func (b *Backend) beats(ctx context.Context, l *life, landed func()) error {
	var made time.Time
	x := beater{
		Identity: l.Identity, log: b.cfg.Log, logger: b.logger, every: b.cfg.HeartbeatEvery, key: events.BackendKey(l.Source.ID),
		now: b.beatSoon, beaten: b.beaten,
		beat: func() events.Fact {
			made = l.Now()
			return b.beat(ctx, l)
		},
		landed: func() {
			l.landed(made, b.timing.Load().Stale)
			landed()
		},
	}
	defer func() { b.beaten = x.beaten }()
	return x.run(ctx)
}

func (b *Backend) beat(ctx context.Context, l *life) *events.BackendBeat {
	ctx, cancel := context.WithTimeout(ctx, b.cfg.HeartbeatEvery/2)
	defer cancel()
	h, err := b.cfg.World.Health(ctx)
	out := l.pool.outstanding()
	seats := h.MaxPlayers - h.Players - out
	regions, number := l.pool.beat(seats)
	state := b.state(l, err)
	if state == events.Ready && !l.serving.Load() {
		state = events.Starting
	}
	return &events.BackendBeat{
		Server: l.Source.ID, Incarnation: l.Source.Incarnation, State: state, Accepting: !b.leaving.Load(),
		Adapter: b.cfg.Adapter, Version: b.cfg.Version, Schema: events.SchemaVersion, Game: h.Game,
		ProtocolMin: h.ProtocolMin, ProtocolMax: h.ProtocolMax, Advertise: b.cfg.Advertise, Public: b.cfg.Public,
		Players: h.Players, MaxPlayers: h.MaxPlayers, Promise: number, Outstanding: out, Regions: regions,
		MSPT: h.MSPT, TPS: h.TPS, HeapUsed: h.HeapUsed, HeapMax: h.HeapMax, Config: b.cfg.Settings.beat(),
	}
}

func (b *Backend) state(l *life, health error) events.HostState {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.leaving.Load():
		return events.ShuttingDown
	case b.worldID == "" && !b.missed:
		return events.Starting
	case !b.up || health != nil || l.pool.isDry():
		return events.Degraded
	}
	return events.Ready
}

// background runs a task that ends with the backend, if it still lives.
func (b *Backend) background(task func(ctx context.Context)) { b.tasks.run(task) }
