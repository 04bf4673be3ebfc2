package events

// Answers that are not refusals. They share the namespace of codes.
const (
	Promised Code = "PROMISE"
	Accepted Code = "ACCEPTED"
	Active   Code = "ACTIVE"
	Place    Code = "PLACE"
	NoPlace  Code = "NONE"
	WaitABit Code = "WAIT"
	NotKnown Code = "UNKNOWN"
)

// Requests that a dispatcher sends to a backend.
type (
	// ReserveAsk asks a destination for a promise of one coordinate. The same
	// (transfer, attempt) again gives the same promise.
	ReserveAsk struct {
		Player      PlayerID    `msgpack:"player" json:"player"`
		Name        string      `msgpack:"name" json:"name"`
		Transfer    TransferID  `msgpack:"transfer" json:"transfer"`
		Attempt     int         `msgpack:"n" json:"attempt"`
		Place       uint64      `msgpack:"place" json:"place"` // sequence of the first request: lower goes first
		Region      string      `msgpack:"region,omitempty" json:"region,omitempty"`
		World       string      `msgpack:"world,omitempty" json:"world,omitempty"`
		TTLMs       int64       `msgpack:"ttl" json:"ttlMs"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Fresh       bool        `msgpack:"fresh,omitempty" json:"fresh,omitempty"` // may look for a new coordinate
	}
	// ReserveAnswer is PROMISE with a coordinate, or a refusal; counts are current either way.
	ReserveAnswer struct {
		Code        Code        `msgpack:"code" json:"code"` // PROMISE, NO_COORDINATE, FULL, PACED, WRONG_INCARNATION, UNSAFE, NOT_READY
		Detail      string      `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Server      HostID      `msgpack:"server" json:"server"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Promise     uint64      `msgpack:"promise" json:"promise"`
		Region      string      `msgpack:"region,omitempty" json:"region,omitempty"`
		At          Position    `msgpack:"at" json:"at"`
		Kept        int         `msgpack:"kept" json:"kept"` // left in that region after this answer
	}

	// ReleaseAsk gives a promise back: the one of that life and number. The same attempt may
	// have got another promise since.
	ReleaseAsk struct {
		Player      PlayerID    `msgpack:"player" json:"player"`
		Transfer    TransferID  `msgpack:"transfer" json:"transfer"`
		Attempt     int         `msgpack:"n" json:"attempt"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Promise     uint64      `msgpack:"promise" json:"promise"`
		Reason      Code        `msgpack:"reason" json:"reason"`
	}

	// MoveAsk tells the origin to send a player away. The origin refuses a claim older
	// than one it has seen for that player, and repeats its answer for the same claim.
	// Only the life that is named acts and answers: no other one knows what became of the claim.
	MoveAsk struct {
		Player  PlayerID `msgpack:"player" json:"player"`
		Name    string   `msgpack:"name" json:"name"`
		Token   Token    `msgpack:"token" json:"token"`
		Claim   uint64   `msgpack:"claim" json:"claim"` // sequence of the claim this acts for
		How     MoveHow  `msgpack:"how" json:"how"`
		Address string   `msgpack:"address" json:"address"`                 // host:port the client is sent to, empty for a local move
		At      Position `msgpack:"at" json:"at"`                           // the coordinate behind the token
		Query   bool     `msgpack:"query,omitempty" json:"query,omitempty"` // only answer what happened, do nothing

		FromIncarnation *Incarnation `msgpack:"frominc,omitempty" json:"fromIncarnation,omitempty"` // the life meant; absent: not known
		// Marker is what the client is to begin its next connection with, 32 hex digits; empty: nothing. The server tells
		// its client, in its own way.
		Marker string `msgpack:"marker,omitempty" json:"marker,omitempty"`
	}

	// TellAsk shows a message to a player where the player stands.
	TellAsk struct {
		Player  PlayerID `msgpack:"player" json:"player"`
		Name    string   `msgpack:"name" json:"name"`
		Message string   `msgpack:"message" json:"message"` // key of the message file
		Args    []Arg    `msgpack:"args" json:"args"`       // sorted by name
		// Locale is the language to say it in, such as pt-BR or pt_br; absent: the one the
		// backend knows the player to read.
		Locale string `msgpack:"locale,omitempty" json:"locale,omitempty"`
	}

	// ConfigAsk says that the configuration that operators pushed has changed: the backend asks
	// for it with SettingsAsk. The answer is OK.
	ConfigAsk struct {
		Seq uint64 `msgpack:"seq" json:"seq"` // in control
	}

	// SeenAsk tells a backend whose game server cannot be watched that a front has seen a player let in, or go. It is
	// repeated as long as the player is there. The answer is OK, or UNKNOWN from a backend that watches its
	// server itself.
	SeenAsk struct {
		Player     PlayerID `msgpack:"player" json:"player"`
		Name       string   `msgpack:"name" json:"name"`
		NativeID   string   `msgpack:"native,omitempty" json:"native,omitempty"`
		Connection string   `msgpack:"conn" json:"connection"` // over which, unique in the network
		Here       bool     `msgpack:"here" json:"here"`       // false: it has ended
	}

	// Arg fills one placeholder of a message. The placeholders eta and wait are lengths of time:
	// whole seconds, or empty when nobody knows.
	Arg struct {
		Name  string `msgpack:"k" json:"name"`
		Value string `msgpack:"v" json:"value"`
	}

	// Answer is the plain answer: a code and a detail.
	Answer struct {
		Code   Code   `msgpack:"code" json:"code"`
		Detail string `msgpack:"detail,omitempty" json:"detail,omitempty"`
	}
)

// Requests that a backend sends to any dispatcher.
type (
	// RequestAsk opens a transfer. Transfer is the caller's id for it: the same id again
	// answers with that transfer's outcome.
	RequestAsk struct {
		Player   PlayerID   `msgpack:"player" json:"player"`
		Name     string     `msgpack:"name" json:"name"`
		NativeID string     `msgpack:"native,omitempty" json:"native,omitempty"`
		Transfer TransferID `msgpack:"transfer" json:"transfer"`
		Trigger  Trigger    `msgpack:"trigger" json:"trigger"`
		Via      string     `msgpack:"via,omitempty" json:"via,omitempty"` // see Requested
		Wish     Wish       `msgpack:"wish" json:"wish"`
		Bypass   bool       `msgpack:"bypass,omitempty" json:"bypass,omitempty"`
		Wait     bool       `msgpack:"wait,omitempty" json:"wait,omitempty"`
		// Permits is what the game server says the player may do. It goes before what the
		// network's own rules say, and is kept for requests that carry none; absent: it says nothing.
		Permits *Permits `msgpack:"permits,omitempty" json:"permits,omitempty"`
	}
	// TriggerAsk says that something happened for which a player may be moved. The event's
	// name is that of the subject. The answer is a RequestAnswer.
	TriggerAsk struct {
		Player   PlayerID   `msgpack:"player" json:"player"`
		Transfer TransferID `msgpack:"transfer" json:"transfer"` // see RequestAsk
	}
	// RequestAnswer is ACCEPTED with the place in the log, ACTIVE with the state of the
	// transfer under way, or a refusal.
	RequestAnswer struct {
		Code     Code       `msgpack:"code" json:"code"`
		Detail   string     `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Transfer TransferID `msgpack:"transfer" json:"transfer"`
		Place    uint64     `msgpack:"place" json:"place"`
		State    string     `msgpack:"state" json:"state"`
	}

	// ArrivedAsk asks what to do with a player who joined. Held are the tokens whose
	// promises this backend still keeps for the player.
	ArrivedAsk struct {
		Player      PlayerID    `msgpack:"player" json:"player"`
		Name        string      `msgpack:"name" json:"name"`
		Join        JoinID      `msgpack:"join" json:"join"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		Held        []Token     `msgpack:"held" json:"held"`
		Listed      *uint64     `msgpack:"listed,omitempty" json:"listed,omitempty"` // number of the last promise when held was listed
	}
	// ArrivedAnswer is PLACE (the arrival is recorded: teleport now), NONE (a plain join),
	// WAIT (ask again), or a refusal.
	ArrivedAnswer struct {
		Code   Code     `msgpack:"code" json:"code"`
		Detail string   `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Token  Token    `msgpack:"token" json:"token"`
		At     Position `msgpack:"at" json:"at"`
		WaitMs int64    `msgpack:"wait" json:"waitMs"`
	}

	// PlacedAsk reports the teleport of an arrived player.
	PlacedAsk struct {
		Player PlayerID `msgpack:"player" json:"player"`
		Token  Token    `msgpack:"token" json:"token"`
		At     Position `msgpack:"at" json:"at"`
		Code   Code     `msgpack:"code" json:"code"` // OK or PLACEMENT_UNCONFIRMED
		Detail string   `msgpack:"detail,omitempty" json:"detail,omitempty"`
	}

	// CancelAsk ends a player's transfer by the player's own will: it leaves the line, or
	// gives a place up. The answer is OK, UNKNOWN when nothing is under way, ALREADY_MOVING
	// when it is too late, or NOT_HERE when the newest session names another server.
	CancelAsk struct {
		Player PlayerID `msgpack:"player" json:"player"`
	}

	// StateAsk asks for a player's transfer as the log's leader knows it.
	StateAsk struct {
		Player PlayerID `msgpack:"player" json:"player"`
	}
	// StateAnswer is what a fence needs: the latest claim, and how fresh the answer is.
	StateAnswer struct {
		Code   Code   `msgpack:"code" json:"code"`
		Detail string `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Token  Token  `msgpack:"token" json:"token"`
		State  string `msgpack:"state" json:"state"`
		Claim  uint64 `msgpack:"claim" json:"claim"` // sequence of the latest claim, 0 when none stands
		Last   uint64 `msgpack:"last" json:"last"`   // the player's last sequence at the leader
		Folded uint64 `msgpack:"folded" json:"folded"`
	}
)

// What a backend asks about itself.
type (
	// SettingsAsk asks for the configuration that operators pushed, as the log's leader knows it.
	SettingsAsk struct {
		Have uint64 `msgpack:"have" json:"have"` // sequence of the one it obeys, 0: none
	}
	// SettingsAnswer is OK with the newest ConfigSet, or a refusal.
	SettingsAnswer struct {
		Code   Code   `msgpack:"code" json:"code"`
		Detail string `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Seq    uint64 `msgpack:"seq" json:"seq"`   // in control; 0: nobody has pushed any
		Text   string `msgpack:"text" json:"text"` // see ConfigSet
		Who    string `msgpack:"who" json:"who"`
		Why    string `msgpack:"why" json:"why"`
	}
)

// How a backend, which cannot read the log, learns whose keys it has to believe.
type (
	// WhoIsAsk asks for the identity of a host whose signature the asker cannot judge.
	WhoIsAsk struct {
		Host HostID `msgpack:"host" json:"host"`
	}
	// WhoIsAnswer is OK with the identity facts of that host and of the one that answers, or
	// UNKNOWN. The answer itself may be one that cannot be judged before they are: each of them
	// is signed with the operator's key, which is all that has to be known.
	WhoIsAnswer struct {
		Code   Code       `msgpack:"code" json:"code"`
		Detail string     `msgpack:"detail,omitempty" json:"detail,omitempty"`
		Fact   SealedFact `msgpack:"fact" json:"fact"`
		Own    SealedFact `msgpack:"own" json:"own"` // that of the one that answers; with an empty key when there is none
	}
	// SealedFact is a fact of control as it stands in the log.
	SealedFact struct {
		Key     string `msgpack:"key" json:"key"`
		Seq     uint64 `msgpack:"seq" json:"seq"`
		Headers string `msgpack:"headers" json:"headers"` // the values of the signed headers, in their order, a newline between two; empty when absent
		Sig     string `msgpack:"sig" json:"sig"`         // that of Landfall-Sig
		Body    string `msgpack:"body" json:"body"`       // MessagePack, in hexadecimal digits
	}
)

// HoldsAsk asks a dispatcher with a front whether a player who has joined a backend came over a
// connection of its own: the dispatcher beside the backend asks, since the outermost one
// holds a player. The answer is OK or NOT_HERE; OK also means that the join was heard.
type HoldsAsk struct {
	Server      HostID      `msgpack:"server" json:"server"`
	Player      PlayerID    `msgpack:"player" json:"player"`
	Name        string      `msgpack:"name" json:"name"`
	Join        JoinID      `msgpack:"join" json:"join"`
	Incarnation Incarnation `msgpack:"inc" json:"incarnation"` // of the server
}

// News that a backend announces. All dispatchers hear it; nobody answers.
type (
	// Joined says that a player is in the game, under the id the backend gave.
	Joined struct {
		Player      PlayerID    `msgpack:"player" json:"player"`
		Name        string      `msgpack:"name" json:"name"`
		Join        JoinID      `msgpack:"join" json:"join"`
		Incarnation Incarnation `msgpack:"inc" json:"incarnation"`
		// Remote is the client's ip:port as a PROXY header told the server. A front that reads no names matches its
		// connections by it.
		Remote string `msgpack:"remote,omitempty" json:"remote,omitempty"`
	}
	// Left says that a player is gone.
	Left struct {
		Player PlayerID `msgpack:"player" json:"player"`
		Name   string   `msgpack:"name" json:"name"`
		Join   JoinID   `msgpack:"join" json:"join"`
		Reason string   `msgpack:"reason" json:"reason"`
	}
	// Coming says that a connection is about to become a player.
	Coming struct {
		Name       string `msgpack:"name" json:"name"`
		Connection string `msgpack:"conn" json:"connection"`
	}
)
