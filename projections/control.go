package projections

import "github.com/landfall/landfall/events"

// Controls is what operators decided. A value is never changed: Apply returns a new one.
type Controls struct {
	Killed  bool
	Kill    *events.KillSet
	Drained map[events.HostID]*events.DrainSet // only those that are drained
}

// Apply folds one fact.
func (c Controls) Apply(e events.Event) (Controls, *events.Refusal) {
	switch f := e.Fact.(type) {
	case *events.KillSet:
		c.Killed, c.Kill = f.On, f
		return c, nil
	case *events.DrainSet:
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
	}
	return c, events.Refuse(events.Malformed, "not a fact of control")
}

// IsDrained tells that an operator took a host out of selection.
func (c Controls) IsDrained(id events.HostID) bool { return c.Drained[id] != nil }
