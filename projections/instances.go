package projections

import (
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// Instance is the last beat of the newest life of an instance.
type Instance struct {
	events.InstanceBeat
	Seq  uint64
	Born uint64    // sequence of the first beat of this life
	Seen time.Time // see Backend
}

// withInstance takes in a beat, unless it is that of a life which was replaced: once a newer one has
// beaten, no older one counts any more. Every reader judges alike, by the sequences of first beats.
func (f *Fleet) withInstance(beat *events.InstanceBeat, e events.Event, seen time.Time) *Fleet {
	x := &Instance{InstanceBeat: *beat, Seq: e.Seq, Born: beat.First, Seen: seen}
	if x.Born == 0 {
		x.Born = e.Seq
	}
	if old := f.Instance(beat.Placement); old != nil && old.Incarnation != beat.Incarnation && old.Born > x.Born {
		return f
	}
	f.Instances = put(f.Instances, x, func(i *Instance) string { return string(i.Placement) })
	return f
}

// Instance gives the newest life of a placement, nil when none was seen.
func (f *Fleet) Instance(id events.HostID) *Instance {
	i, ok := slices.BinarySearchFunc(f.Instances, string(id), func(x *Instance, s string) int { return strings.Compare(string(x.Placement), s) })
	if !ok {
		return nil
	}
	return f.Instances[i]
}
