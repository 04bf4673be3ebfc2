package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// Bounds and sizes of a log that is filled.
const (
	maxFill        = 100_000_000
	maxFillPlayers = 1_000_000
	factsPerPlayer = 50 // unless --players says otherwise
	fillWriters    = 64
)

// cast are the hosts whose facts fill a log.
type cast struct {
	kind     events.SessionKind
	proxies  []events.HostID
	backends []events.HostID
}

// demoCast are hosts that nobody has heard of.
var demoCast = cast{kind: events.KindEdge, proxies: hostIDs("proxy", 3), backends: hostIDs("backend", 8)}

func hostIDs(name string, n int) []events.HostID {
	out := make([]events.HostID, n)
	for i := range out {
		out[i] = events.HostID(fmt.Sprintf("%s-%d", name, i+1))
	}
	return out
}

// castOf are the hosts of a network.
func castOf(n *network.Network) cast {
	c := cast{kind: events.KindEdge}
	if n.Direct() {
		c.kind = events.KindDirect
	}
	for _, id := range slices.Sorted(maps.Keys(n.Hosts)) {
		x := n.Hosts[id]
		if roleOf(n, x) == streams.RoleDispatcher {
			c.proxies = append(c.proxies, events.HostID(id))
		}
		if x.IsBackend() && !n.IsLobby(id) {
			c.backends = append(c.backends, events.HostID(id))
		}
	}
	return c
}

// filling is a log being filled.
type filling struct {
	*demoRun
	cast      cast
	began     time.Time
	chronicle *sim.Chronicle
	sealed    chan uint64 // last sequence that a checkpoint seals, as it grows
}

// fill writes a log of o.fill facts into a directory that has none.
func fill(ctx context.Context, o demoOptions, stdout, stderr io.Writer) error {
	if !o.playersSet {
		o.players = int(max(12, min(o.fill/factsPerPlayer, maxFillPlayers))) //nolint:gosec // bounded
	}
	f, err := openFilling(ctx, o, stdout, stderr)
	if err != nil {
		return err
	}
	if f.since != 0 {
		err = fmt.Errorf("demo: %s holds %s already: --fill begins with an empty log, name another --dir", f.o.dir, plural(f.since, "fact"))
		return errors.Join(err, f.close())
	}
	err = errors.Join(f.run(ctx), f.close(), syncTree(f.o.dir))
	if f.chronicle.Report().Facts == 0 {
		return err
	}
	return errors.Join(err, f.show())
}

// openFilling opens the store of a demo, or that of a network's carrier.
func openFilling(ctx context.Context, o demoOptions, stdout, stderr io.Writer) (*filling, error) {
	o.durable = string(streams.Lazy) // one sync at the end
	f := &filling{cast: demoCast, began: time.Now(), sealed: make(chan uint64, 1)}
	var err error
	if o.config == "" {
		f.demoRun, err = openDemo(ctx, o, stdout, stderr)
		return f, err
	}
	n, err := network.Load(o.config)
	if err != nil {
		return nil, err
	}
	if f.cast = castOf(n); n.Store.Mode != "embedded" || len(f.cast.proxies) == 0 || len(f.cast.backends) == 0 {
		return nil, fmt.Errorf("demo: %s: want an embedded store, an edge and a backend with regions, or backends without an edge", o.config)
	}
	secret, _, err := n.Secret(os.Getenv)
	if err != nil {
		return nil, err
	}
	o.dir = n.File(n.Store.Dir)
	f.demoRun = newDemoRun(o, stdout, stderr)
	return f, f.open(ctx, embedded.Config{
		Dir: o.dir, Network: n.Network.Name, Creator: createdByUp, Settings: settingsOf(n), MaxBytes: n.Store.MaxBytes, Durability: streams.Lazy,
	}, secret)
}

// run writes, seals and says how far it is.
func (f *filling) run(ctx context.Context) error {
	f.chronicle = sim.NewChronicle(sim.ChronicleConfig{
		Log: f.conns[0], Identity: f.identity, Kind: f.cast.kind, Proxies: f.cast.proxies, Backends: f.cast.backends,
		Players: f.o.players, Facts: f.o.fill, Writers: fillWriters, Seed: 1,
	})
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	crew := newGang(stop)
	crew.start(f.seal)
	crew.start(f.tell)
	err := f.chronicle.Run(stop)
	if err == nil {
		err = f.awaitSeals(stop, crew)
	}
	cancel()
	return errors.Join(err, crew.stop())
}

// sealEvery is how many facts a checkpoint seals, as on every network.
const sealEvery = 10_000

// seal writes the checkpoints behind the facts.
func (f *filling) seal(ctx context.Context) error {
	s, err := actors.NewSealer(actors.SealerConfig{
		Identity: f.identity(events.SourceKind(f.cast.kind), f.cast.proxies[0]), Log: f.conns[0], Records: records{f.conns[0]}, Logger: f.log,
		Facts: sealEvery, Look: 100 * time.Millisecond,
		Remember: func(c events.Checkpoint) {
			select {
			case <-f.sealed:
			default:
			}
			f.sealed <- c.To
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// awaitSeals waits until all is sealed but for what a network would not have sealed yet.
func (f *filling) awaitSeals(ctx context.Context, crew *gang) error {
	for want := f.o.fill / sealEvery * sealEvery; want > 0; {
		select {
		case to := <-f.sealed:
			if to >= want {
				return nil
			}
		case <-crew.ended():
			return nil // the reason comes from stop
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// fillTick is how often it is said how far it is.
const fillTick = 2 * time.Second

// tell says how far it is, until ctx ends.
func (f *filling) tell(ctx context.Context) error {
	tick := time.NewTicker(fillTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if err := f.out.print(f.progress()); err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fillProgress is how far a log is filled.
type fillProgress struct {
	Kind      string  `json:"kind"` // always "progress"
	Facts     uint64  `json:"facts"`
	Of        uint64  `json:"of"`
	PerSecond float64 `json:"perSecond"`
	LeftMs    *int64  `json:"leftMs"` // null: unknown
}

func (f *filling) progress() fillProgress {
	p := fillProgress{Kind: "progress", Facts: f.chronicle.Report().Facts, Of: f.o.fill}
	if p.PerSecond = float64(p.Facts) / time.Since(f.began).Seconds(); p.PerSecond > 0 {
		p.LeftMs = new(int64(float64(p.Of-p.Facts) / p.PerSecond * 1000))
	}
	return p
}

// String is the progress as a line.
func (p fillProgress) String() string {
	left := "unknown"
	if p.LeftMs != nil {
		left = millis(*p.LeftMs)
	}
	return fmt.Sprintf("%9d of %d facts  %3.0f %%  %6.0f/s  ETA %s", p.Facts, p.Of, 100*float64(p.Facts)/float64(p.Of), p.PerSecond, left)
}

// fillSummary is the last word of --fill.
type fillSummary struct {
	sim.ChronicleReport
	Kind    string  `json:"kind"` // always "end"
	Open    uint64  `json:"open"`
	Players int     `json:"players"`
	Seconds float64 `json:"seconds"` // the sync at the end included
	Dir     string  `json:"dir"`
}

func (f *filling) show() error {
	report := f.chronicle.Report()
	s := fillSummary{ChronicleReport: report, Kind: "end", Open: report.Open(), Players: f.o.players, Seconds: time.Since(f.began).Seconds(), Dir: f.o.dir}
	if f.o.json {
		return json.NewEncoder(f.out.w).Encode(s)
	}
	return f.out.print(s)
}

// String is the summary for people.
func (s fillSummary) String() string {
	text := fmt.Sprintf("%s of %s in %.1f s (%.0f/s), synced: %d completed, %d ended otherwise, %d under way, in %s",
		plural(s.Facts, "fact"), plural(s.Transfers, "transfer"), s.Seconds, float64(s.Facts)/s.Seconds, s.Completed, s.Ended, s.Open, s.Dir)
	if !s.Example.IsZero() {
		text += fmt.Sprintf("\nwhy did a player go there?  landfall replay token %s --store %s", s.Example, s.Dir)
	}
	return text
}
