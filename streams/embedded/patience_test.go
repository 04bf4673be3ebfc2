package embedded

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/landfall/landfall/streams"
)

// A large store is read again before it is ready, for seconds to a minute. Here the start is
// held up in a bubble of fake time: nobody has to fill a store with millions of messages.

// remarks is a log that a test reads.
type remarks struct {
	mu    sync.Mutex
	lines []string
}

func (r *remarks) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, string(b))
	return len(b), nil
}

func (r *remarks) count(words string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, line := range r.lines {
		if strings.Contains(line, words) {
			n++
		}
	}
	return n
}

// slowStart waits for a server whose start takes so long.
func slowStart(t *testing.T, takes time.Duration, test func(ctx context.Context, r *remarks, wait func(context.Context) error)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		opts := baseOptions(dir, minBytes, streams.Lazy)
		opts.DontListen = true
		ns, err := server.NewServer(opts)
		if err != nil {
			t.Fatal(err)
		}
		r := &remarks{}
		log := newLogger(slog.New(slog.NewTextHandler(r, nil)))
		ns.SetLoggerV2(log, false, false, false)
		started := make(chan struct{})
		go func() {
			defer close(started)
			time.Sleep(takes)
			ns.Start()
		}()
		test(t.Context(), r, func(ctx context.Context) error { return awaitReady(ctx, ns, log, started) })
		<-started
		ns.Shutdown()
		ns.WaitForShutdown()
	})
}

// TestSlowStartSaysSo (P18): it is waited for, and the log shows every few seconds that it is
// still at it.
func TestSlowStartSaysSo(t *testing.T) {
	slowStart(t, 42*time.Second, func(ctx context.Context, r *remarks, wait func(context.Context) error) {
		if err := wait(ctx); err != nil {
			t.Error(err)
		}
		if n := r.count("still starting"); n != 8 {
			t.Errorf("said %d times in 42 s that it is still starting, want every 5 s", n)
		}
	})
}

// TestStartHasAnEnd: after a minute it has failed, and says so.
func TestStartHasAnEnd(t *testing.T) {
	slowStart(t, time.Hour, func(ctx context.Context, _ *remarks, wait func(context.Context) error) {
		began := time.Now()
		if err := wait(ctx); err == nil || !strings.Contains(err.Error(), "not ready after 1m0s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != readyTimeout {
			t.Errorf("gave up after %s", took)
		}
	})
}

// TestStartIsStopped: who is asked to stop while it starts does so at once.
func TestStartIsStopped(t *testing.T) {
	slowStart(t, time.Hour, func(ctx context.Context, _ *remarks, wait func(context.Context) error) {
		ctx, cancel := context.WithTimeout(ctx, 7*time.Second)
		defer cancel()
		began := time.Now()
		if err := wait(ctx); err == nil || time.Since(began) != 7*time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
