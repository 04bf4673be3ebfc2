package events

// InstanceBeat is the whole state of one life of an instance, which gives its own seats. Several
// lives of a placement may beat for a while, as one replaces another: the newest counts.
type InstanceBeat struct {
	Placement   HostID      `msgpack:"placement" json:"placement"`
	Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
	// First is the sequence of this life's first beat, 0 inside that one: it tells which life is newer.
	First       uint64       `msgpack:"first" json:"first"`
	State       HostState    `msgpack:"state" json:"state"`
	Draining    bool         `msgpack:"draining,omitempty" json:"draining,omitempty"` // takes nobody new
	Version     string       `msgpack:"version" json:"version"`
	Schema      int          `msgpack:"schema" json:"schema"`
	Realm       string       `msgpack:"realm,omitempty" json:"realm,omitempty"`
	Region      string       `msgpack:"region,omitempty" json:"region,omitempty"`
	Players     int          `msgpack:"players" json:"players"`
	MaxPlayers  int          `msgpack:"max" json:"maxPlayers"`
	Outstanding int          `msgpack:"outstanding" json:"outstanding"` // seats that are promised and not yet taken
	Promise     uint64       `msgpack:"promise" json:"promise"`         // number of the last promise given
	Bootstrap   EndpointBeat `msgpack:"bootstrap" json:"bootstrap"`
	Gameplay    EndpointBeat `msgpack:"gameplay" json:"gameplay"`
	Zones       []ZoneBeat   `msgpack:"zones" json:"zones"` // sorted by name
}

// EndpointBeat is an address that clients connect to, and how it is.
type EndpointBeat struct {
	Address string         `msgpack:"address" json:"address"` // empty: there is none
	Health  EndpointHealth `msgpack:"health" json:"health"`
}

// EndpointHealth is what an instance says of one of its endpoints.
type EndpointHealth string

// Health of an endpoint, the best first.
const (
	EndpointHealthy   EndpointHealth = "healthy"
	EndpointDegraded  EndpointHealth = "degraded"
	EndpointUnknown   EndpointHealth = "unknown"
	EndpointUnhealthy EndpointHealth = "unhealthy"
)

// ZoneBeat is one part of an instance's world.
type ZoneBeat struct {
	Name        string `msgpack:"name" json:"name"`
	Players     int    `msgpack:"players" json:"players"` // promised seats count
	MaxPlayers  int    `msgpack:"max" json:"maxPlayers"`
	Unavailable bool   `msgpack:"unavailable,omitempty" json:"unavailable,omitempty"`
	Overloaded  bool   `msgpack:"overloaded,omitempty" json:"overloaded,omitempty"` // takes players, if nobody else does
}

// Zone gives a zone of the instance, nil when it has none of that name.
func (b *InstanceBeat) Zone(name string) *ZoneBeat {
	for i := range b.Zones {
		if b.Zones[i].Name == name {
			return &b.Zones[i]
		}
	}
	return nil
}
