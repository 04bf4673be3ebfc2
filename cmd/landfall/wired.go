package main

import (
	"slices"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// sayWired tells, once at the start, what this process is in its network.
func (h *host) sayWired() {
	_, kind := h.dispatcherID()
	policy, cadence, mode := "none", 0, "none"
	if kind != "" {
		policy = h.live.now().policy.Name()
	}
	if kind != "" || h.self.IsBackend() {
		cadence = int(h.net.Heartbeat.IntervalMs)
	}
	if h.self.IsProxy() {
		mode = h.self.Proxy.Mode
	}
	h.log.Info("wired", "host", h.name(), "roles", h.roles(), "mode", mode, "dispatches", orNone(string(kind)),
		"store", storeText(h.net), "policy", policy, "heartbeatMs", cadence, "triggers", h.triggers(h.live.now().net, kind != ""))
}

// roles are those of all ids of this process.
func (h *host) roles() []string {
	var out []string
	for _, id := range []string{h.self.ProxyID, h.self.ServerID} {
		if id == "" {
			continue
		}
		for _, role := range rolesOf(h.net, id) {
			if !slices.Contains(out, role) {
				out = append(out, role)
			}
		}
	}
	return out
}

// triggers are what may ask for a transfer here: players at the backend, all else at dispatchers.
func (h *host) triggers(n *network.Network, dispatches bool) []string {
	out := []string{}
	for _, x := range []struct {
		name string
		on   bool
	}{
		{"command", h.self.IsBackend() && n.Triggers.Command.Enabled},
		{"join", dispatches && n.Triggers.Join.Enabled},
		{"event", dispatches && n.Triggers.Event.Enabled},
		{"api", h.apiAddress() != "" && n.Triggers.API.Enabled},
	} {
		if x.on {
			out = append(out, x.name)
		}
	}
	return out
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}
