package actors

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// InstanceConfig makes an Instance.
type InstanceConfig struct {
	Identity // of kind backend; its id is the placement, its incarnation this life
	Log      Log
	Bus      Bus
	Logger   *slog.Logger

	Realm, Region string
	MaxPlayers    int
	Zones         []Zone
	// Endpoints tells where clients connect and how that is, each time a heartbeat is made.
	Endpoints func() (bootstrap, gameplay events.EndpointBeat)
	Version   string
	// HeartbeatEvery is 1 s when zero.
	HeartbeatEvery time.Duration
}

// Zone is a part of the world of an instance.
type Zone struct {
	Name       string
	MaxPlayers int
}

// Instance is one life of a game instance on the network: it beats, it alone gives its seats, and it
// admits who comes with the token of one. It writes no facts.
type Instance struct {
	cfg    InstanceConfig
	logger *slog.Logger

	mu       sync.Mutex
	zones    map[string]*zone
	seats    map[events.Token]*instanceSeat
	players  map[events.PlayerID]string // who is in the game, and in which zone
	promised uint64
	first    uint64 // of this life's first beat
	serving  bool
	draining bool
	leaving  bool
	beatSoon chan struct{}
}

type zone struct {
	Zone
	unavailable, overloaded bool
}

// instanceSeat is a promise that nobody has taken yet.
type instanceSeat struct {
	player events.PlayerID
	zone   string
	number uint64
	until  time.Time
	answer events.ReserveAnswer
}

// NewInstance validates the configuration. It starts nothing.
func NewInstance(cfg InstanceConfig) (*Instance, error) {
	switch {
	case cfg.Log == nil || cfg.Bus == nil || cfg.Keys == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Logger == nil || cfg.Endpoints == nil:
		return nil, errors.New("instance: log, bus, keys, clock, id maker, logger and endpoints are mandatory")
	case cfg.MaxPlayers < 1:
		return nil, errors.New("instance: max players must be at least 1")
	}
	if cfg.HeartbeatEvery == 0 {
		cfg.HeartbeatEvery = time.Second
	}
	i := &Instance{
		cfg: cfg, logger: cfg.Logger.With("instance", cfg.Source.ID), zones: map[string]*zone{}, seats: map[events.Token]*instanceSeat{},
		players: map[events.PlayerID]string{}, beatSoon: make(chan struct{}, 1),
	}
	for _, z := range cfg.Zones {
		i.zones[z.Name] = &zone{Zone: z}
	}
	return i, nil
}

// Run beats and answers until ctx ends. It returns when all it started has ended.
func (i *Instance) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	beats := beater{
		Identity: i.cfg.Identity, log: i.cfg.Log, logger: i.logger, every: i.cfg.HeartbeatEvery,
		key: events.InstanceKey(i.cfg.Source.ID, i.cfg.Source.Incarnation), now: i.beatSoon, beat: func() events.Fact { return i.beat() },
	}
	beats.landed = func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.first == 0 {
			i.first = beats.prev
		}
	}
	g.Go(func() error { return beats.run(ctx) })
	g.Go(func() error {
		return i.cfg.Bus.Serve(ctx, events.ToBackend(i.cfg.Source.ID, events.VerbReserve), "", i.stand, answerWith(i.cfg.Identity, fromDispatcher, refuseReserve, i.answerReserve))
	})
	g.Go(func() error {
		return i.cfg.Bus.Serve(ctx, events.ToBackend(i.cfg.Source.ID, events.VerbRelease), "", nil, answerWith(i.cfg.Identity, fromDispatcher, refusePlain, i.answerRelease))
	})
	return g.Wait()
}

// stand notes that questions are answered: whoever reads READY in a heartbeat finds somebody.
func (i *Instance) stand() {
	i.mu.Lock()
	i.serving = true
	i.mu.Unlock()
	nudge(i.beatSoon)
}

// Leave makes the next heartbeats say SHUTTING_DOWN.
func (i *Instance) Leave() { i.change(func() { i.leaving = true }) }

// Drain makes the instance take nobody new, or take players again. Who holds a seat is admitted.
func (i *Instance) Drain(on bool) { i.change(func() { i.draining = on }) }

// SetZone says how a zone is: one that is not available gives no seats, one that is overloaded only
// when nobody else does.
func (i *Instance) SetZone(name string, available, overloaded bool) {
	i.change(func() {
		if z := i.zones[name]; z != nil {
			z.unavailable, z.overloaded = !available, overloaded
		}
	})
}

func (i *Instance) change(f func()) {
	i.mu.Lock()
	f()
	i.mu.Unlock()
	nudge(i.beatSoon)
}

func (i *Instance) beat() *events.InstanceBeat {
	bootstrap, gameplay := i.cfg.Endpoints()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget()
	b := &events.InstanceBeat{
		Placement: i.cfg.Source.ID, Incarnation: i.cfg.Source.Incarnation, First: i.first, State: i.state(), Draining: i.draining,
		Version: i.cfg.Version, Schema: events.SchemaVersion, Realm: i.cfg.Realm, Region: i.cfg.Region, Players: len(i.players), MaxPlayers: i.cfg.MaxPlayers,
		Outstanding: len(i.seats), Promise: i.promised, Bootstrap: bootstrap, Gameplay: gameplay, Zones: []events.ZoneBeat{},
	}
	for _, z := range i.zones {
		b.Zones = append(b.Zones, events.ZoneBeat{Name: z.Name, Players: i.inZone(z.Name), MaxPlayers: z.MaxPlayers, Unavailable: z.unavailable, Overloaded: z.overloaded})
	}
	slices.SortFunc(b.Zones, func(a, c events.ZoneBeat) int { return strings.Compare(a.Name, c.Name) })
	return b
}

func (i *Instance) state() events.HostState {
	switch {
	case i.leaving:
		return events.ShuttingDown
	case !i.serving:
		return events.Starting
	}
	return events.Ready
}

// forget drops the seats whose time is over. It wants the lock held.
func (i *Instance) forget() {
	for token, s := range i.seats {
		if !i.cfg.Now().Before(s.until) {
			delete(i.seats, token)
		}
	}
}

// inZone counts who is in a zone or promised a seat there. It wants the lock held.
func (i *Instance) inZone(name string) int {
	n := 0
	for _, z := range i.players {
		if z == name {
			n++
		}
	}
	for _, s := range i.seats {
		if s.zone == name {
			n++
		}
	}
	return n
}

// seatSlack is how long a seat is held beyond its time: others count from later than this life does.
const seatSlack = 5 * time.Second

// answerReserve gives a seat, or says why not. A question for another life of the placement is that
// one's to answer.
func (i *Instance) answerReserve(_ context.Context, _ events.HostID, q events.ReserveAsk) events.ReserveAnswer {
	if q.Incarnation != i.cfg.Source.Incarnation {
		return events.ReserveAnswer{}
	}
	if q.TTLMs <= 0 || q.TTLMs > time.Hour.Milliseconds() || q.Attempt < 1 || q.Attempt > events.MaxAttempts {
		return i.noSeat(events.Refuse(events.BadRequest, "ttl or attempt out of range"))
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.forget()
	token, until := events.Token{Transfer: q.Transfer, Attempt: q.Attempt}, i.cfg.Now().Add(time.Duration(q.TTLMs)*time.Millisecond+seatSlack)
	if s := i.seats[token]; s != nil {
		s.until = until
		return s.answer
	}
	if refusal := i.refuseSeat(q); refusal != nil {
		return i.noSeat(refusal)
	}
	i.promised++
	s := &instanceSeat{player: q.Player, zone: q.Region, number: i.promised, until: until}
	i.seats[token] = s
	s.answer = events.ReserveAnswer{
		Code: events.Promised, Server: i.cfg.Source.ID, Incarnation: i.cfg.Source.Incarnation, Promise: s.number, Region: q.Region,
		At: events.Position{World: q.World}, Kept: i.cfg.MaxPlayers - len(i.players) - len(i.seats),
	}
	nudge(i.beatSoon)
	return s.answer
}

// refuseSeat says why there is no seat. It wants the lock held.
func (i *Instance) refuseSeat(q events.ReserveAsk) *events.Refusal {
	switch {
	case i.leaving || i.draining || !i.serving:
		return events.Refuse(events.NotReady, "")
	case len(i.players)+len(i.seats) >= i.cfg.MaxPlayers:
		return events.Refuse(events.Full, "")
	}
	if q.Region == "" {
		return nil
	}
	switch z := i.zones[q.Region]; {
	case z == nil || z.unavailable:
		return events.Refuse(events.NoCoordinate, "zone "+q.Region)
	case i.inZone(q.Region) >= z.MaxPlayers:
		return events.Refuse(events.Full, "zone "+q.Region)
	}
	return nil
}

func (i *Instance) noSeat(r *events.Refusal) events.ReserveAnswer {
	return events.ReserveAnswer{Code: r.Code, Detail: r.Detail, Server: i.cfg.Source.ID, Incarnation: i.cfg.Source.Incarnation}
}

func (i *Instance) answerRelease(_ context.Context, _ events.HostID, q events.ReleaseAsk) events.Answer {
	i.mu.Lock()
	defer i.mu.Unlock()
	token := events.Token{Transfer: q.Transfer, Attempt: q.Attempt}
	s := i.seats[token]
	if s == nil || s.player != q.Player || q.Promise != 0 && q.Promise != s.number {
		return events.Answer{Code: events.NotKnown}
	}
	delete(i.seats, token)
	nudge(i.beatSoon)
	return events.Answer{Code: events.OK}
}

// Admit lets a player in who shows a token: the seat is taken once that stands in the log. A refusal
// says why not; the same join again gives the same answer. Who is let in stays until Left.
func (i *Instance) Admit(ctx context.Context, p Player, token events.Token, join events.JoinID) *events.Refusal {
	i.mu.Lock()
	i.forget()
	s := i.seats[token]
	i.mu.Unlock()
	switch {
	case s == nil:
		return events.Refuse(events.TokenUnknown, "this life has promised no such seat, or its time is over")
	case s.player != p.ID:
		return events.Refuse(events.WrongPlayer, "the seat is another player's")
	}
	id := i.cfg.Source
	a, err := ask[events.ArrivedAnswer](ctx, i.cfg.Identity, i.cfg.Bus, events.AskOf(id.ID, events.VerbArrived), events.ArrivedAsk{
		Player: p.ID, Name: p.Name, Join: join, Incarnation: id.Incarnation, Held: []events.Token{token},
	})
	switch {
	case err != nil:
		return transportDown(err)
	case a.Code != events.Place:
		return events.Refuse(events.TokenSpent, string(a.Code)+" "+a.Detail)
	}
	i.change(func() {
		delete(i.seats, token)
		i.players[p.ID] = s.zone
	})
	if _, err := ask[events.Answer](ctx, i.cfg.Identity, i.cfg.Bus, events.AskOf(id.ID, events.VerbPlaced), events.PlacedAsk{
		Player: p.ID, Token: token, At: a.At, Code: events.OK,
	}); err != nil {
		i.logger.Warn("that a player took the seat is not written", "player", p.ID, "error", err) // its deadline ends it
	}
	return nil
}

// Left says that a player is gone: the seat is free.
func (i *Instance) Left(p events.PlayerID) { i.change(func() { delete(i.players, p) }) }
