package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// lastConn numbers connections for all servers of the process.
var lastConn atomic.Uint64

// Server is one listening edge. All methods are safe for concurrent use.
type Server struct {
	cfg    Config
	log    *slog.Logger
	door   *door
	gate   *gate
	counts counters
	texts  atomic.Pointer[Texts]
	conns  sync.WaitGroup

	mu   sync.Mutex
	cuts map[uint64]context.CancelCauseFunc // of every connection being served
	late map[uint64]*relay                  // the spliced ones of Vintage Story

	companion *companion // nil: the game has none, or its port is taken
}

type counters struct {
	spliced, accepted, capped, malformed, timedOut, pings, refused, undialled atomic.Int64
}

// Counts is a moment of a Server, for its heartbeat. Pending and Spliced are
// current, the others count since the start.
type Counts struct {
	Pending int64 // open, not spliced yet
	Spliced int64 // players connected to a backend

	Accepted  int64
	Capped    int64 // closed at once by PendingPerIP, Pending or PerSecond
	Malformed int64 // closed for bytes no client sends
	TimedOut  int64 // closed by FirstByteTimeout or OpeningTimeout
	Pings     int64 // status answers of any kind
	Refused   int64 // logins that ended with a text
	Undialled int64 // dials that failed
}

// Why the edge itself ends a connection.
var (
	errStopping   = errors.New("edge stops")
	errCut        = errors.New("disconnected by the dispatcher")
	errClientLeft = errors.New("client left")
)

// New listens. It starts no goroutine; a Server that is never run must be closed.
func New(cfg Config) (*Server, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	d, err := newDoor(cfg.Listen)
	if err != nil {
		return nil, err
	}
	s := &Server{
		cfg:  cfg,
		log:  cfg.Log.With("edge", d.addr.String()),
		door: d,
		gate: newGate(cfg.PendingPerIP, cfg.Pending, cfg.PerSecond),
		cuts: map[uint64]context.CancelCauseFunc{},
		late: map[uint64]*relay{},
	}
	if cfg.Game == VintageStory {
		s.companion = newCompanion(d.addr.AddrPort(), s.log)
	}
	s.SetTexts(cfg.Texts)
	return s, nil
}

func listenError(addr string, err error) error {
	remedy := "correct the listen address of this edge"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		remedy = "another process holds it: stop that one or choose another port"
	case errors.Is(err, syscall.EACCES):
		remedy = "choose a port above 1023 or allow this one to the user"
	}
	return fmt.Errorf("edge: listen on %s: %w (%s)", addr, err, remedy)
}

// SetTexts replaces the sentences shown from now on; empty ones stand for their defaults. It
// does not block.
func (s *Server) SetTexts(t Texts) {
	t = t.withDefaults()
	s.texts.Store(&t)
}

// Close frees the port of a Server that was never run; after Run it does nothing.
func (s *Server) Close() error {
	if s.companion != nil {
		s.companion.shut()
	}
	if err := s.door.shut(true); err != nil {
		return fmt.Errorf("edge: close listener: %w", err)
	}
	return nil
}

// Run serves until ctx ends, then closes the port, tells logins that are still held
// to come back, cuts the spliced ones and returns nil when all of them have ended.
// It is called once.
func (s *Server) Run(ctx context.Context) error {
	if warning := fileLimitWarning(s.cfg.Players); warning != "" {
		s.log.Warn(warning)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	release := onDone(ctx, func() { _ = s.Close() })
	if s.companion != nil {
		s.conns.Go(s.companion.run)
	}
	err := s.accept(ctx)
	_ = s.Close()
	cancel(errStopping)
	release()
	s.conns.Wait()
	return err
}

// accept serves the port whenever it is open. It returns nil once ctx has ended, and an
// error only when the listener is broken.
func (s *Server) accept(ctx context.Context) error {
	for ctx.Err() == nil {
		l, err := s.door.await(ctx)
		if err == nil {
			err = s.acceptFrom(ctx, l)
		}
		if err != nil && ctx.Err() == nil {
			return fmt.Errorf("edge: accept on %s: %w", s.Addr(), err)
		}
	}
	return nil
}

// acceptFrom hands every connection to a goroutine of its own, until ctx ends or the port is
// closed.
func (s *Server) acceptFrom(ctx context.Context, l *net.TCPListener) error {
	pause := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMaxInterval(time.Second), backoff.WithMaxElapsedTime(0))
	for {
		conn, err := l.AcceptTCP()
		switch {
		case ctx.Err() != nil || !s.door.lets(l):
			if err == nil {
				conn.Close()
			}
			return nil
		case errors.Is(err, net.ErrClosed):
			return err
		case err != nil: // mostly out of file descriptors: it passes
			s.log.Warn("accept failed, trying again", "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(pause.NextBackOff()):
			}
			continue
		}
		pause.Reset()
		s.admit(ctx, conn)
	}
}

// admit starts serving conn, or closes it when its source has too many open. Trusted
// proxies are counted later, by the address they speak for.
func (s *Server) admit(ctx context.Context, conn *net.TCPConn) {
	s.counts.accepted.Add(1)
	peer, known := tcpAddrPort(conn.RemoteAddr())
	if !known { // some systems hand out sockets that are reset already
		conn.Close()
		return
	}
	leave := func() {}
	trusted := s.trusts(peer.Addr())
	if !trusted {
		var ok bool
		if leave, ok = s.gate.enter(peer.Addr()); !ok {
			s.refuseCapped(peer.Addr())
			conn.Close()
			return
		}
	}
	c := newClient(s, conn, peer, trusted, leave)
	s.conns.Go(func() {
		ctx, forget := s.register(ctx, c.id)
		defer forget()
		c.serve(ctx)
	})
}

func (s *Server) refuseCapped(addr netip.Addr) {
	if n := s.counts.capped.Add(1); n&(n-1) == 0 { // 1, 2, 4, 8, …: a flood must not fill the log
		s.log.Warn("too many open or new logins, closing new ones; list a proxy in trustedProxies if they come through one",
			"source", sourceOf(addr), "perSource", s.cfg.PendingPerIP, "perSecond", s.cfg.PerSecond, "total", s.cfg.Pending, "closedSoFar", n)
	}
}

func (s *Server) trusts(addr netip.Addr) bool {
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}

func (s *Server) register(ctx context.Context, id uint64) (context.Context, func()) {
	ctx, cut := context.WithCancelCause(ctx)
	s.mu.Lock()
	s.cuts[id] = cut
	s.mu.Unlock()
	return ctx, func() {
		s.mu.Lock()
		delete(s.cuts, id)
		s.mu.Unlock()
		cut(nil)
	}
}

// Disconnect ends a connection, held or spliced, without waiting for it: a held
// login still gets its text, a spliced one just ends, since the edge cannot speak
// there. It says whether this server has that connection.
func (s *Server) Disconnect(connID uint64) bool {
	s.mu.Lock()
	cut, ok := s.cuts[connID]
	s.mu.Unlock()
	if ok {
		cut(errCut)
	}
	return ok
}

// Counts reads the counters, without stopping anything.
func (s *Server) Counts() Counts {
	return Counts{
		Pending:   int64(s.gate.pending()),
		Spliced:   s.counts.spliced.Load(),
		Accepted:  s.counts.accepted.Load(),
		Capped:    s.counts.capped.Load(),
		Malformed: s.counts.malformed.Load(),
		TimedOut:  s.counts.timedOut.Load(),
		Pings:     s.counts.pings.Load(),
		Refused:   s.counts.refused.Load(),
		Undialled: s.counts.undialled.Load(),
	}
}
