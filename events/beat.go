package events

// HostState is what a host says about itself.
type HostState string

// Host states.
const (
	Starting     HostState = "STARTING"
	Ready        HostState = "READY"
	Degraded     HostState = "DEGRADED" // RCON lost, pool dry
	ShuttingDown HostState = "SHUTTING_DOWN"
)

// RegionBeat is one destination area as a backend offers it now.
type RegionBeat struct {
	Name  string `msgpack:"name" json:"name"`
	World string `msgpack:"world" json:"world"`
	// Kept is how many more players may be promised a place here: the least of ready
	// coordinates and free seats not yet promised.
	Kept int `msgpack:"kept" json:"kept"`
	Size int `msgpack:"size" json:"size"` // how many it means to keep
}

// BackendBeat is the whole state of a backend, never a delta. Metrics that the adapter
// cannot measure are nil, which is not the same as zero.
type BackendBeat struct {
	Server      HostID       `msgpack:"server" json:"server"`
	Incarnation Incarnation  `msgpack:"inc" json:"incarnation"`
	State       HostState    `msgpack:"state" json:"state"`
	Accepting   bool         `msgpack:"accepting" json:"accepting"`
	Adapter     string       `msgpack:"adapter" json:"adapter"` // rcon, sim, sdk
	Version     string       `msgpack:"version" json:"version"` // of Landfall
	Schema      int          `msgpack:"schema" json:"schema"`
	Game        string       `msgpack:"game" json:"game"`            // game and version, as text
	ProtocolMin int          `msgpack:"pmin" json:"protocolMin"`     // 0: unknown
	ProtocolMax int          `msgpack:"pmax" json:"protocolMax"`     // 0: unknown
	Advertise   string       `msgpack:"advertise" json:"advertise"`  // host:port that edges dial
	Public      string       `msgpack:"public" json:"publicAddress"` // host:port that clients dial in direct mode
	Players     int          `msgpack:"players" json:"players"`
	MaxPlayers  int          `msgpack:"max" json:"maxPlayers"`
	Promise     uint64       `msgpack:"promise" json:"promise"`         // number of the last promise given
	Outstanding int          `msgpack:"outstanding" json:"outstanding"` // promises not yet placed or ended
	Regions     []RegionBeat `msgpack:"regions" json:"regions"`         // sorted by name; none: a lobby
	QueueDepth  *int         `msgpack:"queue,omitempty" json:"queueDepth,omitempty"`
	SoftCap     *int         `msgpack:"softcap,omitempty" json:"softCap,omitempty"`
	MSPT        *float64     `msgpack:"mspt,omitempty" json:"mspt,omitempty"` // milliseconds a tick
	TPS         *float64     `msgpack:"tps,omitempty" json:"tps,omitempty"`
	HeapUsed    *int64       `msgpack:"heap,omitempty" json:"heapUsedBytes,omitempty"`
	HeapMax     *int64       `msgpack:"heapmax,omitempty" json:"heapMaxBytes,omitempty"`
	PipelineMs  *float64     `msgpack:"pipeline,omitempty" json:"pipelineMs,omitempty"` // arrival to placed, mean
	Config      *ConfigBeat  `msgpack:"config,omitempty" json:"config,omitempty"`
}

// Kept is how many players may be promised a place, over all regions.
func (b *BackendBeat) Kept() int {
	n := 0
	for i := range b.Regions {
		n += b.Regions[i].Kept
	}
	return n
}

// ProxyBeat is the whole state of a dispatcher.
type ProxyBeat struct {
	Proxy       HostID        `msgpack:"proxy" json:"proxy"`
	Incarnation Incarnation   `msgpack:"inc" json:"incarnation"`
	State       HostState     `msgpack:"state" json:"state"`
	Version     string        `msgpack:"version" json:"version"`
	Schema      int           `msgpack:"schema" json:"schema"`
	Kinds       []SessionKind `msgpack:"kinds" json:"kinds"` // sorted
	Players     int           `msgpack:"players" json:"players"`
	InFlight    int           `msgpack:"inflight" json:"inFlight"` // transfers it drives now
	Folded      uint64        `msgpack:"folded" json:"folded"`     // last sequence of transfers it has folded
	Config      *ConfigBeat   `msgpack:"config,omitempty" json:"config,omitempty"`
	// Drained: it lets nobody in and answers no backend, by the decision of an operator; it
	// serves the players it has.
	Drained bool `msgpack:"drained,omitempty" json:"drained,omitempty"`
}

// ConfigBeat says what configuration a host goes by, so that differences between hosts show.
// A section is a top key of network.yml; one that holds nothing but defaults is left out.
type ConfigBeat struct {
	Fixed   []SectionBeat `msgpack:"fixed" json:"fixed"`                         // what cannot change while a host runs; sorted
	Live    []SectionBeat `msgpack:"live" json:"live"`                           // what can, as it holds now; sorted
	Pushed  uint64        `msgpack:"pushed" json:"pushed"`                       // sequence in control of the ConfigSet it obeys, 0: none
	Refused uint64        `msgpack:"refused,omitempty" json:"refused,omitempty"` // of a newer one that it cannot obey
	Fault   string        `msgpack:"fault,omitempty" json:"fault,omitempty"`     // why not
}

// SectionBeat is a part of network.yml, as a hash that is the same for the same values.
type SectionBeat struct {
	Name string `msgpack:"name" json:"name"`
	Hash string `msgpack:"hash" json:"hash"` // 8 hexadecimal digits
}

// Unlike names the sections that differ, sorted. Both lists are sorted by name.
func Unlike(a, b []SectionBeat) []string {
	names := []string{}
	for len(a) > 0 || len(b) > 0 {
		switch {
		case len(b) == 0 || len(a) > 0 && a[0].Name < b[0].Name:
			names, a = append(names, a[0].Name), a[1:]
		case len(a) == 0 || b[0].Name < a[0].Name:
			names, b = append(names, b[0].Name), b[1:]
		default:
			if a[0].Hash != b[0].Hash {
				names = append(names, a[0].Name)
			}
			a, b = a[1:], b[1:]
		}
	}
	return names
}
