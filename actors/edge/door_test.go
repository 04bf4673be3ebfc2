package edge

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// refused demands that nobody listens at the address of a server.
func refused(t *testing.T, s *Server) {
	t.Helper()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err == nil {
		conn.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled a paused server: %v", err)
	}
}

// letIn connects a player through a server to a backend.
func letIn(t *testing.T, s *running, b *backend) (near, far *player) {
	t.Helper()
	near = connect(t, s)
	sent := near.login(t, "play.example.net", 2)
	far = b.accept()
	far.got(t, sent)
	far.answers(t, near)
	return near, far
}

// A paused server lets nobody in, and whoever is in stays; at the same port it opens again.
func TestPauseAndResume(t *testing.T) {
	b := newBackend(t)
	s := run(t, Config{Router: always(b.to())})
	near, far := letIn(t, s, b)

	for range 2 { // a second time changes nothing
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		refused(t, s.Server)
	}
	near.send(t, []byte("still here"))
	far.got(t, []byte("still here"))

	addr := s.Addr()
	for range 2 {
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	if s.Addr() != addr {
		t.Errorf("opened again at %s, not at %s", s.Addr(), addr)
	}
	letIn(t, s, b)
}

// A server that begins paused opens when it is resumed.
func TestPausedBeforeItRuns(t *testing.T) {
	b := newBackend(t)
	s, err := New(Config{Router: always(b.to()), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	refused(t, s)
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	letIn(t, &running{Server: s}, b)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := next(t, "end of a paused server", done); err != nil {
		t.Error(err)
	}
	if err := s.Resume(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("resumed after its end: %v", err)
	}
	refused(t, s)
}

// A port that somebody else has taken meanwhile is named, and can be had later.
func TestResumeOnATakenPort(t *testing.T) {
	s := run(t, Config{Router: always(Decision{Refuse: "no"})})
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	other, err := net.Listen("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Resume(); err == nil || !strings.Contains(err.Error(), "another process holds it") {
		t.Errorf("resumed on a taken port: %v", err)
	}
	other.Close()
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	connect(t, s).Close()
}

// Whoever pauses, resumes and connects at once: the server ends in the state asked for last.
func TestPauseAndResumeAtOnce(t *testing.T) {
	b := newBackend(t)
	s := run(t, Config{Router: always(b.to())})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 20 {
				_ = s.Pause()
				if conn, err := net.Dial("tcp", s.Addr().String()); err == nil {
					conn.Close()
				}
				_ = s.Resume()
			}
		})
	}
	group.Wait()
	letIn(t, s, b)
}
