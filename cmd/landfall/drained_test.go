package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/landfall/landfall/events"
)

// dial connects to a port of this machine, or says why not.
func dial(port int) (net.Conn, error) { return net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)) }

// shut demands that nobody listens on a port.
func shut(t *testing.T, port int) {
	t.Helper()
	c, err := dial(port)
	if err == nil {
		_ = c.Close()
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("dialled a drained proxy: %v", err)
	}
}

// A drained proxy lets nobody in, at once or when it starts later, until it is put back; who
// is in plays on, and another proxy is not touched.
func TestDrainedProxy(t *testing.T) {
	game, ports := taken(t), [2]int{freePort(t), freePort(t)}
	s := newSite(t, fmt.Sprintf("network: { name: test, enabled: true }\nedge: { domain: %s, fallback: A }\n%shosts:\n%s%s  A: { advertise: %q }\n",
		domain, carriedYAML("proxy-1", freePort(t)), edgeYAML("proxy-1", ports[0]), edgeYAML("proxy-2", ports[1]), game.Addr()))
	t.Setenv(envSecret, encoded(realSecret))
	decide := func(args ...string) {
		t.Helper()
		args = append(args, "--config", filepath.Join(s.dir, "network.yml"), "--who", "ada", "--why", "a test")
		if status, out, errs := landfall(t.Context(), args...); status != statusOK {
			t.Fatalf("%v: status %d, %q, %q", args, status, out, errs)
		}
	}
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	s.up(t, "proxy-1").says(t, "msg=ready proxy=proxy-1")
	second := s.up(t, "proxy-2")
	second.says(t, "msg=ready proxy=proxy-2")
	w := watchLog(t, filepath.Join(s.dir, "landfall-data"), events.NewKeyring(key))

	near, err := dial(ports[1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = near.Close() })
	if _, err := io.WriteString(near, loginBytes[0]+loginBytes[1]); err != nil {
		t.Fatal(err)
	}
	far, err := game.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = far.Close() })
	passes := func(text string) {
		t.Helper()
		got := make([]byte, len(text))
		if _, err := io.WriteString(near, text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(far, got); err != nil || string(got) != text {
			t.Fatalf("the server read %q, %v; want %q", got, err, text)
		}
	}
	if _, err := io.CopyN(io.Discard, far, int64(len(loginBytes[0])+len(loginBytes[1]))); err != nil {
		t.Fatal(err)
	}
	if _, err := far.Write([]byte{0}); err != nil { // a server that says nothing is left for another one
		t.Fatal(err)
	}
	if _, err := io.ReadFull(near, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}

	decide("drain", "proxy-2")
	second.says(t, "drained: the ports are closed", "who=ada", `why="a test"`, "players=1")
	shut(t, ports[1])
	passes("plays on")
	w.until(t, "a heartbeat that says so", func() bool { p := w.Fleet().Proxy("proxy-2"); return p != nil && p.Drained })
	if c, err := dial(ports[0]); err != nil {
		t.Errorf("the other proxy: %v", err)
	} else {
		_ = c.Close()
	}

	second.stop(t)
	late := s.up(t, "proxy-2")
	late.says(t, "msg=ready proxy=proxy-2", "drained=true")
	late.says(t, "drained: the ports are closed", "players=0")
	shut(t, ports[1])

	blocker, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", ports[1]))
	if err != nil {
		t.Fatal(err)
	}
	decide("drain", "proxy-2", "--off")
	late.says(t, "a port does not open, trying on", "another process holds it")
	_ = blocker.Close()
	late.says(t, "put back: the ports are open")
	c, err := dial(ports[1])
	if err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	w.until(t, "a heartbeat that says so", func() bool { return !w.Fleet().Proxy("proxy-2").Drained })
	late.stop(t)
}
