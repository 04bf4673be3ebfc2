package streams_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"

	"github.com/landfall/landfall/streams/streamtest"
)

// opener opens whatever it is told, as a fold does, and counts what is under way.
type opener struct {
	keys  *events.Keyring
	open  map[string]bool
	ready context.CancelFunc
}

func (o *opener) Begin(events.StreamState, bool) { o.open = map[string]bool{} }

func (o *opener) Record(r events.Record) error {
	e, refusal := events.Open(o.keys, r)
	if refusal != nil {
		return refusal
	}
	o.open[r.Key] = !events.Terminal(e.Fact.(events.TransferFact)) //nolint:forcetypeassert // of this bucket
	return nil
}

func (o *opener) Newest(r events.Record) bool {
	e, refusal := events.Open(o.keys, r)
	return refusal != nil || !events.Terminal(e.Fact.(events.TransferFact)) //nolint:forcetypeassert // of this bucket
}

func (o *opener) Settled(key string, _ uint64) { o.open[key] = false }
func (o *opener) Live(uint64)                  { o.ready() }
func (o *opener) Blind(error)                  {}

// BenchmarkBoot is the way of a fold to readiness over a store of ended transfers (five facts
// each, spread over players of four) with some under way: from what is alive, and from
// everything.
func BenchmarkBoot(b *testing.B) {
	for _, size := range []struct{ ended, live int }{{20_000, 50}, {20_000, 500}, {20_000, 1500}} {
		b.Run(fmt.Sprintf("ended=%d/live=%d", size.ended, size.live), func(b *testing.B) {
			c := testConfig(b)
			srv := openServer(b, c)
			st := ensured(b, srv.Connection())
			facts := populate(b, rawConfig(b, srv.Connection()), size.ended, size.live)
			for name, mode := range map[string]events.TailMode{"from=alive": events.TailLive, "from=everything": events.TailAll} {
				b.Run(name, func(b *testing.B) {
					for b.Loop() {
						boot(b, st, mode, size.live)
					}
					b.ReportMetric(float64(facts), "facts")
				})
			}
		})
	}
}

func boot(tb testing.TB, st *streams.Store, mode events.TailMode, live int) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	defer cancel()
	o := &opener{keys: streamtest.Keyring(), ready: cancel}
	if err := st.Tail(ctx, events.Transfers, events.TailStart{Mode: mode}, o); !errors.Is(err, context.Canceled) {
		tb.Fatal(err)
	}
	n := 0
	for _, open := range o.open {
		if open {
			n++
		}
	}
	if n != live {
		tb.Fatalf("%d under way, want %d", n, live)
	}
}

// TestBootOfManyAlive: when more is alive than one would name, everything is read.
func TestBootOfManyAlive(t *testing.T) {
	srv := openServer(t, testConfig(t))
	st := ensured(t, srv.Connection())
	const live = 1100
	populate(t, rawConfig(t, srv.Connection()), 200, live)
	boot(t, st, events.TailLive, live)
}

// populate publishes without waiting for each: what counts is what is there afterwards.
func populate(tb testing.TB, js jetstream.JetStream, ended, live int) (facts int) {
	tb.Helper()
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
			m := streamtest.Seal(tb, events.Envelope{ID: streamtest.NewID[events.EventID](), Source: e1, Time: time.Now(), Key: events.TransferKey(player, transfer), Correlation: transfer, Prev: guard}, f)
			out := nats.NewMsg(m.Bucket.Subject(m.Key))
			for name, value := range m.Header {
				out.Header[name] = []string{value}
			}
			out.Data = m.Body
			if _, err := js.PublishMsgAsync(out, jetstream.WithStallWait(time.Minute)); err != nil {
				tb.Fatal(err)
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
