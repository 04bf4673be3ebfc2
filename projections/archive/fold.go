package archive

import (
	"encoding/json"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Folding turns facts into rows. Version is another one whenever the same facts would give
// other rows, or the schema changes: a file of another version is never written to.
type Folding struct {
	Version int
	// Fold gives the rows of a transfer behind a message that was folded into it. The message's
	// Fact is nil when it only counted. last is the row of the last attempt before it, nil when
	// there was none; Fold does not change it.
	Fold func(t projections.Transfer, last *Attempt, e events.Event) Rows
}

// Current is the folding of this program.
var Current = Folding{Version: 1, Fold: fold}

// Rows are what one fact leaves in the archive.
type Rows struct {
	Transfer Transfer
	Attempt  *Attempt  // its last one, nil: none yet
	Decision *Decision // that the fact carries
}

// Transfer is a row of transfers.
type Transfer struct {
	Place       uint64
	ID          events.TransferID
	Player      events.PlayerID
	Request     events.Requested
	Phase       projections.Phase
	Code        events.Code
	Detail      string
	Waitlisted  bool
	Attempts    int
	Server      events.HostID
	Region      string
	Facts       int
	Last        uint64
	RequestedAt time.Time
	EndedAt     time.Time // zero: it goes on
}

// Attempt is a row of attempts.
type Attempt struct {
	Place       uint64
	N           int
	Server      events.HostID
	Region      string
	At          events.Position
	TTLMs       int64
	ReservedSeq uint64
	ReservedAt  time.Time
	Dispatcher  events.HostID
	From        events.HostID
	ClaimedAt   time.Time
	Reopened    int
	How         events.MoveHow
	Move        events.MoveResult
	MovedAt     time.Time
	ArrivedSeq  uint64
	ArrivedAt   time.Time
	Outcome     Outcome
	Reason      events.Code
	EndedAt     time.Time
}

// Outcome is how an attempt ended.
type Outcome string

// Outcomes of an attempt.
const (
	outcomeOpen       Outcome = "open"
	outcomeCompleted  Outcome = "completed"
	outcomeReleased   Outcome = "released"
	outcomeExpired    Outcome = "expired"
	outcomeFailed     Outcome = "failed"
	outcomeCancelled  Outcome = "cancelled"
	outcomeSuperseded Outcome = "superseded"
)

// Decision is a row of decisions, and those of ruled_out that belong to it.
type Decision struct {
	Seq, Place uint64
	At         time.Time
	Kind       string
	Server     events.HostID
	Region     string
	Why        events.Decision
}

func fold(t projections.Transfer, last *Attempt, e events.Event) Rows {
	rows := Rows{Attempt: attemptBehind(t, last, e), Decision: decisionIn(t, e)}
	x := Transfer{
		Place: t.Place, ID: t.ID, Player: t.Player, Request: *t.Request, Phase: t.Phase, Code: t.Code, Detail: detailOf(e.Fact), Waitlisted: t.Waitlisted,
		Attempts: t.Attempts, Facts: t.Facts, Last: t.Last, RequestedAt: t.Seen.Requested,
	}
	if rows.Attempt != nil {
		x.Server, x.Region = rows.Attempt.Server, rows.Attempt.Region
	}
	if t.Phase.Terminal() {
		x.EndedAt = e.Stored
	}
	rows.Transfer = x
	return rows
}

// attemptBehind is the row of the last attempt behind a fact.
func attemptBehind(t projections.Transfer, last *Attempt, e events.Event) *Attempt {
	if f, ok := e.Fact.(*events.Reserved); ok && f.Attempt == t.Attempts && (last == nil || last.N < f.Attempt) {
		return &Attempt{
			Place: t.Place, N: f.Attempt, Server: f.Server, Region: f.Region, At: f.At, TTLMs: f.TTLMs,
			ReservedSeq: e.Seq, ReservedAt: e.Stored, Outcome: outcomeOpen,
		}
	}
	if last == nil {
		return nil
	}
	a := *last
	a.take(e)
	if t.Phase.Terminal() && a.Outcome == outcomeOpen { // also without a fact that says so: a full key
		a.end(e.Stored, outcomes[t.Phase], t.Code)
	}
	return &a
}

// take notes what a fact says of the attempt.
func (a *Attempt) take(e events.Event) {
	switch f := e.Fact.(type) {
	case *events.Claimed:
		a.Dispatcher, a.From, a.ClaimedAt = f.Dispatcher, f.From, e.Stored
	case *events.Transferred:
		a.How, a.Move, a.MovedAt = f.How, f.Result, e.Stored
	case *events.Consumed:
		a.ArrivedSeq, a.ArrivedAt = e.Seq, e.Stored
	case *events.Released:
		a.end(e.Stored, outcomeReleased, f.Reason)
	case *events.Expired:
		a.end(e.Stored, outcomeExpired, f.Reason)
	case *events.Reopened:
		a.Reopened++
	default: // ends are told by the transfer's phase, the others are none of an attempt's
	}
}

func (a *Attempt) end(at time.Time, how Outcome, why events.Code) {
	a.Outcome, a.Reason, a.EndedAt = how, why, at
}

var outcomes = map[projections.Phase]Outcome{
	projections.Completed: outcomeCompleted, projections.Failed: outcomeFailed, projections.Cancelled: outcomeCancelled, projections.Superseded: outcomeSuperseded,
}

func decisionIn(t projections.Transfer, e events.Event) *Decision {
	d := &Decision{Seq: e.Seq, Place: t.Place, At: e.Stored}
	switch f := e.Fact.(type) {
	case *events.Reserved:
		d.Kind, d.Server, d.Region, d.Why = "reserved", f.Server, f.Region, f.Decision
	case *events.Waitlisted:
		d.Kind, d.Why = "waitlisted", f.Decision
	case *events.Failed:
		if f.Decision == nil {
			return nil
		}
		d.Kind, d.Why = "failed", *f.Decision
	default:
		return nil
	}
	return d
}

func detailOf(f events.Fact) string {
	switch f := f.(type) {
	case *events.Failed:
		return f.Detail
	case *events.Cancelled:
		return f.Detail
	case *events.Superseded:
		return "by " + f.By.String()
	default:
		return ""
	}
}

// scores are the candidates of a decision as the column holds them.
func scores(candidates []events.Candidate) (string, error) {
	out := make([][3]any, len(candidates))
	for i, c := range candidates {
		out[i] = [3]any{c.Server, c.Region, c.Score}
	}
	raw, err := json.Marshal(out)
	return string(raw), err
}
