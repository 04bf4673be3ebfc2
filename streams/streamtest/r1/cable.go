package r1

import (
	"bytes"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrCut is how a connection breaks that a test has cut.
var ErrCut = errors.New("cut by the test")

// Cable is a host's way to the store: everything takes a while on it, and a test can cut it,
// freeze its end, or let one acknowledgement get lost.
type Cable struct {
	inner   nats.InProcessConnProvider
	latency time.Duration // of each way

	mu     sync.Mutex
	cut    bool
	frozen chan struct{} // closed to thaw; nil: not frozen
	lose   func(c *conn) // what becomes of the connection of the next publish to a bucket, instead of its answer
	conns  map[*conn]bool
}

// NewCable leads to a server. What is sent takes latency to arrive, either way.
func NewCable(to nats.InProcessConnProvider, latency time.Duration) *Cable {
	return &Cable{inner: to, latency: latency, conns: map[*conn]bool{}}
}

// InProcessConn implements nats.InProcessConnProvider.
func (c *Cable) InProcessConn() (net.Conn, error) {
	c.mu.Lock()
	cut := c.cut
	c.mu.Unlock()
	if cut {
		return nil, ErrCut
	}
	inner, err := c.inner.InProcessConn()
	if err != nil {
		return nil, err
	}
	out := &conn{Conn: inner, cable: c, up: newPipe(), down: newPipe()}
	c.mu.Lock()
	c.conns[out] = true
	c.mu.Unlock()
	go out.send()
	go out.receive()
	return out, nil
}

// Cut breaks every connection until Heal; what was under way is lost.
func (c *Cable) Cut() {
	c.mu.Lock()
	c.cut = true
	open := make([]*conn, 0, len(c.conns))
	for x := range c.conns {
		open = append(open, x)
	}
	c.mu.Unlock()
	for _, x := range open {
		_ = x.Close()
	}
}

// Heal ends Cut.
func (c *Cable) Heal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cut = false
}

// Bounce breaks every connection; the next ones are let through at once.
func (c *Cable) Bounce() { c.Cut(); c.Heal() }

// Freeze keeps the host from sending and from reading, as SIGSTOP does. What others send it
// waits for it.
func (c *Cable) Freeze() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen == nil {
		c.frozen = make(chan struct{})
	}
}

// Thaw ends Freeze.
func (c *Cable) Thaw() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.frozen != nil {
		close(c.frozen)
		c.frozen = nil
	}
}

// LoseAck lets the next append be stored, and breaks the connection instead of telling so.
func (c *Cable) LoseAck() { c.loseTo(func(x *conn) { _ = x.Close() }) }

// CutAtAck lets the next append be stored, and cuts everything instead of telling so.
func (c *Cable) CutAtAck() { c.loseTo(func(*conn) { c.Cut() }) }

func (c *Cable) loseTo(end func(*conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose = end
}

// conn is one connection over a cable. Its handshake takes no time and is not held up: the
// NATS client waits for it with a lock held, and who waits for a lock holds up the time of a
// bubble.
type conn struct {
	net.Conn // the server's side
	cable    *Cable
	up, down *pipe
	stands   atomic.Bool // the handshake is over
	deaf     func(*conn) // guarded by cable.mu: when set, what comes next is lost, and this is done
}

// send carries what the host writes to the server until the connection breaks.
func (c *conn) send() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.up.Read(buf)
		c.waitThaw()
		if err == nil {
			_, err = c.Conn.Write(buf[:n])
		}
		if err != nil {
			c.up.end(ErrCut)
			return
		}
	}
}

// receive carries what the server writes to the host until the connection breaks.
func (c *conn) receive() {
	buf := make([]byte, 32<<10)
	for {
		n, err := c.Conn.Read(buf)
		if err == nil {
			_, err = c.down.Write(buf[:n])
		}
		if err != nil {
			c.down.end(err)
			c.up.end(err)
			return
		}
		if !c.stands.Load() && bytes.Contains(buf[:n], handshakeEnd) {
			c.up.slow(c.cable.latency)
			c.down.slow(c.cable.latency)
			c.stands.Store(true)
		}
	}
}

// handshakeEnd is the server's answer to the ping that ends the handshake.
var handshakeEnd = []byte("PONG")

var publishToBucket = []byte("HPUB $KV.")

// Write does not block: the client writes with its lock held.
func (c *conn) Write(b []byte) (int, error) {
	c.cable.mu.Lock()
	if c.cable.lose != nil && bytes.Contains(b, publishToBucket) {
		c.cable.lose, c.deaf = nil, c.cable.lose
	}
	c.cable.mu.Unlock()
	return c.up.Write(b)
}

func (c *conn) Read(b []byte) (int, error) {
	n, err := c.down.Read(b)
	c.waitThaw()
	c.cable.mu.Lock()
	lose := c.deaf
	c.cable.mu.Unlock()
	if lose != nil && bytes.Contains(b[:n], []byte("MSG ")) {
		lose(c)
		return 0, ErrCut
	}
	return n, err
}

// waitThaw blocks while the host is frozen. A connection that breaks meanwhile is noticed after.
func (c *conn) waitThaw() {
	c.cable.mu.Lock()
	frozen := c.cable.frozen
	c.cable.mu.Unlock()
	if frozen != nil && c.stands.Load() {
		<-frozen
	}
}

// Close breaks the connection for both sides.
func (c *conn) Close() error {
	c.cable.mu.Lock()
	delete(c.cable.conns, c)
	c.cable.mu.Unlock()
	c.up.drop()
	c.down.drop()
	return c.Conn.Close()
}

// pipe carries bytes one way, each a while after it was written. It holds as many as come.
type pipe struct {
	more chan struct{} // has room for one: something was written, or the pipe has ended

	mu      sync.Mutex
	latency time.Duration
	chunks  []chunk
	ended   error // nothing more can be written; what was is still read
}

type chunk struct {
	due  time.Time
	data []byte
}

func newPipe() *pipe { return &pipe{more: make(chan struct{}, 1)} }

// slow makes what is written from now on take that long.
func (p *pipe) slow(latency time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = latency
}

// signal wants p.mu held.
func (p *pipe) signal() {
	select {
	case p.more <- struct{}{}:
	default:
	}
}

// Write takes b in and does not wait.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended != nil {
		return 0, p.ended
	}
	p.chunks = append(p.chunks, chunk{due: time.Now().Add(p.latency), data: bytes.Clone(b)})
	p.signal()
	return len(b), nil
}

// Read blocks until something has arrived. It belongs to one reader.
func (p *pipe) Read(b []byte) (int, error) {
	for {
		n, wait, err := p.take(b)
		switch {
		case n > 0 || err != nil:
			return n, err
		case wait > 0:
			p.rest(wait)
		default:
			<-p.more
		}
	}
}

// take gives what has arrived, or how long the next bytes still need, 0 when there are none.
func (p *pipe) take(b []byte) (n int, wait time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.chunks) == 0 {
		return 0, 0, p.ended
	}
	next := &p.chunks[0]
	if wait = time.Until(next.due); wait > 0 {
		return 0, wait, nil
	}
	n = copy(b, next.data)
	if next.data = next.data[n:]; len(next.data) == 0 {
		p.chunks = p.chunks[1:]
	}
	return n, 0, nil
}

// rest waits for bytes that are under way, or a sign that something has changed.
func (p *pipe) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.more:
	}
}

// end lets what is under way arrive, and then gives err.
func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended == nil {
		p.ended = err
	}
	p.signal()
}

// drop ends the pipe and loses what is under way.
func (p *pipe) drop() {
	p.mu.Lock()
	p.chunks = nil
	p.mu.Unlock()
	p.end(ErrCut)
}
