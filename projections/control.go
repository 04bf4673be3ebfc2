package projections

import "github.com/landfall/landfall/events"

// Controls is what operators decided. A value is never changed: Apply returns a new one.
type Controls struct {
	Killed  bool
	Kill    *events.KillSet
	Drained map[events.HostID]*events.DrainSet // only those that are drained
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
		drained := make(map[events.HostID]*events.DrainSet, len(c.Drained)+1)
		for id, d := range c.Drained {
			if id != f.Host {
				drained[id] = d
			}
		}
		if f.On {
			drained[f.Host] = f
		}
		c.Drained = drained
		return c, nil
	default: // the facts of other buckets are none of this fold's
		return c, events.Refuse(events.Malformed, "not a fact of control")
	}
}

// IsDrained tells that an operator took a host out of selection.
func (c Controls) IsDrained(id events.HostID) bool { return c.Drained[id] != nil }
