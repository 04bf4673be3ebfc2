package actors

import (
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
)

// Nodes of permission, as game servers name them. A node may be granted by a pattern that
// ends in ".*", or by "*".
const (
	NodeUse        = "rtp.use"               // ask for a transfer at all
	NodeUnqueued   = "rtp.unqueued"          // go ahead of the line, and never wait in it
	NodeNoCooldown = "rtp.nocooldown"        // no rest between two transfers, no limit a day
	NodeFirstJoin  = "rtp.onevent.firstjoin" // be moved when joining the network for the first time
	NodeJoin       = "rtp.onevent.join"      // be moved when joining it later on
)

// ServerNode is what it takes to ask for one server by its name.
func ServerNode(id events.HostID) string { return "rtp.servers." + string(id) }

// RegionNode is what it takes to ask for a region by its name.
func RegionNode(name string) string { return "rtp.regions." + name }

// shippedPermits hold where nobody says otherwise; what is not listed is denied.
var shippedPermits = []events.Permit{
	{Node: NodeUse, Granted: true},
	{Node: NodeFirstJoin, Granted: true},
	{Node: "rtp.regions.*", Granted: true},
}

// wishNodes are what it takes to ask for a place.
func wishNodes(w events.Wish) []string {
	nodes := []string{NodeUse}
	if w.Pin != "" {
		nodes = append(nodes, ServerNode(w.Pin))
	}
	if w.Region != "" {
		nodes = append(nodes, RegionNode(w.Region))
	}
	return nodes
}

// PermissionsConfig is what an operator says that players may do.
type PermissionsConfig struct {
	Defaults []events.Permit // for everybody whom no group answers for
	Groups   []PermissionGroup
	// Trusted are the backends whose last answer about a player holds on the whole network.
	Trusted []events.HostID
}

// PermissionGroup grants and denies nodes to some players.
type PermissionGroup struct {
	Grant, Deny []string
	Players     []events.PlayerID
	Names       []string // compared as the game does: whatever the case of their letters
}

// Permissions are an operator's rules, ready to be asked. The zero value and nil leave every
// node at its default. Safe for concurrent use.
type Permissions struct {
	defaults []events.Permit
	byPlayer map[events.PlayerID][]events.Permit
	byName   map[string][]events.Permit // lower case
	trusted  []events.HostID
}

// NewPermissions prepares rules. Of the groups of a player all count.
func NewPermissions(c PermissionsConfig) *Permissions {
	p := &Permissions{
		defaults: slices.Clone(c.Defaults), trusted: slices.Clone(c.Trusted),
		byPlayer: map[events.PlayerID][]events.Permit{}, byName: map[string][]events.Permit{},
	}
	for _, g := range c.Groups {
		permits := g.permits()
		for _, id := range g.Players {
			p.byPlayer[id] = append(p.byPlayer[id], permits...)
		}
		for _, name := range g.Names {
			name = strings.ToLower(name)
			p.byName[name] = append(p.byName[name], permits...)
		}
	}
	return p
}

func (g PermissionGroup) permits() []events.Permit {
	var out []events.Permit
	for _, node := range g.Grant {
		out = append(out, events.Permit{Node: node, Granted: true})
	}
	for _, node := range g.Deny {
		out = append(out, events.Permit{Node: node})
	}
	return out
}

// Permitted says whether a player may do what a node names: as the player's groups have it,
// else the defaults of the file, else those of the program. name may be empty.
func (p *Permissions) Permitted(player events.PlayerID, name, node string) bool {
	if p != nil {
		permits := slices.Concat(p.byPlayer[player], p.byName[strings.ToLower(name)])
		for _, tier := range [][]events.Permit{permits, p.defaults} {
			if granted, answered := answerOf(tier, node); answered {
				return granted
			}
		}
	}
	granted, _ := answerOf(shippedPermits, node)
	return granted
}

// trusts tells that a backend's answers hold on the whole network.
func (p *Permissions) trusts(id events.HostID) bool {
	return p != nil && slices.Contains(p.trusted, id)
}

// trustsAny tells that there may be answers that were kept.
func (p *Permissions) trustsAny() bool { return p != nil && len(p.trusted) > 0 }

// answerOf finds a node among answers. The longest pattern that fits wins, and a denial over
// a grant of the same length.
func answerOf(permits []events.Permit, node string) (granted, answered bool) {
	longest := -1
	for _, x := range permits {
		if n := matched(x.Node, node); n > longest || n == longest && n >= 0 && !x.Granted {
			longest, granted = n, x.Granted
		}
	}
	return granted, longest >= 0
}

// matched is how much of a node a pattern names, -1 when it names another one.
func matched(pattern, node string) int {
	head, wild := strings.CutSuffix(pattern, "*")
	switch {
	case pattern == node:
		return len(node)
	case wild && (head == "" || strings.HasSuffix(head, ".")) && strings.HasPrefix(node, head):
		return len(head)
	}
	return -1
}
