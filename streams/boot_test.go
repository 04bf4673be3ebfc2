package streams_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"

	"github.com/landfall/landfall/streams/streamtest"
)

// beginsWhole makes a View's tails begin with everything.
type beginsWhole struct{ projections.Tailer }

func (w beginsWhole) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	if from.Mode == events.TailLive {
		from.Mode = events.TailAll
	}
	return w.Tailer.Tail(ctx, b, from, f)
}

// BenchmarkBoot is a View's way to readiness over a store of ended transfers (five facts
// each, spread over players of four) with some under way: from what is alive, and from
// everything.
func BenchmarkBoot(b *testing.B) {
	for _, size := range []struct{ ended, live int }{{20_000, 50}, {20_000, 500}, {20_000, 1500}} {
		b.Run(fmt.Sprintf("ended=%d/live=%d", size.ended, size.live), func(b *testing.B) {
			c := testConfig(b)
			srv := openServer(b, c)
			st := ensured(b, srv.Connection())
			facts := populate(b, rawConfig(b, srv.Connection()), size.ended, size.live)
			for name, log := range map[string]projections.Tailer{"from=alive": st, "from=everything": beginsWhole{st}} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						boot(b, log, size.live)
					}
					b.ReportMetric(float64(facts), "facts")
				})
			}
		})
	}
}

func boot(b testing.TB, log projections.Tailer, live int) {
	b.Helper()
	v := projections.NewView(projections.Config{Log: log, Keys: streamtest.Keyring(), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	if err := v.WaitLive(ctx); err != nil {
		b.Fatal(err)
	}
	if n := len(v.Active()); n != live {
		b.Fatalf("%d under way, want %d", n, live)
	}
	cancel()
	<-done
}

// TestBootOfManyAlive: when more is alive than one would name, everything is read.
func TestBootOfManyAlive(t *testing.T) {
	srv := openServer(t, testConfig(t))
	st := ensured(t, srv.Connection())
	const live = 1100
	populate(t, rawConfig(t, srv.Connection()), 200, live)
	boot(t, st, live)
}

// populate publishes without waiting for each: what counts is what is there afterwards.
func populate(b testing.TB, js jetstream.JetStream, ended, live int) (facts int) {
	b.Helper()
	life := streamtest.Source(events.SourceBackend, "b").Incarnation
	e1 := streamtest.Source(events.SourceEdge, "e1")
	journey := []events.Fact{
		&events.Requested{Trigger: events.TriggerCommand, Origin: "a", Name: "Steve"},
		&events.Reserved{Attempt: 1, Server: "b", Incarnation: life, Promise: 1, Region: "wild", TTLMs: 30_000, At: events.Position{World: "minecraft:overworld", X: 1, Y: 2, Z: 3}},
		&events.Claimed{Attempt: 1, Dispatcher: e1.ID, Incarnation: e1.Incarnation, From: "a"},
		&events.Consumed{Attempt: 1, Server: "b", Incarnation: life},
		&events.Completed{Attempt: 1},
	}
	seq := uint64(0)
	var player events.PlayerID
	var guard uint64
	every := max(1, ended/max(live, 1))
	for n := range ended + live {
		if n%4 == 0 {
			player, guard = streamtest.NewID[events.PlayerID](), 0
		}
		facts := journey
		if begins := n%every == every-1 && live > 0; begins {
			live--
			facts = journey[:3]
			player, guard = streamtest.NewID[events.PlayerID](), 0
		}
		transfer := streamtest.NewID[events.TransferID]()
		for _, f := range facts {
			m := streamtest.Seal(b, events.Envelope{ID: streamtest.NewID[events.EventID](), Source: e1, Time: time.Now(), Key: events.TransferKey(player, transfer), Correlation: transfer, Prev: guard}, f)
			out := nats.NewMsg(m.Bucket.Subject(m.Key))
			for name, value := range m.Header {
				out.Header[name] = []string{value}
			}
			out.Data = m.Body
			if _, err := js.PublishMsgAsync(out, jetstream.WithStallWait(time.Minute)); err != nil {
				b.Fatal(err)
			}
			seq++
			guard = seq
		}
		if len(facts) < len(journey) {
			player, guard = streamtest.NewID[events.PlayerID](), 0
		}
	}
	<-js.PublishAsyncComplete()
	return int(seq) //nolint:gosec // small
}
