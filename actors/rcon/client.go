// Package rcon is the sidecar's hands on a stock game server: everything it
// does, it does through the server's own remote console.
//
// Client speaks the protocol, Limiter keeps the server's main thread ours to
// share and not to occupy, texts.go reads the answers, and the other files are
// recipes: safe coordinates, teleports, transfers, messages, joins, triggers
// and health. Sidecar binds them to the ports of package actors.
package rcon

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"time"
)

const (
	// maxCommand is the longest command a vanilla server reads: it takes 1460
	// bytes in one read, 14 of which are the frame.
	maxCommand = 1446
	// maxReply bounds the sum of the pieces of one reply.
	maxReply = 4 << 20
	// pieceUnits is where a vanilla server cuts a reply, in UTF-16 units.
	pieceUnits = 4096

	defaultTimeout = 10 * time.Second
)

// Client is one RCON connection, made when first needed and made anew after
// any error. It is safe for concurrent use: commands run one after another,
// because a vanilla server hangs up when two packets share one of its reads.
type Client struct {
	address  string
	password string
	timeout  time.Duration
	dial     func(ctx context.Context, address string) (net.Conn, error)
	turn     chan struct{} // holds one value: the right to use what follows
	conn     net.Conn
	closed   bool
	id       int32
	dials    atomic.Uint64
}

// NewClient returns a client for the server at address. Nothing is dialled.
// timeout bounds one command including a reconnect; 0 means 10 s.
func NewClient(address, password string, timeout time.Duration) *Client {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	c := &Client{address: address, password: password, timeout: timeout, dial: dialTCP, turn: make(chan struct{}, 1)}
	c.turn <- struct{}{}
	return c
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address)
}

// Connections counts the logins that succeeded. A change between two commands
// says that the server may have forgotten what it was told before.
func (c *Client) Connections() uint64 { return c.dials.Load() }

// Do runs one command and returns the whole reply, however many pieces it came
// in. It blocks until the reply, the end of ctx or the client's time-out, and
// never sends a command twice. Errors are NotSentError (the server never saw
// it; it wraps AuthError or UnreachableError when that is why) or UnknownError
// (it was written and may have happened). After an error the next call
// reconnects.
func (c *Client) Do(ctx context.Context, command string) (string, error) {
	if err := checkCommand(command); err != nil {
		return "", &NotSentError{Address: c.address, Command: verb(command), Err: err}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, errTimeout)
	defer cancel()
	select {
	case <-c.turn:
	case <-ctx.Done():
		return "", &NotSentError{Address: c.address, Command: verb(command), Err: context.Cause(ctx)}
	}
	defer func() { c.turn <- struct{}{} }()
	return c.exchange(ctx, command)
}

// Close ends the connection after the running command. Later commands are not
// sent.
func (c *Client) Close() {
	<-c.turn
	c.closed = true
	c.drop()
	c.turn <- struct{}{}
}

func (c *Client) exchange(ctx context.Context, command string) (string, error) {
	if err := c.ready(ctx); err != nil {
		return "", &NotSentError{Address: c.address, Command: verb(command), Err: err}
	}
	release := c.bind(ctx)
	id := c.nextID()
	n, err := c.conn.Write(frame(id, typeCommand, command))
	if err != nil && n == 0 {
		release()
		c.drop()
		return "", &NotSentError{Address: c.address, Command: verb(command), Err: because(ctx, err)}
	}
	var reply string
	if err == nil {
		reply, err = c.collect(id)
	}
	if !release() || err != nil {
		c.drop()
	}
	if err != nil {
		return "", &UnknownError{Address: c.address, Command: verb(command), Err: because(ctx, err)}
	}
	return reply, nil
}

// collect reads the pieces of reply id. A piece shorter than the cut is the
// last. After a full one a request of an unknown type marks the end: the server
// answers it only when all pieces are out.
func (c *Client) collect(id int32) (string, error) {
	var body strings.Builder
	var mark int32
	for {
		p, err := readPacket(c.conn)
		switch {
		case err != nil:
			return "", err
		case mark != 0 && p.id == mark:
			return body.String(), nil
		case p.id != id:
			return "", errForeign
		}
		if body.Len()+len(p.body) > maxReply {
			return "", errTooLong
		}
		body.WriteString(p.body)
		if mark != 0 {
			continue
		}
		if units(p.body) < pieceUnits {
			return body.String(), nil
		}
		mark = c.nextID()
		if _, err := c.conn.Write(frame(mark, typeMark, "")); err != nil {
			return "", err
		}
	}
}

// ready leaves a logged-in connection in c.conn. An idle connection that the
// server has closed meanwhile is found before anything is written, so that a
// restart does not turn the next command into an unknown one.
func (c *Client) ready(ctx context.Context) error {
	if c.closed {
		return errClosed
	}
	if c.conn != nil && !quiet(c.conn) {
		c.drop()
	}
	if c.conn != nil {
		return nil
	}
	conn, err := c.dial(ctx, c.address)
	if err != nil {
		return &UnreachableError{Address: c.address, Err: because(ctx, err)}
	}
	c.conn = conn
	release := c.bind(ctx)
	err = c.login()
	if !release() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		c.dials.Add(1)
		return nil
	}
	c.drop()
	if errors.Is(err, errRefused) {
		return &AuthError{Address: c.address}
	}
	return &UnreachableError{Address: c.address, Err: because(ctx, err)}
}

func (c *Client) login() error {
	id := c.nextID()
	if _, err := c.conn.Write(frame(id, typeLogin, c.password)); err != nil {
		return err
	}
	for range 2 { // some servers send an empty reply ahead of the verdict
		p, err := readPacket(c.conn)
		switch {
		case err != nil:
			return err
		case p.id == -1:
			return errRefused
		case p.id == id && p.kind == typeCommand:
			return nil
		case p.id != id:
			return errForeign
		}
	}
	return errForeign
}

// bind makes the end of ctx interrupt the connection's reads and writes.
// release undoes it and is false when ctx had already ended: then the deadline
// may still be set late, and the connection must be dropped.
func (c *Client) bind(ctx context.Context) (release func() bool) {
	conn := c.conn
	_ = conn.SetDeadline(time.Time{})
	return context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
}

func (c *Client) drop() {
	if c.conn != nil {
		_ = c.conn.Close()
		c.conn = nil
	}
}

// nextID skips -1 (refused) and 0 by staying positive.
func (c *Client) nextID() int32 {
	c.id = c.id%(1<<30) + 1
	return c.id
}

// quiet reports that an idle connection is open and has nothing to read.
func quiet(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	var b [1]byte
	_, err := conn.Read(b[:])
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
