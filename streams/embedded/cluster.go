package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// Nodes is a cluster in one process, for tests and for measuring: every node has a
// directory under one, and a route to each other. Safe for concurrent use.
type Nodes struct {
	log  *slog.Logger
	user User
	opts []*server.Options

	mu   sync.Mutex
	node []*server.Server // nil: stopped
}

// Cluster starts n nodes below dir and waits until they have a leader who knows them all.
// users are logins beside the operator's. Close must be called.
func Cluster(ctx context.Context, n int, dir string, log *slog.Logger, users ...User) (*Nodes, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	me := User{Role: streams.RoleOperator, ID: holderID, Name: "operator." + holderID, Password: "cluster"}
	logins, keys, err := serverUsers(append([]User{me}, users...))
	if err != nil {
		return nil, err
	}
	for try := 1; ; try++ {
		c := &Nodes{log: log, user: me, node: make([]*server.Server, n)}
		if c.opts, err = nodeOptions(n, filepath.Join(dir, strconv.Itoa(try)), logins, keys); err == nil {
			err = c.startAll(ctx)
		}
		if err == nil {
			return c, nil
		}
		if err = errors.Join(err, c.Close()); try == maxTries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// maxTries: between finding a port and listening on it somebody else may have taken it.
const maxTries = 4

func nodeOptions(n int, dir string, logins []*server.User, keys []*server.NkeyUser) ([]*server.Options, error) {
	ports, err := freePorts(n)
	if err != nil {
		return nil, err
	}
	var routes []*url.URL
	for _, port := range ports {
		routes = append(routes, &url.URL{Scheme: "nats", Host: net.JoinHostPort("127.0.0.1", strconv.Itoa(port))})
	}
	var out []*server.Options
	for i, port := range ports {
		name := "node-" + strconv.Itoa(i)
		o := baseOptions(filepath.Join(dir, name), minBytes, streams.Always)
		o.ServerName, o.Host, o.Port, o.Users = name, "127.0.0.1", server.RANDOM_PORT, logins
		o.Nkeys = keys
		o.Cluster, o.Routes = server.ClusterOpts{Name: "landfall", Host: "127.0.0.1", Port: port}, routes
		out = append(out, o)
	}
	return out, nil
}

func (c *Nodes) startAll(ctx context.Context) error {
	for i := range c.opts {
		if err := c.Start(ctx, i); err != nil {
			return err
		}
	}
	return c.Await(ctx)
}

// freePorts: nodes must know each other's addresses before any of them listens, so they
// cannot all take random ones. These lie below the range from which systems give ports to
// outgoing connections: a node that is stopped finds its own free again.
func freePorts(n int) ([]int, error) {
	var out []int
	for tries := 0; len(out) < n; tries++ {
		port := 10_000 + rand.IntN(20_000)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			if tries > 100 {
				return nil, fmt.Errorf("cluster: no free port: %w", err)
			}
			continue
		}
		defer l.Close()
		out = append(out, port)
	}
	return out, nil
}

// Start starts node i, which must be stopped. It does not wait for the others.
func (c *Nodes) Start(ctx context.Context, i int) error {
	opts := *c.opts[i]
	ns, err := launch(ctx, &opts, newLogger(c.log.With("node", i)))
	if err != nil {
		return fmt.Errorf("cluster node %d: %w", i, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.node[i] = ns
	return nil
}

// Stop stops node i and waits for it.
func (c *Nodes) Stop(i int) {
	c.mu.Lock()
	ns := c.node[i]
	c.node[i] = nil
	c.mu.Unlock()
	if ns != nil {
		ns.Shutdown()
		ns.WaitForShutdown()
	}
}

// Await waits until some node leads and sees as many peers as there are nodes.
func (c *Nodes) Await(ctx context.Context) error {
	return backoff.Retry(func() error {
		for _, ns := range c.running() {
			if ns.JetStreamIsLeader() && len(ns.JetStreamClusterPeers()) >= len(c.opts) {
				return nil
			}
		}
		return errors.New("cluster: no leader that knows every node")
	}, backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(200*time.Millisecond), backoff.WithMaxElapsedTime(readyTimeout)), ctx))
}

func (c *Nodes) running() (out []*server.Server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, ns := range c.node {
		if ns != nil {
			out = append(out, ns)
		}
	}
	return out
}

// Leader is the node that leads the stream of a bucket, -1 when none does now.
func (c *Nodes) Leader(b events.Bucket) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, ns := range c.node {
		if ns != nil && ns.JetStreamIsStreamLeader("$G", streams.StreamName(b)) {
			return i
		}
	}
	return -1
}

// InProcessConn connects to node i, whatever server runs there when the connection is made.
func (c *Nodes) InProcessConn(i int) (net.Conn, error) {
	c.mu.Lock()
	ns := c.node[i]
	c.mu.Unlock()
	if ns == nil {
		return nil, fmt.Errorf("cluster node %d is stopped", i)
	}
	return ns.InProcessConn()
}

// via is one node as a connection sees it.
type via struct {
	c *Nodes
	i int
}

func (v via) InProcessConn() (net.Conn, error) { return v.c.InProcessConn(v.i) }

// Connection is how to connect through node i, as the host that makes replicated streams.
func (c *Nodes) Connection(i int) streams.Config {
	return streams.Config{
		InProcess: via{c, i},
		Role:      c.user.Role, ID: c.user.ID, User: c.user.Name, Password: c.user.Password,
		Network: "cluster", Creator: "up",
		Settings:   streams.Settings{Replicas: min(len(c.opts), 3)},
		Durability: streams.Always,
		Carrier:    true,
		Logger:     c.log,
	}
}

// Close stops every node.
func (c *Nodes) Close() error {
	for i := range c.opts {
		c.Stop(i)
	}
	return nil
}
