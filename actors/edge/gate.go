package edge

import (
	"net/netip"
	"sync"
	"time"
)

// gate counts the connections that are not spliced yet, in all and by source, and how fast a
// source makes new ones, so that nobody can hold many of them open or keep the edge busy
// with opening them.
type gate struct {
	perSource, total int
	rate             float64 // new connections of a source in a second; 0: no limit
	now              func() time.Time

	mu      sync.Mutex
	sources map[netip.Addr]*source
	inside  int
	swept   time.Time
}

// source is what is remembered of an address: nothing once it has been quiet for burstSeconds.
type source struct {
	open  int
	spent float64 // new connections that the rate has not given back yet, as of at
	at    time.Time
}

// burstSeconds is how many seconds' worth of connections a source may make at once.
const burstSeconds = 4

func newGate(perSource, total, perSecond int) *gate {
	return &gate{perSource: perSource, total: total, rate: float64(perSecond), now: time.Now, sources: map[netip.Addr]*source{}}
}

// enter admits one connection of addr, or none when a limit is reached. The
// returned function gives the place back; calling it again does nothing.
func (g *gate) enter(addr netip.Addr) (leave func(), ok bool) {
	id := sourceOf(addr)
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	g.sweep(now)
	s := g.sources[id]
	if s == nil {
		s = &source{at: now}
		g.sources[id] = s
	}
	if g.inside >= g.total || s.open >= g.perSource || !s.spend(now, g.rate) {
		return func() {}, false
	}
	g.inside++
	s.open++
	return sync.OnceFunc(func() { g.leave(s) }), true
}

// spend takes one connection out of what a source may make, or tells that it has made too many.
func (s *source) spend(now time.Time, rate float64) bool {
	if rate <= 0 {
		return true
	}
	s.recover(now, rate)
	if s.spent+1 > rate*burstSeconds {
		return false
	}
	s.spent++
	return true
}

// recover: a clock that went back gives nothing.
func (s *source) recover(now time.Time, rate float64) {
	s.spent = max(s.spent-rate*max(now.Sub(s.at), 0).Seconds(), 0)
	s.at = now
}

func (g *gate) leave(s *source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	s.open--
}

// sweep forgets sources that have nothing open and owe nothing, once per burstSeconds: within
// that time every source that went quiet has recovered.
func (g *gate) sweep(now time.Time) {
	if now.Sub(g.swept) < burstSeconds*time.Second {
		return
	}
	g.swept = now
	for id, s := range g.sources {
		if s.recover(now, g.rate); s.open == 0 && s.spent == 0 {
			delete(g.sources, id)
		}
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
