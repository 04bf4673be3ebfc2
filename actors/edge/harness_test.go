package edge

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// patience is how long a test waits for an event before it fails.
const patience = 10 * time.Second

// scripted is a Router made of a function, which tells a test what happened.
type scripted struct {
	route    func(context.Context, Arrival) Decision
	arrivals chan Arrival
	opened   chan Connection
	closed   chan closing
}

type closing struct {
	Connection
	reason string
}

var _ Router = (*scripted)(nil)

func newScripted(route func(context.Context, Arrival) Decision) *scripted {
	return &scripted{route: route, arrivals: make(chan Arrival, 1024), opened: make(chan Connection, 1024), closed: make(chan closing, 1024)}
}

// always routes every login to one decision.
func always(d Decision) *scripted {
	return newScripted(func(context.Context, Arrival) Decision { return d })
}

func (s *scripted) Route(ctx context.Context, a Arrival) Decision {
	s.arrivals <- a
	return s.route(ctx, a)
}
func (s *scripted) Status() Status                     { return testStatus }
func (s *scripted) Opened(c Connection)                { s.opened <- c }
func (s *scripted) Closed(c Connection, reason string) { s.closed <- closing{c, reason} }

// next waits for an event.
func next[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
		panic("unreachable")
	}
}

// live counts the servers of the current test that still run.
var live atomic.Int32

// running is a Server whose Run is on.
type running struct {
	*Server
	stop func() error // ends Run and waits for it
	log  *bytes.Buffer
}

func run(t testing.TB, cfg Config) *running {
	t.Helper()
	cfg.Listen = "127.0.0.1:0"
	log := &bytes.Buffer{}
	cfg.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	live.Add(1)
	var ended bool
	r := &running{Server: s, log: log}
	r.stop = func() error {
		cancel()
		if ended {
			return nil
		}
		ended = true
		return next(t, "end of Run", done)
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Errorf("Run: %v", err)
		}
		if live.Add(-1) == 0 {
			noGoroutineLeft(t)
		}
		if c := s.Counts(); c.Pending != 0 || c.Spliced != 0 {
			t.Errorf("after Run: %+v", c)
		}
	})
	return r
}

// noGoroutineLeft fails if product code still runs. A goroutine that has told its owner
// that it is done may take a moment to be gone.
func noGoroutineLeft(t testing.TB) {
	t.Helper()
	buf := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		var left []string
		for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
			if strings.Contains(g, "edge.(*client)") || strings.Contains(g, "edge.(*Server)") || strings.Contains(g, "edge.splice") {
				left = append(left, g)
			}
		}
		if len(left) == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("goroutines left:\n%s", strings.Join(left, "\n\n"))
		}
	}
}

// player is a client on a socket.
type player struct {
	*net.TCPConn
	r *bufio.Reader
}

func connect(t testing.TB, s *running) *player {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(patience))
	return &player{TCPConn: conn.(*net.TCPConn), r: bufio.NewReader(conn)}
}

func (p *player) send(t testing.TB, parts ...[]byte) {
	t.Helper()
	if _, err := p.Write(join(parts...)); err != nil {
		t.Fatal(err)
	}
}

// login sends what a 1.21.1 client sends.
func (p *player) login(t testing.TB, host string, intent byte) []byte {
	t.Helper()
	b := join(hello(767, host, intent), start("Bot0", offlineBot0[:]))
	p.send(t, b)
	return b
}

// kicked reads the text of a disconnect and that nothing follows it.
func (p *player) kicked(t *testing.T) string {
	t.Helper()
	f, err := readFrame(p.r, 0)
	if err != nil {
		t.Fatalf("no disconnect: %v", err)
	}
	p.ended(t)
	return disconnectText(t, f)
}

// ended reads a clean end of the stream, not a reset.
func (p *player) ended(t *testing.T) {
	t.Helper()
	if b, err := io.ReadAll(p.r); err != nil || len(b) != 0 {
		t.Fatalf("expected the end, got % x and %v", b, err)
	}
}

// backend is a game server that only accepts.
type backend struct {
	t        testing.TB
	listener *net.TCPListener
	conns    chan *player
}

func newBackend(t testing.TB) *backend {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{t: t, listener: l.(*net.TCPListener), conns: make(chan *player, 1024)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := b.listener.AcceptTCP()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(patience))
			b.conns <- &player{TCPConn: conn, r: bufio.NewReader(conn)}
		}
	}()
	t.Cleanup(func() {
		l.Close()
		<-done
		for len(b.conns) > 0 {
			(<-b.conns).Close()
		}
	})
	return b
}

func (b *backend) to() Decision {
	return Decision{Server: "survival-1", Address: b.listener.Addr().String()}
}

func (b *backend) accept() *player {
	b.t.Helper()
	p := next(b.t, "connection at the backend", b.conns)
	b.t.Cleanup(func() { p.Close() })
	return p
}

// got reads exactly the bytes want.
func (p *player) got(t testing.TB, want []byte) {
	t.Helper()
	b := make([]byte, len(want))
	if n, err := io.ReadFull(p.r, b); err != nil || !bytes.Equal(b, want) {
		t.Fatalf("got % x (%v)\nwant % x", b[:n], err, want)
	}
}

// answers lets a backend say its first word, which the player reads: from then on they are one.
func (p *player) answers(t testing.TB, near *player) {
	t.Helper()
	p.send(t, []byte("welcome"))
	near.got(t, []byte("welcome"))
}

// deadAddress is a port nobody listens on.
func deadAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
