package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// BenchmarkTransfer measures request to completed at 200 transfers a second, on a simulated
// network whose servers and clients cost no time, over the embedded store with an fsync
// before each acknowledgement. Its peer in the same run is one such append, alone: five of
// them are what a transfer cannot do without.
func BenchmarkTransfer(b *testing.B) {
	r, stage, stop := runStage(b, b.TempDir())
	alone := appendAlone(b, r)
	b.ResetTimer()
	seconds := time.Duration(float64(b.N) / 200 * float64(time.Second))
	load := sim.Load{Stage: stage, Players: 200, Rate: 200, Duration: max(seconds, 100*time.Millisecond), Settle: time.Minute, Seed: 1}
	if _, err := load.Run(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	ages := transferAges(b, r)
	p50, p99 := ages[len(ages)/2], ages[len(ages)*99/100]
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(p50, "p50-ms")
	b.ReportMetric(p99, "p99-ms")
	b.ReportMetric(alone, "append-p50-ms")
	b.ReportMetric(p50/alone, "p50/append")
	b.ReportMetric(p99/alone, "p99/append")
	stop()
}

// runStage opens a demo's store and runs its network, whose servers and clients cost no
// time, without players. stop ends both.
func runStage(tb testing.TB, dir string) (r *demoRun, stage *sim.Stage, stop func()) {
	tb.Helper()
	r, err := openDemo(tb.Context(), demoOptions{dir: dir}, io.Discard, io.Discard)
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(tb.Context())
	stage = sim.NewStage(ctx, sim.StageConfig{
		Proxies: demoProxies, Backends: demoBackends, Keep: 256, Seats: 1000, Timing: demoTiming,
		Connect: r.connectAs, Identity: r.identity, Logger: r.log,
	})
	crew := newGang(ctx)
	crew.start(stage.Run)
	select {
	case <-stage.Ready():
	case <-crew.ended():
		tb.Fatal(crew.stop())
	}
	return r, stage, func() {
		cancel()
		if err := crew.stop(); err != nil {
			tb.Error(err)
		}
		stage.Net().Wait()
		if err := r.close(); err != nil {
			tb.Error(err)
		}
	}
}

// appendAlone is the median time of one durable append, in milliseconds.
func appendAlone(b *testing.B, r *demoRun) float64 {
	b.Helper()
	src := events.Source{Kind: events.SourceOperator, ID: "bench", Incarnation: events.Incarnation(newID())}
	var took []float64
	for i := range 300 {
		key := fmt.Sprintf("bench.%d", i)
		m, err := events.Seal(r.keys, events.Envelope{ID: newID(), Source: src, Time: time.Now(), Key: key},
			&events.Rejected{Source: "bench", Code: events.OK, Subject: key})
		if err != nil {
			b.Fatal(err)
		}
		began := time.Now()
		if _, err := r.conns[0].Append(b.Context(), m); err != nil {
			b.Fatal(err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1000)
	}
	slices.Sort(took)
	return took[len(took)/2]
}

// transferAges gives request to completed of all transfers, sorted, in milliseconds.
func transferAges(b *testing.B, r *demoRun) []float64 {
	b.Helper()
	began := map[events.TransferID]time.Time{}
	var ages []float64
	for e, err := range r.facts(context.Background()) {
		if err != nil {
			b.Fatal(err)
		}
		switch e.Fact.(type) {
		case *events.Requested:
			began[e.Correlation] = e.Stored
		case *events.Completed:
			ages = append(ages, float64(e.Stored.Sub(began[e.Correlation]).Microseconds())/1000)
		default:
		}
	}
	if len(ages) == 0 {
		b.Fatal("no transfer completed")
	}
	slices.Sort(ages)
	return ages
}
