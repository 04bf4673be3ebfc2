package events

import "fmt"

// checkActor holds a fact against who may write it, and against the name it gives itself.
func checkActor(s Source, b Bucket, key string, f Fact) *Refusal {
	if !mayWrite(s.Kind, b) {
		return Refuse(WrongActor, fmt.Sprintf("%s may not write %s", s, TypeName(f)))
	}
	switch f := f.(type) {
	case *BackendBeat:
		return ownKey(s, key, BackendKey(s.ID), f.Server, f.Incarnation, s.Kind == SourceBackend)
	case *InstanceBeat:
		return ownKey(s, key, InstanceKey(s.ID, s.Incarnation), f.Placement, f.Incarnation, s.Kind == SourceBackend)
	case *ProxyBeat:
		return ownKey(s, key, ProxyKey(s.ID), f.Proxy, f.Incarnation, s.Kind.Dispatcher())
	case *Claimed:
		return namesItself(s, f.Dispatcher, f.Incarnation)
	case *SessionOpened:
		return namesItself(s, f.Session.Holder, f.Session.HolderIncarnation)
	case *Requested, *Reserved, *Transferred, *Consumed, *Completed, *Released, *Expired, *Reopened,
		*Waitlisted, *Failed, *Cancelled, *Superseded, *SessionRefreshed, *SessionClosed, *KillSet, *DrainSet, *Rejected,
		*PauseSet, *EvacuateSet, *IdentitySet, *ConfigSet, *RebuildSet, *TokenSet, *CooldownSet, *UsesCounted, *PermitsKept, *PlayerSeen, *LoginHeld, *RouteStaged, *RouteUsed, *RoutesListed, *Checkpoint:
		return nil
	}
	return nil
}

func mayWrite(k SourceKind, b Bucket) bool {
	switch b {
	case Transfers, Sessions, Limits, Routes, Leases, Checkpoints:
		return k.Dispatcher()
	case Audit:
		return k.Dispatcher() || k == SourceOperator
	case Control:
		return k == SourceOperator
	case Fleet:
		return k.Dispatcher() || k == SourceBackend
	}
	return false
}

func ownKey(s Source, key, own string, host HostID, inc Incarnation, rightKind bool) *Refusal {
	if key != own || !rightKind {
		return Refuse(WrongActor, fmt.Sprintf("%s may not beat for %s", s, key))
	}
	return namesItself(s, host, inc)
}

func namesItself(s Source, host HostID, inc Incarnation) *Refusal {
	if s.ID != host || s.Incarnation != inc {
		return Refuse(WrongActor, fmt.Sprintf("%s speaks for %s/%s", s, host, inc))
	}
	return nil
}
