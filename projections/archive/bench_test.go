package archive

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// BenchmarkRebuild folds a log into a file, beside what every fold of it costs: opening its
// records (signature and decoding), and folding them in memory.
func BenchmarkRebuild(b *testing.B) {
	const facts = 40_000
	c := newChronicle(b, 1)
	c.run(facts)
	rate := func(b *testing.B) { b.ReportMetric(facts*float64(b.N)/b.Elapsed().Seconds(), "facts/s") }
	open := func(take func(events.Event, time.Time)) {
		keys := streamtest.Keyring()
		for _, r := range c.log.Records(events.Transfers) {
			if e, refusal := events.Open(keys, r); refusal == nil {
				take(e, r.Stored)
			}
		}
	}
	b.Run("open", func(b *testing.B) {
		for b.Loop() {
			open(func(events.Event, time.Time) {})
		}
		rate(b)
	})
	b.Run("memory", func(b *testing.B) {
		for b.Loop() {
			j := projections.NewPagedJourneys(1, 0)
			open(func(e events.Event, stored time.Time) { j.Apply(e, stored) })
		}
		rate(b)
	})
	b.Run("archive", func(b *testing.B) {
		for b.Loop() {
			if err := project(b, fresh(b, Current), c.log, Config{Once: true}); err != nil {
				b.Fatal(err)
			}
		}
		rate(b)
	})
}
