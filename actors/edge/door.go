package edge

import (
	"context"
	"net"
	"net/netip"
	"sync"
)

// door is the port of a Server. It can be shut and opened again; what came in stays in.
type door struct {
	mu       sync.Mutex
	addr     *net.TCPAddr     // of the first listener, with the real port
	listener *net.TCPListener // nil: shut
	closed   bool             // for good
	changed  chan struct{}    // closed, and replaced, with each change of these
}

func newDoor(addr string) (*door, error) {
	l, err := listen(addr)
	if err != nil {
		return nil, err
	}
	return &door{addr: l.Addr().(*net.TCPAddr), listener: l, changed: make(chan struct{})}, nil
}

func listen(addr string) (*net.TCPListener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, listenError(addr, err)
	}
	return l.(*net.TCPListener), nil
}

// shut closes the port, perhaps for good. It does nothing when it is shut already.
func (d *door) shut(forGood bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = d.closed || forGood
	if d.listener == nil {
		return nil
	}
	err := d.listener.Close()
	d.put(nil)
	return err
}

// open listens again at the same address. It does nothing when it is open already. A door
// that is shut for good fails with net.ErrClosed.
func (d *door) open() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return net.ErrClosed
	case d.listener != nil:
		return nil
	}
	l, err := listen(d.addr.String())
	if err == nil {
		d.put(l)
	}
	return err
}

func (d *door) put(l *net.TCPListener) {
	d.listener = l
	close(d.changed)
	d.changed = make(chan struct{})
}

// lets tells that the door is open, and l is its listener.
func (d *door) lets(l *net.TCPListener) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.listener == l && !d.closed
}

// await gives the listener once the door is open. It fails with net.ErrClosed when it is shut
// for good, and with ctx's error when that ends first.
func (d *door) await(ctx context.Context) (*net.TCPListener, error) {
	for {
		d.mu.Lock()
		l, closed, changed := d.listener, d.closed, d.changed
		d.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case closed:
			return nil, net.ErrClosed
		case l != nil:
			return l, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Pause closes the port: whoever dials it is refused by the system, so that a balancer in front
// of several edges goes on to the next. Connections that were let in go on. It may be
// called at any time, and does nothing while the Server is paused.
func (s *Server) Pause() error { return s.door.shut(false) }

// Resume opens the port again, at the same address. It fails when another process has taken
// it meanwhile (the Server stays paused then), and with net.ErrClosed when the Server was
// closed or has ended. It does nothing while the Server is open.
func (s *Server) Resume() error { return s.door.open() }

// Addr is where the server listens when it is not paused, with the real port.
func (s *Server) Addr() netip.AddrPort { return s.door.addr.AddrPort() }
