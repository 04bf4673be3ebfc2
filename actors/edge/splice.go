package edge

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"
)

// play splices the client to a backend that has begun to answer, and which it owns, until both
// directions ended.
func (c *client) play(ctx context.Context, l *link) {
	defer l.Close()
	c.leave()
	c.s.counts.spliced.Add(1)
	c.s.log.Info("connected", "conn", c.id, "name", l.known.Name, "server", l.known.Server, "protocol", l.known.Protocol)

	reason := c.pass(l)
	if reason == "" {
		reason = splice(ctx, c.conn, l.TCPConn, c.s.cfg.HalfCloseGrace)
	}

	c.s.counts.spliced.Add(-1)
	c.s.cfg.Router.Closed(l.known, reason)
	c.s.log.Info("disconnected", "conn", c.id, "name", l.known.Name, "server", l.known.Server, "reason", reason)
}

// pass hands over what was read before the splice. It gives the reason for an end, or "".
func (c *client) pass(l *link) string {
	ahead, _ := c.r.Peek(c.r.Buffered())
	if _, err := l.Write(ahead[l.ahead:]); err != nil {
		_, _ = c.conn.Write(l.first) // its last words, if the client is still there
		return ClosedByBackend
	}
	if _, err := c.conn.Write(l.first); err != nil {
		return ClosedByClient
	}
	return ""
}

// preamble is how a client's login begins, untouched but for the intent, and what a backend
// wants before it.
func (c *client) preamble(d Decision, g greeting) []byte {
	var b []byte
	if d.ProxyV2 {
		b = AppendProxyV2(b, c.remote, c.local)
	}
	hello := g.helloFrame.raw
	if d.RewriteIntent && g.hello.intent == intentTransfer {
		hello = g.hello.withIntent(g.helloFrame, intentLogin)
	}
	return append(append(b, hello...), g.startFrame.raw...)
}

// splice copies both ways between the raw sockets, in the kernel where the system can,
// and returns why it ended. When one direction ends, the other socket's write side is
// closed, so its last bytes still arrive, and the rest gets grace.
func splice(ctx context.Context, client, backend *net.TCPConn, grace time.Duration) (reason string) {
	l := &leash{conns: []*net.TCPConn{client, backend}}
	release := onDone(ctx, func() { l.shorten(past) })
	defer release()

	var first sync.Once
	end := func(to *net.TCPConn, why string) {
		first.Do(func() { reason = why })
		_ = to.CloseWrite() // fails when that side is gone, which is as good
		l.shorten(time.Now().Add(grace))
	}
	var up sync.WaitGroup
	up.Go(func() {
		_, err := io.Copy(backend, client)
		end(backend, culprit(err, ClosedByClient, ClosedByBackend))
		// A backend that is gone may have left a last message for the client. Unread
		// input would reset the connection and drop it, so read on.
		_, _ = io.Copy(io.Discard, client)
	})
	_, err := io.Copy(client, backend)
	end(client, culprit(err, ClosedByBackend, ClosedByClient))
	up.Wait()
	return ended(ctx, reason)
}

// culprit tells which side ended a direction: its reader, unless writing failed.
func culprit(err error, reader, writer string) string {
	if errors.Is(err, syscall.EPIPE) {
		return writer
	}
	return reader
}

func ended(ctx context.Context, reason string) string {
	switch {
	case ctx.Err() == nil:
		return reason
	case errors.Is(context.Cause(ctx), errCut):
		return ClosedByUs
	}
	return ClosedByStop
}

// leash is the common deadline of sockets. It only ever gets shorter, so that a late
// half-close cannot undo the end of everything.
type leash struct {
	conns []*net.TCPConn

	mu sync.Mutex
	at time.Time
}

func (l *leash) shorten(to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.at.IsZero() && !to.Before(l.at) {
		return
	}
	l.at = to
	for _, c := range l.conns {
		_ = c.SetDeadline(to) // fails on a closed socket, where nothing waits
	}
}

// short tells that an end was set.
func (l *leash) short() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.at.IsZero()
}
