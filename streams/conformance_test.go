package streams_test

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

func TestConformanceR1(t *testing.T) {
	streamtest.Run(t, streamtest.Factory{
		Features: streamtest.Features{Cut: true, LoseAck: true, Outage: true, Replace: true, Expire: true},
		Open:     func(t *testing.T) streamtest.Store { return openR1(t, streams.Always) },
	})
}

// TestConformanceR1Grouped: hosts ask over their connections, as those of other machines do.
func TestConformanceR1Grouped(t *testing.T) {
	streamtest.Run(t, streamtest.Factory{
		Features: streamtest.Features{Cut: true, LoseAck: true, Outage: true, Replace: true, Expire: true, Races: 300, Tokens: 200},
		Open:     func(t *testing.T) streamtest.Store { return openR1(t, streams.Grouped) },
	})
}

func TestConformanceR3(t *testing.T) {
	streamtest.Run(t, streamtest.Factory{
		Features: streamtest.Features{Cut: true, LoseAck: true, Outage: true},
		Open:     openR3,
	})
}

// hosts connects the suite's hosts, each over a cable of its own.
type hosts struct {
	config func(i int) streams.Config
	mu     sync.Mutex
	n      int
	gates  map[streamtest.Conn]*r1.Cable
	wrap   func(streamtest.Conn) streamtest.Conn // nil: as it is
}

func (h *hosts) connect(t *testing.T) streamtest.Conn {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.config(h.n)
	g := r1.NewCable(c.InProcess, 0)
	c.InProcess = g
	h.n++
	conn := streamtest.Conn(connect(t, c))
	if h.wrap != nil {
		conn = h.wrap(conn)
	}
	h.gates[conn] = g
	return conn
}

func (h *hosts) gate(c streamtest.Conn) *r1.Cable {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gates[c]
}

func (h *hosts) store() streamtest.Store {
	return streamtest.Store{
		Connect: h.connect,
		Cut:     func(_ *testing.T, c streamtest.Conn) { h.gate(c).Cut() },
		Heal:    func(_ *testing.T, c streamtest.Conn) { h.gate(c).Heal() },
		LoseAck: func(_ *testing.T, c streamtest.Conn) { h.gate(c).LoseAck() },
	}
}

func hostID(i int) events.HostID { return events.HostID(fmt.Sprintf("host-%d", i)) }

var secret = []byte("a secret of at least thirty-two bytes")

// suiteUsers are logins that may write everything: the suite beats in many names.
func suiteUsers() (out []embedded.User) {
	for i := range 200 {
		name, password := streams.Login(secret, streams.RoleOperator, hostID(i))
		out = append(out, embedded.User{Role: streams.RoleOperator, ID: hostID(i), Name: name, Password: password})
	}
	return out
}

// node is a server that can be stopped and opened again in its directory.
type node struct {
	cfg embedded.Config
	mu  sync.Mutex
	srv *embedded.Server
}

func (n *node) server() *embedded.Server {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.srv
}

func (n *node) InProcessConn() (net.Conn, error) {
	srv := n.server()
	if srv == nil {
		return nil, r1.ErrCut
	}
	return srv.Connection().InProcess.InProcessConn()
}

func (n *node) stop(t *testing.T) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.srv == nil {
		return
	}
	if err := n.srv.Close(); err != nil {
		t.Error(err)
	}
	n.srv = nil
}

func (n *node) start(t *testing.T) {
	t.Helper()
	srv, err := embedded.Open(context.WithoutCancel(t.Context()), n.cfg)
	if err != nil {
		t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.srv = srv
}

func openR1(t *testing.T, d streams.Durability) streamtest.Store {
	n := &node{cfg: testConfig(t)}
	n.cfg.Durability, n.cfg.Users = d, suiteUsers()
	n.start(t)
	t.Cleanup(func() { n.stop(t) })
	ensured(t, n.server().Connection())
	h := &hosts{gates: map[streamtest.Conn]*r1.Cable{}, config: func(i int) streams.Config {
		c := streams.Config{InProcess: n, Role: streams.RoleOperator, ID: hostID(i), Network: "net", Durability: d, Logger: n.cfg.Logger}
		c.User, c.Password = streams.Login(secret, c.Role, c.ID)
		return c
	}}
	s := h.store()
	s.Outage, s.Restore = n.stop, n.start
	admin := func(t *testing.T) jetstream.JetStream { return raw(t, n.server()) }
	s.Replace = func(t *testing.T, b events.Bucket, keep bool, messages []events.Message) {
		replace(t, admin(t), b, keep, messages)
	}
	s.Expire = func(t *testing.T, b events.Bucket) { expire(t, admin(t), b) }
	return s
}

// raw is JetStream as an operator has it.
func raw(t testing.TB, srv *embedded.Server) jetstream.JetStream {
	t.Helper()
	return rawConfig(t, srv.Connection())
}

func rawConfig(t testing.TB, c streams.Config) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect("", nats.InProcessServer(c.InProcess), nats.UserInfo(c.User, c.Password), nats.CustomInboxPrefix(streams.InboxPrefix(c.Role, c.ID)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	return js
}

func streamConfig(t *testing.T, js jetstream.JetStream, b events.Bucket) jetstream.StreamConfig {
	t.Helper()
	st, err := js.Stream(t.Context(), streams.StreamName(b))
	if err != nil {
		t.Fatal(err)
	}
	return st.CachedInfo().Config
}

func replace(t *testing.T, js jetstream.JetStream, b events.Bucket, keep bool, messages []events.Message) {
	t.Helper()
	c := streamConfig(t, js, b)
	if err := js.DeleteStream(t.Context(), c.Name); err != nil {
		t.Fatal(err)
	}
	if !keep {
		c.Metadata["landfall.incarnation"] = streamtest.NewID[events.RequestID]().String()
	}
	if _, err := js.CreateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	for _, m := range messages {
		out := nats.NewMsg(m.Bucket.Subject(m.Key))
		for name, value := range m.Header {
			out.Header[name] = []string{value}
		}
		out.Data = m.Body
		if _, err := js.PublishMsg(t.Context(), out); err != nil {
			t.Fatal(err)
		}
	}
}

// expire makes retention short for a moment.
func expire(t *testing.T, js jetstream.JetStream, b events.Bucket) {
	t.Helper()
	c := streamConfig(t, js, b)
	short := c
	short.MaxAge, short.Duplicates = 100*time.Millisecond, 100*time.Millisecond
	st, err := js.UpdateStream(t.Context(), short)
	if err != nil {
		t.Fatal(err)
	}
	for {
		info, err := st.Info(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if info.State.Msgs == 0 {
			break
		}
	}
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func openR3(t *testing.T) streamtest.Store {
	c, err := embedded.Cluster(t.Context(), 3, t.TempDir(), testConfig(t).Logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	ensured(t, c.Connection(0))
	h := &hosts{gates: map[streamtest.Conn]*r1.Cable{}, config: func(i int) streams.Config { return c.Connection(i % 3) }}
	var nodes []*streams.Store
	for i := range 3 {
		nodes = append(nodes, connect(t, c.Connection(i)))
	}
	h.wrap = func(conn streamtest.Conn) streamtest.Conn { return &spread{Conn: conn, nodes: nodes} }
	s := h.store()
	s.Outage = func(*testing.T) {
		for i := range 3 {
			c.Stop(i)
		}
	}
	s.Restore = func(t *testing.T) {
		for i := range 3 {
			if err := c.Start(context.WithoutCancel(t.Context()), i); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}
