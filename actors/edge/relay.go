package edge

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/landfall/landfall/actors/edge/vintage"
)

const (
	relayBuffer = 16 << 10
	// redirectLinger is how long a client keeps its connection after a redirect, to read it.
	redirectLinger = 250 * time.Millisecond
)

// relay passes the frames of one client of Vintage Story to its server and back. Toward the client one
// goroutine writes, so that what the proxy itself says stands between two frames of the server's.
type relay struct {
	c       *client
	a       Arrival
	d       Decision
	backend *net.TCPConn
	walker  vintage.Walker
	known   atomic.Pointer[Connection] // nil: the client has not said who it is
	letIn   sync.Once

	mu     sync.Mutex
	saying *saying
	over   bool // nothing is said any more
}

// saying is a frame of the proxy's own, the last one that a client gets.
type saying struct {
	frame []byte
	done  chan error // buffered
	taken bool       // it is being written
}

// relayFrames splices a client of Vintage Story to a server.
func (c *client) relayFrames(ctx context.Context, a Arrival, d Decision, o prelude, backend *net.TCPConn) {
	defer backend.Close()
	r := &relay{c: c, a: a, d: d, backend: backend}
	r.walker.Begins = r.serverSays
	_ = c.conn.SetDeadline(time.Time{}) // fails on a closed connection, as the copying then does
	c.s.keep(c.id, r)
	defer c.s.keep(c.id, nil)
	c.leave()
	c.s.counts.spliced.Add(1)
	c.s.log.Info("connected", "conn", c.id, "server", d.Server, "game", a.Game)

	reason := r.pass(ctx, o)

	c.s.counts.spliced.Add(-1)
	name := ""
	if known := r.known.Load(); known != nil {
		name = known.Name
		if c.s.companion != nil {
			c.s.companion.leave(c.id)
		}
		c.s.cfg.Router.Closed(*known, reason)
	}
	c.s.log.Info("disconnected", "conn", c.id, "name", name, "server", d.Server, "reason", reason)
}

func (s *Server) keep(id uint64, r *relay) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r == nil {
		delete(s.late, id)
	} else {
		s.late[id] = r
	}
}

// pass copies both ways until both have ended, and says why.
func (r *relay) pass(ctx context.Context, o prelude) string {
	l := &leash{conns: []*net.TCPConn{r.c.conn, r.backend}}
	release := onDone(ctx, func() { r.end(ctx, l) })
	defer release()
	var first sync.Once
	reason := ""
	end := func(to *net.TCPConn, why string) {
		first.Do(func() { reason = why })
		_ = to.CloseWrite() // fails when that side is gone, which is as good
		l.shorten(time.Now().Add(r.c.s.cfg.HalfCloseGrace))
	}
	var up sync.WaitGroup
	up.Go(func() { end(r.backend, r.up(ctx, o)) })
	why, said := r.down(l)
	if said { // the client has a moment to go by itself: it may not look for a redirect once the stream has ended
		l.shorten(time.Now().Add(redirectLinger))
		up.Wait()
	}
	end(r.c.conn, why)
	up.Wait()
	if said && ctx.Err() == nil {
		return ClosedByUs
	}
	return ended(ctx, reason)
}

// end says why a connection is cut, if there is a moment for it, and cuts it.
func (r *relay) end(ctx context.Context, l *leash) {
	texts := r.c.s.texts.Load()
	text := texts.Stopping
	if errors.Is(context.Cause(ctx), errCut) {
		text = texts.Cut
	}
	patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), lingerTime)
	defer cancel()
	_ = r.say(patience, vintage.AppendDisconnect(nil, text)) // who does not listen is cut all the same
	l.shorten(past)
}

// say hands a frame to the goroutine that writes to the client, and waits until it was written. It is
// the last frame of the connection.
func (r *relay) say(ctx context.Context, frame []byte) error {
	s := &saying{frame: frame, done: make(chan error, 1)}
	r.mu.Lock()
	if r.over || r.saying != nil {
		r.mu.Unlock()
		return ErrNoConnection
	}
	r.saying = s
	r.mu.Unlock()
	_ = r.backend.SetReadDeadline(past) // wakes the goroutine that reads from the server; a closed connection needs no waking
	patience := time.NewTimer(r.c.s.cfg.RedirectWait)
	defer patience.Stop()
	select {
	case err := <-s.done:
		return err
	case <-patience.C:
	case <-ctx.Done():
	}
	return r.takeBack(s)
}

// takeBack ends the wait for a frame that was not written yet.
func (r *relay) takeBack(s *saying) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case err := <-s.done:
		return err
	default:
	}
	if s.taken {
		return ErrRedirectUnknown
	}
	if r.saying == s {
		r.saying = nil
	}
	return ErrNotRedirected
}

// takes gives the frame that is to be said, if the stream stands where it may be.
func (r *relay) takes(now bool) *saying {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saying == nil || !now {
		return nil
	}
	r.saying.taken = true
	return r.saying
}

func (r *relay) waiting() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.saying != nil
}

// down passes what the server says. It gives the reason for an end; said tells that the last word was ours.
func (r *relay) down(l *leash) (why string, said bool) {
	defer r.silence()
	buf := make([]byte, relayBuffer)
	for {
		n, err := r.backend.Read(buf)
		if n > 0 {
			if s, why := r.forward(buf[:n]); s != nil {
				r.utter(s)
				return why, true
			} else if why != "" {
				return why, false
			}
		}
		if s := r.takes(r.walker.AtBoundary()); s != nil {
			r.utter(s)
			return ClosedByUs, true
		}
		switch {
		case err == nil:
		case isTimeout(err) && !l.short():
			_ = r.backend.SetReadDeadline(time.Time{}) // woken: what waits is said at the next boundary
			if l.short() || r.waiting() && r.walker.AtBoundary() {
				_ = r.backend.SetReadDeadline(past) // somebody was quicker
			}
		default:
			return culprit(err, ClosedByBackend, ClosedByClient), false
		}
	}
}

// silence lets nobody wait for a word that will not be said.
func (r *relay) silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.over = true; r.saying != nil {
		select {
		case r.saying.done <- ErrNoConnection:
		default: // it was said
		}
	}
}

// forward writes bytes of the server's, up to the last whole frame among them if something waits to be said
// there, which it then gives. why is the reason for an end, "" for none.
func (r *relay) forward(b []byte) (s *saying, why string) {
	boundary, err := r.walker.Walk(b)
	if err != nil {
		r.c.s.log.Warn("a server sends no frames", "conn", r.c.id, "server", r.d.Server, "err", err)
		return nil, ClosedByBackend
	}
	if s = r.takes(boundary >= 0); s != nil {
		b, why = b[:boundary], ClosedByUs
	}
	if _, err := r.c.conn.Write(b); err != nil {
		return nil, ClosedByClient // silence answers who waits
	}
	return s, why
}

// utter writes the last frame.
func (r *relay) utter(s *saying) {
	_ = r.c.conn.SetWriteDeadline(time.Now().Add(r.c.s.cfg.RedirectWait)) // fails on a closed connection, as the write then does
	n, err := r.c.conn.Write(s.frame)
	switch {
	case err == nil:
	case n > 0:
		err = ErrRedirectUnknown
	default:
		err = ErrNoConnection
	}
	s.done <- err
	_ = r.backend.CloseRead() // what the server says from now on is for nobody
}

// serverSays hears how each frame of the server's begins.
func (r *relay) serverSays(first []byte, compressed bool) {
	known := r.known.Load()
	if compressed || known == nil || vintage.ServerKind(first) != vintage.ServerIdentification {
		return
	}
	r.letIn.Do(func() {
		r.c.tracer().LetIn(*known)
	})
}

// up passes what the client says: frame by frame until it has said who it is, then as it comes. It gives the
// reason for an end.
func (r *relay) up(ctx context.Context, o prelude) string {
	frames, buf := o.frames, make([]byte, relayBuffer)
	for r.known.Load() == nil {
		frame, ok, err := frames.Next(vintage.MaxFirst)
		switch {
		case err != nil:
			r.c.s.counts.malformed.Add(1)
			r.c.s.log.Debug("client closed", "conn", r.c.id, "err", err)
			return ClosedByClient
		case !ok:
			n, err := r.c.r.Read(buf)
			if frames.Add(buf[:n]); err != nil {
				return ClosedByClient
			}
			continue
		case r.speaks(frame):
			if !r.recognize(ctx) {
				return r.drain(buf, ClosedByUs)
			}
		}
		if _, err := r.backend.Write(frame.Raw); err != nil {
			return r.drain(buf, ClosedByBackend)
		}
	}
	if _, err := r.backend.Write(frames.Rest()); err != nil {
		return r.drain(buf, ClosedByBackend)
	}
	_, err := r.c.r.WriteTo(r.backend)
	return r.drain(buf, culprit(err, ClosedByClient, ClosedByBackend))
}

// drain reads what a client still sends: unread input would reset the connection, and drop the last
// words to the client.
func (r *relay) drain(buf []byte, why string) string {
	for {
		if _, err := r.c.conn.Read(buf); err != nil {
			return why
		}
	}
}

// speaks tells that a frame says who the client is.
func (r *relay) speaks(f vintage.Frame) bool {
	if f.Compressed {
		return false
	}
	c, err := vintage.ParseClient(f.Payload())
	if err != nil || c.Kind != vintage.Identification {
		return false
	}
	r.a.Name, r.a.NativeID = c.Name, c.UID
	return true
}

// recognize tells the router who the client is, before the server hears it; false: the client is to dial
// again, and the server never hears who it was.
func (r *relay) recognize(ctx context.Context) bool {
	to := r.c.tracer().Recognize(ctx, r.a, r.d.Server)
	if to == (Again{}) || r.say(ctx, r.c.s.redirectFrame(to)) != nil {
		known := r.c.lateConnection(r.a, r.d)
		r.c.s.cfg.Router.Opened(known)
		if at, ok := tcpAddrPort(r.backend.RemoteAddr()); ok && r.c.s.companion != nil {
			r.c.s.companion.join(r.c.id, r.c.remote.Addr(), at)
		}
		r.known.Store(&known)
		return true
	}
	return false
}
