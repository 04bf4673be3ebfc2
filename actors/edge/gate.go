package edge

import (
	"net/netip"
	"sync"
)

// gate counts the connections that are not spliced yet, in all and by source, so
// that nobody can hold many of them open.
type gate struct {
	perSource, total int

	mu      sync.Mutex
	sources map[netip.Addr]int
	inside  int
}

func newGate(perSource, total int) *gate {
	return &gate{perSource: perSource, total: total, sources: map[netip.Addr]int{}}
}

// enter admits one connection of addr, or none when a limit is reached. The
// returned function gives the place back; calling it again does nothing.
func (g *gate) enter(addr netip.Addr) (leave func(), ok bool) {
	source := sourceOf(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.inside >= g.total || g.sources[source] >= g.perSource {
		return func() {}, false
	}
	g.inside++
	g.sources[source]++
	return sync.OnceFunc(func() { g.leave(source) }), true
}

func (g *gate) leave(source netip.Addr) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.sources[source]--; g.sources[source] == 0 {
		delete(g.sources, source)
	}
}

func (g *gate) pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inside
}

// sourceOf is what one customer of a provider gets: an IPv4 address or an IPv6 /64.
func sourceOf(addr netip.Addr) netip.Addr {
	addr = addr.Unmap().WithZone("")
	if !addr.Is6() {
		return addr
	}
	p, err := addr.Prefix(64)
	if err != nil {
		return addr
	}
	return p.Addr()
}
