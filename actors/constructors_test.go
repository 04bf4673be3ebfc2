package actors

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

func dispatcherConfig(t *testing.T, mem *streamtest.Memory) DispatcherConfig {
	c := mem.Client("e1")
	return DispatcherConfig{
		Identity: identity(events.SourceEdge, "e1"), Log: c, Bus: c, Logger: logger(t), Kind: events.KindEdge, Domain: "play.example.net", Port: 25565,
	}
}

func backendConfig(t *testing.T, mem *streamtest.Memory) BackendConfig {
	c := mem.Client("b")
	return BackendConfig{
		Identity: identity(events.SourceBackend, "b"), Log: c, Bus: c, World: &ground{}, Logger: logger(t), Regions: twoRegions, Advertise: "b:25565",
	}
}

// TestNewDispatcherRefuses: each thing that is missing is an error, and nothing was started:
// the bubble would not end with a goroutine in it.
func TestNewDispatcherRefuses(t *testing.T) {
	rows := map[string]func(c *DispatcherConfig){
		"log": func(c *DispatcherConfig) { c.Log = nil }, "bus": func(c *DispatcherConfig) { c.Bus = nil },
		"keys": func(c *DispatcherConfig) { c.Keys = nil }, "clock": func(c *DispatcherConfig) { c.Now = nil },
		"id maker": func(c *DispatcherConfig) { c.NewID = nil }, "logger": func(c *DispatcherConfig) { c.Logger = nil },
		"edge.domain": func(c *DispatcherConfig) { c.Domain = "" },
		"backend":     func(c *DispatcherConfig) { c.Kind = events.KindDirect },
	}
	for missing, without := range rows {
		t.Run(missing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := dispatcherConfig(t, streamtest.NewMemory())
				without(&c)
				if d, err := NewDispatcher(c); err == nil || d != nil || !strings.Contains(err.Error(), missing) {
					t.Errorf("without %s: %v, %v; want an error that names it", missing, d, err)
				}
			})
		})
	}
}

func TestNewBackendRefuses(t *testing.T) {
	rows := map[string]func(c *BackendConfig){
		"log": func(c *BackendConfig) { c.Log = nil }, "bus": func(c *BackendConfig) { c.Bus = nil }, "world": func(c *BackendConfig) { c.World = nil },
		"keys": func(c *BackendConfig) { c.Keys = nil }, "clock": func(c *BackendConfig) { c.Now = nil },
		"id maker": func(c *BackendConfig) { c.NewID = nil }, "logger": func(c *BackendConfig) { c.Logger = nil },
	}
	for missing, without := range rows {
		t.Run(missing, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := backendConfig(t, streamtest.NewMemory())
				without(&c)
				if b, err := NewBackend(c); err == nil || b != nil || !strings.Contains(err.Error(), missing) {
					t.Errorf("without %s: %v, %v; want an error that names it", missing, b, err)
				}
			})
		})
	}
}

// TestNewStartsNothing: a constructed actor that is never run leaves nothing behind.
func TestNewStartsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		mem := streamtest.NewMemory()
		d, err := NewDispatcher(dispatcherConfig(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewBackend(backendConfig(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		d.Leave()
		b.Leave()
		d.Opened(Connection{ID: 1, Name: "Steve", Server: "b"})
		d.Closed(1, "before the start")
		if d.Ready() || len(mem.Records(events.Fleet)) != 0 {
			t.Error("it acts before it runs")
		}
	})
}

// TestRunEnds: both actors return their context's error once all they started has ended; the
// bubble would not end otherwise. Their last beats say that they left in order.
func TestRunEnds(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		d, err := NewDispatcher(dispatcherConfig(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		b, err := NewBackend(backendConfig(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		go func() { ended <- d.Run(ctx) }()
		go func() { ended <- b.Run(ctx) }()
		eventually(t, "both beat", func() bool {
			return d.Ready() && len(d.View().Fleet().Backends) == 1 && len(d.View().Fleet().Proxies) == 1
		})
		eventually(t, "backend ready", func() bool { return d.View().Fleet().Backend("b").State == events.Ready })
		d.Leave()
		b.Leave()
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("ended with %v", err)
			}
		}
		last := map[string]events.HostState{}
		for _, e := range stored(t, mem, events.Fleet) {
			if f, ok := e.Fact.(*events.BackendBeat); ok {
				last[e.Key] = f.State
			}
			if f, ok := e.Fact.(*events.ProxyBeat); ok {
				last[e.Key] = f.State
			}
		}
		if last["backend.b"] != events.ShuttingDown || last["proxy.e1"] != events.ShuttingDown {
			t.Errorf("last beats: %v", last)
		}
		d.Closed(1, "after the end") // must neither block nor start anything
		b.Joined(Player{ID: steve, Name: "Steve"})
	})
}

// TestCallsWhileStarting: edges and game servers call in while an actor starts and ends.
func TestCallsWhileStarting(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		d, err := NewDispatcher(dispatcherConfig(t, mem))
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- d.Run(ctx) }()
		for n := range uint64(50) {
			d.Opened(Connection{ID: n, Name: "Steve", Player: steve, Server: "b"})
			d.Route(ctx, Login{Player: steve, Name: "Steve", Token: tokenOne, Protocol: 767})
			d.tellPlayer(steve, "transfer.waiting", nil)
			d.Closed(n, "left")
			if n == 25 {
				cancel()
			}
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestBackendLives: a restarted game server begins a new life: another incarnation, an empty
// pool, and the promises of the old one die with it.
func TestBackendLives(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		cfg := backendConfig(t, mem)
		restart := make(chan struct{})
		cfg.World.(*ground).run = func(ctx context.Context, h WorldEvents) error {
			h.Up("one")
			<-restart
			h.Up("two")
			<-ctx.Done()
			return ctx.Err()
		}
		b, err := NewBackend(cfg)
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = b.Run(ctx) }()
		eventually(t, "pool full", func() bool { return b.life.Load() != nil && b.Tally().Ready == 5 })
		old := b.life.Load()
		who := identity(events.SourceEdge, "e1")
		reserve := func(inc events.Incarnation, id events.TransferID) events.ReserveAnswer {
			a, err := ask[events.ReserveAnswer](ctx, who, mem.Client("e1"), events.ToBackend("b", events.VerbReserve),
				events.ReserveAsk{Player: steve, Transfer: id, Attempt: 1, TTLMs: 30_000, Incarnation: inc})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := reserve(old.Source.Incarnation, first); a.Code != events.Promised {
			t.Fatalf("promise of the first life: %+v", a)
		}
		close(restart)
		eventually(t, "another life", func() bool { return b.Incarnation() != old.Source.Incarnation && b.Tally().Ready == 5 })
		time.Sleep(time.Second)
		if a := reserve(old.Source.Incarnation, second); a.Code != events.WrongIncarnation {
			t.Errorf("a reservation for the old life: %+v, want WRONG_INCARNATION", a)
		}
		if a := reserve(b.Incarnation(), first); a.Code != events.Promised || a.Promise != 1 {
			t.Errorf("the new life's first promise: %+v", a)
		}
	})
}

// TestBackendEndsWithItsWorld: a setting that a person must mend ends the backend with that error.
func TestBackendEndsWithItsWorld(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		cfg, wrong := backendConfig(t, mem), errors.New("wrong RCON password")
		cfg.World.(*ground).run = func(context.Context, WorldEvents) error { return wrong }
		b, err := NewBackend(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Run(ctx); !errors.Is(err, wrong) {
			t.Errorf("ended with %v, want %v", err, wrong)
		}
	})
}
