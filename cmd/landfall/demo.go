package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// createdByDemo stands in the store: a directory made by `up` is another thing.
const createdByDemo = "demo"

// The hosts of the demo.
var (
	demoProxies  = []events.HostID{"proxy-1", "proxy-2"}
	demoBackends = []events.HostID{"backend-1", "backend-2"}
)

// demoTiming ends within seconds what takes a minute on a real network.
var demoTiming = actors.Timing{TTL: 10 * time.Second, MoveTimeout: 3 * time.Second, Grace: 5 * time.Second}

type demoOptions struct {
	dir      string
	players  int
	rate     float64
	duration time.Duration
	durable  string
	kill     bool
	json     bool
	verbose  bool

	proxies  int
	backends int
	measure  time.Duration // of each role; 0: not at all

	capacity int // of the small server of a rush; 0: players wander
	pace     float64

	fill       uint64
	config     string // network.yml whose store is filled
	playersSet bool   // --players was given
}

func newDemo() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Run a whole network in this process and watch players move",
		Long: `Runs an embedded store, two proxies and two backends in this process, with simulated game
servers and players who ask for places on the other server. Everything but the servers'
and the clients' sockets is the real thing. The data it leaves can be read with tail and
replay; run again on the same directory it goes on, and ends what was open.

With --capacity all players stand in a lobby and ask at once, where one server has so many seats
and the other is down; 6 s later it returns, and the line empties at --pace (500 players unless
--players says otherwise). With --measure what each role costs while nobody asks is measured
first: the store, then --backends of them, then --proxies, each as the difference it makes.

With --fill no network is run: the facts of one that was busy for long are written as fast as
the disk takes them, decided, signed, chained and sealed as ever, and synced once at the end.
It is a log to try the reading verbs on; with --config one that the hosts of that network begin
with.

Exit status: 0 nothing lost and nothing doubled, 1 otherwise, or when it could not run.`,
		Example: `  landfall demo --players 50 --rate 20 --kill-proxy
  landfall demo --capacity 100 --pace 20
  landfall demo --backends 1000 --proxies 10 --measure 10s
  landfall demo --fill 1000000 --dir busy && landfall verify --store busy`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			o.playersSet = c.Flags().Changed("players")
			if o.capacity > 0 && !o.playersSet {
				o.players = rushPlayers
			}
			return demo(c.Context(), o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&o.dir, "dir", defaultDemoDir, "directory of the store and its secret")
	f.IntVar(&o.players, "players", 12, "players (1 to 2000; with --fill up to 1000000, and one for each 50 facts if not given)")
	f.Float64Var(&o.rate, "rate", 5, "requests a second, over all players (0.1 to 2000)")
	f.DurationVar(&o.duration, "duration", 6*time.Second, "how long players go on asking")
	f.StringVar(&o.durable, "durability", string(streams.Always), "when an acknowledged fact is on the disk, as store.durability: always, grouped or lazy")
	f.BoolVar(&o.kill, "kill-proxy", false, "one proxy dies halfway, with what it had claimed")
	f.IntVar(&o.proxies, "proxies", len(demoProxies), "proxies (2 to 20)")
	f.IntVar(&o.backends, "backends", len(demoBackends), "backends (2 to 1000)")
	f.DurationVar(&o.measure, "measure", 0, "measure for so long what each role costs before anybody plays (1s to 10m)")
	f.IntVar(&o.capacity, "capacity", 0, "seats of one server, for players who all ask at once (1 to one less than players)")
	f.Float64Var(&o.pace, "pace", rushPace, "with --capacity: places each server gives in a second (1 to 1000)")
	f.Uint64Var(&o.fill, "fill", 0, "write a log of so many facts instead, into a directory without one")
	f.StringVar(&o.config, "config", "", "with --fill: a network.yml, whose store is made, for `landfall up`")
	f.BoolVar(&o.json, "json", false, "JSON lines; the last one is the summary")
	f.BoolVar(&o.verbose, "verbose", false, "also show the program's own log")
	return c
}

func (o demoOptions) check() error {
	switch {
	case o.players < 1 || o.players > o.mostPlayers():
		return usageError("--players %d: want 1 to %d", o.players, o.mostPlayers())
	case o.fill > maxFill:
		return usageError("--fill %d: want at most %d facts", o.fill, maxFill)
	case o.fill == 0 && o.config != "":
		return usageError("--config %s: only --fill goes by a network's file", o.config)
	case o.fill > 0 && o.kill:
		return usageError("--fill runs no proxy that --kill-proxy could end: give one")
	case o.proxies < 2 || o.proxies > 20:
		return usageError("--proxies %d: want 2 to 20", o.proxies)
	case o.backends < 2 || o.backends > 1000:
		return usageError("--backends %d: want 2 to 1000", o.backends)
	case o.measure != 0 && (o.measure < time.Second || o.measure > 10*time.Minute):
		return usageError("--measure %s: want 1s to 10m", o.measure)
	case o.capacity < 0 || o.capacity >= o.players && o.capacity > 0:
		return usageError("--capacity %d: want 1 to %d, one less than players", o.capacity, o.players-1)
	case o.capacity > 0 && (o.fill > 0 || o.kill || o.measure > 0 || o.backends != len(demoBackends) || o.proxies != len(demoProxies)):
		return usageError("--capacity plays a story of its own: leave out --fill, --kill-proxy, --measure, --backends and --proxies")
	case o.fill > 0 && o.measure > 0:
		return usageError("--fill runs no host that --measure could measure: give one")
	case o.pace < 1 || o.pace > 1000:
		return usageError("--pace %g: want 1 to 1000 places a second", o.pace)
	case o.rate < 0.1 || o.rate > 2000:
		return usageError("--rate %g: want 0.1 to 2000 requests a second", o.rate)
	case o.duration < 100*time.Millisecond || o.duration > 24*time.Hour:
		return usageError("--duration %s: want 100ms to 24h", o.duration)
	case !slices.Contains(streams.Durabilities, streams.Durability(o.durable)):
		return usageError("--durability %s: want always, grouped or lazy", o.durable)
	}
	return nil
}

func (o demoOptions) mostPlayers() int {
	if o.fill > 0 {
		return maxFillPlayers
	}
	return 2000
}

// summary is the demo's last word.
type summary struct {
	sim.Report
	Dir   string     `json:"dir"`
	Roles []roleCost `json:"roles,omitempty"` // what each costs, when it was measured
}

func demo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.fill > 0 {
		return fill(ctx, o, stdout, stderr)
	}
	r, err := openDemo(ctx, o, stdout, stderr)
	if err != nil {
		return err
	}
	if o.capacity > 0 {
		return errors.Join(r.rush(ctx), r.close())
	}
	report, err := r.play(ctx)
	if err = errors.Join(err, r.close()); err != nil {
		return err
	}
	if err := r.show(report); err != nil {
		return err
	}
	if report.Lost > 0 || report.Doubled > 0 {
		return exitWith(statusFailed, fmt.Errorf("%d lost, %d doubled: this should never happen, please report it with the directory %s", report.Lost, report.Doubled, o.dir))
	}
	return nil
}

// demoRun is one run of the demo: the store, who may open it, and the connections made.
type demoRun struct {
	o      demoOptions
	out    printer
	log    *slog.Logger
	keys   *events.Keyring
	server *embedded.Server
	logins map[events.HostID]embedded.User
	conns  []*streams.Store
	since  uint64
	roles  []roleCost
}

// numbered are so many ids.
func numbered(what string, n int) []events.HostID {
	ids := make([]events.HostID, n)
	for i := range ids {
		ids[i] = events.HostID(fmt.Sprintf("%s-%d", what, i+1))
	}
	return ids
}

func (o demoOptions) proxyIDs() []events.HostID {
	return numbered("proxy", max(o.proxies, len(demoProxies)))
}

func (o demoOptions) backendIDs() []events.HostID {
	if o.capacity > 0 {
		return []events.HostID{rushLobby, rushSmall, rushLarge}
	}
	return numbered("backend", max(o.backends, len(demoBackends)))
}

func openDemo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) (*demoRun, error) {
	secret, err := demoSecret(o.dir)
	if err != nil {
		return nil, err
	}
	r := newDemoRun(o, stdout, stderr)
	r.addLogins(secret, streams.RoleDispatcher, o.proxyIDs())
	r.addLogins(secret, streams.RoleBackend, o.backendIDs())
	return r, r.open(ctx, embedded.Config{Dir: o.dir, Network: "demo", Creator: createdByDemo, Durability: streams.Durability(o.durable)}, secret)
}

func newDemoRun(o demoOptions, stdout, stderr io.Writer) *demoRun {
	r := &demoRun{o: o, out: printer{w: stdout, json: o.json}, log: slog.New(slog.DiscardHandler), logins: map[events.HostID]embedded.User{}}
	if o.verbose {
		r.log = logTo(stderr, false)
	}
	return r
}

// open opens the store, makes its streams and notes where the log ends now.
func (r *demoRun) open(ctx context.Context, cfg embedded.Config, secret []byte) error {
	key, err := events.NewKey(secret)
	if err != nil {
		return err
	}
	r.keys = events.NewKeyring(key)
	cfg.Logger = r.log
	cfg.Users = append(cfg.Users, readerLogin(secret), operatorLogin(secret))
	for _, u := range r.logins {
		cfg.Users = append(cfg.Users, u)
	}
	if r.server, err = embedded.Open(ctx, cfg); err != nil {
		return err
	}
	return r.prepare(ctx)
}

func (r *demoRun) addLogins(secret []byte, role streams.Role, ids []events.HostID) {
	for _, id := range ids {
		name, password := streams.Login(secret, role, id)
		r.logins[id] = embedded.User{Role: role, ID: id, Name: name, Password: password}
	}
}

// prepare makes the streams and notes where the log ends now.
func (r *demoRun) prepare(ctx context.Context) error {
	st, err := r.connect(ctx, r.server.Connection())
	if err == nil {
		var info events.StreamState
		if err = st.Ensure(ctx); err == nil {
			info, err = st.Info(ctx, events.Transfers)
			r.since = info.Last
		}
	}
	if err != nil {
		return errors.Join(err, r.close())
	}
	return nil
}

func (r *demoRun) connect(ctx context.Context, c streams.Config) (*streams.Store, error) {
	st, err := streams.Connect(ctx, c)
	if err == nil {
		r.conns = append(r.conns, st)
	}
	return st, err
}

// connectAs logs a host in as itself, with the permissions of its role.
func (r *demoRun) connectAs(ctx context.Context, kind events.SourceKind, id events.HostID) (sim.Conn, error) {
	c := r.server.Connection()
	u := r.logins[id]
	c.Role, c.ID, c.User, c.Password = u.Role, u.ID, u.Name, u.Password
	c.Carrier, c.NoRead = false, kind == events.SourceBackend
	var st *streams.Store
	err := backoff.Retry(func() (err error) { // a machine that is busy may take too long over one of a thousand
		st, err = r.connect(ctx, c)
		return err
	}, backoff.WithContext(backoff.WithMaxRetries(backoff.NewConstantBackOff(200*time.Millisecond), 10), ctx))
	if err != nil {
		return nil, err
	}
	return st, nil
}

func (r *demoRun) identity(kind events.SourceKind, id events.HostID) actors.Identity {
	return actors.Identity{
		Source: events.Source{Kind: kind, ID: id, Incarnation: events.Incarnation(newID())},
		Keys:   r.keys, Now: time.Now, NewID: newID,
	}
}

// play runs the network and its players, and then goes over the log.
func (r *demoRun) play(ctx context.Context) (sim.Report, error) {
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	stage := sim.NewStage(stop, sim.StageConfig{
		Proxies: r.o.proxyIDs(), Backends: r.o.backendIDs(), Keep: max(16, r.o.players), Seats: 4 * r.o.players, Raised: r.costs(stop), Tick: 2 * time.Millisecond, Reconnect: 30 * time.Millisecond,
		Timing: demoTiming, Connect: r.connectAs, Identity: r.identity, Logger: r.log, Version: buildInfo().Version,
	})
	crew := newGang(stop)
	crew.start(stage.Run)
	crew.start(r.watch)
	err := r.wander(stop, stage, crew)
	cancel()
	err = errors.Join(err, crew.stop())
	stage.Net().Wait()
	if err != nil {
		return sim.Report{}, err
	}
	dead := events.HostID("")
	if r.o.kill {
		dead = demoProxies[0]
	}
	return sim.Audit(r.facts(context.WithoutCancel(ctx)), r.since, stage.Worlds(), dead)
}

func (r *demoRun) wander(ctx context.Context, stage *sim.Stage, crew *gang) error {
	select {
	case <-stage.Ready():
	case <-crew.ended():
		return nil // the reason comes from stop
	case <-ctx.Done():
		return nil
	}
	load := sim.Load{Stage: stage, Players: r.o.players, Rate: r.o.rate, Duration: r.o.duration, Settle: 45 * time.Second, Seed: 1}
	if r.o.kill {
		load.Kill, load.KillAt = demoProxies[0], r.o.duration/2
	}
	_, err := load.Run(ctx)
	return err
}

// watch prints every fact of this run as it is folded, one line for each phase.
func (r *demoRun) watch(ctx context.Context) error {
	began := map[events.TransferID]demoLine{}
	v := projections.NewView(projections.Config{
		Log: r.conns[0], Keys: r.keys, Logger: r.log, Now: time.Now,
		Changed: func(c projections.Change) {
			fact, ok := c.Event.Fact.(events.TransferFact)
			if !ok || c.Seq <= r.since {
				return
			}
			line := began[c.Event.Correlation]
			if f, first := fact.(*events.Requested); first {
				line = demoLine{Player: f.Name, start: c.Event.Stored, ID: c.Event.Correlation}
				began[c.Event.Correlation] = line
			}
			line.take(c.Event, fact)
			_ = r.out.print(line)
			if events.Terminal(fact) {
				delete(began, c.Event.Correlation)
			}
		},
	})
	return v.Run(ctx)
}

// demoLine is one phase of one transfer.
type demoLine struct {
	Seq    uint64            `json:"seq"`
	ID     events.TransferID `json:"transfer"`
	Player string            `json:"player"`
	AgeMs  float64           `json:"ageMs"`
	Phase  string            `json:"phase"`
	Text   string            `json:"text"`
	start  time.Time
}

func (l *demoLine) take(e events.Event, f events.TransferFact) {
	l.Seq, l.Phase, l.Text = e.Seq, shortType(events.TypeName(f)), describe(f)
	if !l.start.IsZero() {
		l.AgeMs = float64(e.Stored.Sub(l.start).Microseconds()) / 1000
	}
}

// String is the line for people.
func (l demoLine) String() string {
	return fmt.Sprintf("%9.1f ms  %-10s %s  %-20s %s", l.AgeMs, l.Player, l.ID.Short(), l.Phase, l.Text)
}

// facts reads the whole log, verified.
func (r *demoRun) facts(ctx context.Context) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for rec, err := range r.conns[0].History(ctx, events.Transfers, streams.Range{}) {
			if err != nil {
				yield(events.Event{}, err)
				return
			}
			e, refusal := events.Open(r.keys, rec)
			if refusal != nil {
				yield(e, fmt.Errorf("sequence %d: %w", rec.Seq, refusal))
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (r *demoRun) show(report sim.Report) error {
	s := summary{Report: report, Dir: r.o.dir, Roles: r.roles}
	if r.o.json {
		return json.NewEncoder(r.out.w).Encode(s)
	}
	return r.out.print(s)
}

// String is the summary for people.
func (s summary) String() string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf(`
%d transfers: %d completed, %d ended otherwise, %d open; %d lost, %d doubled
request to arrival: p50 %.1f ms, p99 %.1f ms; %d facts in %s`,
		s.Transfers, s.Completed, s.Failed, s.Open, s.Lost, s.Doubled, s.P50Ms, s.P99Ms, s.Facts, s.Dir))
	for _, x := range s.Reasons {
		text.WriteString(fmt.Sprintf("\n  %d ended with %s", x.Count, x.Code))
	}
	if s.Reopened+s.Survived > 0 {
		text.WriteString(fmt.Sprintf("\nof what the dead proxy had claimed: %d reopened, %d finished by the survivors", s.Reopened, s.Survived))
	}
	if s.Example != "" {
		text.WriteString(fmt.Sprintf("\nwhy did a player go there?  go run ./cmd/landfall replay transfer %s --store %s", s.Example, s.Dir))
	}
	return text.String()
}

// close ends the connections, then the store.
func (r *demoRun) close() error {
	var err error
	for _, st := range r.conns {
		err = errors.Join(err, st.Close())
	}
	return errors.Join(err, r.server.Close())
}

// demoSecret reads the demo's secret, or makes it in a directory that is new.
func demoSecret(dir string) ([]byte, error) {
	path := filepath.Join(dir, demoSecretFile)
	text, err := os.ReadFile(path) //nolint:gosec // the user names the directory
	if errors.Is(err, fs.ErrNotExist) {
		return makeDemoSecret(dir, path)
	}
	if err != nil {
		return nil, fmt.Errorf("demo secret: %w", err)
	}
	secret, err := base64.StdEncoding.DecodeString(string(text))
	if err != nil || len(secret) < events.MinSecret {
		return nil, fmt.Errorf("demo secret %s: is not Base64 of %d bytes: restore it, or remove the directory and begin anew", path, events.MinSecret)
	}
	return secret, nil
}

func makeDemoSecret(dir, path string) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(dir, "landfall.json")); err == nil {
		return nil, fmt.Errorf("demo: %s holds a store without %s: it was made by `up`, or its secret is lost; give the demo another --dir", dir, demoSecretFile)
	}
	secret := make([]byte, events.MinSecret)
	_, _ = rand.Read(secret) // never fails: it ends the process instead
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	err := os.WriteFile(path, []byte(base64.StdEncoding.EncodeToString(secret)), 0o600)
	if err != nil {
		return nil, fmt.Errorf("demo secret: %w", err)
	}
	return secret, nil
}
