package actors

import (
	"context"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
)

// Log is the guarded, ordered log of facts. Implementations: streams (NATS JetStream) and
// streams/streamtest (memory). All methods are safe for concurrent use.
type Log interface {
	// Append stores m if m.Prev is still the last sequence inside its guard, and returns
	// the sequence once the fact is durable. It fails with *events.AppendError. The same
	// event id again (a retry) returns the sequence of the first.
	Append(ctx context.Context, m events.Message) (uint64, error)
	// Last gives the newest record inside the guard of key, as the log's leader knows it.
	Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
	// LastOf gives the newest record of key itself, as the log's leader knows it.
	LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error)
	// Tail delivers a bucket to f until ctx ends or f fails. See events.Follower.
	Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error
}

// Bus carries requests and news between hosts. Safe for concurrent use.
type Bus interface {
	// Ask sends a request and waits for the answer, at most until ctx ends.
	// It fails with events.ErrNobody when no one serves the subject, else with ctx's error.
	Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error)
	// Serve answers requests to a subject (wildcards allowed) until ctx ends; of several
	// servers with the same queue one gets each request. handle may run concurrently with
	// itself, at most 256 at once; events.Silence is not sent, as if the request had been lost.
	// Serve returns only after the last handle has returned.
	// ready is called once the subscription stands at the server.
	Serve(ctx context.Context, subject, queue string, ready func(), handle func(ctx context.Context, subject string, w events.Wire) events.Wire) error
	// Announce publishes news. It does not wait for anybody.
	Announce(ctx context.Context, subject string, w events.Wire) error
	// Listen hears news in the order they arrive from each publisher, one at a time, until ctx ends.
	Listen(ctx context.Context, subject string, ready func(), hear func(subject string, w events.Wire)) error
}

// Outcomes of acts in a World. Anything else wrapped in the error is detail.
var (
	// ErrNotHere: the player is not on this server.
	ErrNotHere = errors.New("player is not here")
	// ErrNotSent: the act was refused, or did not leave this process. It has not happened and will not.
	ErrNotSent = errors.New("not carried out")
	// ErrUnknown: the act left, no answer came. It may have happened.
	ErrUnknown = errors.New("outcome unknown")
	// ErrUnsafe: the coordinate is not, or no longer, safe to stand on.
	ErrUnsafe = errors.New("coordinate is unsafe")
	// ErrDown: the game server cannot be reached now.
	ErrDown = errors.New("game server is unreachable")
)

// Area is a rectangle of block columns, bounds included.
type Area struct{ MinX, MinZ, MaxX, MaxZ int }

// Region is a named destination area of a backend. Radii are blocks from the centre.
type Region struct {
	Name      string
	World     string // dimension id, such as minecraft:overworld
	CentreX   int
	CentreZ   int
	MinRadius int
	MaxRadius int
	Keep      int // how many verified coordinates are held ready
	Exclude   []Area
}

// Player is somebody on a game server, as that server names them.
type Player struct {
	ID       events.PlayerID
	Name     string
	NativeID string
	// Remote is the client's ip:port as a PROXY header told the server; empty: it did not. A server behind a front that
	// reads no names says it, so that the front knows whose connection is whose.
	Remote string
	// Locale is the language the player reads, as in BCP 47 (pt-BR) or as Minecraft has it
	// (pt_br). Empty: the server cannot tell.
	Locale string
}

// Health is what a game server tells about itself. Nil means not measured.
type Health struct {
	Players     int
	MaxPlayers  int
	Game        string // game and version, as text
	ProtocolMin int
	ProtocolMax int
	MSPT        *float64
	TPS         *float64
	HeapUsed    *int64
	HeapMax     *int64
}

// World is one game server, as its backend needs it. Implementations: actors/rcon (a stock
// server), actors/sim. Methods are safe for concurrent use and obey ctx.
type World interface {
	// Run watches the server until ctx ends and reports to h, one call at a time. It
	// outlives outages of the server (reported through Up and Down). A returned error
	// other than ctx's is a setting that a person must mend.
	Run(ctx context.Context, h WorldEvents) error
	// Health measures. ErrDown when the server cannot be asked.
	Health(ctx context.Context) (Health, error)
	// Find looks for one safe coordinate in a region and keeps its chunk loaded until
	// Forget. ErrUnsafe when a bounded search found none.
	Find(ctx context.Context, r Region) (events.Position, error)
	// Check looks again whether a found coordinate is safe. ErrUnsafe when it is not.
	Check(ctx context.Context, at events.Position) error
	// Forget lets go of a found coordinate's chunk.
	Forget(ctx context.Context, at events.Position) error
	// Expect says that a player is promised a place here, so that the arrival is looked
	// for closely until the given time has passed; a duration of 0 ends it.
	Expect(p Player, within time.Duration)
	// Place teleports a player and reads back where the player stands. An unknown outcome
	// is read back and repeated once inside; ErrUnknown when it stays unknown.
	Place(ctx context.Context, p Player, at events.Position) (events.Position, error)
	// Send makes the player's client reconnect to address (host:port).
	// nil: it was sent. ErrNotHere, ErrNotSent, ErrUnknown.
	Send(ctx context.Context, p Player, address string) error
	// Tell shows a line of text.
	Tell(ctx context.Context, p Player, text string) error
}

// Witness is a World that does not see its players itself: the fronts that they come through tell it. A player is
// here as long as a front repeats it, each SeenEvery.
type Witness interface {
	Seen(p Player, connection string, here bool)
}

// Marker is a World whose clients can begin their next connection with a marker, see edge/marker. Without it the client is
// led by its address, or not at all.
type Marker interface {
	// SendMarked is Send for a client that is to send the marker of id.
	SendMarked(ctx context.Context, p Player, address string, id [16]byte) error
}

// SeenEvery is how often a front repeats that a player is on a server.
const SeenEvery = announceEvery

// WorldEvents hears what happens in a World.
type WorldEvents interface {
	// Up says that the server answers; life changes whenever the game server was restarted.
	Up(life string)
	// Down says that the server does not answer.
	Down(err error)
	Joined(p Player)
	Left(p Player, reason string)
	// Asked says that a player asked for a move. where is "" for any place, "<region>", or
	// "<server>:<region>"; see ParseWish.
	Asked(p Player, where string)
	// NoSuchPlace says that a player asked for what is no place there. places are those that the player can ask for,
	// in the player's own terms.
	NoSuchPlace(p Player, asked string, places []string)
	// Cancelled says that a player no longer wants what was asked for.
	Cancelled(p Player)
}
