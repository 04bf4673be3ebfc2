package rcon

import (
	"context"
	"encoding/binary"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf16"
)

// testServer answers RCON as strictly as a vanilla server: it hangs up when one
// of its reads holds anything but exactly one packet, cuts replies every 4096
// UTF-16 units, refuses with id -1 and names unknown types.
type testServer struct {
	*testing.T
	listener net.Listener
	password string
	answer   func(command string) string // "" is an empty reply
	// onReply, if set, may hang up instead of writing piece n of a reply.
	onReply func(command string, n int) (hangUp bool)

	wg    sync.WaitGroup
	mu    sync.Mutex
	down  bool // refuses connections
	conns map[net.Conn]bool
	log   []string
	times []time.Time
}

func serve(t *testing.T, answer func(string) string) *testServer {
	t.Helper()
	return serveOn(t, "127.0.0.1:0", answer)
}

func serveOn(t *testing.T, address string, answer func(string) string) *testServer {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{T: t, listener: l, password: "secret", answer: answer, conns: map[net.Conn]bool{}}
	s.wg.Go(s.accept)
	t.Cleanup(s.stop)
	return s
}

func (s *testServer) address() string { return s.listener.Addr().String() }

// servePipe is a server without sockets, for time bubbles.
func servePipe(t *testing.T, answer func(string) string) *testServer {
	t.Helper()
	s := &testServer{T: t, password: "secret", answer: answer, conns: map[net.Conn]bool{}}
	t.Cleanup(s.stop)
	return s
}

// dial is the way to a server without sockets.
func (s *testServer) dial(context.Context, string) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, syscall.ECONNREFUSED
	}
	near, far := net.Pipe()
	s.conns[far] = true
	s.wg.Go(func() { s.talk(far) })
	return near, nil
}

// setDown makes a server without sockets end, or start.
func (s *testServer) setDown(down bool) {
	s.mu.Lock()
	s.down = down
	s.mu.Unlock()
	if down {
		s.hangUp()
	}
}

// stop ends the server as a killed process would.
func (s *testServer) stop() {
	if s.listener != nil {
		_ = s.listener.Close()
	}
	s.hangUp()
	s.wg.Wait()
}

func (s *testServer) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// commands are all that were executed, in order.
func (s *testServer) commands() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.log...)
}

func (s *testServer) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() { s.talk(c) })
	}
}

func (s *testServer) talk(c net.Conn) {
	defer func() {
		_ = c.Close()
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
	}()
	authed := false
	buf := make([]byte, 1460)
	for {
		n, err := c.Read(buf)
		if err != nil || n < 14 || int(binary.LittleEndian.Uint32(buf)) != n-4 {
			return
		}
		id, kind, body := int32(binary.LittleEndian.Uint32(buf[4:])), int32(binary.LittleEndian.Uint32(buf[8:])), string(buf[12:n-2])
		switch {
		case kind == 3:
			authed = body == s.password && body != ""
			if !authed {
				id = -1
			}
			_, err = c.Write(frame(id, 2, ""))
		case kind != 2:
			_, err = c.Write(frame(id, 0, "Unknown request 0"))
		case !authed:
			_, err = c.Write(frame(-1, 2, ""))
		default:
			if !s.reply(c, id, body) {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func (s *testServer) reply(c net.Conn, id int32, command string) bool {
	s.mu.Lock()
	s.log, s.times = append(s.log, command), append(s.times, time.Now())
	s.mu.Unlock()
	text := utf16.Encode([]rune(s.answer(command)))
	for n := 0; ; n++ {
		if s.onReply != nil && s.onReply(command, n) {
			return false
		}
		piece := text[:min(4096, len(text))]
		text = text[len(piece):]
		if _, err := c.Write(frame(id, 0, string(utf16.Decode(piece)))); err != nil {
			return false
		}
		if len(text) == 0 {
			return true
		}
	}
}
