package projections

import (
	"maps"

	"github.com/landfall/landfall/events"
)

// Controls is what operators decided. A value is never changed: Apply returns a new one.
type Controls struct {
	Killed  bool
	Kill    *events.KillSet
	Drained map[events.HostID]*events.DrainSet // only those that are drained
	// Paused holds what is paused, by key of control.
	Paused map[string]*events.PauseSet
	// Evacuated holds the backends that are being emptied.
	Evacuated map[events.HostID]*events.EvacuateSet
	// Config is what operators pushed last, nil when nobody has; ConfigSeq is its sequence.
	Config    *events.ConfigSet
	ConfigSeq uint64
	// Rebuilds says which file of each archive answers, where that was ever decided.
	Rebuilds map[string]*events.RebuildSet
	// Tokens are those of the API that were not revoked; some may have expired.
	Tokens map[events.APITokenID]*events.TokenSet
}

// Apply folds one fact. The newest fact of a key is its whole state, so a fact under a key
// that is not its own would later be forgotten, or shadow another: it is refused.
func (c Controls) Apply(e events.Event) (Controls, *events.Refusal) {
	switch f := e.Fact.(type) {
	case *events.KillSet:
		if e.Key != events.KillKey {
			return c, events.Refuse(events.Malformed, "the kill switch is not at "+e.Key)
		}
		c.Killed, c.Kill = f.On, f
		return c, nil
	case *events.DrainSet:
		if e.Key != events.DrainKey(f.Host) {
			return c, events.Refuse(events.Malformed, e.Key+" drains "+string(f.Host))
		}
		c.Drained = switched(c.Drained, f.Host, f, f.On)
		return c, nil
	case *events.PauseSet:
		if e.Key != events.PauseKey(f.What, f.Name) {
			return c, events.Refuse(events.Malformed, e.Key+" pauses "+string(f.What)+" "+f.Name)
		}
		c.Paused = switched(c.Paused, e.Key, f, f.On)
		return c, nil
	case *events.EvacuateSet:
		if e.Key != events.EvacuateKey(f.Host) {
			return c, events.Refuse(events.Malformed, e.Key+" evacuates "+string(f.Host))
		}
		c.Evacuated = switched(c.Evacuated, f.Host, f, f.On)
		return c, nil
	case *events.IdentitySet: // what it says is the keyring's
		if e.Key != events.IdentityKey(f.Host) {
			return c, events.Refuse(events.Malformed, e.Key+" names "+string(f.Host))
		}
		return c, nil
	case *events.ConfigSet:
		if e.Key != events.ConfigKey {
			return c, events.Refuse(events.Malformed, "the configuration is not at "+e.Key)
		}
		c.Config, c.ConfigSeq = f, e.Seq
		return c, nil
	case *events.RebuildSet:
		if e.Key != events.RebuildKey(f.View) {
			return c, events.Refuse(events.Malformed, e.Key+" is about "+f.View)
		}
		c.Rebuilds = switched(c.Rebuilds, f.View, f, true)
		return c, nil
	case *events.TokenSet:
		if e.Key != events.APITokenKey(f.ID) {
			return c, events.Refuse(events.Malformed, e.Key+" is about token "+string(f.ID))
		}
		c.Tokens = switched(c.Tokens, f.ID, f, !f.Revoked)
		return c, nil
	default: // the facts of other buckets are none of this fold's
		return c, events.Refuse(events.Malformed, "not a fact of control")
	}
}

// switched gives a copy of a map in which one entry is on or gone.
func switched[K comparable, V any](m map[K]V, key K, value V, on bool) map[K]V {
	out := make(map[K]V, len(m)+1)
	maps.Copy(out, m)
	delete(out, key)
	if on {
		out[key] = value
	}
	return out
}

// IsDrained tells that an operator took a host out of selection, or has it emptied.
func (c Controls) IsDrained(id events.HostID) bool {
	return c.Drained[id] != nil || c.Evacuated[id] != nil
}

// LinePaused tells that nobody who waits is served.
func (c Controls) LinePaused() bool { return c.Paused[events.PauseKey(events.PauseLine, "")] != nil }

// Pauses tells that somebody is promised no place in a region of a server now; waits says
// whether that somebody stands in line for it.
func (c Controls) Pauses(server events.HostID, region string, waits bool) bool {
	return waits && c.LinePaused() || c.IsPaused(server, region)
}

// IsPaused tells that nobody is promised a place in that region of that server.
func (c Controls) IsPaused(server events.HostID, region string) bool {
	return len(c.Paused) > 0 &&
		(c.Paused[events.PauseKey(events.PauseServer, string(server))] != nil || c.Paused[events.PauseKey(events.PauseRegion, region)] != nil)
}
