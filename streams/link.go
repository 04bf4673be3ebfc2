package streams

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// link is one connection, and what is known about it.
type link struct {
	nc     *nats.Conn
	log    *slog.Logger
	closed chan struct{}

	mu      sync.Mutex
	lost    chan struct{}         // closed when the connection breaks, replaced when it stands again
	pending map[*pending]struct{} // requests that wait for their answer
}

// pending is a request that can be ended early.
type pending struct {
	subject string
	end     context.CancelCauseFunc
}

// dial opens one connection, and keeps trying for cfg.Patience. What a connection holds
// back while it is away would land after its caller gave up, so it holds back nothing.
func dial(ctx context.Context, cfg Config, use string) (*link, error) {
	l := &link{log: cfg.Logger.With("connection", use), closed: make(chan struct{}), lost: make(chan struct{}), pending: map[*pending]struct{}{}}
	options := []nats.Option{
		nats.Name(string(cfg.Role) + "." + string(cfg.ID) + "." + use),
		nats.CustomInboxPrefix(InboxPrefix(cfg.Role, cfg.ID)),
		nats.MaxReconnects(-1),
		nats.ReconnectBufSize(-1),
		nats.CustomReconnectDelay(reconnectDelay),
		nats.PingInterval(5 * time.Second),
		nats.MaxPingsOutstanding(2),
		nats.DisconnectErrHandler(l.onLost),
		nats.ReconnectHandler(l.onBack),
		nats.ClosedHandler(func(*nats.Conn) { close(l.closed) }),
		nats.ErrorHandler(l.onError),
	}
	if cfg.Key != nil {
		// Whether a key is good the log says, and whoever carries it may not have read that far.
		options = append(options, nats.Nkey(cfg.Key.Public(), cfg.Key.nonce), nats.IgnoreAuthErrorAbort())
	} else {
		options = append(options, nats.UserInfo(cfg.User, cfg.Password))
	}
	if cfg.InProcess != nil {
		options = append(options, nats.InProcessServer(cfg.InProcess))
	}
	if cfg.CA != "" {
		options = append(options, nats.RootCAs(cfg.CA))
	}
	err := retry(ctx, cfg.Patience, func() (err error) {
		l.nc, err = nats.Connect(cfg.URL, options...)
		return connectError(cfg, err)
	})
	return l, err
}

// ErrLoginRefused says that the store answers, and does not know who we say we are.
var ErrLoginRefused = errors.New("refused the login")

func connectError(cfg Config, err error) error {
	url := cfg.URL
	switch {
	case err == nil:
		return nil
	case errors.Is(err, nats.ErrAuthorization) && cfg.Key != nil:
		return fmt.Errorf("connect to store %s: refused the key %s of %s %s: is it among those of `landfall creds list`, and do the servers know it?", url, events.HostKeyID(cfg.Key.Raw()), cfg.Role, cfg.ID)
	case errors.Is(err, nats.ErrAuthorization):
		return backoff.Permanent(fmt.Errorf("connect to store %s: %w: does this host stand in the carrier's network.yml (or in the logins that nats-servers of your own were given), with the same secret?", url, ErrLoginRefused))
	case untrusted(err):
		return backoff.Permanent(fmt.Errorf("connect to store %s: its certificate is not to be trusted: %w: does security.tls.ca name the authority that signed it, and does it name this address?", url, err))
	case errors.Is(err, nats.ErrSecureConnWanted):
		return backoff.Permanent(fmt.Errorf("connect to store %s: whoever listens there does not speak TLS: is it the store?", url))
	case errors.Is(err, nats.ErrNoServers):
		return fmt.Errorf("connect to store %s: nobody listens there: is whoever carries the store up?", url)
	}
	return fmt.Errorf("connect to store %s: %w", url, err)
}

// untrusted tells that a store proved nothing by its certificate.
func untrusted(err error) bool {
	var unverified *tls.CertificateVerificationError
	return errors.As(err, &unverified)
}

// retry calls try until it succeeds, fails for good, ctx ends, or patience is over.
func retry(ctx context.Context, patience time.Duration, try func() error) error {
	b := newBackOff(patience)
	if patience <= 0 {
		return unwrapPermanent(try())
	}
	return backoff.Retry(try, backoff.WithContext(b, ctx))
}

func unwrapPermanent(err error) error {
	var p *backoff.PermanentError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// newBackOff grows from 20 ms to 1 s, with jitter. patience 0 is for ever.
func newBackOff(patience time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond),
		backoff.WithMaxInterval(time.Second),
		backoff.WithMaxElapsedTime(patience),
	)
}

// reconnectDelay is the same curve, as the NATS client asks for it.
func reconnectDelay(attempts int) time.Duration {
	b := newBackOff(0)
	d := b.NextBackOff()
	for range min(attempts, 16) {
		d = b.NextBackOff()
	}
	return d
}

func (l *link) onLost(_ *nats.Conn, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
	default:
		close(l.lost)
	}
	for p := range l.pending {
		p.end(errLinkLost)
	}
	if err != nil {
		l.log.Warn("store connection lost", "error", err)
	}
}

func (l *link) onBack(*nats.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.lost:
		l.lost = make(chan struct{})
	default:
	}
	l.log.Info("store connection is back")
}

// life is one unbroken stretch of a connection. Status callbacks can be merged when a
// server restarts fast; the count of reconnects cannot.
type life struct {
	lost       <-chan struct{}
	reconnects uint64
}

func (l *link) life() life {
	n := l.nc.Stats().Reconnects
	l.mu.Lock()
	defer l.mu.Unlock()
	return life{lost: l.lost, reconnects: n}
}

func (l *link) alive(f life) bool {
	select {
	case <-f.lost:
		return false
	default:
		return l.nc.Stats().Reconnects == f.reconnects
	}
}

func (l *link) onError(_ *nats.Conn, sub *nats.Subscription, err error) {
	if errors.Is(err, nats.ErrPermissionViolation) {
		l.deny(err)
	}
	if errors.Is(err, nats.ErrAuthorization) {
		l.log.Warn("the store lets this host in no more, trying on: was its key revoked, or the secret changed?", "error", err)
		return
	}
	subject := ""
	if sub != nil {
		subject = sub.Subject
	}
	l.log.Warn("store connection error", "subject", subject, "error", err)
}

// deny tells whoever publishes on the refused subject: otherwise a missing permission
// would look like a store that does not answer.
func (l *link) deny(err error) {
	subject := lastQuoted(err.Error())
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pending {
		if p.subject == subject {
			p.end(fmt.Errorf("%w: %w", errDenied, err))
		}
	}
}

func lastQuoted(text string) string {
	end := strings.LastIndexByte(text, '"')
	if end < 0 {
		return ""
	}
	start := strings.LastIndexByte(text[:end], '"')
	return text[start+1 : end]
}

// begin notes a request, unless the connection's life f has ended.
func (l *link) begin(f life, p *pending) bool {
	if !l.alive(f) {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-f.lost:
		return false
	default:
		l.pending[p] = struct{}{}
		return true
	}
}

func (l *link) finished(p *pending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, p)
}

var (
	errLinkLost = errors.New("the connection to the store broke")
	errDenied   = errors.New("permission denied")
)

// request sends m and waits for one answer. It ends early when the connection breaks or
// the publish is not permitted; sent tells whether m may have left this process.
func (l *link) request(ctx context.Context, m *nats.Msg) (answer *nats.Msg, sent bool, err error) {
	return l.requestIn(ctx, l.life(), m)
}

// requestIn is request for one that has no meaning on a later life of the connection.
func (l *link) requestIn(ctx context.Context, f life, m *nats.Msg) (answer *nats.Msg, sent bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &pending{subject: m.Subject, end: cancel}
	if !l.begin(f, p) {
		return nil, false, nats.ErrConnectionReconnecting
	}
	defer l.finished(p)
	answer, err = l.nc.RequestMsgWithContext(ctx, m)
	if err == nil {
		return answer, true, nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = context.Cause(ctx)
	}
	return nil, mayHaveLeft(err), err
}

// mayHaveLeft tells apart what certainly did not reach the store.
func mayHaveLeft(err error) bool {
	for _, e := range []error{
		nats.ErrReconnectBufExceeded, nats.ErrConnectionClosed, nats.ErrConnectionReconnecting, nats.ErrConnectionDraining,
		nats.ErrInvalidConnection, nats.ErrMaxPayload, nats.ErrBadSubject, nats.ErrNoResponders, nats.ErrHeadersNotSupported, errDenied,
	} {
		if errors.Is(err, e) {
			return false
		}
	}
	return true
}

// flushAndClose sends what was published, then closes, and waits for it. It does not use
// the client's own Drain: there is no subscription left to drain, and Drain takes timers
// that the client shares between all connections of a process, which a
// testing/synctest bubble does not survive.
func (l *link) flushAndClose() {
	ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
	defer cancel()
	if l.nc.IsConnected() {
		if err := l.nc.FlushWithContext(ctx); err != nil {
			l.log.Warn("store connection closed with something unsent", "error", err)
		}
	}
	l.close()
}

func (l *link) close() {
	l.nc.Close()
	<-l.closed
}
