package edge

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// login finds a backend for a greeted client and splices to it, or tells the player
// why not.
func (c *client) login(ctx context.Context, g greeting) {
	if !validName(g.start.name) {
		c.kick(c.s.texts.Load().BadName)
		return
	}
	a := c.arrival(g)
	backend, d, err := c.findBackend(ctx, a)
	if err != nil {
		c.refuse(a, d, err)
		return
	}
	c.play(ctx, a, d, g, backend)
}

func (c *client) arrival(g greeting) Arrival {
	host := CleanHost(g.hello.host)
	return Arrival{
		ConnID:      c.id,
		Name:        g.start.name,
		ClaimedUUID: g.start.uuid,
		HasUUID:     g.start.hasUUID,
		Player:      playerOf(c.s.cfg.Identity, *g.start),
		Protocol:    g.hello.protocol,
		Host:        host,
		TokenLabel:  TokenLabel(host, c.s.cfg.Domain),
		Intent:      g.hello.intent,
		Remote:      c.remote,
	}
}

// Why a login ends without a backend, beside errStopping, errCut and errClientLeft.
var (
	errRefused     = errors.New("refused by the router")
	errUnreachable = errors.New("no chosen server could be dialled")
	errSlow        = errors.New("no server answered in time")
)

// findBackend asks the router and dials, again and again, while the client waits.
func (c *client) findBackend(ctx context.Context, a Arrival) (*net.TCPConn, Decision, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stopTimer := context.WithTimeoutCause(ctx, c.s.cfg.RouteTimeout, errSlow)
	defer stopTimer()
	stopWatching := c.watch(func() { cancel(errClientLeft) })
	defer stopWatching()
	for {
		d := c.s.cfg.Router.Route(ctx, a)
		if ctx.Err() != nil {
			return nil, d, reasonOf(ctx)
		}
		if d.Server == "" {
			return nil, d, errRefused
		}
		backend, err := c.dial(ctx, d)
		if err == nil {
			return backend, d, nil
		}
		if ctx.Err() != nil {
			return nil, d, reasonOf(ctx)
		}
		c.s.counts.undialled.Add(1)
		c.s.log.Warn("backend not reachable", "conn", c.id, "name", a.Name, "err", err)
		a.Failed = append(slices.Clip(a.Failed), d.Server)
		if len(a.Failed) > c.s.cfg.Redials {
			return nil, d, errUnreachable
		}
	}
}

// reasonOf is why ctx ended; a parent that was simply cancelled is the edge stopping.
func reasonOf(ctx context.Context) error {
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return errStopping
}

func (c *client) dial(ctx context.Context, d Decision) (*net.TCPConn, error) {
	dialer := net.Dialer{Timeout: c.s.cfg.DialTimeout}
	start := time.Now()
	conn, err := dialer.DialContext(ctx, "tcp", d.Address)
	c.dialled = time.Since(start)
	if err != nil {
		return nil, fmt.Errorf("dial server %s at %s: %w", d.Server, d.Address, err)
	}
	return conn.(*net.TCPConn), nil
}

// refuse ends a held login with the text that fits err.
func (c *client) refuse(a Arrival, d Decision, err error) {
	own := c.s.texts.Load()
	texts := map[error]string{
		errRefused:     or(d.Refuse, own.Unreachable),
		errUnreachable: own.Unreachable,
		errSlow:        own.Slow,
		errStopping:    own.Stopping,
		errCut:         own.Cut,
	}
	if err != errClientLeft { //nolint:errorlint // our own value, never wrapped
		c.kick(or(texts[err], own.Stopping))
	}
	c.s.log.Info("login ended without a server", "conn", c.id, "name", a.Name, "code", d.Code, "err", err, "failed", a.Failed)
}

// watch calls gone when the client leaves while it waits. It reads ahead into c.r and
// loses nothing. The returned function ends the watch and waits for it; until then
// nobody else may use c.r or the read deadline.
func (c *client) watch(gone func()) (stop func()) {
	_ = c.conn.SetDeadline(time.Time{}) // fails only on a closed connection, as the peek then does
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, err := c.r.Peek(c.r.Buffered() + 1)
		timeout, isNet := errors.AsType[net.Error](err)
		if err != nil && !(isNet && timeout.Timeout()) {
			gone()
		}
	}()
	return func() {
		_ = c.conn.SetReadDeadline(past)
		<-done
		_ = c.conn.SetReadDeadline(time.Time{})
	}
}
