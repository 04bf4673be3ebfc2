package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// rules find the keys that are each right and cannot both hold. They are asked in turn; the first fault counts.
var rules = []func(*Network) error{
	(*Network).checkName,
	(*Network).checkStore,
	(*Network).checkListener,
	(*Network).checkTimes,
	(*Network).checkDispatchMode,
	(*Network).checkHosts,
	(*Network).checkCollisions,
	(*Network).checkNamedHosts,
}

func (n *Network) checkName() error {
	if n.Network.Name == "" {
		return n.at(CodeRequired, "network.name", "is missing; allowed: %s", idPattern)
	}
	return nil
}

func (n *Network) checkStore() error {
	s := n.Store
	switch {
	case s.Mode == "external" && s.Carrier != "":
		return n.at(CodeContradiction, "store.carrier", "%q carries no store while store.mode is external; allowed: \"\", or mode: embedded", s.Carrier)
	case s.Mode == "external" && s.URL == "":
		return n.at(CodeRequired, "store.url", "is empty while store.mode is external; allowed: %s", forms[StoreURL].allowed)
	case s.Mode == "embedded" && s.Carrier == "" && s.URL != "":
		return n.at(CodeContradiction, "store.url", "nobody listens there while store.carrier is empty; allowed: \"\", or a store.carrier")
	case s.Carrier != "" && s.URL == "" && len(n.Hosts) > 1:
		return n.at(CodeRequired, "store.url", "is empty, but all hosts other than %s connect to it; allowed: %s", s.Carrier, forms[StoreURL].allowed)
	}
	return nil
}

func (n *Network) checkListener() error {
	if n.Store.Carrier != "" && n.Security.TLS.Cert == "" && !isLoopback(n.Store.Listen) {
		return n.at(CodeTLSRequired, "store.listen", "%q is open to other machines without TLS; allowed: a loopback address, such as 127.0.0.1:4222", n.Store.Listen)
	}
	return nil
}

// checkTimes: a host must have a chance to beat twice before it counts as absent, and a promise must outlast a
// move, or no claim could ever be made (a claim needs moveTimeoutMs + 2 s of it).
func (n *Network) checkTimes() error {
	lb := n.LoadBalancer
	if least := 2 * n.Heartbeat.IntervalMs; lb.StaleAfterMs < least {
		return n.at(CodeContradiction, "loadBalancer.staleAfterMs", "%d is less than two heartbeats of heartbeat.intervalMs %d; allowed: %d or more", lb.StaleAfterMs, n.Heartbeat.IntervalMs, least)
	}
	if need := lb.MoveTimeoutMs + 2000; Millis(n.Reservation.TTLSeconds)*1000 <= need {
		return n.at(CodeContradiction, "reservation.ttlSeconds", "%d s leave no time for a claim, which needs more than loadBalancer.moveTimeoutMs + 2 s = %d ms; allowed: %d or more", n.Reservation.TTLSeconds, need, need/1000+1)
	}
	return nil
}

func (n *Network) checkDispatchMode() error {
	switch mode := n.Routing.DispatchMode; {
	case mode == "direct" && n.hasFront():
		return n.at(CodeContradiction, "routing.dispatchMode", "direct, but hosts lists an edge or a relay; allowed: auto, proxy")
	case mode == "proxy" && !n.hasFront():
		return n.at(CodeContradiction, "routing.dispatchMode", "proxy, but hosts lists no edge and no relay; allowed: auto, direct")
	}
	return nil
}

func (n *Network) checkHosts() error {
	for _, id := range n.hostIDs() {
		h, key := n.Hosts[id], "hosts."+id
		if h.IsEdge() && n.Edge.Domain == "" {
			return n.at(CodeRequired, "edge.domain", "is missing, but %s listens for players; allowed: %s", id, forms[Domain].allowed)
		}
		if err := n.checkEdges(key, h); err != nil {
			return err
		}
		if err := n.checkBackend(key, h); err != nil {
			return err
		}
		if err := n.checkRegions(key, h); err != nil {
			return err
		}
	}
	return nil
}

func (n *Network) checkEdges(key string, h Host) error {
	taken := map[string]int{}
	for i, e := range h.Edges {
		at := fmt.Sprintf("%s.edges[%d].listen", key, i)
		if first, twice := taken[e.Listen]; twice && !strings.HasSuffix(e.Listen, ":0") {
			return n.at(CodeContradiction, at, "%q is taken by edges[%d]; allowed: another address", e.Listen, first)
		}
		taken[e.Listen] = i
	}
	return nil
}

func (n *Network) checkBackend(key string, h Host) error {
	if h.IsBackend() && h.Advertise == "" {
		return n.at(CodeRequired, key+".advertise", "is missing, but nobody could be sent there without it; allowed: %s", forms[Address].allowed)
	}
	if h.RCON != nil && !isLoopback(h.RCON.Address) {
		return n.at(CodeContradiction, key+".rcon.address", "%q would carry the password over the network; allowed: a loopback address, with the sidecar beside the game server", h.RCON.Address)
	}
	if h.API != "" && !isLoopback(h.API) && n.Security.TLS.Cert == "" {
		return n.at(CodeTLSRequired, key+".api", "%q is open to other machines without TLS; allowed: a loopback address, such as 127.0.0.1:8080", h.API)
	}
	return nil
}

func (n *Network) checkRegions(key string, h Host) error {
	for _, name := range slices.Sorted(maps.Keys(h.Regions)) {
		r, at := h.Regions[name], key+".regions."+name
		if r.MinRadius >= r.MaxRadius {
			return n.at(CodeContradiction, at+".minRadius", "%d is not below maxRadius %d; allowed: 0..%d", r.MinRadius, r.MaxRadius, r.MaxRadius-1)
		}
		for i, a := range r.Exclude {
			if a.Min[0] > a.Max[0] || a.Min[1] > a.Max[1] {
				return n.at(CodeContradiction, fmt.Sprintf("%s.exclude[%d]", at, i), "min %v is beyond max %v; allowed: min <= max in x and z", a.Min, a.Max)
			}
		}
	}
	return nil
}

// checkCollisions: where the operator wants no region to mean two worlds, none may.
func (n *Network) checkCollisions() error {
	if n.Routing.RegionCollision != "refuse" {
		return nil
	}
	first := map[string]string{} // region -> the host that has it
	for _, id := range n.hostIDs() {
		for _, name := range slices.Sorted(maps.Keys(n.Hosts[id].Regions)) {
			other, known := first[name]
			if !known {
				first[name] = id
				continue
			}
			if here, there := n.Hosts[id].Regions[name].World, n.Hosts[other].Regions[name].World; here != there {
				return n.at(CodeContradiction, "hosts."+id+".regions."+name, "lies in %s, but on %s in %s, and routing.regionCollision is refuse; allowed: another name, or regionCollision: warn", here, other, there)
			}
		}
	}
	return nil
}

// checkNamedHosts: an id that hosts does not list is a slip of the pen, and would be obeyed silently.
func (n *Network) checkNamedHosts() error {
	named := []struct{ key, id string }{{"store.carrier", n.Store.Carrier}, {"edge.fallback", n.Edge.Fallback}}
	if id, fixed := strings.CutPrefix(n.LoadBalancer.Policy, "fixed:"); fixed {
		named = append(named, struct{ key, id string }{"loadBalancer.policy", id})
	}
	for _, id := range n.Routing.Lobbies {
		named = append(named, struct{ key, id string }{"routing.lobbies", id})
	}
	for _, id := range slices.Sorted(maps.Keys(n.LoadBalancer.Backends)) {
		named = append(named, struct{ key, id string }{"loadBalancer.backends." + id, id})
	}
	for _, id := range slices.Sorted(maps.Keys(n.Edge.Backends)) {
		named = append(named, struct{ key, id string }{"edge.backends." + id, id})
	}
	for _, x := range named {
		if _, known := n.Hosts[x.id]; x.id != "" && !known {
			return n.at(CodeUnknownHost, x.key, "%q is not under hosts; allowed: %s", x.id, n.hostList())
		}
	}
	return nil
}

func (n *Network) hostIDs() []string { return slices.Sorted(maps.Keys(n.Hosts)) }

func (n *Network) hostList() string {
	if len(n.Hosts) == 0 {
		return "none, hosts is empty"
	}
	return strings.Join(n.hostIDs(), ", ")
}
