package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/actors/rcon"
	"github.com/landfall/landfall/actors/seats"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// sidecar makes the backend of this process: a stock game server behind its RCON. Nothing
// is dialled yet.
func (h *host) sidecar(st *streams.Store) (*actors.Backend, error) {
	id, x := h.self.ServerID, h.self.Server
	world, err := h.world(id, x)
	if err != nil {
		return nil, err
	}
	h.log.Info("backend", "id", id, "adapter", adapterOf(x), "advertise", x.Advertise, "public", x.PublicAddress, "regions", slices.Sorted(maps.Keys(h.net.RegionsOf(id))))
	b, err := actors.NewBackend(actors.BackendConfig{
		Identity: h.identity(events.SourceBackend, events.HostID(id)),
		Log:      st, Bus: st, World: world, Logger: h.log,
		Regions: regionsOf(h.net, id), Lobby: slices.Contains(h.net.Routing.Lobbies, id), Advertise: x.Advertise, Public: x.PublicAddress, Adapter: adapterOf(x), Version: buildInfo().Version,
		Allowed: allowedAddresses(h.net), HeartbeatEvery: h.net.Heartbeat.IntervalMs.Duration(), Settings: h.pushable(),
	})
	if err != nil {
		return nil, err
	}
	h.live.follow(func(now *changeable) {
		b.SetTiming(timingOf(now.net))
		b.SetMessages(now.messages)
		b.SetPace(now.net.Line.DrainPerSecond)
		b.SetRequestRate(float64(now.net.Routing.CrossServerPerSecond), now.net.Routing.CrossServerBurst)
	})
	return b, nil
}

// adapterOf is what stands between the network and a game server.
func adapterOf(x network.Host) string {
	if x.Game == string(edge.VintageStory) {
		return "seats"
	}
	return "rcon"
}

func (h *host) world(id string, x network.Host) (actors.World, error) {
	if adapterOf(x) == "seats" {
		return seats.New(seats.Config{Address: x.Advertise, Log: h.log.With("backend", id)})
	}
	if x.RCON == nil {
		return nil, fmt.Errorf("hosts.%s.rcon: is missing, so there is no game server that this process could serve; give the address and password file of its RCON", id)
	}
	password, err := readPassword(h.net, id)
	if err != nil {
		return nil, err
	}
	s, err := rcon.New(rcon.Config{
		Address: x.RCON.Address, Password: password, Aliases: h.net.Triggers.Command.Aliases, Regions: regionNames(h.net),
		StateDir: h.stateDir(id), Log: h.log.With("backend", id),
	})
	if err != nil {
		return nil, err
	}
	return switched{World: s, log: h.log, live: h.live}, nil
}

// readPassword reads the RCON password of a backend.
func readPassword(n *network.Network, id string) (string, error) {
	key := "hosts." + id + ".rcon.passwordFile"
	password, err := os.ReadFile(n.File(n.Hosts[id].RCON.PasswordFile)) //nolint:gosec // the operator names the file
	if err != nil {
		return "", n.At(network.CodeRequired, key, "%s; allowed: a file that holds the value of rcon.password of server.properties", err)
	}
	return strings.TrimSpace(string(password)), nil
}

// regionNames are the regions of the whole network: a player may name one of any server.
func regionNames(n *network.Network) []string {
	names := map[string]bool{}
	for id := range n.Hosts {
		for name := range n.RegionsOf(id) {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// regionsOf are the regions that a backend offers.
func regionsOf(n *network.Network, id string) []actors.Region {
	var out []actors.Region
	for name, r := range n.RegionsOf(id) {
		region := actors.Region{
			Name: name, World: r.World, CentreX: r.Centre[0], CentreZ: r.Centre[1],
			MinRadius: r.MinRadius, MaxRadius: r.MaxRadius, Keep: r.Keep,
		}
		for _, a := range r.Exclude {
			region.Exclude = append(region.Exclude, actors.Area{MinX: a.Min[0], MinZ: a.Min[1], MaxX: a.Max[0], MaxZ: a.Max[1]})
		}
		out = append(out, region)
	}
	return out
}

// allowedAddresses tells which addresses players may be sent to, whoever asks: the domain of
// the edges with a token before it, and the addresses of the file's own servers.
func allowedAddresses(n *network.Network) func(address string) bool {
	servers := map[string]bool{}
	edges := false
	for _, x := range n.Hosts {
		servers[x.Advertise], servers[x.PublicAddress] = true, true
		edges = edges || x.IsEdge()
		for _, l := range x.Edges {
			if l.SaysLate() {
				servers[redirectAddress(n, l)] = true
			}
		}
	}
	delete(servers, "")
	return func(address string) bool {
		if servers[address] {
			return true
		}
		host, port, err := net.SplitHostPort(address)
		if err != nil || !edges || port != strconv.Itoa(n.Edge.Port) {
			return false
		}
		if host == n.Edge.Domain {
			return true
		}
		label, ok := strings.CutSuffix(host, "."+n.Edge.Domain)
		_, err = events.ParseToken(label)
		return ok && err == nil && strings.HasPrefix(label, "r-")
	}
}

// switched is a World whose command can be switched off while it runs: who asks then is told so.
type switched struct {
	actors.World

	log  *slog.Logger
	live *live
}

// Run implements actors.World.
func (w switched) Run(ctx context.Context, h actors.WorldEvents) error {
	return w.World.Run(ctx, switchedEvents{h, w, ctx})
}

type switchedEvents struct {
	actors.WorldEvents

	world switched
	ctx   context.Context //nolint:containedctx // of the Run that made it: Asked has none
}

// Asked implements actors.WorldEvents.
func (e switchedEvents) Asked(p actors.Player, command string) {
	if e.on(p) {
		e.WorldEvents.Asked(p, command)
	}
}

// NoSuchPlace implements actors.WorldEvents.
func (e switchedEvents) NoSuchPlace(p actors.Player, asked string, places []string) {
	if e.on(p) {
		e.WorldEvents.NoSuchPlace(p, asked, places)
	}
}

// on tells that the command is switched on, or tells the player that it is not.
func (e switchedEvents) on(p actors.Player) bool {
	now := e.world.live.now()
	if now.net.Triggers.Command.Enabled {
		return true
	}
	refusal := now.messages.In(p.Locale).Text("refused."+string(events.Disabled), nil)
	if err := e.world.Tell(e.ctx, p, refusal); err != nil && !errors.Is(err, context.Canceled) {
		e.world.log.Warn("answer not shown", "player", p.ID, "error", err)
	}
	return false
}
