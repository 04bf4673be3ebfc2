package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// readiness is a view of a store over the network, and each time it changed its mind about
// being ready.
type readiness struct {
	*projections.View
	mu      sync.Mutex
	last    bool
	changes chan bool // has room for every test
}

func (r *readiness) changed(projections.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := r.Ready(); now != r.last {
		r.last = now
		r.changes <- now
	}
}

// await takes the next change, which must be this one.
func (r *readiness) await(t *testing.T, want bool) {
	t.Helper()
	select {
	case got := <-r.changes:
		if got != want {
			t.Fatalf("ready became %v, want %v", got, want)
		}
	case <-time.After(patience):
		t.Fatalf("ready did not become %v within %s", want, patience)
	}
}

// watchReadiness runs a view on the store at an address until the test ends.
func watchReadiness(t *testing.T, address string) *readiness {
	t.Helper()
	login := readerLogin(realSecret)
	st, err := streams.Connect(t.Context(), streams.Config{URL: "nats://" + address, Role: login.Role, ID: login.ID, User: login.Name, Password: login.Password, Network: "test"})
	if err != nil {
		t.Fatal(err)
	}
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	r := &readiness{changes: make(chan bool, 1024)}
	r.View = projections.NewView(projections.Config{Log: st, Keys: events.NewKeyring(key), Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: r.changed})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the view ended with %v", err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	r.await(t, true)
	return r
}

// TestReadinessDipsWhenTheStoreRestarts (P16): however short the store was away, a host is
// not ready until every fold has seen what it missed.
func TestReadinessDipsWhenTheStoreRestarts(t *testing.T) {
	address := unused(t)
	c := newCarrier(t, address)
	r := watchReadiness(t, address)
	story, _ := tapeOf(t, "completed")
	for range 3 {
		began := time.Now()
		c.stop(t)
		c.start(t)
		away := time.Since(began)
		r.await(t, false)
		r.await(t, true)
		t.Logf("away for %s, ready again after %s", away, time.Since(began))
	}
	c.play(t, story)
	if err := r.WaitFolded(t.Context(), events.Transfers, 6); err != nil {
		t.Error(err)
	}
}

// TestReadinessDipsWhenTheConnectionBreaks (P16): a connection that is back at once was lost
// all the same. Notices of a client about its state may be merged; this one must not be.
func TestReadinessDipsWhenTheConnectionBreaks(t *testing.T) {
	address := unused(t)
	newCarrier(t, address)
	w := newWire(t, address)
	r := watchReadiness(t, w.Addr().String())
	for range 20 {
		w.snap()
		r.await(t, false)
		r.await(t, true)
	}
}

// wire is a way to an address that a test can break.
type wire struct {
	net.Listener
	to    string
	mu    sync.Mutex
	conns []net.Conn
	pumps sync.WaitGroup
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{Listener: l, to: to}
	w.pumps.Go(w.serve)
	t.Cleanup(func() {
		_ = l.Close()
		w.snap()
		w.pumps.Wait()
	})
	return w
}

func (w *wire) serve() {
	for {
		near, err := w.Accept()
		if err != nil {
			return
		}
		far, err := net.Dial("tcp", w.to)
		if err != nil {
			_ = near.Close()
			continue
		}
		w.mu.Lock()
		w.conns = append(w.conns, near, far)
		w.mu.Unlock()
		w.pumps.Go(func() { pump(near, far) })
		w.pumps.Go(func() { pump(far, near) })
	}
}

func pump(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	_, _ = to.Close(), from.Close()
}

// snap breaks every connection; new ones are let through at once.
func (w *wire) snap() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}
