package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

var secret = bytes.Repeat([]byte("landfall"), 4)

func user(role streams.Role, id events.HostID) embedded.User {
	name, password := streams.Login(secret, role, id)
	return embedded.User{Role: role, ID: id, Name: name, Password: password}
}

// network is a store, a dispatcher that allocates, and the example with so many seats; end stops all.
func network(tb testing.TB, durability streams.Durability, seats int) (ctx context.Context, d *actors.Dispatcher, end func()) {
	tb.Helper()
	ctx, cancel := context.WithCancel(tb.Context())
	server, err := embedded.Open(ctx, embedded.Config{
		Dir: tb.TempDir(), Network: "example", Creator: "up", MaxBytes: 1 << 30, Listen: "127.0.0.1:0", Durability: durability,
		Users: []embedded.User{user(streams.RoleDispatcher, "api"), user(streams.RoleBackend, "zone-1")},
	})
	if err != nil {
		tb.Fatal(err)
	}
	carrier, err := streams.Connect(ctx, server.Connection())
	if err != nil {
		tb.Fatal(err)
	}
	if err := carrier.Ensure(ctx); err != nil {
		tb.Fatal(err)
	}
	key, err := events.NewKey(secret)
	if err != nil {
		tb.Fatal(err)
	}
	d, err = actors.NewDispatcher(actors.DispatcherConfig{
		Identity: actors.Identity{
			Source: events.Source{Kind: events.SourceAPI, ID: "api", Incarnation: events.Incarnation(uuid.New())},
			Keys:   events.NewKeyring(key), Now: time.Now, NewID: func() [16]byte { return uuid.Must(uuid.NewV7()) },
		},
		Log: carrier, Bus: carrier, Logger: slog.New(slog.DiscardHandler), Kind: events.KindAPI,
	})
	if err != nil {
		tb.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() { _ = d.Run(ctx) })
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, server.URL(), "zone-1", "127.0.0.1:0", seats, secret) }()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for x := d.View().Fleet().Instance("zone-1"); !d.Ready() || x == nil || x.State != events.Ready; x = d.View().Fleet().Instance("zone-1") {
		<-look.C
	}
	return ctx, d, func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			tb.Error(err)
		}
		running.Wait()
		_, _ = carrier.Close(), server.Close()
	}
}

func take(ctx context.Context, d *actors.Dispatcher, player string) (actors.Allocation, *events.Refusal) {
	return d.Allocate(ctx, actors.AllocationAsk{
		Player: events.NativePlayer("allocation", player), Name: player, Transfer: events.TransferID(uuid.Must(uuid.NewV7())), Via: "test",
	})
}

// BenchmarkAllocate: seats a second, and how long one takes, asked for by 64 callers at once; each
// stands in the log as three facts before it is answered.
func BenchmarkAllocate(b *testing.B) {
	for _, durability := range []streams.Durability{streams.Always, streams.Grouped, streams.Lazy} {
		b.Run(string(durability), func(b *testing.B) {
			ctx, d, end := network(b, durability, 10_000_000)
			defer end()
			var mu sync.Mutex
			var took []time.Duration
			b.SetParallelism(64 / runtime.GOMAXPROCS(0))
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					began := time.Now()
					if _, refusal := take(ctx, d, uuid.NewString()); refusal != nil {
						b.Error(refusal)
						return
					}
					mu.Lock()
					took = append(took, time.Since(began))
					mu.Unlock()
				}
			})
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "seats/s")
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

// The example on a real store: a seat is taken on it, and its token lets the player in.
func TestTheExampleAdmitsPlayers(t *testing.T) {
	ctx, d, end := network(t, streams.Always, 1)
	defer end()
	seat, refusal := take(ctx, d, "ada")
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, c := range []struct{ says, want string }{
		{"eve " + seat.Transfer.Token.String(), "WRONG_PLAYER"}, {"ada x", "parse token"}, {"ada " + seat.Transfer.Token.String(), "welcome ada"},
	} {
		conn, err := net.Dial("tcp", seat.Instance.Gameplay.Address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintln(conn, c.says)
		if got, err := bufio.NewReader(conn).ReadString('\n'); !strings.HasPrefix(got, c.want) {
			t.Errorf("said %q, heard %q %v", c.says, got, err)
		}
		conn.Close()
	}
}
