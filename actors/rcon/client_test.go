package rcon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
)

const emptyList = "There are 0 of a max of 20 players online: "

// noLeaks fails the test when it leaves goroutines behind.
func noLeaks(t *testing.T) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() { // runs after the cleanups registered later
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<16)
				t.Fatalf("goroutines: %d before, %d after\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
			}
			runtime.Gosched()
		}
	})
}

func newTestClient(t *testing.T, s *testServer) *Client {
	t.Helper()
	c := NewClient(s.address(), s.password, 5*time.Second)
	t.Cleanup(c.Close)
	return c
}

func mustDo(t *testing.T, c *Client, command string) string {
	t.Helper()
	reply, err := c.Do(t.Context(), command)
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
	return reply
}

func TestClientLongReplies(t *testing.T) {
	noLeaks(t)
	replies := map[string]string{"list": emptyList, "empty": ""}
	for _, n := range []int{1, 4095, 4096, 4097, 5000, 8192, 12288, 200000} {
		replies[fmt.Sprintf("ascii %d", n)] = strings.Repeat("x", n)
		replies[fmt.Sprintf("wide %d", n)] = strings.Repeat("\u25f4", n)
		replies[fmt.Sprintf("pairs %d", n)] = strings.Repeat("\U0001F600", n) // two units each, cuts even
	}
	s := serve(t, func(command string) string { return replies[command] })
	c := newTestClient(t, s)
	for command, want := range replies {
		if got := mustDo(t, c, command); got != want {
			t.Errorf("%s: got %d bytes, want %d", command, len(got), len(want))
		}
		if got := mustDo(t, c, "list"); got != emptyList {
			t.Fatalf("list after %s: %q", command, got)
		}
	}
	if c.Connections() != 1 {
		t.Errorf("%d connections, want one for all", c.Connections())
	}
}

func TestClientConcurrentCommandsGetTheirOwnReplies(t *testing.T) {
	noLeaks(t)
	s := serve(t, func(command string) string { return strings.Repeat(command, 700) })
	c := newTestClient(t, s)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			command := fmt.Sprintf("say %02d", i)
			for range 10 {
				if reply, err := c.Do(t.Context(), command); err != nil || reply != strings.Repeat(command, 700) {
					t.Errorf("%s: %d bytes, %v", command, len(reply), err)
				}
			}
		})
	}
	wg.Wait()
}

func TestClientWrongPassword(t *testing.T) {
	noLeaks(t)
	s := serve(t, func(string) string { return "ok" })
	c := NewClient(s.address(), "hunter2-wrong", time.Second)
	defer c.Close()
	_, err := c.Do(t.Context(), "list")
	var auth *AuthError
	if !errors.As(err, &auth) || !errors.Is(err, actors.ErrNotSent) || !errors.Is(err, actors.ErrDown) {
		t.Fatalf("got %v", err)
	}
	oneLine(t, err, s.address(), "rcon.passwordFile")
	if strings.Contains(err.Error(), "hunter2") || len(s.commands()) != 0 {
		t.Errorf("password in %q, or commands ran: %v", err, s.commands())
	}
}

func TestClientUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	_ = l.Close()
	c := NewClient(address, "secret", time.Second)
	defer c.Close()
	_, err = c.Do(t.Context(), "list")
	var down *UnreachableError
	if !errors.As(err, &down) || !errors.Is(err, actors.ErrNotSent) || !errors.Is(err, actors.ErrDown) {
		t.Fatalf("got %v", err)
	}
	oneLine(t, err, address, "enable-rcon")
}

func oneLine(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	if strings.Contains(err.Error(), "\n") {
		t.Errorf("more than one line: %q", err)
	}
}

func TestClientCancelThenReuse(t *testing.T) {
	noLeaks(t)
	gate, arrived := make(chan struct{}), make(chan struct{}, 1)
	s := serve(t, func(command string) string {
		if command == "slow" {
			arrived <- struct{}{}
			<-gate
			return strings.Repeat("stale", 2000)
		}
		return emptyList
	})
	c := newTestClient(t, s)
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("player gave up")
	go func() { <-arrived; cancel(why) }()
	_, err := c.Do(ctx, "slow")
	if !errors.Is(err, actors.ErrUnknown) || !errors.Is(err, why) {
		t.Fatalf("got %v", err)
	}
	close(gate)
	if got := mustDo(t, c, "list"); got != emptyList {
		t.Fatalf("after cancel: %q", got)
	}
	if n := len(s.commands()); n != 2 {
		t.Errorf("%d commands ran, want each once: %v", n, s.commands())
	}
}

func TestClientTimeoutIsUnknownAndWaitingForATurnIsNotSent(t *testing.T) {
	noLeaks(t)
	gate, arrived := make(chan struct{}), make(chan struct{}, 1)
	s := serve(t, func(string) string { arrived <- struct{}{}; <-gate; return "late" })
	c := NewClient(s.address(), s.password, 200*time.Millisecond)
	var wg sync.WaitGroup
	wg.Go(func() {
		_, err := c.Do(t.Context(), "transfer")
		if !errors.Is(err, actors.ErrUnknown) || !errors.Is(err, errTimeout) {
			t.Errorf("slow server: %v", err)
		}
	})
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Do(ctx, "other"); !errors.Is(err, actors.ErrNotSent) || errors.Is(err, actors.ErrUnknown) {
		t.Errorf("behind it: %v", err)
	}
	wg.Wait()
	close(gate)
	c.Close()
	if _, err := c.Do(t.Context(), "list"); !errors.Is(err, errClosed) || !errors.Is(err, actors.ErrNotSent) {
		t.Errorf("after Close: %v", err)
	}
}

func TestClientDropMidReplyIsNeverRetried(t *testing.T) {
	noLeaks(t)
	s := serve(t, func(command string) string { return strings.Repeat("y", 9000) })
	s.onReply = func(command string, n int) bool { return command == "cut" && n == 1 || command == "none" }
	c := newTestClient(t, s)
	for _, command := range []string{"cut", "none"} {
		_, err := c.Do(t.Context(), command)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Command != command {
			t.Fatalf("%s: %v", command, err)
		}
		oneLine(t, err, s.address(), "outcome unknown")
		if got := mustDo(t, c, "fine"); len(got) != 9000 {
			t.Fatalf("after %s: %d bytes", command, len(got))
		}
	}
	if got := fmt.Sprint(s.commands()); got != "[cut fine none fine]" {
		t.Errorf("ran %s", got)
	}
}

func TestClientFindsAClosedIdleConnectionBeforeWriting(t *testing.T) {
	noLeaks(t)
	s := serve(t, func(string) string { return "ok" })
	c := newTestClient(t, s)
	mustDo(t, c, "one")
	s.hangUp()
	if got := mustDo(t, c, "two"); got != "ok" || c.Connections() != 2 {
		t.Errorf("got %q over %d connections", got, c.Connections())
	}
}

func TestClientRefusesHostileFrames(t *testing.T) {
	for name, raw := range map[string][]byte{
		"length 2 GiB": {0xff, 0xff, 0xff, 0x7f},
		"length -1":    {0xff, 0xff, 0xff, 0xff},
		"length 9":     {9, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
		"above a full": {0x0b, 0x30, 0, 0},
		"http":         []byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
		"foreign id":   frame(77, 2, ""),
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				c, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write(raw)
				_, _ = io.Copy(io.Discard, c)
				_ = c.Close()
			})
			c := NewClient(l.Addr().String(), "secret", 2*time.Second)
			_, err = c.Do(t.Context(), "list")
			var down *UnreachableError
			if !errors.As(err, &down) || errors.Is(err, errTimeout) {
				t.Errorf("got %v", err)
			}
			c.Close()
			_ = l.Close()
			wg.Wait()
		})
	}
}

func TestClientBoundsAReply(t *testing.T) {
	noLeaks(t)
	s := serve(t, func(string) string { return strings.Repeat("z", maxReply+1) })
	c := newTestClient(t, s)
	if _, err := c.Do(t.Context(), "endless"); !errors.Is(err, errTooLong) {
		t.Errorf("got %v", err)
	}
}

func TestClientRefusesBrokenCommands(t *testing.T) {
	s := serve(t, func(string) string { return "ok" })
	c := newTestClient(t, s)
	for _, command := range []string{"", "a\nb", "a\x00b", strings.Repeat("x", maxCommand+1)} {
		if _, err := c.Do(t.Context(), command); !errors.Is(err, actors.ErrNotSent) {
			t.Errorf("%.10q: %v", command, err)
		}
	}
	if got := mustDo(t, c, strings.Repeat("x", maxCommand)); got != "ok" {
		t.Errorf("longest command: %q", got)
	}
	if len(s.commands()) != 1 {
		t.Errorf("ran %d", len(s.commands()))
	}
}

func FuzzReadPacket(f *testing.F) {
	f.Add(frame(1, 2, "list"))
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, raw []byte) {
		p, err := readPacket(bytes.NewReader(raw))
		if err == nil && len(p.body) > 3*maxFrame {
			t.Errorf("body of %d bytes", len(p.body))
		}
	})
}
