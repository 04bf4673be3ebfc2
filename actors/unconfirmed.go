package actors

import (
	"net/netip"
	"sync"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Whoever logs in says who that is, and until a server has let the player in nobody knows
// better. So that names out of thin air cannot take all places of a network, only so many logins have
// one at a time that no server has confirmed.
const (
	maxUnconfirmed          = 256 // of one edge
	maxUnconfirmedByAddress = 16  // of one IPv4 address or IPv6 /64
)

// unconfirmed are the logins with a transfer of their own that no server has confirmed.
type unconfirmed struct {
	mu   sync.Mutex
	of   map[events.PlayerID]*newcomer
	from map[netip.Addr]int
}

type newcomer struct {
	from   netip.Addr
	opened bool // the transfer stands in the log
}

func (u *unconfirmed) init() {
	u.of, u.from = map[events.PlayerID]*newcomer{}, map[netip.Addr]int{}
}

// enter counts a login, unless there are too many. One without an address counts for the edge alone.
func (u *unconfirmed) enter(p events.PlayerID, from netip.Addr) bool {
	from = customer(from)
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, twice := u.of[p]; twice {
		return true
	}
	if len(u.of) >= maxUnconfirmed || from.IsValid() && u.from[from] >= maxUnconfirmedByAddress {
		return false
	}
	u.of[p] = &newcomer{from: from}
	u.from[from]++
	return true
}

// opened says that the transfer of a login stands in the log.
func (u *unconfirmed) opened(p events.PlayerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if x := u.of[p]; x != nil {
		x.opened = true
	}
}

// has tells that a login counts whose transfer stands in the log.
func (u *unconfirmed) has(p events.PlayerID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	x := u.of[p]
	return x != nil && x.opened
}

// leave forgets a login. It does nothing when there is none.
func (u *unconfirmed) leave(p events.PlayerID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	x, known := u.of[p]
	if !known {
		return
	}
	delete(u.of, p)
	if u.from[x.from]--; u.from[x.from] == 0 {
		delete(u.from, x.from)
	}
}

func (u *unconfirmed) all() []events.PlayerID {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]events.PlayerID, 0, len(u.of))
	for p := range u.of {
		out = append(out, p)
	}
	return out
}

// settle forgets the login of a player whom a server has let in, or whose transfer is over.
func (d *Dispatcher) settle(p events.PlayerID) {
	if !d.unconfirmed.has(p) {
		return
	}
	if s := d.standing(p); s.Active == nil || s.Active.Phase == projections.Consumed || !ofLogin(s, *s.Active) {
		d.unconfirmed.leave(p)
	}
}

// customer is what one customer of a provider has: an IPv4 address or an IPv6 /64.
func customer(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	if p, err := a.Prefix(64); a.Is6() && err == nil {
		return p.Addr()
	}
	return a
}
