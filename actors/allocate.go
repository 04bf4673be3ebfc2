package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Seat is what a program wants on an instance. Empty fields mean "any".
type Seat struct {
	Realm  string // no other one will do
	Region string // preferred: another one will do
	Zone   string // no other one will do
	Scene  string // where in the zone; for the instance to know
}

// seating is everything that the choice of an instance looks at, taken at one moment.
type seating struct {
	seat    Seat
	fleet   *projections.Fleet
	now     time.Time
	stale   time.Duration
	drained func(events.HostID) bool
	exclude map[events.HostID]bool // who refused
}

// allocate ranks the instances that could give a seat, best first, and counts why each other one
// could not. It is pure: the same on every host that sees the same beats. What an instance says of
// itself may be old; it alone gives the seat.
func allocate(q seating) ([]*projections.Instance, []events.Filtered) {
	var ranked []*projections.Instance
	out := map[events.Code]*events.Filtered{}
	for _, x := range q.fleet.Instances {
		code := q.unfit(x)
		if code == "" {
			ranked = append(ranked, x)
			continue
		}
		f := out[code]
		if f == nil {
			f = &events.Filtered{Code: code, Examples: []string{}}
			out[code] = f
		}
		if f.Count++; len(f.Examples) < events.MaxExamples {
			f.Examples = append(f.Examples, string(x.Placement))
		}
	}
	slices.SortFunc(ranked, q.compare)
	filtered := make([]events.Filtered, 0, len(out))
	for _, f := range out {
		filtered = append(filtered, *f)
	}
	slices.SortFunc(filtered, func(a, b events.Filtered) int { return cmp.Compare(a.Code, b.Code) })
	return ranked, filtered
}

// unfit says why an instance cannot give the seat, "" when it may.
func (q *seating) unfit(x *projections.Instance) events.Code {
	switch {
	case q.exclude[x.Placement]:
		return events.Excluded
	case x.Schema != events.SchemaVersion:
		return events.SchemaRange
	case q.fleet.Silence(x.Seen, q.now) > q.stale:
		return events.Stale
	case x.State != events.Ready:
		return events.NotReady
	case x.Draining || q.drained(x.Placement):
		return events.Drained
	case !usable(x.Bootstrap) || !usable(x.Gameplay):
		return events.EndpointDown
	case q.seat.Realm != "" && q.seat.Realm != x.Realm:
		return events.RegionMissing
	case spareSeats(x) <= 0:
		return events.Full
	}
	if q.seat.Zone == "" {
		return ""
	}
	switch z := x.Zone(q.seat.Zone); {
	case z == nil || z.Unavailable:
		return events.RegionMissing
	case z.Players >= z.MaxPlayers:
		return events.Full
	}
	return ""
}

func usable(e events.EndpointBeat) bool {
	return e.Address != "" && e.Health != events.EndpointUnhealthy
}

func spareSeats(x *projections.Instance) int { return x.MaxPlayers - x.Players - x.Outstanding }

// health is how well an instance can be reached: as its worse endpoint. Lower is better.
func health(x *projections.Instance) int {
	order := []events.EndpointHealth{events.EndpointHealthy, events.EndpointDegraded, events.EndpointUnknown}
	rank := func(e events.EndpointBeat) int {
		if i := slices.Index(order, e.Health); i >= 0 {
			return i
		}
		return len(order) - 1 // a word that is not known says nothing
	}
	return max(rank(x.Bootstrap), rank(x.Gameplay))
}

// zoneOf is the zone that a seat would be in; without one the best of the instance.
func (q *seating) zoneOf(x *projections.Instance) events.ZoneBeat {
	if z := x.Zone(q.seat.Zone); z != nil {
		return *z
	}
	best := events.ZoneBeat{Overloaded: len(x.Zones) > 0}
	for _, z := range x.Zones {
		if z.Unavailable {
			continue
		}
		if spare := func(z events.ZoneBeat) int { return z.MaxPlayers - z.Players }; best.Overloaded && !z.Overloaded || best.Overloaded == z.Overloaded && spare(z) > spare(best) {
			best = z
		}
	}
	return best
}

// compare puts the better instance first, tier by tier: region, health of the endpoints, pressure on
// the zone, room in the zone, room in all, and at last the name, so that all hosts agree.
func (q *seating) compare(a, b *projections.Instance) int {
	za, zb := q.zoneOf(a), q.zoneOf(b)
	worse := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	elsewhere := func(x *projections.Instance) int { return worse(q.seat.Region != "" && x.Region != q.seat.Region) }
	return cmp.Or(
		cmp.Compare(elsewhere(a), elsewhere(b)),
		cmp.Compare(health(a), health(b)),
		cmp.Compare(worse(za.Overloaded), worse(zb.Overloaded)),
		cmp.Compare(zb.MaxPlayers-zb.Players, za.MaxPlayers-za.Players),
		cmp.Compare(spareSeats(b), spareSeats(a)),
		cmp.Compare(a.Placement, b.Placement),
	)
}
