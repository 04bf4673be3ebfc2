package main

import (
	"maps"
	"slices"
	"sync/atomic"

	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/cmd/landfall/network"
)

// doors are the servers of network.yml as an edge may dial them without knowing anything of
// the log: each login goes to the next one. They stand open while the secret or the log is
// missing: players play on, nobody is transferred.
type doors struct {
	net  *network.Network
	live *live
	ids  []string // that can be dialled, sorted
	next atomic.Uint64
}

func newDoors(n *network.Network, l *live) *doors {
	d := &doors{net: n, live: l}
	for _, id := range slices.Sorted(maps.Keys(n.Hosts)) {
		if n.Hosts[id].Advertise != "" {
			d.ids = append(d.ids, id)
		}
	}
	return d
}

// inTurn gives the next server of a game that has not failed in this login.
func (d *doors) inTurn(game edge.Game, failed []string, code string) edge.Decision {
	n := uint64(len(d.ids))
	for range d.ids {
		id := d.ids[(d.next.Add(1)-1)%n]
		if d.net.Hosts[id].Game == string(game) && !slices.Contains(failed, id) {
			return d.to(id, d.net.Hosts[id].Advertise, code)
		}
	}
	return edge.Decision{Refuse: d.live.text("login.down", nil), Code: code}
}

// to is the way to a server: its address as network.yml or its heartbeat has it, and how it
// wants to be spoken to.
func (d *doors) to(id, address, code string) edge.Decision {
	if own := d.net.Edge.Backends[id]; own != "" {
		address = own
	}
	h := d.net.Hosts[id]
	return edge.Decision{
		Server: id, Address: address, Code: code,
		ProxyV2: h.ProxyProtocol == "v2", RewriteIntent: h.RewriteTransferIntent,
	}
}
