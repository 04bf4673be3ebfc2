package projections

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/landfall/landfall/events"
)

// history is n facts of many players, six to a journey, as a busy network writes them: one
// journey in ten is still under way.
func history(n int) []events.Event {
	l := newTape()
	for serial := 0; len(l.out) < n; serial++ {
		player, transfer := id[events.PlayerID](0), id[events.TransferID](0)
		for i := range 4 {
			player[1+i], transfer[1+i] = byte(serial>>(8*i)), byte(serial>>(8*i)) //nolint:gosec // four bytes of it
		}
		if serial%10 == 0 {
			l.of(player, transfer, requested(), reserved(1), claimed(1))
			continue
		}
		happy(l, player, transfer)
	}
	return l.out
}

// BenchmarkFold gives the cost of a fact, and what the fold holds on to for it, at two
// sizes: neither may grow with the size.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("facts=%d", n), func(b *testing.B) {
			facts := history(n)
			var j *Journeys
			before := heap()
			for b.Loop() {
				j = NewJourneys(1)
				for i := range facts {
					if refusal := j.Apply(facts[i], noon); refusal != nil {
						b.Fatal(refusal)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(facts)), "ns/fact")
			b.ReportMetric(float64(heap()-before)/float64(len(facts)), "retainedB/fact")
			runtime.KeepAlive(facts)
			if len(j.Active()) == 0 {
				b.Fatal("nothing is under way")
			}
		})
	}
}

// BenchmarkForget gives what is left once the ended journeys are forgotten.
func BenchmarkForget(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		b.Run(fmt.Sprintf("facts=%d", n), func(b *testing.B) {
			facts := history(n)
			for b.Loop() {
				b.StopTimer()
				j := NewJourneys(1)
				for i := range facts {
					j.Apply(facts[i], noon)
				}
				b.StartTimer()
				j.Forget(noon.Add(1))
				if got, active := len(j.players), len(j.Active()); got != active {
					b.Fatalf("%d players held, %d transfers under way", got, active)
				}
			}
		})
	}
}

// BenchmarkFleet gives the cost of one heartbeat in a large network.
func BenchmarkFleet(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("backends=%d", n), func(b *testing.B) {
			l, f := newTape(), &Fleet{}
			for i := range n {
				name := events.HostID(fmt.Sprintf("b-%04d", i))
				l.add(events.BackendKey(name), beat(name, lifeB, 1))
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				f, _ = f.Apply(l.out[i%n], noon)
			}
		})
	}
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // a heap is smaller
}
