package edge

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"
)

// How a connection is closed that must not lose the last words written to it.
const (
	lingerTime  = time.Second
	lingerBytes = 64 << 10
)

// client is one accepted connection up to the splice. It belongs to the goroutine
// that serves it.
type client struct {
	s       *Server
	id      uint64
	conn    *net.TCPConn
	r       *bufio.Reader // over conn; holds what was read ahead
	trusted bool
	remote  netip.AddrPort
	local   netip.AddrPort
	leave   func() // of the gate
	dialled time.Duration
}

func newClient(s *Server, conn *net.TCPConn, peer netip.AddrPort, trusted bool, leave func()) *client {
	local, _ := tcpAddrPort(conn.LocalAddr())
	return &client{
		s: s, id: lastConn.Add(1), conn: conn, r: bufio.NewReaderSize(conn, 4096), trusted: trusted,
		remote: peer, local: local, leave: leave,
	}
}

// serve answers the client or splices it, and closes it.
func (c *client) serve(ctx context.Context) {
	defer func() { c.leave() }()
	defer closeGently(c.conn)
	if c.s.cfg.Game != Minecraft {
		c.serveLate(ctx)
		return
	}
	opening := &endable{Conn: c.conn}
	release := onDone(ctx, opening.end) // a stopping edge does not wait for silent clients
	g, err := c.greet(opening, time.Now().Add(c.s.cfg.OpeningTimeout))
	release()
	if err != nil {
		c.countFailure(ctx, err)
		return
	}
	if g.start != nil {
		c.login(ctx, g)
	}
}

// greet reads up to Login Start, answering status requests itself. A greeting with
// no start needs nothing more.
func (c *client) greet(conn net.Conn, deadline time.Time) (greeting, error) {
	if err := c.awaitFirst(conn); err != nil {
		return greeting{}, err
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return greeting{}, err
	}
	if c.trusted {
		if err := c.believeProxy(); err != nil {
			return greeting{}, err
		}
	}
	return greet(conn, c.r, deadline, c.s.cfg.LegacyWait, c.s.status)
}

// awaitFirst waits for the first byte: every client, and every proxy, speaks at once.
func (c *client) awaitFirst(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(c.s.cfg.FirstByteTimeout)); err != nil {
		return err
	}
	_, err := c.r.Peek(1)
	return err
}

// errCapped: the address behind a trusted proxy has too many open logins.
var errCapped = errors.New("too many open logins")

// believeProxy takes the addresses of a PROXY header, if there is one, and counts the
// connection for the source it names.
func (c *client) believeProxy() error {
	ends, found, err := readProxyHeader(c.r)
	if err != nil {
		return err
	}
	if found {
		c.remote, c.local = ends.source, ends.destination
	}
	var ok bool
	if c.leave, ok = c.s.gate.enter(c.remote.Addr()); !ok {
		c.s.refuseCapped(c.remote.Addr())
		return errCapped
	}
	return nil
}

func (c *client) countFailure(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil || errors.Is(err, errCapped):
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.s.counts.timedOut.Add(1)
		c.s.log.Debug("client too slow, closed", "conn", c.id, "after", c.s.cfg.OpeningTimeout)
	case errors.Is(err, errMalformed):
		c.s.counts.malformed.Add(1)
		c.s.log.Debug("client closed", "conn", c.id, "err", err)
	}
}

// kick shows text to a client that is still in login.
func (c *client) kick(text string) {
	c.s.counts.refused.Add(1)
	// The write fails when the client has left; then nobody reads it anyway.
	_ = c.conn.SetDeadline(time.Now().Add(lingerTime))
	_, _ = c.conn.Write(c.s.farewell(text))
}

// status asks the router and counts.
func (s *Server) status() Status {
	s.counts.pings.Add(1)
	return s.cfg.Router.Status()
}

// closeGently closes conn after the other side has had a moment to read what was
// written: closing with unread input resets the connection and drops it.
func closeGently(conn *net.TCPConn) {
	defer conn.Close()
	if conn.CloseWrite() != nil || conn.SetReadDeadline(time.Now().Add(lingerTime)) != nil {
		return
	}
	_, _ = io.CopyN(io.Discard, conn, lingerBytes)
}

// endable is a connection whose deadlines cannot be moved again once end was called
// from another goroutine.
type endable struct {
	net.Conn

	mu    sync.Mutex
	ended bool
}

var past = time.Unix(1, 0)

func (e *endable) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = true
	_ = e.Conn.SetDeadline(past) // fails on a closed connection, where nothing waits
}

func (e *endable) SetDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return os.ErrDeadlineExceeded
	}
	return e.Conn.SetDeadline(t)
}

func (e *endable) SetReadDeadline(t time.Time) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ended {
		return os.ErrDeadlineExceeded
	}
	return e.Conn.SetReadDeadline(t)
}

// onDone runs f when ctx ends. The returned function forgets it, after waiting for an
// f that has begun.
func onDone(ctx context.Context, f func()) (release func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		f()
	})
	return func() {
		if !stop() {
			<-done
		}
	}
}
