package main

import (
	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// dispatcher makes the dispatcher of this process: of its edges, of the game server beside it,
// or of both.
func (h *host) dispatcher(st *streams.Store, id events.HostID, kind events.SessionKind, f *front) (*actors.Dispatcher, error) {
	c := actors.DispatcherConfig{
		Identity: h.identity(events.SourceKind(kind), id),
		Log:      st, Bus: st, Logger: h.log, Kind: kind, Players: f.players, Redirector: f, Version: buildInfo().Version,
		HeartbeatEvery: h.net.Heartbeat.IntervalMs.Duration(), Retention: h.net.Store.Retention, Settings: h.pushable(),
	}
	if kind == events.KindEdge {
		c.Domain, c.Port = h.net.Edge.Domain, h.net.Edge.Port
	}
	if h.net.HasFront() {
		c.Accounts = actors.Accounts(h.net.Edge.Identity)
	}
	if h.self.IsBackend() && h.net.Direct() {
		c.Local = events.HostID(h.self.ServerID)
	}
	h.log.Info("dispatcher", "id", id, "kind", kind, "policy", h.live.now().policy.Name())
	d, err := actors.NewDispatcher(c)
	if err != nil {
		return nil, err
	}
	h.live.follow(func(now *changeable) {
		d.SetTiming(timingOf(now.net))
		d.SetPolicy(now.policy)
		d.SetLine(lineOf(now.net))
		d.SetPermissions(permissionsOf(now.permissions))
		d.SetLimits(limitsOf(now.net))
		d.SetEvents(eventsOf(now.net))
		d.SetJoins(joinsOf(now.net))
		d.SetRouting(routingOf(now.net))
	})
	return d, nil
}
