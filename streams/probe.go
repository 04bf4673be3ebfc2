package streams

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// Probe is one thing that a login must be able to do, or must not, in a form that leaves
// nothing behind when it is allowed: a fact is meant for a stream that does not exist, and so is
// a change of one.
type Probe struct {
	What    string // "append to transfers"
	Allowed bool   // as it should be

	subject string
	fact    bool
}

// ProbeName is the stream and the key that probes name. Neither exists: the streams of a
// network begin with KV_.
const ProbeName = "landfall-doctor"

// Probes are what can be tried of a role's permissions without a trace. They say what the role
// is for, and do not follow from PermissionsOf: a mistake there shows.
func Probes(role Role, id events.HostID) []Probe {
	switch role {
	case RoleBackend:
		return append([]Probe{
			beat(events.BackendKey(id), "write its own heartbeat", true),
			beat(events.BackendKey(ProbeName), "write the heartbeat of another host", false),
			fact(events.Transfers, false), fact(events.Sessions, false), fact(events.Control, false), fact(events.Audit, false),
			call("STREAM.INFO."+StreamName(events.Transfers), "look at the log", false),
		}, changes(false)...)
	case RoleDispatcher:
		out := []Probe{
			beat(events.ProxyKey(id), "write its own heartbeat", true),
			beat(events.ProxyKey(ProbeName), "write the heartbeat of another host", false),
			fact(events.Control, false),
			call("STREAM.INFO."+StreamName(events.Transfers), "look at the log", true),
		}
		for _, b := range dispatcherBuckets {
			out = append(out, fact(b, true))
		}
		return append(out, changes(false)...)
	case RoleAuditor, RoleArchivist:
		return append([]Probe{
			fact(events.Transfers, false), fact(events.Control, false), fact(events.Audit, false),
			call("STREAM.INFO."+StreamName(events.Transfers), "look at the log", true),
		}, changes(false)...)
	case RoleProgram:
		return append([]Probe{
			fact(events.Transfers, false), fact(events.Sessions, false), fact(events.Control, false), fact(events.Audit, false),
			beat(events.BackendKey(ProbeName), "write the heartbeat of another host", false),
			call("STREAM.INFO."+StreamName(events.Transfers), "look at the log", false),
		}, changes(false)...)
	case RoleOperator:
		return []Probe{
			fact(events.Control, true),
			call("STREAM.INFO."+StreamName(events.Transfers), "look at the log", true),
			call("CONSUMER.LIST."+StreamName(events.Transfers), "see who reads the log", true),
		}
	}
	return nil
}

func changes(allowed bool) []Probe {
	return []Probe{
		call("STREAM.DELETE."+ProbeName, "delete a stream", allowed),
		call("STREAM.PURGE."+ProbeName, "empty a stream", allowed),
		call("STREAM.UPDATE."+ProbeName, "change a stream", allowed),
	}
}

func beat(key, what string, allowed bool) Probe {
	return Probe{What: what, Allowed: allowed, subject: events.Fleet.Subject(key), fact: true}
}

func fact(b events.Bucket, allowed bool) Probe {
	return Probe{What: "append to " + string(b), Allowed: allowed, subject: b.Subject(ProbeName), fact: true}
}

func call(api, what string, allowed bool) Probe {
	return Probe{What: what, Allowed: allowed, subject: "$JS.API." + api}
}

// Try tells whether this login may do it. Whatever the store answers is a yes: it was asked.
func (s *Store) Try(ctx context.Context, p Probe) (allowed bool, err error) {
	ctx, cancel := within(ctx)
	defer cancel()
	m := nats.NewMsg(p.subject)
	if p.fact {
		m.Header.Set(headerStream, ProbeName)
	}
	_, _, err = s.append.request(ctx, m)
	switch {
	case err == nil, errors.Is(err, nats.ErrNoResponders):
		return true, nil
	case errors.Is(err, errDenied):
		return false, nil
	}
	return false, fmt.Errorf("try to %s: %w", p.What, err)
}
