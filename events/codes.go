package events

// Code is a stable reason. Every refusal reaches the player or the caller as a code and a text.
type Code string

// Refusals and ends. The text for players stands in the message file, under the same name.
const (
	OK Code = "OK"

	// A request that was not taken.
	KillSwitch    Code = "KILL_SWITCH"         // the operator stopped new transfers
	TransportDown Code = "TRANSPORT_DOWN"      // the log cannot be reached
	LogFull       Code = "LOG_FULL"            // the log is nearly full
	NotHere       Code = "NOT_HERE"            // the player's newest session does not name the asking server
	AlreadyActive Code = "ALREADY_ACTIVE"      // the same wish is already under way
	AlreadyMoving Code = "ALREADY_MOVING"      // another wish is past the point of return
	BadRequest    Code = "BAD_REQUEST"         // malformed: says what
	AuthFailed    Code = "AUTH_FAILED"         // signature or identity does not verify
	WrongAccounts Code = "WRONG_ACCOUNTS"      // the server names players as servers of the other mode do
	Disabled      Code = "DISABLED"            // this trigger is switched off
	LineFull      Code = "LINE_FULL"           // nobody can serve it now, and nobody more may wait
	NoPermission  Code = "NO_PERMISSION"       // the player may not: names the permission
	Resting       Code = "COOLDOWN"            // the player rests after the last transfer: says how long
	LimitReached  Code = "LIMIT_REACHED"       // the player has used up the transfers of the day
	RateLimited   Code = "RATE_LIMITED"        // the server, or the program, sends more requests than it may
	ScopeMissing  Code = "SCOPE_MISSING"       // the token of the API lets its bearer do other things
	NoCapacity    Code = "NO_CAPACITY"         // no instance has a seat: says why each was left out
	BadScene      Code = "SCENE_NOT_CANONICAL" // it is no canonical scene path, or not in the table of scenes
	EndpointDown  Code = "ENDPOINT_DOWN"       // an endpoint of the instance is unhealthy or missing
	KeyReused     Code = "KEY_REUSED"          // the id of the request is that of another one

	// A destination that was not chosen.
	Stale          Code = "STALE"           // its heartbeat is too old
	NotReady       Code = "NOT_READY"       // starting, degraded or shutting down
	NotAccepting   Code = "NOT_ACCEPTING"   // its operator takes no arrivals
	AddressChanged Code = "ADDRESS_CHANGED" // it has begun to name another address, and is not believed yet
	Drained        Code = "DRAINED"         // taken out by the operator
	Paused         Code = "PAUSED"          // the operator stopped grants there
	OnCooldown     Code = "ON_COOLDOWN"     // it failed a moment ago
	LobbyOnly      Code = "LOBBY"           // it is named as a lobby: it only asks
	RegionMissing  Code = "REGION_MISSING"  // it has no such region or world
	NoneKept       Code = "NONE_KEPT"       // no coordinate is ready there
	BypassBound    Code = "BYPASS_BOUND"    // as many have passed those who wait for it as may
	Excluded       Code = "EXCLUDED"        // tried before in this dispatch, or not the pinned one
	ClientTooOld   Code = "CLIENT_TOO_OLD"  // the client cannot be moved (before 1.20.5)
	ProtocolAbsent Code = "PROTOCOL_ABSENT" // it does not speak the client's version
	SchemaRange    Code = "SCHEMA_RANGE"    // it speaks another wire version of ours

	// What a destination answers.
	NoCoordinate     Code = "NO_COORDINATE"
	Full             Code = "FULL"
	Paced            Code = "PACED" // its slots went to lower places, or to earlier requests: ask again
	WrongIncarnation Code = "WRONG_INCARNATION"
	Unsafe           Code = "UNSAFE"
	PromiseGone      Code = "PROMISE_GONE"
	NoAnswer         Code = "NO_ANSWER"

	// What an origin answers to a move.
	Sent    Code = "SENT"
	TooOld  Code = "TOO_OLD"
	Refused Code = "REFUSED"
	NotSent Code = "NOT_SENT" // the origin has not carried out that claim, and from now on refuses it

	// How a token ends.
	TTLPassed      Code = "TTL_PASSED"      // its time ran out
	NewIncarnation Code = "NEW_INCARNATION" // the destination restarted, the promise died with it
	MoveRefused    Code = "MOVE_REFUSED"    // the origin did not send the player
	LostRace       Code = "LOST_RACE"       // another attempt landed first
	PlayerDetached Code = "PLAYER_DETACHED" // the player left before the move

	// How a transfer ends.
	NoCandidate          Code = "NO_CANDIDATE"
	PlayerOffline        Code = "PLAYER_OFFLINE"
	PlayerLeft           Code = "PLAYER_LEFT"
	GraceOver            Code = "GRACE_OVER"
	AgedOut              Code = "AGED_OUT"
	NotArrived           Code = "NOT_ARRIVED"
	PlacementUnconfirmed Code = "PLACEMENT_UNCONFIRMED"
	AttemptsExhausted    Code = "ATTEMPTS_EXHAUSTED"
	KeyFull              Code = "KEY_FULL"
	Replaced             Code = "SUPERSEDED"
	Cancel               Code = "CANCELLED_BY_PLAYER"

	// What an arriving player or token meets.
	WrongPlayer  Code = "WRONG_PLAYER"
	WrongServer  Code = "WRONG_SERVER"
	TokenUnknown Code = "TOKEN_UNKNOWN"
	TokenSpent   Code = "TOKEN_SPENT"
	Unreachable  Code = "UNREACHABLE"
	Waiting      Code = "WAITING"
	Moved        Code = "MOVED"

	// Why a client that dialled again is led by no route. Never shown to players: they are routed otherwise.
	RouteUnknown   Code = "ROUTE_UNKNOWN"   // there is none, or its time has passed
	RouteTaken     Code = "ROUTE_USED"      // it was followed before
	RouteAmbiguous Code = "ROUTE_AMBIGUOUS" // several lead from this address: nobody tosses a coin
	RouteOver      Code = "ROUTE_OVER"      // what it was staged for is over, or leads elsewhere by now
	RouteBounced   Code = "ROUTE_BOUNCED"   // the player was told to dial again too often for it

	// What the log finds wrong in a fact. Never shown to players.
	BadSignature Code = "BAD_SIGNATURE"
	UnknownKey   Code = "UNKNOWN_KEY"
	WrongActor   Code = "WRONG_ACTOR"
	WrongPrev    Code = "WRONG_PREV"
	Impossible   Code = "IMPOSSIBLE"
	Malformed    Code = "MALFORMED"
	UnknownType  Code = "UNKNOWN_TYPE"
	Stray        Code = "STRAY_MARKER"
	DuplicateID  Code = "DUPLICATE_ID"
	LogChanged   Code = "LOG_CHANGED" // it is not the log that a host remembers
)

// Refusal is a decision not to act, with the reason a caller can rely on.
// It is a value, not a failure: "could not even try" is an ordinary error.
type Refusal struct {
	Code   Code
	Detail string
}

// Refuse makes a refusal.
func Refuse(code Code, detail string) *Refusal { return &Refusal{Code: code, Detail: detail} }

// Error makes a refusal usable where an error is expected.
func (r *Refusal) Error() string {
	if r.Detail == "" {
		return string(r.Code)
	}
	return string(r.Code) + ": " + r.Detail
}
