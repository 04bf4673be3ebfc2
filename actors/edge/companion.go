package edge

import (
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Vintage Story sends positions over UDP, to the port that the client dialled. A server ties what it gets to the
// source it came from, so each client endpoint has one socket toward the server, for as long as it leads there.
// A datagram does not say whose it is: it belongs to a session from the same address.

const (
	flowIdle     = 2 * time.Minute
	flowSweep    = 30 * time.Second
	flowPatience = 2 * time.Second // for a server's first answer, where another session may be meant
	flowsPerHost = 64
	flowsInAll   = 4096
	datagram     = 64 << 10
)

// companion is the UDP half of a listening edge. It is best effort: without it clients send positions over TCP.
type companion struct {
	conn *net.UDPConn // nil: the port is taken
	log  *slog.Logger
	wg   sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	sessions []session // oldest first
	flows    map[netip.AddrPort]*flow
}

// session is one client on a server, over TCP.
type session struct {
	id      uint64
	client  netip.Addr
	backend netip.AddrPort
}

// flow is one client endpoint and the socket that speaks for it.
type flow struct {
	client   netip.AddrPort
	session  uint64
	backend  netip.AddrPort
	up       *net.UDPConn
	began    time.Time
	used     time.Time
	answered bool
	tried    []uint64 // sessions it has been taken for
}

// newCompanion listens beside a TCP port.
func newCompanion(tcp netip.AddrPort, log *slog.Logger) *companion {
	c := &companion{log: log, flows: map[netip.AddrPort]*flow{}}
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(tcp))
	if err != nil {
		log.Warn("no UDP beside this port: clients send positions over TCP", "err", err)
		return c
	}
	c.conn = conn
	return c
}

// shut ends everything. run returns then.
func (c *companion) shut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	if c.conn != nil {
		c.conn.Close()
	}
	for _, f := range c.flows {
		f.up.Close()
	}
}

// run passes datagrams until shut.
func (c *companion) run() {
	defer c.wg.Wait()
	if c.conn == nil {
		return
	}
	buf := make([]byte, datagram)
	swept := time.Now()
	for {
		_ = c.conn.SetReadDeadline(time.Now().Add(flowSweep)) // fails when shut, as the read then does
		n, from, err := c.conn.ReadFromUDPAddrPort(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if time.Since(swept) >= flowSweep {
			swept = time.Now()
			c.sweep(swept)
		}
		if err == nil {
			c.pass(unmapped(from), buf[:n])
		}
	}
}

// join says that a client is on a server from now on.
func (c *companion) join(id uint64, client netip.Addr, backend netip.AddrPort) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = append(c.sessions, session{id, client.Unmap().WithZone(""), backend})
}

// leave says that a session has ended; its flow ends with it.
func (c *companion) leave(id uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions = slices.DeleteFunc(c.sessions, func(s session) bool { return s.id == id })
	for _, f := range c.flows {
		if f.session == id {
			f.session = 0 // the next datagram finds another session, if there is one
		}
	}
}

// pass hands a client's datagram to the server of its session. Without a session it is dropped.
func (c *companion) pass(from netip.AddrPort, b []byte) {
	if f := c.flowOf(from, time.Now()); f != nil {
		_, _ = f.up.Write(b) // as lossy as UDP is
	}
}

// flowOf gives the flow of an endpoint, as it should be now.
func (c *companion) flowOf(from netip.AddrPort, now time.Time) *flow {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flows[from]
	if f != nil {
		f.used = now
		if f.session != 0 && (f.answered || now.Sub(f.began) < flowPatience) {
			return f
		}
	}
	s, ok := c.choose(from.Addr(), f)
	switch {
	case !ok && f != nil && f.session != 0:
		return f // nobody else it could be
	case !ok:
		c.drop(f)
		return nil
	case f != nil && f.backend == s.backend:
		f.session, f.began, f.tried = s.id, now, append(f.tried, s.id) // the same server: the socket stays
		return f
	}
	c.drop(f)
	return c.begin(from, s, f, now)
}

// choose gives the session that an endpoint is taken for: the newest one of its address that has no flow and
// that it has not been taken for in vain.
func (c *companion) choose(addr netip.Addr, f *flow) (session, bool) {
	taken := map[uint64]bool{}
	for _, other := range c.flows {
		if other != f {
			taken[other.session] = true
		}
	}
	for _, s := range slices.Backward(c.sessions) {
		if s.client == addr && !taken[s.id] && (f == nil || !slices.Contains(f.tried, s.id)) {
			return s, true
		}
	}
	return session{}, false
}

func (c *companion) begin(from netip.AddrPort, s session, before *flow, now time.Time) *flow {
	if c.closed || len(c.flows) >= flowsInAll || c.from(from.Addr()) >= flowsPerHost {
		return nil
	}
	up, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.backend))
	if err != nil {
		c.log.Warn("no UDP to a server", "backend", s.backend, "err", err)
		return nil
	}
	f := &flow{client: from, session: s.id, backend: s.backend, up: up, began: now, used: now}
	if before != nil {
		f.tried = before.tried
	}
	f.tried = append(f.tried, s.id)
	c.flows[from] = f
	c.wg.Go(func() { c.back(f) })
	return f
}

func (c *companion) from(addr netip.Addr) int {
	n := 0
	for at := range c.flows {
		if at.Addr() == addr {
			n++
		}
	}
	return n
}

// back passes the server's datagrams to the client until the flow ends.
func (c *companion) back(f *flow) {
	buf := make([]byte, datagram)
	for {
		n, err := f.up.Read(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // the server's port was closed for a moment
		}
		c.mu.Lock()
		f.used, f.answered = time.Now(), true
		c.mu.Unlock()
		_, _ = c.conn.WriteToUDPAddrPort(buf[:n], f.client) // as lossy as UDP is
	}
}

// drop ends a flow, if there is one.
func (c *companion) drop(f *flow) {
	if f != nil && c.flows[f.client] == f {
		delete(c.flows, f.client)
		f.up.Close()
	}
}

// sweep ends the flows that nobody uses.
func (c *companion) sweep(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.flows {
		if now.Sub(f.used) > flowIdle {
			c.drop(f)
		}
	}
}
