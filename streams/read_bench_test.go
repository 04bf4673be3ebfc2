package streams_test

import (
	"context"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

var benchFacts = flag.Int("facts", 200_000, "how many facts the store of BenchmarkRead holds, up to a million")

// factsPerKey is a transfer's happy path and one more.
const factsPerKey = 6

// BenchmarkRead (P12) is what each way to read a bucket costs beside reading all of it, which
// was measured right before: whole/op says how many such reads one whole read would pay for.
// Filters of several subjects were slower than no filter in older servers; the last two show
// what they cost now, for players who are there. Nothing of ours asks for headers only.
//
//	go test ./streams -run '^$' -bench Read -facts 1000000
func BenchmarkRead(b *testing.B) {
	c := testConfig(b)
	c.MaxBytes = 8 << 30
	srv := openServer(b, c)
	st := ensured(b, srv.Connection())
	js := raw(b, srv)
	facts := max(*benchFacts, 100*factsPerKey)
	fill(b, js, facts)
	last := uint64(facts)
	read := func(b *testing.B, want int, r streams.Range) {
		n := 0
		for _, err := range st.History(b.Context(), events.Transfers, r) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != want {
			b.Fatalf("read %d facts, want %d", n, want)
		}
	}
	began := time.Now()
	read(b, facts, streams.Range{})
	whole := time.Since(began)
	middle := facts / factsPerKey / 2
	for _, shape := range []struct {
		name string
		n    int // facts that come of it
		read func(b *testing.B, want int)
	}{
		{"whole", facts, func(b *testing.B, want int) { read(b, want, streams.Range{}) }},
		{"newest-of-each-key", (facts + factsPerKey - 1) / factsPerKey, func(b *testing.B, want int) { read(b, want, streams.Range{Newest: true}) }},
		{"last-1000", 1000, func(b *testing.B, want int) { read(b, want, streams.Range{After: last - 1000}) }},
		{"player", factsPerKey, func(b *testing.B, want int) { read(b, want, streams.Range{Keys: playerOf(middle) + ".>"}) }},
		{"player-unknown", 0, func(b *testing.B, want int) { read(b, want, streams.Range{Keys: playerOf(facts) + ".>"}) }},
		{"guard-of-player", 1, func(b *testing.B, _ int) {
			if _, ok, err := st.Last(b.Context(), events.Transfers, key(middle, 1)); err != nil || !ok {
				b.Fatal(ok, err)
			}
		}},
		{"filters=2", 2 * factsPerKey, func(b *testing.B, want int) { filtered(b, js, want, middle, 2) }},
		{"filters=64", 64 * factsPerKey, func(b *testing.B, want int) { filtered(b, js, want, middle/64, 64) }},
	} {
		b.Run(fmt.Sprintf("facts=%d/shape=%s", facts, shape.name), func(b *testing.B) {
			for b.Loop() {
				shape.read(b, shape.n)
			}
			each := float64(b.Elapsed().Nanoseconds()) / float64(b.N)
			b.ReportMetric(each/float64(max(shape.n, 1)), "ns/fact")
			b.ReportMetric(float64(whole.Nanoseconds())/each, "whole/op")
		})
	}
}

// playerOf is the first token of the n-th key.
func playerOf(n int) string { return key(n, 1)[:36] }

// fill appends facts in order and without a guard, factsPerKey to each player's only transfer.
func fill(tb testing.TB, js jetstream.JetStream, facts int) {
	tb.Helper()
	body := make([]byte, 300)
	for i := range facts {
		m := nats.NewMsg(events.Transfers.Subject(key(i/factsPerKey, 1)))
		m.Header = nats.Header{events.HeaderType: {"landfall.test.v1"}, events.HeaderID: {key(i, 0)[:36]}, events.HeaderSig: {"v1;kid=00000000;0000000000000000000000000000000000000000000000000000000000000000"}}
		m.Data = body
		var err error
		if i%2000 != 1999 && i != facts-1 {
			err = js.Conn().PublishMsg(m)
		} else { // one acknowledgement for all before it
			_, err = js.PublishMsg(tb.Context(), m)
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	info, err := js.Stream(tb.Context(), streams.StreamName(events.Transfers))
	if err != nil || info.CachedInfo().State.Msgs != uint64(facts) {
		tb.Fatalf("the store holds %+v of %d facts, %v", info.CachedInfo().State, facts, err)
	}
}

// filtered reads what n players have, through one consumer with n filters.
func filtered(b *testing.B, js jetstream.JetStream, want, step, n int) {
	cfg := jetstream.ConsumerConfig{AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true}
	for i := range n {
		cfg.FilterSubjects = append(cfg.FilterSubjects, events.Transfers.Subject(playerOf(i*step)+".>"))
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
	defer cancel()
	consumer, err := js.CreateConsumer(ctx, streams.StreamName(events.Transfers), cfg)
	if err != nil {
		b.Fatal(err)
	}
	batch, err := consumer.Fetch(want, jetstream.FetchContext(ctx))
	if err != nil {
		b.Fatal(err)
	}
	got := 0
	for range batch.Messages() {
		got++
	}
	if err := batch.Error(); err != nil || got != want {
		b.Fatalf("%d filters gave %d facts, want %d; %v", n, got, want, err)
	}
	if err := js.DeleteConsumer(ctx, streams.StreamName(events.Transfers), consumer.CachedInfo().Name); err != nil {
		b.Fatal(err)
	}
}
