package streams_test

import (
	"bytes"
	"errors"
	"net"
	"sync"

	"github.com/nats-io/nats.go"
)

// gate is a host's cable to the store: a test can cut it, or let one acknowledgement get lost.
type gate struct {
	inner nats.InProcessConnProvider

	mu    sync.Mutex
	cut   bool
	lose  bool // the next publish to a bucket is followed by a break
	conns map[*gateConn]bool
}

var errCut = errors.New("cut by the test")

func newGate(inner nats.InProcessConnProvider) *gate {
	return &gate{inner: inner, conns: map[*gateConn]bool{}}
}

func (g *gate) InProcessConn() (net.Conn, error) {
	g.mu.Lock()
	cut := g.cut
	g.mu.Unlock()
	if cut {
		return nil, errCut
	}
	c, err := g.inner.InProcessConn()
	if err != nil {
		return nil, err
	}
	gc := &gateConn{Conn: c, g: g}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.conns[gc] = true
	return gc, nil
}

func (g *gate) Cut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = true
	for c := range g.conns {
		_ = c.Conn.Close()
	}
}

func (g *gate) Heal() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.cut = false
}

// Bounce breaks every connection; the next ones are let through at once.
func (g *gate) Bounce() { g.Cut(); g.Heal() }

func (g *gate) LoseAck() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lose = true
}

type gateConn struct {
	net.Conn
	g    *gate
	deaf bool // guarded by g.mu: what comes next is lost, and the connection with it
}

var publishToBucket = []byte("HPUB $KV.")

func (c *gateConn) Write(b []byte) (int, error) {
	c.g.mu.Lock()
	if c.g.lose && bytes.Contains(b, publishToBucket) {
		c.g.lose, c.deaf = false, true
	}
	c.g.mu.Unlock()
	return c.Conn.Write(b)
}

func (c *gateConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.g.mu.Lock()
	deaf := c.deaf && n > 0 && bytes.Contains(b[:n], []byte("MSG "))
	c.g.mu.Unlock()
	if deaf {
		_ = c.Close()
		return 0, errCut
	}
	return n, err
}

func (c *gateConn) Close() error {
	c.g.mu.Lock()
	delete(c.g.conns, c)
	c.g.mu.Unlock()
	return c.Conn.Close()
}
