package main

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// gatekeeper lets into the store that this process carries whom the operator has named, and
// cuts whom the operator has revoked, as soon as it stands in the log. It is a Follower of
// control.
type gatekeeper struct {
	host   *host
	store  *streams.Store
	server *embedded.Server

	live bool // of the tail's goroutine only

	mu      sync.Mutex
	applied uint64
	changed chan struct{} // closed and replaced when applied moves
}

// appliedPatience is how long somebody may wait for a decision to be obeyed.
const appliedPatience = 5 * time.Second

func newGatekeeper(h *host, s *hostStore) *gatekeeper {
	return &gatekeeper{host: h, store: s.shared, server: s.server, changed: make(chan struct{})}
}

// run follows control until ctx ends.
func (k *gatekeeper) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		return k.store.Tail(ctx, events.Control, events.TailStart{Mode: events.TailLastPerKey}, k)
	})
	g.Go(func() error { return k.store.Serve(ctx, streams.IdentitiesSubject, "", func() {}, k.answer) })
	return g.Wait()
}

// Begin implements events.Follower.
func (k *gatekeeper) Begin(_ events.StreamState, fork bool) {
	k.live = false
	if fork {
		k.host.keys.Forget()
	}
}

// Record implements events.Follower.
func (k *gatekeeper) Record(r events.Record) error {
	if strings.HasPrefix(r.Key, events.IdentityKey("")) {
		k.learn(r)
	}
	if k.live {
		return k.apply(r.Seq)
	}
	return nil
}

// learn takes in who a host is. What the operator has not signed changes nothing.
func (k *gatekeeper) learn(r events.Record) {
	if refusal := k.host.keys.Learn(r); refusal != nil {
		k.host.log.Warn("an identity was refused", "key", r.Key, "seq", r.Seq, "code", refusal.Code, "detail", refusal.Detail)
	}
}

// Live implements events.Follower.
func (k *gatekeeper) Live(last uint64) {
	k.live = true
	if err := k.apply(last); err != nil {
		k.host.log.Error("the logins of the store are not what the log says", "error", err)
	}
}

// Blind implements events.Follower.
func (k *gatekeeper) Blind(error) {}

// apply makes the store obey what is known up to a sequence of control.
func (k *gatekeeper) apply(seq uint64) error {
	if err := k.server.SetUsers(loginsOf(k.host.net, k.host.secrets, k.host.keys)); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.applied = max(k.applied, seq)
	close(k.changed)
	k.changed = make(chan struct{})
	return nil
}

// answer says that a sequence of control is obeyed, once it is. The subject is the operators'
// alone, so it is not signed.
func (k *gatekeeper) answer(ctx context.Context, _ string, w events.Wire) events.Wire {
	seq, err := strconv.ParseUint(string(w.Body), 10, 64)
	if err != nil {
		return events.Silence()
	}
	ctx, cancel := context.WithTimeout(ctx, appliedPatience)
	defer cancel()
	for {
		k.mu.Lock()
		done, changed := k.applied >= seq, k.changed
		k.mu.Unlock()
		if done {
			return events.Wire{Header: events.Header{}, Body: []byte("OK")}
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return events.Silence()
		}
	}
}
