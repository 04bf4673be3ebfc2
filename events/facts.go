package events

// Fact is one thing that happened. The catalog lists all of them; a switch over a Fact
// that misses one is found by the exhaustive-sum lint.
//
//sumtype:decl
type Fact interface{ fact() }

// TransferFact is a fact of the bucket transfers.
//
//sumtype:decl
type TransferFact interface {
	Fact
	transferFact()
}

// Trigger says what started a transfer.
type Trigger string

// Triggers.
const (
	TriggerCommand Trigger = "command"
	TriggerJoin    Trigger = "join"
	TriggerEvent   Trigger = "event"
	TriggerAPI     Trigger = "api"
	// TriggerAllocate: a program takes a seat on an instance, and the dispatcher that it asked holds it.
	TriggerAllocate Trigger = "allocate"
	// TriggerEvacuate: an operator empties the server where the player stands.
	TriggerEvacuate Trigger = "evacuate"
)

// Wish is where a player wants to go. Empty fields mean "any".
type Wish struct {
	Region string `msgpack:"region,omitempty" json:"region,omitempty"`
	World  string `msgpack:"world,omitempty" json:"world,omitempty"`
	Pin    HostID `msgpack:"pin,omitempty" json:"pin,omitempty"` // this server and no other
}

// Position is a block position with the direction of view. Units: blocks and degrees.
type Position struct {
	World string  `msgpack:"world" json:"world"`
	X     float64 `msgpack:"x" json:"x"`
	Y     float64 `msgpack:"y" json:"y"`
	Z     float64 `msgpack:"z" json:"z"`
	Yaw   float64 `msgpack:"yaw" json:"yaw"`
	Pitch float64 `msgpack:"pitch" json:"pitch"`
}

type (
	// Requested opens a transfer. Its sequence is the transfer's place in line for good.
	Requested struct {
		Trigger  Trigger `msgpack:"trigger" json:"trigger"`
		Via      string  `msgpack:"via,omitempty" json:"via,omitempty"` // what set it off: the event's name, or the host name that was dialled
		Wish     Wish    `msgpack:"wish" json:"wish"`
		Origin   HostID  `msgpack:"origin" json:"origin"` // the server where the player stood, empty when none
		Name     string  `msgpack:"name" json:"name"`     // as the origin knows the player
		NativeID string  `msgpack:"native,omitempty" json:"native,omitempty"`
		Bypass   bool    `msgpack:"bypass,omitempty" json:"bypass,omitempty"`
		Wait     bool    `msgpack:"wait,omitempty" json:"wait,omitempty"` // a pinned wish may wait in line
	}

	// Reserved records the destination's promise of a coordinate: the token is PENDING.
	Reserved struct {
		Attempt     int         `msgpack:"n" json:"attempt"`
		Server      HostID      `msgpack:"server" json:"server"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Promise     uint64      `msgpack:"promise" json:"promise"` // running number of that incarnation's promises
		Region      string      `msgpack:"region" json:"region"`
		At          Position    `msgpack:"at" json:"at"`
		TTLMs       int64       `msgpack:"ttl" json:"ttlMs"`
		Answer      string      `msgpack:"answer,omitempty" json:"answer,omitempty"` // signature of the destination's answer
		Decision    Decision    `msgpack:"why" json:"decision"`
	}

	// Claimed is written just before the move; compare-and-swap makes it happen once.
	Claimed struct {
		Attempt     int         `msgpack:"n" json:"attempt"`
		Dispatcher  HostID      `msgpack:"by" json:"dispatcher"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Session     uint64      `msgpack:"session" json:"session"` // number of the session it acts for
		From        HostID      `msgpack:"from" json:"from"`       // the server where the player stood
		// FromIncarnation is the life of that server, which alone can say whether it sent the
		// player; absent: not known.
		FromIncarnation *Incarnation `msgpack:"frominc,omitempty" json:"fromIncarnation,omitempty"`
	}

	// Transferred says that a move was carried out, or that nobody knows whether it was.
	Transferred struct {
		Attempt int        `msgpack:"n" json:"attempt"`
		How     MoveHow    `msgpack:"how" json:"how"`
		Result  MoveResult `msgpack:"result" json:"result"`
	}

	// Consumed says that the destination saw the player arrive for this token.
	Consumed struct {
		Attempt     int         `msgpack:"n" json:"attempt"`
		Server      HostID      `msgpack:"server" json:"server"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Join        JoinID      `msgpack:"join" json:"join"`
	}

	// Completed says that the player stands on the coordinate.
	Completed struct {
		Attempt int      `msgpack:"n" json:"attempt"`
		At      Position `msgpack:"at" json:"at"`
	}

	// Released frees a token for a known reason, before a move.
	Released struct {
		Attempt int    `msgpack:"n" json:"attempt"`
		Reason  Code   `msgpack:"reason" json:"reason"`
		Detail  string `msgpack:"detail,omitempty" json:"detail,omitempty"`
	}

	// Expired frees a token because its time ran out, before a move.
	Expired struct {
		Attempt int  `msgpack:"n" json:"attempt"`
		Reason  Code `msgpack:"reason" json:"reason"`
	}

	// Reopened takes a claim back from a dispatcher presumed dead: PENDING again.
	Reopened struct {
		Attempt   int    `msgpack:"n" json:"attempt"`
		Claim     uint64 `msgpack:"claim" json:"claim"`       // sequence of the claim that is taken back
		Evidence  Code   `msgpack:"evidence" json:"evidence"` // NEW_INCARNATION, NOT_READY (shutting down) or STALE
		LastBeat  uint64 `msgpack:"beat" json:"lastBeat"`     // sequence of the claimer's last heartbeat
		SilenceMs int64  `msgpack:"silence" json:"silenceMs"`
	}

	// Waitlisted says that nobody can serve the wish now. Written once for a transfer.
	Waitlisted struct {
		Decision Decision `msgpack:"why" json:"decision"`
	}

	// Failed ends a transfer with a reason.
	Failed struct {
		Code     Code      `msgpack:"code" json:"code"`
		Detail   string    `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Decision *Decision `msgpack:"why,omitempty" json:"decision,omitempty"`
	}

	// Cancelled ends a transfer because the player, or the player's absence, ended it.
	Cancelled struct {
		Code   Code   `msgpack:"code" json:"code"`
		Detail string `msgpack:"detail,omitempty" json:"detail,omitempty"`
	}

	// Superseded ends a transfer because the player asked for something else.
	Superseded struct {
		By TransferID `msgpack:"by" json:"by"`
	}
)

// MoveHow is the way a player is moved.
type MoveHow string

// Ways to move.
const (
	HowTransfer MoveHow = "transfer" // the client is told to reconnect elsewhere
	HowConnect  MoveHow = "connect"  // the proxy in front switches servers
	HowRedirect MoveHow = "redirect" // a redirect packet, with a marker
	HowRoute    MoveHow = "route"    // a login that is held by an edge is dialled there
	HowLocal    MoveHow = "local"    // a teleport on the server where the player stands
)

// MoveResult is what is known of a move.
type MoveResult string

// Results of a move.
const (
	MoveSent    MoveResult = "sent"
	MoveUnknown MoveResult = "unknown"
)

// SessionKind says what front a player is behind.
type SessionKind string

// Kinds of session.
const (
	KindEdge   SessionKind = "edge"
	KindRelay  SessionKind = "relay"
	KindDirect SessionKind = "direct"
	KindAPI    SessionKind = "api"
)

// Session is the whole state of a player's connection; each session fact carries it.
type Session struct {
	// Number is the revision of the opening fact, 0 inside the opening fact itself.
	Number            uint64      `msgpack:"number" json:"number"`
	Holder            HostID      `msgpack:"holder" json:"holder"`
	HolderIncarnation Incarnation `msgpack:"inc" json:"incarnation"`
	Kind              SessionKind `msgpack:"kind" json:"kind"`
	Server            HostID      `msgpack:"server" json:"server"`
	Join              JoinID      `msgpack:"join" json:"join"`
	Name              string      `msgpack:"name" json:"name"`
	Protocol          int         `msgpack:"protocol" json:"protocol"` // the client's protocol version, 0 unknown
}

type (
	// SessionOpened is written when a backend announced the join.
	SessionOpened struct {
		Session Session `msgpack:"s" json:"session"`
	}
	// SessionRefreshed repeats the state so that retention does not eat it.
	SessionRefreshed struct {
		Session Session `msgpack:"s" json:"session"`
	}
	// SessionClosed keeps where the player was last.
	SessionClosed struct {
		Session Session `msgpack:"s" json:"session"`
		Reason  string  `msgpack:"reason" json:"reason"`
	}
)

type (
	// KillSet switches new transfers off or on for the whole network.
	KillSet struct {
		On  bool   `msgpack:"on" json:"on"`
		Who string `msgpack:"who" json:"who"`
		Why string `msgpack:"why" json:"why"`
	}
	// DrainSet takes one host out of selection, or back in.
	DrainSet struct {
		Host HostID `msgpack:"host" json:"host"`
		On   bool   `msgpack:"on" json:"on"`
		Who  string `msgpack:"who" json:"who"`
		Why  string `msgpack:"why" json:"why"`
	}
	// PauseSet stops grants, or lets them go on; who waits keeps the place.
	PauseSet struct {
		What PauseWhat `msgpack:"what" json:"what"`
		Name string    `msgpack:"name" json:"name"` // of the server or region; empty for the line
		On   bool      `msgpack:"on" json:"on"`
		Who  string    `msgpack:"who" json:"who"`
		Why  string    `msgpack:"why" json:"why"`
	}
	// EvacuateSet moves the players of a backend away and takes it out of selection, until it
	// is switched off.
	EvacuateSet struct {
		Host      HostID  `msgpack:"host" json:"host"`
		On        bool    `msgpack:"on" json:"on"`
		PerSecond float64 `msgpack:"rate" json:"perSecond"` // how many players are asked to go in a second
		Who       string  `msgpack:"who" json:"who"`
		Why       string  `msgpack:"why" json:"why"`
	}
	// ConfigSet replaces, on every host at this sequence, the part of network.yml that can
	// change while a host runs.
	ConfigSet struct {
		Text string `msgpack:"text" json:"text"` // YAML of that part; empty: each host's own file holds again
		Who  string `msgpack:"who" json:"who"`
		Why  string `msgpack:"why" json:"why"`
	}
	// RebuildSet says which file of an archive answers from now on.
	RebuildSet struct {
		View string `msgpack:"view" json:"view"` // the archive: archive.<host>
		File string `msgpack:"file" json:"file"` // that answers from now on
		Fold int    `msgpack:"fold" json:"fold"` // version of the folding that made it
		Was  string `msgpack:"was" json:"was"`   // the file that answered before
		At   uint64 `msgpack:"at" json:"at"`     // last sequence of transfers in File
		Hash string `msgpack:"hash" json:"hash"` // over the rows of File
		Back bool   `msgpack:"back" json:"back"` // a step back to the file that answered before
		Who  string `msgpack:"who" json:"who"`
		Why  string `msgpack:"why" json:"why"`
	}
	// TokenSet lets the bearer of a token use the API, or no longer.
	TokenSet struct {
		ID      APITokenID `msgpack:"id" json:"id"`
		Name    string     `msgpack:"name" json:"name"`       // whose it is; stands in what is decided with it
		Hash    string     `msgpack:"hash" json:"hash"`       // see Bearer
		Scopes  []Scope    `msgpack:"scopes" json:"scopes"`   // sorted
		Expires int64      `msgpack:"expires" json:"expires"` // Unix seconds
		Revoked bool       `msgpack:"revoked,omitempty" json:"revoked,omitempty"`
		Who     string     `msgpack:"who" json:"who"`
		Why     string     `msgpack:"why" json:"why"`
	}
)

// PauseWhat says what is paused.
type PauseWhat string

// What can be paused.
const (
	PauseLine   PauseWhat = "line"   // nobody who waits is served
	PauseServer PauseWhat = "server" // nobody is promised a place on it
	PauseRegion PauseWhat = "region" // nobody is promised a place in it, on any server
)

// Facts of the bucket limits. One key holds one of them, and it may expire.
type (
	// CooldownSet says that a player rests between two transfers. The fact expires when the
	// rest is over: that it stands is the whole meaning.
	CooldownSet struct {
		Limit    string     `msgpack:"limit" json:"limit"`                       // name in network.yml
		Server   HostID     `msgpack:"server,omitempty" json:"server,omitempty"` // where it counts; empty: everywhere
		Seconds  int64      `msgpack:"seconds" json:"seconds"`                   // how long the whole rest is
		Transfer TransferID `msgpack:"transfer" json:"transfer"`                 // the transfer it follows
	}
	// UsesCounted counts a player's transfers of a day, and expires with it.
	UsesCounted struct {
		Limit    string     `msgpack:"limit" json:"limit"`
		Server   HostID     `msgpack:"server,omitempty" json:"server,omitempty"`
		Count    int        `msgpack:"count" json:"count"`
		Until    int64      `msgpack:"until" json:"until"`       // end of that day, Unix seconds
		Transfer TransferID `msgpack:"transfer" json:"transfer"` // the last one that was counted
	}
	// PermitsKept is what a game server last said a player may do.
	PermitsKept struct {
		Server  HostID  `msgpack:"server" json:"server"`
		Permits Permits `msgpack:"permits" json:"permits"`
	}
	// PlayerSeen says that a player has been on the network before. It never expires.
	PlayerSeen struct {
		Name   string `msgpack:"name" json:"name"`
		Server HostID `msgpack:"server" json:"server"` // the first one
	}
	// LoginHeld says that the player of a transfer in line came back to an edge, which has no seat for
	// the player either. It stands as long as the place is kept.
	LoginHeld struct {
		Transfer TransferID `msgpack:"transfer" json:"transfer"`
	}
)

// Facts of the bucket routes. All of them expire. A route leads a client that was told to dial
// again to a server; the client shows by which one it came (a marker), or else who it is, or from where.
type (
	// RouteStaged says that a route may be followed, once.
	RouteStaged struct {
		Player PlayerID `msgpack:"player" json:"player"`
		Server HostID   `msgpack:"server" json:"server"`
		Token  Token    `msgpack:"token" json:"token"` // the attempt behind it; empty: none, the server alone counts
		Hops   int      `msgpack:"hops" json:"hops"`   // how often the player was told to dial again for it, this time included
		Until  int64    `msgpack:"until" json:"until"` // Unix seconds; being followed, or given back, does not move it
	}
	// RouteUsed says that a route was followed, or that another one took its place: it leads nowhere any more.
	RouteUsed struct {
		Player PlayerID `msgpack:"player" json:"player"`
		Server HostID   `msgpack:"server" json:"server"`
		How    RouteHow `msgpack:"how" json:"how"`
		Until  int64    `msgpack:"until" json:"until"`
	}
	// RoutesListed names the routes of one player, or of one address.
	RoutesListed struct {
		Routes []RouteEntry `msgpack:"routes" json:"routes"` // sorted by name
	}
)

// RouteEntry is one route as its player or its address knows it.
type RouteEntry struct {
	Route string `msgpack:"route" json:"route"` // its name, see RouteName
	Until int64  `msgpack:"until" json:"until"` // how long it may be found here, Unix seconds
	Token Token  `msgpack:"token" json:"token"`
	Hops  int    `msgpack:"hops" json:"hops"`
}

// RouteHow is how a route was found, or lost.
type RouteHow string

// How a route is found.
const (
	ByMarker  RouteHow = "marker"
	ByPlayer  RouteHow = "player"
	ByAddress RouteHow = "address"
	Displaced RouteHow = "replaced" // not followed: a newer one of the same player took its place
)

// Permits are the answers about one player.
type Permits struct {
	Nodes []Permit `msgpack:"nodes" json:"nodes"` // sorted by node
}

// Permit is the answer to one question of permission.
type Permit struct {
	Node    string `msgpack:"node" json:"node"` // such as rtp.unqueued
	Granted bool   `msgpack:"granted" json:"granted"`
}

// Rejected is an audit entry: something was refused for what it is, not for when it came.
type Rejected struct {
	Source  string `msgpack:"source" json:"source"`
	Code    Code   `msgpack:"code" json:"code"`
	Subject string `msgpack:"subject" json:"subject"`
	At      uint64 `msgpack:"at,omitempty" json:"at,omitempty"` // its sequence, when it stands in the log
	Detail  string `msgpack:"detail,omitempty" json:"detail,omitempty"`
}

func (*Requested) fact()        {}
func (*Reserved) fact()         {}
func (*Claimed) fact()          {}
func (*Transferred) fact()      {}
func (*Consumed) fact()         {}
func (*Completed) fact()        {}
func (*Released) fact()         {}
func (*Expired) fact()          {}
func (*Reopened) fact()         {}
func (*Waitlisted) fact()       {}
func (*Failed) fact()           {}
func (*Cancelled) fact()        {}
func (*Superseded) fact()       {}
func (*SessionOpened) fact()    {}
func (*SessionRefreshed) fact() {}
func (*SessionClosed) fact()    {}
func (*KillSet) fact()          {}
func (*DrainSet) fact()         {}
func (*PauseSet) fact()         {}
func (*EvacuateSet) fact()      {}
func (*ConfigSet) fact()        {}
func (*RebuildSet) fact()       {}
func (*TokenSet) fact()         {}
func (*CooldownSet) fact()      {}
func (*UsesCounted) fact()      {}
func (*PermitsKept) fact()      {}
func (*PlayerSeen) fact()       {}
func (*RouteStaged) fact()      {}
func (*RouteUsed) fact()        {}
func (*RoutesListed) fact()     {}
func (*LoginHeld) fact()        {}
func (*Rejected) fact()         {}
func (*BackendBeat) fact()      {}
func (*ProxyBeat) fact()        {}
func (*InstanceBeat) fact()     {}

func (*Requested) transferFact()   {}
func (*Reserved) transferFact()    {}
func (*Claimed) transferFact()     {}
func (*Transferred) transferFact() {}
func (*Consumed) transferFact()    {}
func (*Completed) transferFact()   {}
func (*Released) transferFact()    {}
func (*Expired) transferFact()     {}
func (*Reopened) transferFact()    {}
func (*Waitlisted) transferFact()  {}
func (*Failed) transferFact()      {}
func (*Cancelled) transferFact()   {}
func (*Superseded) transferFact()  {}

// Terminal tells that nothing may follow the fact in its transfer.
func Terminal(f TransferFact) bool {
	switch f.(type) {
	case *Completed, *Failed, *Cancelled, *Superseded:
		return true
	case *Requested, *Reserved, *Claimed, *Transferred, *Consumed, *Released, *Expired, *Reopened, *Waitlisted:
		return false
	}
	return false
}
