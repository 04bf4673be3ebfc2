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
	l, d, err := c.findBackend(ctx, a, g)
	if err != nil {
		c.refuse(a, d, err)
		return
	}
	c.play(ctx, l)
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
		Game:        Minecraft,
	}
}

// Why a login ends without a backend, beside errStopping, errCut and errClientLeft.
var (
	errRefused     = errors.New("refused by the router")
	errUnreachable = errors.New("no chosen server could be dialled, or answered")
	errSlow        = errors.New("no server answered in time")
)

// link is a connection to a backend that has begun to answer a login.
type link struct {
	*net.TCPConn

	known Connection // as the router was told
	first []byte     // of the answer
	ahead int        // how many bytes behind the greeting it has been sent
}

// findBackend asks the router and connects, again and again, while the client waits.
func (c *client) findBackend(ctx context.Context, a Arrival, g greeting) (*link, Decision, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stopTimer := context.WithTimeoutCause(ctx, c.s.cfg.RouteTimeout, errSlow)
	defer stopTimer()
	ahead, _ := c.r.Peek(c.r.Buffered())
	ahead = slices.Clone(ahead) // who watches the client may move it
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
		l, err := c.connect(ctx, a, d, append(c.preamble(d, g), ahead...))
		if err == nil {
			l.ahead = len(ahead)
			return l, d, nil
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

// connect dials a backend, passes the login on, and waits for the first words of the answer: who
// accepts and then says nothing (a forwarder in front of a dead server, a server that hangs) is no
// better than who does not accept, and the client, who has heard nothing yet, can go elsewhere.
func (c *client) connect(ctx context.Context, a Arrival, d Decision, login []byte) (*link, error) {
	conn, err := c.dial(ctx, d)
	if err != nil {
		return nil, err
	}
	l := &link{TCPConn: conn, known: Connection{
		ConnID: a.ConnID, Name: a.Name, Player: a.Player, Server: d.Server,
		Protocol: a.Protocol, Host: a.Host, Remote: a.Remote, Dialled: c.dialled, Game: Minecraft,
	}}
	c.s.cfg.Router.Opened(l.known)
	l.first, err = c.firstWords(ctx, conn, login)
	if err != nil {
		conn.Close()
		c.s.cfg.Router.Closed(l.known, ClosedSilent)
		return nil, fmt.Errorf("login at server %s (%s): %w", d.Server, d.Address, err)
	}
	return l, nil
}

// firstWords sends the login and gives what comes first in return.
func (c *client) firstWords(ctx context.Context, conn *net.TCPConn, login []byte) ([]byte, error) {
	e := &endable{Conn: conn}
	release := onDone(ctx, e.end)
	defer release()
	if err := e.SetDeadline(time.Now().Add(c.s.cfg.AnswerTimeout)); err != nil {
		return nil, err
	}
	if _, err := conn.Write(login); err != nil {
		return nil, fmt.Errorf("not taken: %w", err)
	}
	first := make([]byte, 4096)
	n, err := conn.Read(first)
	if n == 0 {
		return nil, fmt.Errorf("accepted, and not a word: %w", err)
	}
	return first[:n], e.SetDeadline(time.Time{})
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
