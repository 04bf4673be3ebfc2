package actors

import "github.com/landfall/landfall/events"

// Routing says where logins go that no transfer leads. The zero value knows no lobbies but the
// backends without regions, and sends a returning player where the policy says.
type Routing struct {
	// Lobbies only ask, although they may have regions: nobody is sent there by a transfer.
	Lobbies []events.HostID
	// Sticky sends a returning player to the server of the last session, if it can take the player.
	Sticky bool
	// Queue lets a login wait for which there is no place, or no seat; false: it is turned away at once.
	Queue bool
}

// routing is a Routing at work. It is not changed after it was made.
type routing struct {
	Routing
	lobbies map[events.HostID]bool
}

// SetRouting replaces the rules of routing. It does not block; logins from now on follow it.
func (d *Dispatcher) SetRouting(r Routing) {
	x := &routing{Routing: r, lobbies: make(map[events.HostID]bool, len(r.Lobbies))}
	for _, id := range r.Lobbies {
		x.lobbies[id] = true
	}
	d.routing.Store(x)
}
