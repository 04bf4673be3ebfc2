package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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
	c := &Nodes{log: log, node: make([]*server.Server, n), user: User{Role: streams.RoleOperator, ID: holderID, Name: "operator." + holderID, Password: "cluster"}}
	routes, err := freeRoutes(n)
	if err != nil {
		return nil, err
	}
	logins, err := serverUsers(append([]User{c.user}, users...))
	if err != nil {
		return nil, err
	}
	for i := range n {
		o := baseOptions(filepath.Join(dir, "node-"+strconv.Itoa(i)), minBytes, false)
		port, _ := strconv.Atoi(routes[i].Port())
		o.ServerName, o.Host, o.Port, o.Users = "node-"+strconv.Itoa(i), "127.0.0.1", server.RANDOM_PORT, logins
		o.Cluster, o.Routes = server.ClusterOpts{Name: "landfall", Host: "127.0.0.1", Port: port}, routes
		c.opts = append(c.opts, o)
	}
	if err := c.startAll(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Nodes) startAll(ctx context.Context) error {
	for i := range c.opts {
		if err := c.Start(ctx, i); err != nil {
			return err
		}
	}
	return c.Await(ctx)
}

// freeRoutes: nodes must know each other's addresses before any of them listens.
func freeRoutes(n int) ([]*url.URL, error) {
	var out []*url.URL
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		defer l.Close() //nolint:errcheck // nothing was written
		out = append(out, &url.URL{Scheme: "nats", Host: l.Addr().String()})
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
		Settings: streams.Settings{Replicas: min(len(c.opts), 3)},
		Carrier:  true,
		Logger:   c.log,
	}
}

// Close stops every node.
func (c *Nodes) Close() error {
	for i := range c.opts {
		c.Stop(i)
	}
	return nil
}
