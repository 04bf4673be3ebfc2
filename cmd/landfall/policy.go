package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// policyOf is how network.yml wants destinations to be chosen. What is wrong in the file was
// refused with its line when it was read.
func policyOf(n *network.Network) (actors.Policy, error) {
	c := actors.PolicyConfig{
		Kind: n.LoadBalancer.Policy, Terms: []actors.TermConfig{}, Weights: map[events.HostID]float64{}, PreferHome: n.Routing.Prefer == "local",
	}
	for _, label := range slices.Sorted(maps.Keys(n.LoadBalancer.Terms)) {
		t := n.LoadBalancer.Terms[label]
		term := actors.TermConfig{
			Name: label, Input: actors.Input(t.Input), Weight: t.Weight, Curve: curveOf(t.Curve),
			HalfLife: time.Duration(t.HalfLifeSeconds * float64(time.Second)), Shared: t.Shared,
		}
		if t.Normalize != nil {
			term.Normalize = &actors.Range{Min: t.Normalize.Min, Max: t.Normalize.Max}
		}
		c.Terms = append(c.Terms, term)
	}
	for id, b := range n.LoadBalancer.Backends {
		c.Weights[events.HostID(id)] = b.Weight
	}
	return actors.NewPolicy(c)
}

func curveOf(c network.Curve) actors.Curve {
	out := actors.Curve{Shape: actors.Shape(c.Type)}
	for _, x := range []struct {
		to   *float64
		from *float64
	}{{&out.K, c.K}, {&out.X0, c.X0}, {&out.Threshold, c.Threshold}, {&out.P, c.P}} {
		if x.from != nil {
			*x.to = *x.from
		}
	}
	return out
}

// readPermissions reads permissions.yml, and joins its faults.
func readPermissions(n *network.Network) (*network.Permissions, error) {
	p, faults := n.ReadPermissions()
	var all []error
	for _, f := range faults {
		all = append(all, f)
	}
	return p, errors.Join(all...)
}

// permissionsOf is what permissions.yml lets players do.
func permissionsOf(p *network.Permissions) *actors.Permissions {
	var c actors.PermissionsConfig
	for node, granted := range p.Defaults {
		c.Defaults = append(c.Defaults, events.Permit{Node: node, Granted: granted})
	}
	for _, g := range p.Groups {
		group := actors.PermissionGroup{Grant: g.Grant, Deny: g.Deny}
		for _, text := range g.Players {
			if id, err := events.ParseID[events.PlayerID](text); err == nil {
				group.Players = append(group.Players, id)
			} else {
				group.Names = append(group.Names, text)
			}
		}
		c.Groups = append(c.Groups, group)
	}
	for _, id := range p.Trust {
		c.Trusted = append(c.Trusted, events.HostID(id))
	}
	return actors.NewPermissions(c)
}

// limitsOf is how often network.yml lets players be moved.
func limitsOf(n *network.Network) actors.Limits {
	out := actors.Limits{}
	for name, l := range n.Limits {
		out[name] = actors.Limit{Cooldown: l.CooldownSeconds.Duration(), PerDay: l.PerDay, PerServer: l.Scope == "server"}
	}
	return out
}

// eventsOf is where network.yml lets events lead.
func eventsOf(n *network.Network) actors.EventTriggers {
	out := actors.EventTriggers{Enabled: n.Triggers.Event.Enabled, Regions: map[string]string{}}
	for name, to := range n.Triggers.Event.Map {
		out.Regions[name] = to.Region
	}
	return out
}

// joinsOf is which players network.yml moves when they join.
func joinsOf(n *network.Network) actors.JoinTriggers {
	out := actors.JoinTriggers{Enabled: n.Triggers.Join.Enabled, Regions: map[string]string{}}
	for host, to := range n.Triggers.Join.Map {
		out.Regions[strings.ToLower(host)] = to.Region
	}
	return out
}

// lineOf is how network.yml wants players to wait.
func lineOf(n *network.Network) actors.LineRules {
	l := n.Line
	return actors.LineRules{
		Enabled: l.Enabled, MaxSize: l.MaxSize, Notify: l.NotifySeconds.Duration(), MaxBypass: l.MaxBypass, DrainPerSecond: l.DrainPerSecond,
	}
}

// routingOf is where network.yml wants logins to go.
func routingOf(n *network.Network) actors.Routing {
	r := actors.Routing{Sticky: n.Routing.StickyReturn, Queue: n.LoadBalancer.OnNoCandidate == "queue"}
	for _, id := range n.Routing.Lobbies {
		r.Lobbies = append(r.Lobbies, events.HostID(id))
	}
	return r
}
