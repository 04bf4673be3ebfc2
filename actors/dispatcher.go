package actors

import (
	"context"
	"errors"

	"hash/fnv"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// DispatcherConfig makes a Dispatcher.
type DispatcherConfig struct {
	Identity
	Log    Log
	Bus    Bus
	Logger *slog.Logger
	Timing Timing
	// Policy says which destination is chosen; the zero Policy is the shipped one.
	Policy Policy
	// Line says how players wait; the zero value takes the shipped rules.
	Line LineRules
	// Routing says where logins go.
	Routing Routing
	// Kind is how players are held: KindEdge (they connect to us) or KindDirect (no front of
	// ours). Local names the backend beside this dispatcher, whose players it holds who did not
	// come over a front of ours: mandatory with KindDirect, possible beside an edge.
	Kind  events.SessionKind
	Local events.HostID
	// Domain and Port are where clients of an edge network reconnect: r-<token>.<Domain>:<Port>.
	Domain string
	Port   int
	// Accounts says how the servers of a network with edges name their players.
	Accounts Accounts
	// Marker makes the id of a reconnect route, 16 random bytes; nil takes the system's.
	Marker func() [16]byte
	// Redirector sends clients away over the connections that say so (Connection.Redirects). May be nil.
	Redirector Redirector
	// Players counts the connections this host holds, for the heartbeat. May be nil.
	Players func() int
	// Version of the program, for the heartbeat.
	Version string
	// Settings is what operators can push to this host.
	Settings Settings
	// HeartbeatEvery is 1 s when zero.
	HeartbeatEvery time.Duration
	// Retention of the log: open sessions are repeated each quarter of it. 0: never.
	Retention time.Duration
}

// Dispatcher tails the log, decides, and writes the facts. Any number of them work on one
// network; none is a master, and what one starts another may finish.
type Dispatcher struct {
	Identity
	cfg    DispatcherConfig
	log    Log
	bus    Bus
	logger *slog.Logger
	jitter time.Duration
	view   *projections.View
	state  atomic.Pointer[events.HostState]

	work        workers
	line        parked
	wakeup      wakers
	open        openness
	conns       connections
	sightings   sightings
	accounts    oncePerLife // servers that name players by other accounts
	stalls      stalls      // logins that servers took no notice of
	seats       seatLine
	unconfirmed unconfirmed
	runs        runs
	count       counters
	evacuations chan struct{} // something may have to be emptied, or no longer

	timing    atomic.Pointer[Timing]
	policy    atomic.Pointer[Policy]
	lineRules atomic.Pointer[LineRules]
	routing   atomic.Pointer[routing]
	seating   sync.Mutex // held from the choice of a server for a join to its being remembered

	permissions atomic.Pointer[Permissions]
	limits      atomic.Pointer[Limits]
	triggers    atomic.Pointer[EventTriggers]
	joins       atomic.Pointer[JoinTriggers]

	notices  notices
	memories memories
	collided map[string]bool            // regions that were warned of
	slowTold map[events.TransferID]bool // transfers whose players know that it takes long
	strange  map[events.HostID]*strange // hosts that go by another configuration
	pushed   chan struct{}              // nudges spread
	clocks   map[events.Source]clock    // of the hosts, see warnOfClocks
	// strangers are the hosts whose wire version is not ours, with that version.
	strangers map[events.Source]int

	marker func() [16]byte

	tasks      tasks
	rejected   rejections
	introduced introductions
}

// counters are what metrics and tests read.
type counters struct {
	appends, conflicts atomic.Int64
	told               atomic.Int64
}

// NewDispatcher validates the configuration. It starts nothing.
func NewDispatcher(cfg DispatcherConfig) (*Dispatcher, error) {
	switch {
	case cfg.Log == nil || cfg.Bus == nil || cfg.Keys == nil || cfg.Now == nil || cfg.NewID == nil || cfg.Logger == nil:
		return nil, errors.New("dispatcher: log, bus, keys, clock, id maker and logger are mandatory")
	case cfg.Kind == events.KindDirect && cfg.Local == "":
		return nil, errors.New("dispatcher: a direct dispatcher names its backend")
	case cfg.Kind == events.KindEdge && cfg.Domain == "":
		return nil, errors.New("dispatcher: an edge needs edge.domain, the domain whose host names all lead to the edges")
	}
	if cfg.HeartbeatEvery == 0 {
		cfg.HeartbeatEvery = time.Second
	}
	if cfg.Players == nil {
		cfg.Players = func() int { return 0 }
	}
	d := &Dispatcher{
		Identity: cfg.Identity, cfg: cfg, log: cfg.Log, bus: cfg.Bus,
		logger: cfg.Logger.With("dispatcher", cfg.Source.ID), jitter: jitterOf(cfg.Source),
		strange: map[events.HostID]*strange{}, pushed: make(chan struct{}, 1),
	}
	if d.marker = cfg.Marker; d.marker == nil {
		d.marker = randomMarker
	}
	d.Introduce = d.introduce
	d.work.init()
	d.line.init()
	d.wakeup.init()
	d.open.init()
	d.evacuations = make(chan struct{}, 1)
	d.conns.init()
	d.sightings.init()
	d.runs.init()
	d.unconfirmed.init()
	d.memories.init()
	d.SetTiming(cfg.Timing)
	d.SetPolicy(cfg.Policy)
	d.SetLine(cfg.Line)
	d.SetLimits(nil)
	d.SetEvents(EventTriggers{})
	d.SetJoins(JoinTriggers{})
	d.SetRouting(cfg.Routing)
	d.notices.init()
	d.setState(events.Starting)
	d.view = projections.NewView(projections.Config{
		Log: cfg.Log, Keys: cfg.Keys, Logger: d.logger, Now: cfg.Now, Retention: cfg.Retention, Stale: d.Stale, Changed: d.changed, Problem: d.problem,
	})
	return d, nil
}

// Stale is the silence after which a host counts as absent.
func (d *Dispatcher) Stale() time.Duration { return d.timing.Load().Stale }

// jitterOf spreads hosts over a second, the same way for the whole life of one.
func jitterOf(s events.Source) time.Duration {
	h := fnv.New32a()
	h.Write(s.Incarnation[:])
	return time.Duration(h.Sum32()%1000) * time.Millisecond
}

// View gives the dispatcher's folds, for reading.
func (d *Dispatcher) View() *projections.View { return d.view }

// Ready tells that the dispatcher sees the log and decides.
func (d *Dispatcher) Ready() bool { return d.view.Ready() }

// Await blocks until cond holds, looked at now and after each fold that concerns the player, or ctx
// ends. It reports whether cond held.
func (d *Dispatcher) Await(ctx context.Context, player events.PlayerID, cond func() bool) bool {
	return d.wakeup.until(ctx, player, cond)
}

// Run serves until ctx ends. It returns ctx's error, ErrDuplicateID when another process
// has taken this id, or the error of a fold that cannot go on. It returns only when all it
// started has ended.
func (d *Dispatcher) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	d.tasks.begin(ctx)
	defer d.tasks.end()
	g.Go(func() error { return d.view.Run(ctx) })
	g.Go(func() error {
		if err := d.view.WaitLive(ctx); err != nil {
			return err
		}
		d.cfg.Settings.adopt(pushedOf(d.view.Controls())) // before anything is decided
		d.setState(events.Ready)
		d.logger.Info("ready", "folded", d.view.Folded())
		return d.runLoops(ctx)
	})
	return g.Wait()
}

func (d *Dispatcher) runLoops(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return d.work.run(ctx, d.attend) })
	g.Go(func() error { return d.sweep(ctx) })
	g.Go(func() error { return d.runLine(ctx) })
	g.Go(func() error { return d.runNotices(ctx) })
	g.Go(func() error { return d.runEvacuations(ctx) })
	g.Go(func() error { return d.spread(ctx) })
	g.Go(func() error { return d.beats(ctx) })
	d.serveAsks(ctx, g)
	d.serveDispatchers(ctx, g)
	d.hearNews(ctx, g)
	return g.Wait()
}

// Leave makes the next heartbeats say SHUTTING_DOWN, so that nobody waits for silence.
func (d *Dispatcher) Leave() { d.setState(events.ShuttingDown) }

func (d *Dispatcher) setState(s events.HostState) { d.state.Store(&s) }

// changed hears every fold. It must not block.
func (d *Dispatcher) changed(c projections.Change) {
	switch c.Bucket {
	case events.Transfers, events.Sessions:
		if c.Reset || c.Live {
			return // the sweep looks at everybody
		}
		d.noteClaim(c)
		d.noteEnd(c)
		d.settle(c.Player)
		d.wakeup.wake(c.Player)
		if d.view.Ready() {
			d.work.add(c.Player)
		}
		d.line.nudge()
	case events.Fleet:
		if b, ok := c.Event.Fact.(*events.BackendBeat); ok {
			d.runs.beats(b.Server, b.Incarnation)
		}
		if c.Live || c.Seq > 0 {
			d.line.nudge()
		}
	case events.Control:
		d.obey(c)
		d.noteDrain()
		nudge(d.evacuations)
		d.line.nudge()
	case events.Audit, events.Checkpoints, events.Limits, events.Routes, events.Leases:
	}
}

// sweep looks at every active transfer once per interval: deadlines, and whatever an event
// could not start because this process was blind at the time.
func (d *Dispatcher) sweep(ctx context.Context) error {
	for {
		active := d.view.Active()
		for i := range active {
			d.work.add(active[i].Player)
		}
		d.tellSlow(active)
		d.view.Forget(d.Now().Add(-keepIdle))
		d.runs.forget(func(id events.TransferID) bool { _, ok := d.view.Transfer(id); return ok })
		for _, p := range d.unconfirmed.all() {
			d.settle(p)
		}
		d.refreshSessions(ctx)
		d.warnOfCollisions()
		d.warnOfClocks(d.view.Fleet())
		d.warnOfSchemas(d.view.Fleet())
		d.memories.keep(func(id events.HostID) bool { return d.view.Fleet().Backend(id) != nil })
		if !sleep(ctx, d.timing.Load().Sweep) {
			return ctx.Err()
		}
	}
}

// keepIdle is how long an idle player's ended transfers stay readable in memory.
const keepIdle = 10 * time.Minute

func (d *Dispatcher) beats(ctx context.Context) error {
	b := beater{
		Identity: d.Identity, log: d.log, logger: d.logger, every: d.cfg.HeartbeatEvery, key: events.ProxyKey(d.Source.ID),
		beat: func() events.Fact {
			drain, _ := d.Drained()
			return &events.ProxyBeat{
				Proxy: d.Source.ID, Incarnation: d.Source.Incarnation, State: *d.state.Load(), Version: d.cfg.Version,
				Schema: events.SchemaVersion, Kinds: d.kinds(), Players: d.cfg.Players(),
				InFlight: d.work.busy(), Folded: d.view.Folded(), Config: d.cfg.Settings.beat(), Drained: drain != nil,
			}
		},
	}
	return b.run(ctx)
}

// kinds are the ways in which this dispatcher holds players, sorted.
func (d *Dispatcher) kinds() []events.SessionKind {
	if d.cfg.Local != "" && d.cfg.Kind != events.KindDirect {
		return []events.SessionKind{events.KindDirect, d.cfg.Kind}
	}
	return []events.SessionKind{d.cfg.Kind}
}

// problem puts a refused message of the log into the audit, for operators.
func (d *Dispatcher) problem(p projections.Problem) {
	d.audit(events.Rejected{Source: p.Source, Code: p.Refusal.Code, Subject: p.Bucket.Subject(p.Key), At: p.Seq, Detail: p.Refusal.Detail})
}

// Report puts a finding about the log into the audit, for operators. It does not block.
func (d *Dispatcher) Report(r events.Rejected) {
	r.Source = d.Source.String()
	d.audit(r)
}

// background runs a task that ends with the dispatcher, if it lives.
func (d *Dispatcher) background(task func(ctx context.Context)) (started bool) {
	return d.tasks.run(task)
}

// ErrDuplicateID says that another process beats under this host's id: this one must stop,
// and must not be restarted by a supervisor.
var ErrDuplicateID = errors.New("another process has taken this id (DUPLICATE_ID): give each host its own id, or stop the other one")

// logged is a transfer as it stands in log lines.
type logged projections.Transfer

// LogValue implements slog.LogValuer.
func (t logged) LogValue() slog.Value {
	return slog.GroupValue(slog.Any("id", t.ID), slog.Any("player", t.Player), slog.Any("phase", t.Phase),
		slog.Any("server", projections.Transfer(t).Destination()))
}
