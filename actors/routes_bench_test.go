package actors

import (
	"context"
	"log/slog"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// BenchmarkRoutes is what a redirect and the reconnect after it cost at a real store that is lazy about its disk: staging
// a route (three facts, two of them at once), and finding it (a read and a fact), by each rule and in vain. By the
// address all routes of the last minute are looked at, here as many as ever are.
func BenchmarkRoutes(b *testing.B) {
	n := r1.Open(b, b.TempDir(), 0, map[events.HostID]r1.Role{"e1": r1.Dispatcher})
	defer n.Close()
	log := n.Client("e1")
	d, err := NewDispatcher(DispatcherConfig{
		Identity: identity(events.SourceEdge, "e1"), Log: log, Bus: log, Logger: slog.New(slog.DiscardHandler), Kind: events.KindEdge, Domain: "play.example.net",
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	d.tasks.begin(ctx)
	defer d.tasks.end()
	defer cancel()
	go func() { _ = d.view.Run(ctx) }()
	if err := d.view.WaitLive(ctx); err != nil {
		b.Fatal(err)
	}
	stage := func() [16]byte {
		id, err := d.stage(ctx, staging{player: alex, server: "b", hops: 1, remote: oneHome})
		if err != nil {
			b.Fatal(err)
		}
		return id
	}
	b.Run("stage", func(b *testing.B) {
		for b.Loop() {
			stage()
		}
	})
	for name, trace := range map[string]func(id [16]byte) Trace{
		"marker":  func(id [16]byte) Trace { return Trace{Marker: id} },
		"player":  func([16]byte) Trace { return Trace{Player: alex} },
		"address": func([16]byte) Trace { return Trace{Remote: oneHome} },
	} {
		b.Run("find by "+name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				t := trace(stage())
				b.StartTimer()
				if l := d.FindRoute(ctx, t); !l.Found() {
					b.Fatal("not found")
				}
			}
		})
	}
	b.Run("find nothing", func(b *testing.B) {
		for b.Loop() {
			if l := d.FindRoute(ctx, Trace{Marker: [16]byte{1}, Remote: oneHome}); l.Found() {
				b.Fatal("found")
			}
		}
	})
}
