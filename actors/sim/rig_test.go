package sim_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// rig is a whole network, inside a synctest bubble.
type rig struct {
	t         *testing.T
	ctx       context.Context
	store     store
	mem       *streamtest.Memory // the store, where it is in memory
	net       *sim.Network
	kind      events.SessionKind
	timing    actors.Timing
	line      actors.LineRules
	byRule    *actors.Routing // nil: whoever comes back goes to the last server
	joins     actors.JoinTriggers
	pace      float64 // of every backend
	quiet     bool    // nothing is logged
	accounts  actors.Accounts
	clocks    clocks        // of the hosts
	ear       *ear          // hears what the hosts log; nil: nobody does
	retention time.Duration // of the log, as dispatchers know it
	settings  func(events.HostID) actors.Settings

	dispatchers map[events.HostID]*host[*actors.Dispatcher]
	backends    map[events.HostID]*host[*actors.Backend]
	wg          sync.WaitGroup
}

// host is one process of the rig.
type host[A any] struct {
	actor  A
	client *gate
	cancel context.CancelFunc
	err    chan error
}

// simulate runs a test body on a network over the log in memory, inside a bubble.
func simulate(t *testing.T, kind events.SessionKind, body func(r *rig), options ...streamtest.Option) {
	t.Helper()
	simulateOn(t, inMemory(options...), kind, body)
}

// simulateOn runs a test body on a network over a store, inside a bubble.
func simulateOn(t *testing.T, open opener, kind events.SessionKind, body func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := &rig{
			t: t, ctx: ctx, store: open(t), net: sim.NewNetwork(ctx, 300*time.Millisecond), kind: kind,
			settings:    func(events.HostID) actors.Settings { return actors.Settings{} },
			dispatchers: map[events.HostID]*host[*actors.Dispatcher]{}, backends: map[events.HostID]*host[*actors.Backend]{},
		}
		if m, ok := r.store.(memory); ok {
			r.mem = m.Memory
		}
		defer func() {
			cancel()
			r.wg.Wait()
			r.net.Wait()
			r.store.Close()
		}()
		body(r)
	})
}

func (r *rig) identity(kind events.SourceKind, id events.HostID) actors.Identity {
	return actors.Identity{
		Source: events.Source{Kind: kind, ID: id, Incarnation: streamtest.NewID[events.Incarnation]()},
		Keys:   streamtest.Keyring(), Now: func() time.Time { return r.clocks.now(id) }, NewID: streamtest.NewID[[16]byte],
	}
}

func (r *rig) logger(id events.HostID) *slog.Logger {
	if r.quiet {
		return slog.New(slog.DiscardHandler)
	}
	out := r.t.Output()
	if r.ear != nil {
		out = io.MultiWriter(out, r.ear)
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelDebug})).With("host", id)
}

// clocks are by how much the hosts' clocks are ahead.
type clocks struct {
	mu   sync.Mutex
	skew map[events.HostID]time.Duration
}

func (c *clocks) set(skew map[events.HostID]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.skew = skew
}

func (c *clocks) now(id events.HostID) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.skew[id])
}

// ear keeps the log lines that hold a text.
type ear struct {
	text string

	mu    sync.Mutex
	lines []string
}

func (e *ear) Write(line []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if strings.Contains(string(line), e.text) {
		e.lines = append(e.lines, string(line))
	}
	return len(line), nil
}

func (e *ear) count(text string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, line := range e.lines {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

// dispatcher starts a dispatcher with an edge of the same name.
func (r *rig) dispatcher(id events.HostID) *actors.Dispatcher {
	return r.startDispatcher(id, events.SourceEdge, actors.DispatcherConfig{Kind: events.KindEdge, Domain: "play.example.net", Port: 25565})
}

// direct starts the dispatcher that lives beside a backend.
func (r *rig) direct(id, local events.HostID) *actors.Dispatcher {
	return r.startDispatcher(id, events.SourceDirect, actors.DispatcherConfig{Kind: events.KindDirect, Local: local})
}

func (r *rig) startDispatcher(id events.HostID, kind events.SourceKind, cfg actors.DispatcherConfig) *actors.Dispatcher {
	r.t.Helper()
	return r.startDispatcherOn(string(id), id, kind, cfg)
}

// namesServers lets every player ask for a server by its name.
var namesServers = actors.NewPermissions(actors.PermissionsConfig{Defaults: []events.Permit{{Node: "rtp.servers.*", Granted: true}}})

// startDispatcherOn starts a dispatcher on the named connection.
func (r *rig) startDispatcherOn(conn string, id events.HostID, kind events.SourceKind, cfg actors.DispatcherConfig) *actors.Dispatcher {
	r.t.Helper()
	client := &gate{conn: r.store.Client(conn)}
	client.Heal()
	client.Resume()
	cfg.Identity, cfg.Log, cfg.Bus, cfg.Logger, cfg.Timing = r.identity(kind, id), client, client, r.logger(id), r.timing
	cfg.Line, cfg.Retention, cfg.Settings = r.line, r.retention, r.settings(id)
	cfg.Accounts = r.accounts
	cfg.Routing = actors.Routing{Sticky: true}
	if r.byRule != nil {
		cfg.Routing = *r.byRule
	}
	d, err := actors.NewDispatcher(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	d.SetPermissions(namesServers)
	d.SetJoins(r.joins)
	r.dispatchers[id] = start(r, d, client, d.Run)
	if kind == events.SourceEdge {
		r.net.AddEdge(id, d)
	}
	return d
}

// backend starts a game server and its backend. kept is the pool of its one region.
func (r *rig) backend(id events.HostID, kept int) *sim.World {
	r.t.Helper()
	w := sim.NewWorld(id, 100, 0)
	r.net.AddWorld(w)
	r.attach(id, w, kept)
	return w
}

// attach starts a backend beside a game server that exists.
func (r *rig) attach(id events.HostID, w *sim.World, kept int) {
	r.t.Helper()
	client := &gate{conn: r.store.Client(string(id))}
	client.Heal()
	client.Resume()
	var regions []actors.Region
	if kept > 0 {
		regions = []actors.Region{{Name: "default", World: "minecraft:overworld", MaxRadius: 1000, Keep: kept}}
	}
	b, err := actors.NewBackend(actors.BackendConfig{
		Identity: r.identity(events.SourceBackend, id), Log: client, Bus: client, World: w, Logger: r.logger(id), Timing: r.timing, Pace: r.pace,
		Regions: regions, Advertise: sim.WorldAddress(id), Public: sim.WorldAddress(id), Adapter: "sim", Settings: r.settings(id),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.backends[id] = start(r, b, client, b.Run)
}

func start[A any](r *rig, actor A, client *gate, run func(context.Context) error) *host[A] {
	ctx, cancel := context.WithCancel(r.ctx)
	h := &host[A]{actor: actor, client: client, cancel: cancel, err: make(chan error, 1)}
	r.wg.Go(func() {
		err := run(ctx)
		client.Close()
		h.err <- err
	})
	return h
}

// killDispatcher ends a dispatcher and its edge as kill -9 does.
func (r *rig) killDispatcher(id events.HostID) {
	h := r.dispatchers[id]
	h.client.Cut()
	if e := r.net.Edge(id); e != nil {
		e.Kill()
	}
	h.cancel()
}

// killBackend ends a backend's process, not its game server.
func (r *rig) killBackend(id events.HostID) {
	h := r.backends[id]
	h.client.Cut()
	h.cancel()
}

// pass lets fake time pass.
func (r *rig) pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// later does something when so much fake time has passed.
func (r *rig) later(d time.Duration, do func()) {
	r.wg.Go(func() {
		time.Sleep(d)
		do()
	})
}

// settle lets the network come up: heartbeats seen, folds live, observers sighted.
func (r *rig) settle() { r.pass(6 * time.Second) }

// player joins through an edge and waits until the log knows where the player is.
func (r *rig) player(name string, edge, server events.HostID) *sim.Client {
	r.t.Helper()
	c := r.net.AddClient(name, 767)
	r.pinned(c, server)
	if err := c.Join(r.ctx, edge, events.Token{}); err != nil {
		r.t.Fatal(err)
	}
	r.until("session of "+name+" on "+string(server), 5*time.Second, func() bool {
		s, ok := r.observer().View().Session(c.ID)
		return ok && s.Open && s.Server == server
	})
	return c
}

// pinned makes the edges route a first join to one server, where returns are sticky: its last
// session was there.
func (r *rig) pinned(c *sim.Client, server events.HostID) {
	src := streamtest.Source(events.SourceEdge, "before")
	open := streamtest.FactBy(r.t, src, c.ID.String(), 0, &events.SessionOpened{Session: events.Session{
		Holder: "before", HolderIncarnation: src.Incarnation, Kind: events.KindEdge, Server: server, Name: c.Name,
	}})
	seq, err := r.store.Client("tester").Append(r.ctx, open)
	if err != nil {
		r.t.Fatal(err)
	}
	closed := streamtest.FactBy(r.t, src, c.ID.String(), seq, &events.SessionClosed{Session: events.Session{
		Number: seq, Holder: "before", HolderIncarnation: src.Incarnation, Kind: events.KindEdge, Server: server, Name: c.Name,
	}, Reason: "earlier"})
	if _, err := r.store.Client("tester").Append(r.ctx, closed); err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
}

// observer is some dispatcher that is alive.
func (r *rig) observer() *actors.Dispatcher {
	for _, id := range []events.HostID{"e1", "e2", "e3", "d-a", "d-b"} {
		if h, ok := r.dispatchers[id]; ok && h.actor.Ready() {
			return h.actor
		}
	}
	r.t.Fatal("no dispatcher is ready")
	return nil
}

// until waits in fake time for a condition.
func (r *rig) until(what string, within time.Duration, cond func() bool) {
	r.t.Helper()
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		synctest.Wait()
		if cond() {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s: not within %s\n%s", what, within, r.story())
		}
	}
}

// facts opens all facts of a bucket.
func (r *rig) facts(b events.Bucket) []events.Event {
	var out []events.Event
	for _, rec := range r.store.Records(b) {
		e, refusal := events.Open(streamtest.Keyring(), rec)
		if refusal != nil {
			r.t.Fatalf("sequence %d of %s: %v", rec.Seq, b, refusal)
		}
		out = append(out, e)
	}
	return out
}

// story is the log, for a failing test.
func (r *rig) story() string {
	var s strings.Builder
	for _, b := range []events.Bucket{events.Transfers, events.Sessions, events.Audit} {
		for _, e := range r.facts(b) {
			s.WriteString(fmt.Sprintf("%s %d %s %s %+v\n", e.Stored.Format("05.000"), e.Seq, e.Source.ID, events.TypeName(e.Fact), e.Fact))
		}
	}
	return s.String()
}

// outcome waits until a player's newest transfer has ended and gives it.
func (r *rig) outcome(c *sim.Client, within time.Duration) projections.Transfer {
	r.t.Helper()
	var got projections.Transfer
	r.until("end of the transfer of "+c.Name, within, func() bool {
		p := r.observer().View().Player(c.ID)
		if p.Active != nil || len(p.Done) == 0 {
			return false
		}
		got = p.Done[len(p.Done)-1]
		return true
	})
	return got
}

// completed demands that a transfer arrived, and that the client stands on the coordinate.
func (r *rig) completed(c *sim.Client, t projections.Transfer, server events.HostID) {
	r.t.Helper()
	if t.Phase != projections.Completed || t.Destination() != server {
		r.t.Fatalf("transfer is %s (%s) to %s, want COMPLETED to %s\n%s", t.Phase, t.Code, t.Destination(), server, r.story())
	}
	v := c.Look()
	if v.Server != server || v.Position != t.Reserved.At {
		r.t.Fatalf("client is on %q at %+v, want %s at %+v\n%s", v.Server, v.Position, server, t.Reserved.At, r.story())
	}
}

// ended demands an end with a code, and that the player is told.
func (r *rig) ended(c *sim.Client, t projections.Transfer, phase projections.Phase, code events.Code, texts ...string) {
	r.t.Helper()
	if t.Phase != phase || t.Code != code {
		r.t.Fatalf("transfer is %s (%s), want %s (%s)\n%s", t.Phase, t.Code, phase, code, r.story())
	}
	for _, want := range texts {
		r.until("message "+want, 5*time.Second, func() bool {
			return has(c.Look().Texts, want)
		})
	}
}

var messages = actors.ShippedMessages()

// expand is the text of a message with its placeholders open, for matches.
func expand(key string) string {
	if text, ok := messages[key]; ok {
		return text
	}
	family, code, _ := strings.Cut(key, ".")
	return strings.ReplaceAll(messages[family], "{code}", code)
}

// operator writes a decision into control.
func (r *rig) operator(key string, prev uint64, f events.Fact) uint64 {
	r.t.Helper()
	seq, err := r.store.Client("tester").Append(r.ctx, streamtest.Fact(r.t, key, prev, f))
	if err != nil {
		r.t.Fatal(err)
	}
	synctest.Wait()
	return seq
}

// matches tells that a text is a message, whatever fills its placeholders.
func matches(text, message string) bool {
	before, after, open := strings.Cut(message, "{")
	if !open {
		return text == message
	}
	_, after, _ = strings.Cut(after, "}")
	return strings.HasPrefix(text, before) && (strings.Contains(after, "{") || strings.HasSuffix(text, after))
}
