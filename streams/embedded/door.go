package embedded

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// door lets in this machine's own processes beside a listener that speaks TLS: over loopback,
// as if they were inside the process. It asks for a login as the listener does, and needs no
// certificate, which may name none of the machine's own addresses.
type door struct {
	listener net.Listener
	ns       *server.Server

	mu      sync.Mutex
	open    map[net.Conn]struct{} // nil: closed
	running sync.WaitGroup
}

func openDoor(ns *server.Server) (*door, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for this machine: %w", err)
	}
	d := &door{listener: l, ns: ns, open: map[net.Conn]struct{}{}}
	d.running.Go(d.accept)
	return d, nil
}

func (d *door) url() string { return "nats://" + d.listener.Addr().String() }

// accept ends when the listener is closed.
func (d *door) accept() {
	for {
		outer, err := d.listener.Accept()
		if err != nil {
			return
		}
		inner, err := d.ns.InProcessConn()
		if err != nil {
			_ = outer.Close()
			continue
		}
		if !d.keep(outer, inner) {
			return
		}
		d.running.Go(func() { d.pass(outer, inner) })
		d.running.Go(func() { d.pass(inner, outer) })
	}
}

// keep notes two connections for close, unless it was there already.
func (d *door) keep(both ...net.Conn) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range both {
		if d.open == nil {
			_ = c.Close()
			continue
		}
		d.open[c] = struct{}{}
	}
	return d.open != nil
}

// pass hands on what comes from one side until either ends, and then ends both.
func (d *door) pass(from, to net.Conn) {
	_, _ = io.Copy(to, from)
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range []net.Conn{from, to} {
		_ = c.Close()
		delete(d.open, c)
	}
}

// close ends all that came through, and waits for it.
func (d *door) close() {
	_ = d.listener.Close()
	d.mu.Lock()
	for c := range d.open {
		_ = c.Close()
	}
	d.open = nil
	d.mu.Unlock()
	d.running.Wait()
}
