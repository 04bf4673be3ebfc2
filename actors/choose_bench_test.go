package actors

import (
	"fmt"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// measuredFleet is n backends that report everything.
func measuredFleet(n int) *projections.Fleet {
	var backends []*projections.Backend
	for i := range n {
		backends = append(backends, reporting(events.HostID(fmt.Sprintf("survival-%04d", i)), float64(i%50), i%20, 20, float64(i%100)/100, 1+i*7%64))
	}
	return fleetOf(backends...)
}

// asDispatched is a question as a dispatcher asks it, with what it remembers.
func asDispatched(f *projections.Fleet) question {
	q := anywhere()
	q.protocol, q.home = 767, "lobby"
	q.memories = &memories{}
	q.memories.init()
	for i, b := range f.Backends {
		if i%3 == 0 {
			q.memories.picked(b.Server, t0.Add(-time.Second), shippedHalfLife)
		}
	}
	return q
}

// TestRankAllocatesNothing: once its room is there, a choice over any fleet makes no garbage.
func TestRankAllocatesNothing(t *testing.T) {
	for _, n := range []int{10, 100, 1000} {
		f := measuredFleet(n)
		for i := range f.Backends {
			if i%10 == 0 {
				f.Backends[i].State = events.Degraded
			}
		}
		for _, kind := range []string{Weighted, RoundRobin, LeastPlayers, "fixed:survival-0001"} {
			q := asDispatched(f)
			q.policy = policyOf(t, PolicyConfig{Kind: kind})
			var r ranking
			r.rank(&q, f)
			if got := testing.AllocsPerRun(10, func() { r.rank(&q, f) }); got != 0 {
				t.Errorf("%s over %d backends: %v allocations, want 0", kind, n, got)
			}
		}
	}
}

// BenchmarkRank is the choice alone; x-loop is its time over that of the plainest loop that
// could choose at all: least players of those that are fresh, ready and accepting.
func BenchmarkRank(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		f := measuredFleet(n)
		q := asDispatched(f)
		b.Run(fmt.Sprintf("backends=%d", n), func(b *testing.B) {
			var r ranking
			r.rank(&q, f)
			b.ReportAllocs()
			for b.Loop() {
				r.rank(&q, f)
			}
			per := float64(b.Elapsed()) / float64(b.N)
			start, rounds := time.Now(), 0
			for ; time.Since(start) < 50*time.Millisecond; rounds++ {
				plainest = leastOf(&q, f)
			}
			loop := float64(time.Since(start)) / float64(rounds)
			b.ReportMetric(loop, "loop-ns/op")
			b.ReportMetric(per/loop, "x-loop")
			b.ReportMetric(per/float64(n), "ns/backend")
		})
	}
}

var plainest *projections.Backend // so that the loop is not thought away

func leastOf(q *question, f *projections.Fleet) (best *projections.Backend) {
	for _, b := range f.Backends {
		usable := q.now.Sub(b.Seen) <= q.stale && b.State == events.Ready && b.Accepting && b.Kept() > 0
		if usable && (best == nil || b.Players < best.Players) {
			best = b
		}
	}
	return best
}

// BenchmarkChoose is the choice with its record.
func BenchmarkChoose(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		f := measuredFleet(n)
		q := asDispatched(f)
		b.Run(fmt.Sprintf("backends=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				choose(q, f)
			}
		})
	}
}
