package events

import (
	"fmt"
	"reflect"
)

// Kind is one line of the catalog.
type Kind struct {
	Type   string // the wire name, for good
	Bucket Bucket
	New    func() Fact
}

// Catalog lists every fact. To add one: its struct, a line here, a sample in the corpus.
var Catalog = []Kind{
	{"landfall.transfer.requested.v1", Transfers, func() Fact { return new(Requested) }},
	{"landfall.transfer.reserved.v1", Transfers, func() Fact { return new(Reserved) }},
	{"landfall.transfer.claimed.v1", Transfers, func() Fact { return new(Claimed) }},
	{"landfall.transfer.transferred.v1", Transfers, func() Fact { return new(Transferred) }},
	{"landfall.transfer.consumed.v1", Transfers, func() Fact { return new(Consumed) }},
	{"landfall.transfer.completed.v1", Transfers, func() Fact { return new(Completed) }},
	{"landfall.transfer.released.v1", Transfers, func() Fact { return new(Released) }},
	{"landfall.transfer.expired.v1", Transfers, func() Fact { return new(Expired) }},
	{"landfall.transfer.reopened.v1", Transfers, func() Fact { return new(Reopened) }},
	{"landfall.transfer.waitlisted.v1", Transfers, func() Fact { return new(Waitlisted) }},
	{"landfall.transfer.failed.v1", Transfers, func() Fact { return new(Failed) }},
	{"landfall.transfer.cancelled.v1", Transfers, func() Fact { return new(Cancelled) }},
	{"landfall.transfer.superseded.v1", Transfers, func() Fact { return new(Superseded) }},
	{"landfall.session.opened.v1", Sessions, func() Fact { return new(SessionOpened) }},
	{"landfall.session.refreshed.v1", Sessions, func() Fact { return new(SessionRefreshed) }},
	{"landfall.session.closed.v1", Sessions, func() Fact { return new(SessionClosed) }},
	{"landfall.control.kill.v1", Control, func() Fact { return new(KillSet) }},
	{"landfall.control.drain.v1", Control, func() Fact { return new(DrainSet) }},
	{"landfall.control.pause.v1", Control, func() Fact { return new(PauseSet) }},
	{"landfall.control.evacuate.v1", Control, func() Fact { return new(EvacuateSet) }},
	{"landfall.control.identity.v1", Control, func() Fact { return new(IdentitySet) }},
	{"landfall.control.config.v1", Control, func() Fact { return new(ConfigSet) }},
	{"landfall.control.rebuild.v1", Control, func() Fact { return new(RebuildSet) }},
	{"landfall.control.token.v1", Control, func() Fact { return new(TokenSet) }},
	{"landfall.limit.cooldown.v1", Limits, func() Fact { return new(CooldownSet) }},
	{"landfall.limit.uses.v1", Limits, func() Fact { return new(UsesCounted) }},
	{"landfall.limit.permits.v1", Limits, func() Fact { return new(PermitsKept) }},
	{"landfall.limit.seen.v1", Limits, func() Fact { return new(PlayerSeen) }},
	{"landfall.route.staged.v1", Routes, func() Fact { return new(RouteStaged) }},
	{"landfall.route.used.v1", Routes, func() Fact { return new(RouteUsed) }},
	{"landfall.route.listed.v1", Routes, func() Fact { return new(RoutesListed) }},
	{"landfall.limit.held.v1", Limits, func() Fact { return new(LoginHeld) }},
	{"landfall.audit.rejected.v1", Audit, func() Fact { return new(Rejected) }},
	{"landfall.checkpoint.sealed.v1", Checkpoints, func() Fact { return new(Checkpoint) }},
	{"landfall.fleet.backend.v1", Fleet, func() Fact { return new(BackendBeat) }},
	{"landfall.fleet.instance.v1", Fleet, func() Fact { return new(InstanceBeat) }},
	{"landfall.fleet.proxy.v1", Fleet, func() Fact { return new(ProxyBeat) }},
}

var (
	kindByType = map[string]Kind{}
	kindByGo   = map[reflect.Type]Kind{}
	endTypes   = map[string]bool{}
)

func init() { //nolint:gochecknoinits // the indexes of the literal table above
	for _, k := range Catalog {
		kindByType[k.Type] = k
		kindByGo[reflect.TypeOf(k.New())] = k
		if f, ok := k.New().(TransferFact); ok && Terminal(f) {
			endTypes[k.Type] = true
		}
	}
}

// KindOf gives the catalog's line for a fact.
func KindOf(f Fact) (Kind, error) {
	k, ok := kindByGo[reflect.TypeOf(f)]
	if !ok {
		return Kind{}, fmt.Errorf("fact %T is not in the catalog", f)
	}
	return k, nil
}

// TypeName is the wire name of a fact, empty when it is not in the catalog.
func TypeName(f Fact) string { return kindByGo[reflect.TypeOf(f)].Type }

// TerminalType tells by the wire name alone that a fact ends its transfer.
func TerminalType(name string) bool { return endTypes[name] }
