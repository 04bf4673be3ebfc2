package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// witness reads the log of a running network from outside, as `tail` and `replay` do.
type witness struct {
	*projections.View
	store *reader

	mu       sync.Mutex
	facts    []events.Event // of transfers, in order
	audit    []*events.Rejected
	problems []projections.Problem
	grown    chan struct{}
}

// watchLog opens the store of a directory that a host has open.
func watchLog(t *testing.T, dir string, keys *events.Keyring) *witness {
	t.Helper()
	return watchStore(t, source{dir: dir}, keys)
}

// watchStore opens a store that a host has open.
func watchStore(t *testing.T, at source, keys *events.Keyring) *witness {
	t.Helper()
	store, err := at.open(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !store.shared {
		t.Fatalf("store %s: no host has it open", at)
	}
	w := &witness{store: store, grown: make(chan struct{})}
	w.View = projections.NewView(projections.Config{
		Log: store, Keys: keys, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: w.changed,
		Problem: func(p projections.Problem) { w.note(func() { w.problems = append(w.problems, p) }) },
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return w.Run(ctx) })
	group.Go(func() error { return store.Tail(ctx, events.Audit, events.TailStart{}, &auditor{w, keys}) })
	t.Cleanup(func() {
		cancel()
		if err := group.Wait(); !errors.Is(err, context.Canceled) {
			t.Errorf("the witness of %s: %v", at, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		for _, p := range w.problems {
			t.Errorf("the log holds what no fold takes: %s %s at %d: %v", p.Bucket, p.Key, p.Seq, p.Refusal)
		}
	})
	return w
}

func (w *witness) changed(c projections.Change) {
	w.note(func() {
		if c.Bucket == events.Transfers && c.Event.Fact != nil {
			w.facts = append(w.facts, c.Event)
		}
	})
}

func (w *witness) note(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
	close(w.grown)
	w.grown = make(chan struct{})
}

// until waits until what is asked for is seen, looked at after each fold.
func (w *witness) until(t *testing.T, what string, seen func() bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		w.mu.Lock()
		grown := w.grown
		w.mu.Unlock()
		if seen() {
			return
		}
		select {
		case <-grown:
		case <-late.C:
			t.Fatalf("the log: %s did not come within %s", what, patience)
		}
	}
}

// auditor follows the bucket audit.
type auditor struct {
	w    *witness
	keys *events.Keyring
}

func (a *auditor) Begin(events.StreamState, bool) {}
func (a *auditor) Live(uint64)                    {}
func (a *auditor) Blind(error)                    {}

func (a *auditor) Record(r events.Record) error {
	e, refusal := events.Open(a.keys, r)
	if refusal != nil {
		return refusal
	}
	a.w.note(func() { a.w.audit = append(a.w.audit, e.Fact.(*events.Rejected)) })
	return nil
}

// rejected waits for an audit entry.
func (w *witness) rejected(t *testing.T, code events.Code) {
	t.Helper()
	w.until(t, "audit entry "+string(code), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return slices.ContainsFunc(w.audit, func(r *events.Rejected) bool { return r.Code == code })
	})
}

// ready waits until a backend is READY and has as many places in a region as it means to keep.
func (w *witness) ready(t *testing.T, server events.HostID) {
	t.Helper()
	w.until(t, "full pools of "+string(server), func() bool {
		b := w.Fleet().Backend(server)
		if b == nil || b.State != events.Ready {
			return false
		}
		return !slices.ContainsFunc(b.Regions, func(r events.RegionBeat) bool { return r.Kept < r.Size })
	})
}

// standsOn waits for a player's open session and gives its server.
func (w *witness) standsOn(t *testing.T, name string) events.HostID {
	t.Helper()
	var at events.HostID
	w.until(t, "a session of "+name, func() bool {
		s, ok := w.Session(events.OfflinePlayer(name))
		at = s.Server
		return ok && s.Open
	})
	return at
}

// standsAt waits until a player's open session names a server.
func (w *witness) standsAt(t *testing.T, name string, server events.HostID) {
	t.Helper()
	w.until(t, name+" on "+string(server), func() bool {
		s, ok := w.Session(events.OfflinePlayer(name))
		return ok && s.Open && s.Server == server
	})
}

// ended waits until a player's last transfer has ended, and gives it.
func (w *witness) ended(t *testing.T, name string) projections.Transfer {
	t.Helper()
	var out projections.Transfer
	w.until(t, "the end of a transfer of "+name, func() bool {
		p := w.Player(events.OfflinePlayer(name))
		if p.Active != nil || len(p.Done) == 0 {
			return false
		}
		out = p.Done[len(p.Done)-1]
		return true
	})
	return out
}

// seen are all facts so far, as they came.
func (w *witness) seen() []events.Event {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.facts)
}

// factsOf are all facts about a player, in order.
func (w *witness) factsOf(name string) []events.TransferFact {
	id := events.OfflinePlayer(name)
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []events.TransferFact
	for _, e := range w.facts {
		if player, _, err := events.ParseTransferKey(e.Key); err == nil && player == id {
			out = append(out, e.Fact.(events.TransferFact))
		}
	}
	return out
}

// has waits for a fact about a player that fits.
func (w *witness) has(t *testing.T, name, what string, fits func(events.TransferFact) bool) {
	t.Helper()
	w.until(t, what+" of "+name, func() bool { return slices.ContainsFunc(w.factsOf(name), fits) })
}

// consumedByTransfer reads the whole log and counts the arrivals of each transfer.
func consumedByTransfer(t *testing.T, w *witness, keys *events.Keyring) map[events.TransferID]int {
	t.Helper()
	n := map[events.TransferID]int{}
	for r, err := range w.store.History(t.Context(), events.Transfers, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, refusal := events.Open(keys, r)
		if refusal != nil {
			t.Fatalf("fact %d: %v", r.Seq, refusal)
		}
		if _, ok := e.Fact.(*events.Consumed); ok {
			n[e.Correlation]++
		} else {
			n[e.Correlation] += 0
		}
	}
	return n
}
