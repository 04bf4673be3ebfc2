package projections

import (
	"fmt"
	"time"

	"github.com/landfall/landfall/events"
)

// Phase is where a transfer stands.
type Phase string

// Phases of a transfer.
const (
	Requested  Phase = "REQUESTED"
	Waiting    Phase = "WAITING"
	Pending    Phase = "PENDING"
	Claimed    Phase = "CLAIMED"
	Consumed   Phase = "CONSUMED"
	Completed  Phase = "COMPLETED"
	Failed     Phase = "FAILED"
	Cancelled  Phase = "CANCELLED"
	Superseded Phase = "SUPERSEDED"
)

// Phases in the order of a journey.
var Phases = []Phase{Requested, Waiting, Pending, Claimed, Consumed, Completed, Failed, Cancelled, Superseded}

// Terminal tells that nothing follows.
func (p Phase) Terminal() bool {
	return p == Completed || p == Failed || p == Cancelled || p == Superseded
}

// Transfer is one journey as the log tells it. It is a value: Apply returns a new one, and
// the facts it points to are never changed.
type Transfer struct {
	ID         events.TransferID
	Player     events.PlayerID
	Phase      Phase
	Code       events.Code // of a terminal phase, OK when completed
	Place      uint64      // sequence of its request: its place in line
	Facts      int         // how many messages its key holds, refused ones too
	Last       uint64      // sequence of the last of them
	Request    *events.Requested
	Waitlisted bool
	Attempts   int              // how many tokens were reserved
	Token      events.Token     // the token of the current attempt, zero when none stands
	Reserved   *events.Reserved // of that token
	Claim      *events.Claimed  // the latest claim of that token
	ClaimSeq   uint64           // its sequence: what fences a move
	Reopened   bool             // that token was taken back from a claimer
	Move       events.MoveResult
	MovedOnce  bool // some attempt's move was sent or is unknown: nobody is moved again
	Consumed   *events.Consumed
	Completed  *events.Completed

	// When this reader saw the facts, on its own monotonic clock. For ages only; two
	// readers differ, and no transition depends on them.
	Seen Seen
}

// Seen are a reader's own times.
type Seen struct {
	Requested time.Time
	Reserved  time.Time
	Claimed   time.Time
	Moved     time.Time
	Last      time.Time
}

// Begin is the transfer that a request opens.
func Begin(e events.Event, player events.PlayerID, f *events.Requested, seen time.Time) Transfer {
	return Transfer{
		ID: e.Correlation, Player: player, Phase: Requested, Place: e.Seq, Facts: 1, Last: e.Seq, Request: f,
		Seen: Seen{Requested: seen, Last: seen},
	}
}

// Apply is the transition function. An impossible fact leaves the transfer as it was,
// but for the count of its key.
func (t Transfer) Apply(seq uint64, fact events.TransferFact, seen time.Time) (Transfer, *events.Refusal) {
	next, ok := t, false
	if !t.Phase.Terminal() {
		next, ok = t.step(seq, fact, seen)
	}
	if !ok {
		return t.counted(seq), events.Refuse(events.Impossible, fmt.Sprintf("%s in %s", events.TypeName(fact), t.Phase))
	}
	next.Seen.Last = seen
	return next.counted(seq), nil
}

// counted is the transfer with one more message under its key, whatever that message was. A
// full key takes no end any more, so it is one.
func (t Transfer) counted(seq uint64) Transfer {
	t.Facts++
	t.Last = seq
	if t.Facts >= events.MaxKeyFacts && !t.Phase.Terminal() {
		return t.end(Failed, events.KeyFull)
	}
	return t
}

func (t Transfer) step(seq uint64, fact events.TransferFact, seen time.Time) (Transfer, bool) {
	switch f := fact.(type) {
	case *events.Requested:
		return t, false // a key begins once
	case *events.Waitlisted:
		ok := t.Phase == Requested && !t.Waitlisted
		t.Phase, t.Waitlisted = Waiting, true
		return t, ok
	case *events.Reserved:
		return t.reserve(f, seen)
	case *events.Claimed:
		return t.claim(seq, f, seen)
	case *events.Transferred:
		ok := t.Phase == Claimed && t.current(f.Attempt) && t.Move == "" && f.Result != ""
		t.Move, t.MovedOnce, t.Seen.Moved = f.Result, true, seen
		return t, ok
	case *events.Consumed:
		return t.consume(f)
	case *events.Completed:
		ok := t.Phase == Consumed && t.current(f.Attempt)
		t.Completed = f
		return t.end(Completed, events.OK), ok
	case *events.Released:
		return t.free(f.Attempt, f.Reason == events.Unreachable)
	case *events.Expired:
		return t.free(f.Attempt, false)
	case *events.Reopened:
		ok := t.Phase == Claimed && t.current(f.Attempt) && t.Move == "" && f.Claim == t.ClaimSeq
		t.Phase, t.Claim, t.ClaimSeq, t.Reopened = Pending, nil, 0, true
		return t, ok
	case *events.Failed:
		return t.end(Failed, f.Code), true
	case *events.Cancelled:
		return t.end(Cancelled, f.Code), true
	case *events.Superseded:
		return t.end(Superseded, events.Replaced), t.replaceable()
	}
	return t, false
}

func (t Transfer) reserve(f *events.Reserved, seen time.Time) (Transfer, bool) {
	ok := (t.Phase == Requested || t.Phase == Waiting) && f.Attempt == t.Attempts+1
	t.Phase, t.Attempts, t.Reserved = Pending, f.Attempt, f
	t.Token = events.Token{Transfer: t.ID, Attempt: f.Attempt}
	t.Seen.Reserved = seen
	return t, ok
}

func (t Transfer) claim(seq uint64, f *events.Claimed, seen time.Time) (Transfer, bool) {
	ok := t.Phase == Pending && t.current(f.Attempt)
	t.Phase, t.Claim, t.ClaimSeq = Claimed, f, seq
	t.Seen.Claimed = seen
	return t, ok
}

func (t Transfer) consume(f *events.Consumed) (Transfer, bool) {
	arrivable := t.Phase == Claimed || t.Phase == Pending && t.Reopened
	ok := arrivable && t.current(f.Attempt) && f.Server == t.Reserved.Server && f.Incarnation == t.Reserved.Incarnation
	t.Phase, t.Consumed = Consumed, f
	return t, ok
}

// free ends a token without ending the transfer. After a move only the edge that holds
// the reconnected login and could not reach the destination may do so.
func (t Transfer) free(attempt int, unreachable bool) (Transfer, bool) {
	beforeMove := t.Phase == Pending || t.Phase == Claimed && t.Move == ""
	ok := t.current(attempt) && (beforeMove || t.Phase == Claimed && unreachable)
	t.MovedOnce = t.MovedOnce || unreachable
	t.Phase = Requested
	if t.Waitlisted {
		t.Phase = Waiting
	}
	t.Token, t.Reserved, t.Claim, t.ClaimSeq, t.Reopened, t.Move = events.Token{}, nil, nil, 0, false, ""
	return t, ok
}

func (t Transfer) end(p Phase, code events.Code) Transfer {
	t.Phase, t.Code = p, code
	return t
}

func (t Transfer) current(attempt int) bool { return attempt > 0 && attempt == t.Token.Attempt }

func (t Transfer) replaceable() bool {
	return t.Phase == Requested || t.Phase == Waiting || t.Phase == Pending
}

// Destination is the server of the current token, empty when none stands.
func (t Transfer) Destination() events.HostID {
	if t.Reserved == nil {
		return ""
	}
	return t.Reserved.Server
}
