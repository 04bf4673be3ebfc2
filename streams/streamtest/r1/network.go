package r1

import (
	"context"
	"errors"
	"maps"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest"
)

// Network is a store and the hosts that are connected to it. Safe for concurrent use.
type Network struct {
	tb      testing.TB
	cfg     embedded.Config
	latency time.Duration
	roles   map[events.HostID]streams.Role
	rules   streamtest.Rules
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	looker  *Client       // reads for the test
	storing chan struct{} // holds one while the store is stopped or started; a lock would hold up the time of a bubble

	mu      sync.Mutex
	srv     *embedded.Server // nil: stopped
	clients map[string]*Client
	seen    map[events.Bucket][]events.Record
}

// ForgetTimers empties the pool of timers that the NATS client shares between all connections
// of a process: what a bubble left there would end the process when it is used outside, and
// the other way round. Call it before and after each bubble with a Network. A pool outlives
// one collection, not two.
func ForgetTimers() {
	runtime.GC()
	runtime.GC()
}

// testBytes bounds the store; nothing fills it.
const testBytes = 1 << 30

var secret = []byte("a secret of at least thirty-two bytes")

// looker is the host that Records reads as.
const looker = "looker"

// Role is what a client of the store may do.
type Role = streams.Role

// Roles, for tests that may not know the real store otherwise.
const (
	Backend    = streams.RoleBackend
	Dispatcher = streams.RoleDispatcher
	Operator   = streams.RoleOperator
)

// Open starts a store in dir, in which the buckets are made, for these hosts. What is sent
// takes latency to arrive, either way. Close must be called.
func Open(tb testing.TB, dir string, latency time.Duration, roles map[events.HostID]streams.Role) *Network {
	tb.Helper()
	n := &Network{
		tb: tb, latency: latency, roles: map[events.HostID]streams.Role{looker: streams.RoleOperator}, storing: make(chan struct{}, 1), clients: map[string]*Client{}, seen: map[events.Bucket][]events.Record{},
		cfg: embedded.Config{Dir: dir, Network: "net", Creator: "up", MaxBytes: testBytes, Durability: streams.Lazy, NoListener: true},
	}
	maps.Copy(n.roles, roles)
	for id, role := range n.roles {
		user, password := streams.Login(secret, role, id)
		n.cfg.Users = append(n.cfg.Users, embedded.User{Role: role, ID: id, Name: user, Password: password})
	}
	n.ctx, n.end = context.WithCancel(context.Background())
	n.Restore()
	st, err := streams.Connect(n.ctx, n.srv.Connection())
	if err != nil {
		tb.Fatal(err)
	}
	if err := errors.Join(st.Ensure(n.ctx), st.Close()); err != nil {
		tb.Fatal(err)
	}
	n.looker = n.Client(looker)
	return n
}

// Close ends every connection and the store.
func (n *Network) Close() {
	n.end()
	n.mu.Lock()
	clients := slices.Collect(maps.Values(n.clients))
	n.mu.Unlock()
	for _, c := range clients {
		c.Close()
	}
	n.Outage()
}

// Client is the connection of one host, which the name begins with, up to a dot. The same
// name gives the same connection. It is made in the background.
func (n *Network) Client(name string) *Client {
	id, _, _ := strings.Cut(name, ".")
	n.mu.Lock()
	defer n.mu.Unlock()
	c, ok := n.clients[name]
	if !ok {
		c = newClient(n, events.HostID(id))
		n.clients[name] = c
	}
	return c
}

// InProcessConn implements nats.InProcessConnProvider: it leads to the server that runs now.
func (n *Network) InProcessConn() (net.Conn, error) {
	n.mu.Lock()
	srv := n.srv
	n.mu.Unlock()
	if srv == nil {
		return nil, ErrCut
	}
	return srv.Connection().InProcess.InProcessConn()
}

// Outage stops the store, if it runs.
func (n *Network) Outage() {
	n.storing <- struct{}{}
	defer func() { <-n.storing }()
	n.mu.Lock()
	srv := n.srv
	n.srv = nil
	n.mu.Unlock()
	if srv == nil {
		return
	}
	if err := srv.Close(); err != nil {
		n.tb.Errorf("stop the store: %v", err)
	}
}

// Restore starts the store again in its directory, if it does not run.
func (n *Network) Restore() {
	n.storing <- struct{}{}
	defer func() { <-n.storing }()
	n.mu.Lock()
	runs := n.srv != nil
	n.mu.Unlock()
	if runs {
		return
	}
	srv, err := embedded.Open(context.WithoutCancel(n.ctx), n.cfg)
	if err != nil {
		n.tb.Errorf("start the store: %v", err)
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.srv = srv
}

// DropRequest loses the next k requests or news whose subject matches: they never arrive,
// and the one who asked waits until its context ends.
func (n *Network) DropRequest(match func(subject string) bool, k int) { n.rules.Drop(match, k) }

// LoseAnswer loses the answers to the next k requests whose subject matches: they are carried
// out, and the one who asked waits until its context ends.
func (n *Network) LoseAnswer(match func(subject string) bool, k int) { n.rules.Lose(match, k) }

// recordsPatience bounds how long Records waits for a store that is away.
const recordsPatience = 2 * time.Second

// Records is what a bucket was given so far, oldest first, as far as the store can be read
// now. Do not change headers and bodies.
func (n *Network) Records(b events.Bucket) []events.Record {
	ctx, cancel := context.WithTimeout(n.ctx, recordsPatience)
	defer cancel()
	n.mu.Lock()
	seen := n.seen[b]
	n.mu.Unlock()
	st, err := n.looker.store(ctx)
	if err != nil {
		return seen
	}
	after := streams.Range{}
	if len(seen) > 0 {
		after.After = seen[len(seen)-1].Seq
	}
	for r, err := range st.History(ctx, b, after) {
		if err != nil {
			break // the store is away: what came stands
		}
		seen = append(seen, r)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seen[b] = seen
	return seen
}
