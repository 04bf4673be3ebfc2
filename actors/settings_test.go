package actors

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

func sections(pairs ...string) []events.SectionBeat {
	out := []events.SectionBeat{}
	for _, p := range pairs {
		name, hash, _ := strings.Cut(p, "=")
		out = append(out, events.SectionBeat{Name: name, Hash: hash})
	}
	return out
}

// TestDifferences: what one host says of another's configuration.
func TestDifferences(t *testing.T) {
	own := events.ConfigBeat{Fixed: sections("edge=1", "hosts=2", "store=3"), Live: sections("line=4"), Pushed: 7}
	for name, c := range map[string]struct {
		change func(*events.ConfigBeat)
		want   string
	}{
		"none":           {func(*events.ConfigBeat) {}, ""},
		"another value":  {func(b *events.ConfigBeat) { b.Fixed = sections("edge=1", "hosts=9", "store=3") }, "keys that need a restart, in hosts"},
		"sections":       {func(b *events.ConfigBeat) { b.Fixed = sections("allocation=1", "hosts=2", "telemetry=3") }, "keys that need a restart, in allocation, edge, store, telemetry"},
		"live":           {func(b *events.ConfigBeat) { b.Live = nil }, "keys that can be reloaded, in line"},
		"another push":   {func(b *events.ConfigBeat) { b.Pushed, b.Live = 5, nil }, "it obeys version 5 that was pushed, not 7"},
		"refused":        {func(b *events.ConfigBeat) { b.Pushed, b.Refused, b.Fault = 5, 7, "line.hurry: unknown key" }, "it cannot obey version 7 that was pushed: line.hurry: unknown key"},
		"refused before": {func(b *events.ConfigBeat) { b.Refused = 6 }, ""},
		"several": {func(b *events.ConfigBeat) { b.Fixed, b.Live = nil, sections("line=5", "triggers=1") },
			"keys that need a restart, in edge, hosts, store; keys that can be reloaded, in line, triggers"},
	} {
		theirs := own
		c.change(&theirs)
		if got := differences(&own, &theirs, 7); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// configuredFleet is a fleet in which e1 to e3 and one backend beat, which goes by c.
func configuredFleet(now time.Time, c *events.ConfigBeat) *projections.Fleet {
	f := &projections.Fleet{Live: true, Since: now.Add(-time.Hour)}
	for _, id := range []events.HostID{"e1", "e2", "e3"} {
		f.Proxies = append(f.Proxies, &projections.Proxy{ProxyBeat: events.ProxyBeat{Proxy: id}, Seen: now, Live: true})
	}
	f.Backends = append(f.Backends, &projections.Backend{BackendBeat: events.BackendBeat{Server: "a", Config: c}, Seen: now, Live: true})
	return f
}

// TestTurnsToTellABackend: one dispatcher tells it at once, each other one a look later.
func TestTurnsToTellABackend(t *testing.T) {
	behind := &events.ConfigBeat{Pushed: 3}
	var first []int // the look at which each dispatcher tells
	for _, id := range []events.HostID{"e1", "e2", "e3"} {
		var l lagging
		w := watch{fleet: configuredFleet(t0, behind), now: t0, timing: Timing{}.WithDefaults(), self: edge(id)}
		for look := 0; ; look++ {
			if due := l.due(w, 7); len(due) > 0 {
				first = append(first, look)
				break
			}
		}
	}
	slices.Sort(first)
	if !slices.Equal(first, []int{0, 1, 2}) {
		t.Errorf("they tell at the looks %v", first)
	}
	for name, c := range map[string]struct {
		beat   *events.ConfigBeat
		newest uint64
		age    time.Duration
		want   int
	}{
		"obeys": {&events.ConfigBeat{Pushed: 7}, 7, 0, 0}, "cannot": {&events.ConfigBeat{Pushed: 3, Refused: 7}, 7, 0, 0}, "has none": {nil, 7, 0, 0},
		"silent": {behind, 7, time.Minute, 0}, "could not obey an older one": {&events.ConfigBeat{Refused: 6}, 7, 0, 1}, "the log began anew": {behind, 0, 0, 1},
	} {
		var l lagging
		w := watch{fleet: configuredFleet(t0, c.beat), now: t0, timing: Timing{}.WithDefaults(), self: edge("e1")}
		w.fleet.Proxies = nil
		w.now = t0.Add(c.age)
		if got := len(l.due(w, c.newest)); got != c.want {
			t.Errorf("%s: %d to be told, want %d", name, got, c.want)
		}
	}
}

// TestWarnsOnceOfAHostThatDiffers, and only when it still does after a while.
func TestWarnsOnceOfAHostThatDiffers(t *testing.T) {
	var log bytes.Buffer
	cfg := dispatcherConfig(t, streamtest.NewMemory())
	cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
	cfg.Settings.Beat = func() events.ConfigBeat { return events.ConfigBeat{Fixed: sections("hosts=1")} }
	d, err := NewDispatcher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	at := func(after time.Duration, hash string) int {
		w := watch{now: t0.Add(after), timing: Timing{}.WithDefaults(), self: d.Source}
		w.fleet = configuredFleet(w.now, &events.ConfigBeat{Fixed: sections("hosts=" + hash)})
		log.Reset()
		d.warnOfDifferences(w, 0)
		return strings.Count(log.String(), "level=WARN")
	}
	for _, step := range []struct {
		after time.Duration
		hash  string
		want  int
	}{
		{0, "1", 0}, {time.Second, "2", 0}, {2 * time.Second, "2", 0}, {3 * time.Second, "1", 0}, // a change that reaches one host after the other
		{4 * time.Second, "2", 0}, {7 * time.Second, "2", 1}, {8 * time.Second, "2", 0}, {time.Minute, "2", 0},
		{61 * time.Second, "3", 0}, {64 * time.Second, "3", 0}, {65 * time.Second, "1", 0},
	} {
		if got := at(step.after, step.hash); got != step.want {
			t.Errorf("after %s with %s: warned %d times, want %d", step.after, step.hash, got, step.want)
		}
	}
	if strings.Contains(log.String(), "host=e1") {
		t.Error("it warned of itself")
	}
}
