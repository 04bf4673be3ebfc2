//go:build acceptance

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// keeper is what keeps the log of the network.
type keeper interface {
	// yaml is the key "store" of network.yml.
	yaml() string
	// start is called before any host is started.
	start(t *testing.T, x *acceptance)
	// url is where the hosts find it.
	url() string
	// kill ends the one process that matters most, as a power cut would.
	kill(t *testing.T, x *acceptance)
	// outlives tells that the others go on without what was killed.
	outlives() bool
	// revive starts it again, and waits until it has caught up.
	revive(t *testing.T, x *acceptance)
}

// carried is a store inside of proxy-1.
type carried struct{ port int }

func (c *carried) yaml() string                       { return carriedYAML("proxy-1", c.port) }
func (c *carried) url() string                        { return fmt.Sprintf("nats://127.0.0.1:%d", c.port) }
func (c *carried) start(*testing.T, *acceptance)      {}
func (c *carried) outlives() bool                     { return false }
func (c *carried) kill(_ *testing.T, x *acceptance)   { x.hosts["proxy-1"].kill() }
func (c *carried) revive(t *testing.T, x *acceptance) { x.launch(t, "proxy-1") }

// cluster is three nats-servers of the kind that an operator installs.
type cluster struct {
	program string
	dir     string
	ports   [3]int // for hosts
	routes  [3]int // for each other
	servers [3]*process
	killed  int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{dir: t.TempDir(), killed: -1}
	c.program = filepath.Join(c.dir, "nats-server")
	output(t, ".", "go", "build", "-o", c.program, "github.com/nats-io/nats-server/v2")
	for i := range c.ports {
		c.ports[i], c.routes[i] = freePort(t), freePort(t)
	}
	return c
}

func (c *cluster) url() string {
	var urls []string
	for _, port := range c.ports {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", port))
	}
	return strings.Join(urls, ",")
}

func (c *cluster) yaml() string {
	return fmt.Sprintf("store: { mode: external, url: %q, replicas: 3 }\n", c.url())
}

func (c *cluster) outlives() bool { return true }

// start configures the servers as docs/external.md tells an operator to.
func (c *cluster) start(t *testing.T, x *acceptance) {
	t.Helper()
	c.write(t, "landfall-logins.conf", x.landfall(t, "config", "nats"))
	text, err := os.ReadFile("../../docs/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.servers {
		c.write(t, c.name(i)+".conf", exchange(t, string(text), "server_name: nats-1", "server_name: "+c.name(i), "/var/lib/nats", filepath.Join(c.dir, c.name(i)),
			`listen: "10.0.0.21:4222"`, fmt.Sprintf(`listen: "127.0.0.1:%d"`, c.ports[i]), `listen: "10.0.0.21:6222"`, fmt.Sprintf(`listen: "127.0.0.1:%d"`, c.routes[i]),
			"10.0.0.21:6222", fmt.Sprintf("127.0.0.1:%d", c.routes[0]), "10.0.0.22:6222", fmt.Sprintf("127.0.0.1:%d", c.routes[1]), "10.0.0.23:6222", fmt.Sprintf("127.0.0.1:%d", c.routes[2])))
		c.servers[i] = c.launch(x.t, i)
	}
}

func (c *cluster) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (c *cluster) name(i int) string { return fmt.Sprintf("nats-%d", i+1) }

func (c *cluster) launch(t *testing.T, i int) *process {
	t.Helper()
	return launch(t, c.name(i), c.dir, nil, (*process).kill, c.program, "-c", c.name(i)+".conf")
}

// kill ends the leader of transfers.
func (c *cluster) kill(t *testing.T, x *acceptance) {
	t.Helper()
	leader := c.info(t, x).Cluster.Leader
	for i := range c.servers {
		if c.name(i) == leader {
			c.killed = i
			c.servers[i].kill()
			t.Logf("killed %s, the leader of transfers", leader)
			return
		}
	}
	t.Fatalf("transfers is led by %q", leader)
}

func (c *cluster) revive(t *testing.T, x *acceptance) {
	t.Helper()
	c.servers[c.killed] = c.launch(x.t, c.killed)
	late := time.NewTimer(patience)
	defer late.Stop()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	for !c.whole(c.info(t, x)) {
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("%s has not caught up within %s: %+v", c.name(c.killed), patience, c.info(t, x).Cluster)
		}
	}
}

// whole tells that all three servers have the stream.
func (c *cluster) whole(info *jetstream.StreamInfo) bool {
	current := 0
	for _, r := range info.Cluster.Replicas {
		if r.Current && !r.Offline {
			current++
		}
	}
	return info.Cluster.Leader != "" && current == len(c.servers)-1
}

// info is the stream of transfers as its leader has it.
func (c *cluster) info(t *testing.T, x *acceptance) *jetstream.StreamInfo {
	t.Helper()
	u := operatorLogin(x.key)
	nc, err := client.Connect(c.url(), client.UserInfo(u.Name, u.Password), client.CustomInboxPrefix(streams.InboxPrefix(u.Role, u.ID)))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	s, err := js.Stream(t.Context(), streams.StreamName(events.Transfers))
	if err != nil {
		t.Fatal(err)
	}
	return s.CachedInfo()
}
