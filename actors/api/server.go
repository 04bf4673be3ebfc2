package api

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	headerPatience = 5 * time.Second
	bodyPatience   = 15 * time.Second
	answerPatience = 90 * time.Second // longer than a long poll; streams set their own
	idlePatience   = 2 * time.Minute
	maxHeader      = 16 << 10

	// farewell is how long requests under way may go on when the host ends.
	farewell = 3 * time.Second
)

// Serve answers programs on a listener until ctx ends, and then lets what is under way come to its
// end for a while; streams end at once. conf is nil where nothing but this machine can connect. At
// most connections are open at once; more wait. It closes the listener.
func (s *Service) Serve(ctx context.Context, l net.Listener, conf *tls.Config, connections int) error {
	streams, endStreams := context.WithCancel(context.WithoutCancel(ctx))
	defer endStreams()
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience, WriteTimeout: answerPatience, IdleTimeout: idlePatience,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.cfg.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return streams },
	}
	l = &crowded{Listener: l, places: make(chan struct{}, connections), closed: make(chan struct{})}
	if conf != nil {
		l = tls.NewListener(l, conf)
	}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	endStreams()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := srv.Shutdown(last); err != nil {
		err = srv.Close()
		s.cfg.Logger.Warn("requests were cut when the API ended", "error", err)
	}
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// crowded is a listener with a bounded number of open connections.
type crowded struct {
	net.Listener
	places chan struct{}
	once   sync.Once
	closed chan struct{}
}

// Accept implements net.Listener.
func (c *crowded) Accept() (net.Conn, error) {
	select {
	case c.places <- struct{}{}:
	case <-c.closed:
		return nil, net.ErrClosed
	}
	conn, err := c.Listener.Accept()
	if err != nil {
		<-c.places
		return nil, err
	}
	return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-c.places })}, nil
}

// Close implements net.Listener.
func (c *crowded) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Listener.Close()
}

type placed struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (p *placed) Close() error {
	defer p.leave()
	return p.Conn.Close()
}
