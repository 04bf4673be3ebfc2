package actors

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// inst is an instance that fits: r1, two endpoints that are well, 5 of 10 players, a zone with 2 of 4.
func inst(id events.HostID, change func(*projections.Instance)) *projections.Instance {
	x := &projections.Instance{Seq: 1, Born: 1, Seen: t0, InstanceBeat: events.InstanceBeat{
		Placement: id, Incarnation: lifeOf(id), State: events.Ready, Schema: events.SchemaVersion, Realm: "eu", Region: "r1", Players: 5, MaxPlayers: 10,
		Bootstrap: events.EndpointBeat{Address: "b:1", Health: events.EndpointHealthy}, Gameplay: events.EndpointBeat{Address: "g:1", Health: events.EndpointHealthy},
		Zones: []events.ZoneBeat{{Name: "harbor", Players: 2, MaxPlayers: 4}},
	}}
	if change != nil {
		change(x)
	}
	return x
}

func seatingOf(seat Seat, list ...*projections.Instance) seating {
	f := &projections.Fleet{Live: true, Since: t0.Add(-time.Hour), Heard: t0}
	slices.SortFunc(list, func(a, b *projections.Instance) int { return strings.Compare(string(a.Placement), string(b.Placement)) })
	f.Instances = list
	return seating{seat: seat, fleet: f, now: t0, stale: 3 * time.Second, drained: func(id events.HostID) bool { return id == "drained" }}
}

func seatOrder(q seating) string {
	ranked, out := allocate(q)
	var ids []string
	for _, x := range ranked {
		ids = append(ids, string(x.Placement))
	}
	for _, f := range out {
		ids = append(ids, fmt.Sprintf("%s:%s", f.Code, strings.Join(f.Examples, "+")))
	}
	return strings.Join(ids, " ")
}

// The tiers in their order: one above decides, whatever those below say.
func TestAllocationTiers(t *testing.T) {
	type change = func(*projections.Instance)
	sick := func(h events.EndpointHealth) change { return func(x *projections.Instance) { x.Gameplay.Health = h } }
	zone := func(players, most int, overloaded bool) change {
		return func(x *projections.Instance) {
			x.Zones = []events.ZoneBeat{{Name: "harbor", Players: players, MaxPlayers: most, Overloaded: overloaded}}
		}
	}
	both := func(a, b change) change { return func(x *projections.Instance) { a(x); b(x) } }
	elsewhere := func(x *projections.Instance) { x.Region = "r2" }
	empty := func(x *projections.Instance) { x.Players = 0 }
	for name, c := range map[string]struct {
		a, b change // of instances a and b
		want string
	}{
		"alike, by name":                                 {nil, nil, "a b"},
		"the region before the load":                     {both(elsewhere, empty), func(x *projections.Instance) { x.Players = 9 }, "b a"},
		"the region before the endpoints":                {elsewhere, sick(events.EndpointUnknown), "b a"},
		"a healthy endpoint before an overloaded zone":   {sick(events.EndpointDegraded), zone(3, 4, true), "b a"},
		"degraded before unknown":                        {sick(events.EndpointUnknown), sick(events.EndpointDegraded), "b a"},
		"unknown when nothing better":                    {sick(events.EndpointUnknown), sick(events.EndpointUnhealthy), "a ENDPOINT_DOWN:b"},
		"a word not known says nothing":                  {sick("superb"), sick(events.EndpointDegraded), "b a"},
		"pressure before room in the zone":               {zone(0, 100, true), zone(3, 4, false), "b a"},
		"room in the zone before room in all":            {both(zone(3, 4, false), empty), zone(0, 4, false), "b a"},
		"room in all":                                    {nil, empty, "b a"},
		"promised seats are no room":                     {func(x *projections.Instance) { x.Outstanding = 4 }, nil, "b a"},
		"the emptiest does not always win":               {empty, zone(0, 4, false), "b a"},
		"the bootstrap endpoint counts as the other one": {func(x *projections.Instance) { x.Bootstrap.Health = events.EndpointDegraded }, nil, "b a"},
	} {
		t.Run(name, func(t *testing.T) {
			seat := Seat{Realm: "eu", Region: "r1", Zone: "harbor"}
			if got := seatOrder(seatingOf(seat, inst("a", c.a), inst("b", c.b))); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if got := seatOrder(seatingOf(seat, inst("b", c.b), inst("a", c.a))); got != c.want {
				t.Errorf("seen in another order: %s, want %s", got, c.want)
			}
		})
	}
}

// Who cannot give a seat is left out, with the reason.
func TestAllocationLeavesOut(t *testing.T) {
	for code, c := range map[events.Code]func(*projections.Instance){
		events.Stale:         func(x *projections.Instance) { x.Seen = t0.Add(-4 * time.Second) },
		events.NotReady:      func(x *projections.Instance) { x.State = events.ShuttingDown },
		events.Drained:       func(x *projections.Instance) { x.Draining = true },
		events.EndpointDown:  func(x *projections.Instance) { x.Bootstrap.Address = "" },
		events.RegionMissing: func(x *projections.Instance) { x.Zones[0].Unavailable = true },
		events.Full:          func(x *projections.Instance) { x.Outstanding = 5 },
		events.SchemaRange:   func(x *projections.Instance) { x.Schema = events.SchemaVersion + 1 },
	} {
		if got, want := seatOrder(seatingOf(Seat{Zone: "harbor"}, inst("a", c))), string(code)+":a"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	q := seatingOf(Seat{Realm: "us", Zone: "harbor"}, inst("a", nil), inst("drained", nil))
	if got := seatOrder(q); got != "DRAINED:drained REGION_MISSING:a" {
		t.Errorf("another realm, and one that an operator took out: %s", got)
	}
	full := inst("a", func(x *projections.Instance) { x.Zones[0].Players = 4 })
	if got := seatOrder(seatingOf(Seat{Zone: "harbor"}, full)); got != "FULL:a" {
		t.Errorf("a full zone: %s", got)
	}
	q = seatingOf(Seat{}, inst("a", nil))
	q.exclude = map[events.HostID]bool{"a": true}
	if got := seatOrder(q); got != "EXCLUDED:a" {
		t.Errorf("who refused: %s", got)
	}
}
