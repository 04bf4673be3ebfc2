package streams_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// BenchmarkAppend is one guarded append, by so many writers on keys of their own, beside
// the raw rate of "write 300 bytes, fsync" in the same directory, measured right before:
// fsync/op is appends per such write, and says more than either on a noisy disk.
func BenchmarkAppend(b *testing.B) {
	for _, store := range []struct {
		storage    streams.StorageKind
		durability streams.Durability
	}{{streams.File, streams.Always}, {streams.File, streams.Grouped}, {streams.File, streams.Lazy}, {streams.Memory, streams.Lazy}} {
		for _, writers := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("storage=%s/durability=%s/writers=%d", store.storage, store.durability, writers), func(b *testing.B) {
				c := testConfig(b)
				c.Storage, c.Durability = store.storage, store.durability
				st := ensured(b, openServer(b, c).Connection())
				raw := fsyncRate(b, c.Dir)
				b.ReportAllocs()
				b.ResetTimer()
				appendFrom(b, st, writers)
				rate := float64(b.N) / b.Elapsed().Seconds()
				b.ReportMetric(rate, "appends/s")
				b.ReportMetric(raw, "fsyncs/s")
				b.ReportMetric(rate/raw, "appends/fsync")
			})
		}
	}
}

func appendFrom(b *testing.B, st *streams.Store, writers int) {
	var done atomic.Int64
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			prev := uint64(0)
			for n := 0; done.Add(1) <= int64(b.N); n++ {
				if n%events.MaxKeyFacts == 0 {
					prev = 0
				}
				seq, err := st.Append(b.Context(), message(events.Transfers, key(w+1000*(n/events.MaxKeyFacts), 1), prev))
				if err != nil {
					b.Error(err)
					return
				}
				prev = seq
			}
		})
	}
	wg.Wait()
}

// fsyncRate is what the disk under dir gives to one writer.
func fsyncRate(b *testing.B, dir string) float64 {
	b.Helper()
	f, err := os.Create(filepath.Join(dir, "fsync.probe"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 300)
	began, n := time.Now(), 0
	for ; time.Since(began) < 300*time.Millisecond; n++ {
		if _, err := f.Write(block); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}
