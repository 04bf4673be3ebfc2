package network

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// judge gathers the faults of a file whose keys are each right.
type judge struct {
	*Network

	faults []*Error
}

func (j *judge) fault(code, key, format string, args ...any) {
	j.faults = append(j.faults, j.At(code, key, format, args...))
}

// rules find the keys that are each right and cannot both hold. They are asked in turn.
var rules = []func(*judge){
	(*judge).checkName,
	(*judge).checkStore,
	(*judge).checkDurability,
	(*judge).checkListener,
	(*judge).checkTLS,
	(*judge).checkTimes,
	(*judge).checkDispatchMode,
	(*judge).checkHosts,
	(*judge).checkCollisions,
	(*judge).checkNamedHosts,
	(*judge).checkLimits,
	(*judge).checkCommand,
	(*judge).checkLobbies,
	(*judge).checkJoins,
	(*judge).checkDestinations,
}

func (j *judge) checkName() {
	if j.Network.Network.Name == "" {
		j.fault(CodeRequired, "network.name", "is missing; allowed: %s", idPattern)
	}
}

func (j *judge) checkStore() {
	s := j.Store
	switch {
	case s.Mode == "external" && s.Carrier != "":
		j.fault(CodeContradiction, "store.carrier", "%q carries no store while store.mode is external; allowed: \"\", or mode: embedded", s.Carrier)
	case s.Mode == "external" && s.URL == "":
		j.fault(CodeRequired, "store.url", "is empty while store.mode is external; allowed: %s", forms[StoreURL].allowed)
	case s.Mode == "embedded" && s.Carrier == "" && s.URL != "":
		j.fault(CodeContradiction, "store.url", "nobody listens there while store.carrier is empty; allowed: \"\", or a store.carrier")
	case s.Carrier != "" && s.URL == "" && len(j.Hosts) > 1:
		j.fault(CodeRequired, "store.url", "is empty, but all hosts other than %s connect to it; allowed: %s", s.Carrier, forms[StoreURL].allowed)
	}
}

// checkDurability: only the process that has the disk can group what goes to it.
func (j *judge) checkDurability() {
	s := j.Store
	switch {
	case s.Durability != "grouped":
	case s.Mode == "external":
		j.fault(CodeContradiction, "store.durability", "grouped is what a carrier does for its own disk, while store.mode is external; allowed: always, lazy")
	case s.Storage == "memory":
		j.fault(CodeContradiction, "store.durability", "grouped, while store.storage memory has no disk; allowed: always, lazy, or storage: file")
	}
}

func (j *judge) checkListener() {
	if j.Store.Carrier != "" && j.Security.TLS.Cert == "" && !isLoopback(j.Store.Listen) {
		j.fault(CodeTLSRequired, "store.listen", "%q is open to other machines without TLS; allowed: security.tls, as `landfall init` makes it, or a loopback address, such as 127.0.0.1:4222", j.Store.Listen)
	}
}

// checkTLS: a carrier with a certificate speaks TLS alone, and whoever connects must want it: else somebody
// between the two could take it away.
func (j *judge) checkTLS() {
	t, s := j.Security.TLS, j.Store
	switch {
	case t.Cert != "" && t.Key == "":
		j.fault(CodeContradiction, "security.tls.cert", "has no key; allowed: security.tls.key beside it")
	case t.Key != "" && t.Cert == "":
		j.fault(CodeContradiction, "security.tls.key", "has no certificate; allowed: security.tls.cert beside it")
	case s.Carrier == "" || s.URL == "":
	case t.Cert == "" && strings.Contains(s.URL, "tls://"):
		j.fault(CodeContradiction, "store.url", "%q wants TLS, but security.tls has no certificate to show; allowed: nats://, or security.tls.cert and key", s.URL)
	case t.Cert != "" && strings.Contains(s.URL, "nats://"):
		j.fault(CodeContradiction, "store.url", "%q would go without TLS, while security.tls.cert makes the carrier insist on it; allowed: tls://, or no security.tls.cert", s.URL)
	}
}

// checkTimes: a host must have a chance to beat twice before it counts as absent, and a promise must outlast a
// move, or no claim could ever be made (a claim needs moveTimeoutMs + 2 s of it).
func (j *judge) checkTimes() {
	lb := j.LoadBalancer
	if least := 2 * j.Heartbeat.IntervalMs; lb.StaleAfterMs < least {
		j.fault(CodeContradiction, "loadBalancer.staleAfterMs", "%d is less than two heartbeats of heartbeat.intervalMs %d; allowed: %d or more", lb.StaleAfterMs, j.Heartbeat.IntervalMs, least)
	}
	if need := lb.MoveTimeoutMs + 2000; Millis(j.Reservation.TTLSeconds)*1000 <= need {
		j.fault(CodeContradiction, "reservation.ttlSeconds", "%d s leave no time for a claim, which needs more than loadBalancer.moveTimeoutMs + 2 s = %d ms; allowed: %d or more", j.Reservation.TTLSeconds, need, need/1000+1)
	}
}

func (j *judge) checkDispatchMode() {
	switch {
	case j.Routing.DispatchMode == "proxy" && !j.HasFront():
		j.fault(CodeContradiction, "routing.dispatchMode", "proxy, but hosts lists no edge and no relay; allowed: auto, direct")
	case !j.Dispatches():
		j.fault(CodeContradiction, "routing.dispatchMode", "%s, but every edge under hosts is a router, so nobody moves players; allowed: direct, or mode: participant on one of the edges", j.Routing.DispatchMode)
	}
}

func (j *judge) checkHosts() {
	for _, id := range j.HostIDs() {
		h, key := j.Hosts[id], "hosts."+id
		if h.IsEdge() && j.Edge.Domain == "" {
			j.fault(CodeRequired, "edge.domain", "is missing, but %s listens for players; allowed: %s", id, forms[Domain].allowed)
		}
		if h.Creds != "" && j.Network.Network.OperatorKey == "" {
			j.fault(CodeContradiction, key+".creds", "nobody could say whose key that is while network.operatorKey is empty; allowed: \"\", or an operatorKey, which `landfall init --operator-key` makes")
		}
		if h.IsAPI() && j.Network.Network.OperatorKey != "" {
			j.fault(CodeNotYet, key+".api", "a host that serves the API beside keys of its own is not in this version; allowed: \"\", or no network.operatorKey")
		}
		j.checkMode(key, h)
		j.checkArchive(id, h)
		j.checkEdges(key, h)
		j.checkGame(key, h)
		j.checkBackend(key, h)
		j.checkRegions(key, h)
	}
}

func (j *judge) checkMode(key string, h Host) {
	switch {
	case !h.IsRouter():
	case !h.IsEdge():
		j.fault(CodeContradiction, key+".mode", "router, but the host lists no edges; allowed: participant, or edges to route from")
	case h.IsBackend():
		j.fault(CodeContradiction, key+".mode", "router, but the host is a backend too; allowed: participant, or another id for the edges")
	case h.IsAPI():
		j.fault(CodeContradiction, key+".api", "the host is a router, which knows only tokens; allowed: \"\", or another id for the API")
	}
}

// checkArchive: an archive is folded from the log, which a backend may not read, and outlives what it is made from.
func (j *judge) checkArchive(id string, h Host) {
	dispatches := h.IsEdge() || h.IsRelay() || j.Direct()
	switch {
	case h.Archive == "":
	case j.Store.Storage == "memory":
		j.fault(CodeContradiction, "hosts."+id+".archive", "%q is made from the log, while store.storage memory forgets it at each start; allowed: \"\", or storage: file", h.Archive)
	case h.IsBackend() && !dispatches && j.Store.Carrier != id:
		j.fault(CodeContradiction, "hosts."+id+".archive", "%q, but a backend may not read the log; allowed: \"\" here, and the archive on an edge, on the store's carrier, or on a host of its own (an id with nothing else)", h.Archive)
	}
}

func (j *judge) checkEdges(key string, h Host) {
	taken := map[string]int{}
	for i, e := range h.Edges {
		at := fmt.Sprintf("%s.edges[%d].listen", key, i)
		if first, twice := taken[e.Listen]; twice && !strings.HasSuffix(e.Listen, ":0") {
			j.fault(CodeContradiction, at, "%q is taken by edges[%d]; allowed: another address", e.Listen, first)
		}
		taken[e.Listen] = i
		for _, address := range slices.Sorted(maps.Keys(e.Dialled)) {
			j.checkDialled(fmt.Sprintf("%s.edges[%d].dialled.%s", key, i, address), e, e.Dialled[address])
			if first, twice := taken[address]; twice && !strings.HasSuffix(address, ":0") {
				j.fault(CodeContradiction, fmt.Sprintf("%s.edges[%d].dialled.%s", key, i, address), "is taken by edges[%d]; allowed: another address", first)
			}
			taken[address] = i
		}
		if e.SaysLate() && h.IsRouter() {
			j.fault(CodeContradiction, fmt.Sprintf("%s.edges[%d].game", key, i), "%s, but %s is a router, and its players show no tokens; allowed: minecraft, or mode: participant", e.Game, key)
		}
	}
}

func (j *judge) checkDialled(at string, e Listener, id string) {
	h, known := j.Hosts[id]
	switch {
	case !e.SaysLate():
		j.fault(CodeContradiction, at, "minecraft players name the host they want themselves; allowed: game: vintagestory or tcp, or no dialled")
	case !known:
		j.fault(CodeUnknownHost, at, "%q is not under hosts%s; allowed: %s", id, Meant(Nearest(id, j.HostIDs())), j.hostList())
	case h.Game != e.Game:
		j.fault(CodeContradiction, at, "%s speaks %s, the edge %s; allowed: a backend of that game", id, h.Game, e.Game)
	}
}

// checkGame: a game server that nobody can lead players to is a slip of the pen.
func (j *judge) checkGame(key string, h Host) {
	if h.Game == "minecraft" || !h.IsBackend() {
		return
	}
	if h.RCON != nil {
		j.fault(CodeContradiction, key+".game", "%s, but the host has rcon, which is how a Minecraft server is spoken to; allowed: minecraft, or no rcon", h.Game)
	}
	for _, other := range j.Hosts {
		if slices.ContainsFunc(other.Edges, func(l Listener) bool { return l.Game == h.Game }) {
			return
		}
	}
	j.fault(CodeContradiction, key+".game", "%s, but no edge under hosts has that game, so nobody could be led there; allowed: minecraft, or an edge with game: %s", h.Game, h.Game)
}

func (j *judge) checkBackend(key string, h Host) {
	if h.IsBackend() && h.Advertise == "" {
		j.fault(CodeRequired, key+".advertise", "is missing, but nobody could be sent there without it; allowed: %s", forms[Address].allowed)
	}
	if h.RCON != nil && !isLoopback(h.RCON.Address) {
		j.fault(CodeContradiction, key+".rcon.address", "%q would carry the password over the network; allowed: a loopback address, with the sidecar beside the game server", h.RCON.Address)
	}
	if h.API != "" && !isLoopback(h.API) && j.Security.TLS.Cert == "" {
		j.fault(CodeTLSRequired, key+".api", "%q is open to other machines without TLS; allowed: a loopback address, such as 127.0.0.1:8080, or security.tls", h.API)
	}
}

func (j *judge) checkRegions(key string, h Host) {
	for _, name := range slices.Sorted(maps.Keys(h.Regions)) {
		r, at := h.Regions[name], key+".regions."+name
		if r.MinRadius >= r.MaxRadius {
			j.fault(CodeContradiction, at+".minRadius", "%d is not below maxRadius %d; allowed: 0..%d", r.MinRadius, r.MaxRadius, r.MaxRadius-1)
		}
		for i, a := range r.Exclude {
			if a.Min[0] > a.Max[0] || a.Min[1] > a.Max[1] {
				j.fault(CodeContradiction, fmt.Sprintf("%s.exclude[%d]", at, i), "min %v is beyond max %v; allowed: min <= max in x and z", a.Min, a.Max)
			}
		}
	}
}

// checkCollisions: where the operator wants no region to mean two worlds, none may.
func (j *judge) checkCollisions() {
	if j.Routing.RegionCollision != "refuse" {
		return
	}
	first := map[string]string{} // region -> the host that has it
	for _, id := range j.HostIDs() {
		for _, name := range slices.Sorted(maps.Keys(j.Hosts[id].Regions)) {
			other, known := first[name]
			if !known {
				first[name] = id
				continue
			}
			if here, there := j.Hosts[id].Regions[name].World, j.Hosts[other].Regions[name].World; here != there {
				j.fault(CodeContradiction, "hosts."+id+".regions."+name, "lies in %s, but on %s in %s, and routing.regionCollision is refuse; allowed: another name, or regionCollision: warn", here, other, there)
			}
		}
	}
}

// namedHost is a key that names a host.
type namedHost struct {
	key, id string
	backend bool // one with a game server is meant
}

// namedHosts are the keys outside hosts that name one, in the order of the file.
func (n *Network) namedHosts() []namedHost {
	named := []namedHost{{"store.carrier", n.Store.Carrier, false}, {"edge.fallback", n.Edge.Fallback, true}}
	if id, fixed := strings.CutPrefix(n.LoadBalancer.Policy, "fixed:"); fixed {
		named = append(named, namedHost{"loadBalancer.policy", id, true})
	}
	for _, id := range n.Routing.Lobbies {
		named = append(named, namedHost{"routing.lobbies", id, true})
	}
	for _, id := range slices.Sorted(maps.Keys(n.LoadBalancer.Backends)) {
		named = append(named, namedHost{"loadBalancer.backends." + id, id, true})
	}
	for _, id := range slices.Sorted(maps.Keys(n.Edge.Backends)) {
		named = append(named, namedHost{"edge.backends." + id, id, true})
	}
	return named
}

// checkNamedHosts: an id that hosts does not list is a slip of the pen, and so is a host of another role; either
// would be obeyed silently.
func (j *judge) checkNamedHosts() {
	for _, x := range j.namedHosts() {
		code, problem, allowed := CodeUnknownHost, "", j.hostList()
		if x.backend {
			code, problem = j.noBackend(x.id)
			allowed = listed(j.backendIDs(), "a host with advertise")
		} else if _, known := j.Hosts[x.id]; !known {
			problem = j.notListed(x.id, j.HostIDs())
		}
		if x.id != "" && problem != "" {
			j.fault(code, x.key, "%s; allowed: %s", problem, allowed)
		}
	}
}

func (n *Network) notListed(id string, known []string) string {
	return fmt.Sprintf("%q is not under hosts%s", id, Meant(Nearest(id, known)))
}

// noBackend says why an id is not that of a host with a game server, and with which code; empty when it is.
func (n *Network) noBackend(id string) (code, problem string) {
	h, known := n.Hosts[id]
	switch {
	case !known:
		return CodeUnknownHost, n.notListed(id, n.backendIDs())
	case h.IsBackend():
		return "", ""
	case h.IsEdge():
		return CodeContradiction, id + " is a proxy: players connect to it, and nobody can be sent there"
	default:
		return CodeContradiction, id + " has no game server"
	}
}

func (j *judge) checkCommand() {
	if c := j.Triggers.Command; c.Enabled && len(c.Aliases) == 0 {
		j.fault(CodeContradiction, "triggers.command.aliases", "the command has no name while triggers.command.enabled is true; allowed: a name, such as rtp, or enabled: false")
	}
}

// limitNames are the limits that are not an event's.
var limitNames = []string{"rtp", "join", "api"}

// checkLimits: a limit that nothing is counted by would never be missed, and an event under the name of another
// trigger would share its limit.
func (j *judge) checkLimits() {
	events := j.Triggers.Event.Map
	for _, id := range slices.Sorted(maps.Keys(events)) {
		if slices.Contains(limitNames, id) {
			j.fault(CodeContradiction, "triggers.event.map."+id, "limits.%s is that of another trigger; allowed: another name", id)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(j.Limits)) {
		if _, event := events[id]; !event && !slices.Contains(limitNames, id) {
			allowed := append(slices.Clone(limitNames), slices.Sorted(maps.Keys(events))...)
			j.fault(CodeContradiction, "limits."+id, "nothing is counted by this name; allowed: %s, or an event of triggers.event.map", strings.Join(allowed, ", "))
		}
	}
}

// checkLobbies: no transfer leads to a lobby.
func (j *judge) checkLobbies() {
	id, fixed := strings.CutPrefix(j.LoadBalancer.Policy, "fixed:")
	if fixed && slices.Contains(j.Routing.Lobbies, id) {
		j.fault(CodeContradiction, "loadBalancer.policy", "%s is among routing.lobbies, where no transfer leads; allowed: another server", id)
	}
}

// checkJoins: only who leads a login can give it a place.
func (j *judge) checkJoins() {
	leads := func(h Host) bool { return h.IsEdge() && !h.IsRouter() }
	if j.Triggers.Join.Enabled && !slices.ContainsFunc(slices.Collect(maps.Values(j.Hosts)), leads) {
		j.fault(CodeContradiction, "triggers.join.enabled", "true, but no host has edges that dispatch, so nobody leads a login; allowed: false, or a host with edges")
	}
}

// checkDestinations: a trigger that leads to a region which no server has leads nowhere, each time.
func (j *judge) checkDestinations() {
	known := map[string]bool{}
	for _, h := range j.Hosts {
		for name := range h.Regions {
			known[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(known))
	for _, trigger := range []struct {
		key string
		MappedTrigger
	}{{"triggers.join.map.", j.Triggers.Join}, {"triggers.event.map.", j.Triggers.Event}} {
		for _, by := range slices.Sorted(maps.Keys(trigger.Map)) {
			if region := trigger.Map[by].Region; region != "" && !known[region] {
				j.fault(CodeContradiction, trigger.key+by+".region", "%q is a region of no server%s; allowed: %s, or \"\" for any", region, Meant(Nearest(region, names)), listed(names, "none, no server has regions"))
			}
		}
	}
}

// HostIDs are the hosts of the file, sorted.
func (n *Network) HostIDs() []string { return slices.Sorted(maps.Keys(n.Hosts)) }

func (n *Network) hostList() string { return listed(n.HostIDs(), "none, hosts is empty") }

// listed are ids in words, and what else there is to say when there are none.
func listed(ids []string, none string) string {
	if len(ids) == 0 {
		return none
	}
	return strings.Join(ids, ", ")
}
