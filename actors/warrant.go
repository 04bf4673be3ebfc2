package actors

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// SetPermissions replaces the operator's rules; nil leaves every node at its default. It does
// not block; it holds from the next request on.
func (d *Dispatcher) SetPermissions(p *Permissions) { d.permissions.Store(p) }

// permitted says whether a player may do what a node names.
func (d *Dispatcher) permitted(ctx context.Context, player events.PlayerID, name, node string) bool {
	return d.warrantOf(player, name, nil).permits(ctx, node)
}

// warrant answers the questions of permission about one request: as the game server that
// asks says, else as a trusted one said last, else as the operator's rules have it.
type warrant struct {
	d      *Dispatcher
	player events.PlayerID
	name   string
	rules  *Permissions
	said   *events.Permits
	kept   []events.Permit
	looked bool // kept holds what the log has
}

func (d *Dispatcher) warrantOf(player events.PlayerID, name string, said *events.Permits) *warrant {
	return &warrant{d: d, player: player, name: name, rules: d.permissions.Load(), said: said}
}

func (w *warrant) permits(ctx context.Context, node string) bool {
	if w.said != nil {
		if granted, answered := answerOf(w.said.Nodes, node); answered {
			return granted
		}
	}
	if granted, answered := answerOf(w.last(ctx), node); answered {
		return granted
	}
	return w.rules.Permitted(w.player, w.name, node)
}

// last is what a trusted game server said of the player last. The log is asked once, and
// only where the rules trust somebody; when it does not answer the rules hold alone.
func (w *warrant) last(ctx context.Context) []events.Permit {
	if w.looked || !w.rules.trustsAny() {
		return w.kept
	}
	w.looked = true
	e, err := w.d.standsAt(ctx, events.Limits, events.PermitsKey(w.player))
	if err != nil {
		w.d.logger.Warn("kept permissions are out of reach, the rules hold alone", "player", w.player, "error", err)
	}
	if f, ok := e.Fact.(*events.PermitsKept); ok && w.rules.trusts(f.Server) {
		w.kept = f.Permits.Nodes
	}
	return w.kept
}

// refuse names the first of the nodes that the player lacks.
func (w *warrant) refuse(ctx context.Context, nodes []string) *events.Refusal {
	for _, node := range nodes {
		if !w.permits(ctx, node) {
			return events.Refuse(events.NoPermission, node)
		}
	}
	return nil
}

// admit refuses a request for which the player lacks a permission, and lets one go ahead of the line
// who may. What operators ask for is theirs.
func admit(ctx context.Context, w *warrant, q *events.RequestAsk) *events.Refusal {
	switch q.Trigger {
	case events.TriggerAPI, events.TriggerEvacuate, events.TriggerAllocate:
		return nil
	case events.TriggerJoin: // who is moved when joining was looked at before
	case events.TriggerCommand, events.TriggerEvent:
		if refusal := w.refuse(ctx, wishNodes(q.Wish)); refusal != nil {
			return refusal
		}
	}
	q.Bypass = q.Bypass || w.permits(ctx, NodeUnqueued)
	return nil
}

// maxPermits bounds what one game server may say of one player.
const maxPermits = 256

// sortedPermits puts what a game server says into the order in which it is kept, or refuses it.
func sortedPermits(p *events.Permits) (*events.Permits, *events.Refusal) {
	if p == nil {
		return nil, nil //nolint:nilnil // nothing was said, and that is well
	}
	if len(p.Nodes) > maxPermits {
		return nil, events.Refuse(events.BadRequest, "permits: want at most "+strconv.Itoa(maxPermits))
	}
	nodes := slices.Clone(p.Nodes)
	slices.SortStableFunc(nodes, func(a, b events.Permit) int { return strings.Compare(a.Node, b.Node) })
	return &events.Permits{Nodes: nodes}, nil
}

// keepPermits writes down what a trusted game server says of a player, for requests that
// come with no such answer. It does not wait for it.
func (d *Dispatcher) keepPermits(player events.PlayerID, server events.HostID, said *events.Permits) {
	if said == nil || !d.permissions.Load().trusts(server) {
		return
	}
	d.amendLater(events.Limits, events.PermitsKey(player), func(now events.Fact) (events.Fact, time.Duration) {
		if f, ok := now.(*events.PermitsKept); ok && f.Server == server && slices.Equal(f.Permits.Nodes, said.Nodes) {
			return nil, 0
		}
		return &events.PermitsKept{Server: server, Permits: *said}, 0
	})
}

// seenBefore tells that a player has been on the network before. When nobody can say it is
// so: what first-timers get is not given twice.
func (d *Dispatcher) seenBefore(ctx context.Context, player events.PlayerID) bool {
	if _, known := d.view.Session(player); known {
		return true
	}
	e, err := d.standsAt(ctx, events.Limits, events.SeenKey(player))
	return err != nil || e.Fact != nil
}

// noteSeen writes down that a player has been on the network, unless it is known. It does not wait for it.
func (d *Dispatcher) noteSeen(player events.PlayerID, name string, server events.HostID) {
	d.amendLater(events.Limits, events.SeenKey(player), func(now events.Fact) (events.Fact, time.Duration) {
		if now != nil {
			return nil, 0
		}
		return &events.PlayerSeen{Name: name, Server: server}, 0
	})
}
