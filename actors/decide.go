package actors

import (
	"slices"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Standing is everything a decision about one player may look at, taken at one moment.
type Standing struct {
	projections.Player
	Session    projections.Session
	HasSession bool
	Controls   projections.Controls
	Origin     *events.Incarnation // the life of the session's server, as it beats; nil: not known
	There      *events.Incarnation // the life of the active transfer's destination, likewise
}

// Decide is the rule of the whole system: what is, and a command, give one fact or a refusal.
// It is pure and total.
func Decide(s Standing, c Command) (events.TransferID, events.TransferFact, *events.Refusal) {
	if c, ok := c.(Request); ok {
		fact, refusal := decideRequest(s, c)
		return c.Transfer, fact, refusal
	}
	t := s.Active
	if t == nil {
		return events.TransferID{}, nil, events.Refuse(events.TokenSpent, "no transfer is active")
	}
	fact, refusal := decideActive(s, *t, c)
	if refusal == nil && t.Facts+1 >= events.TerminalOnlyFrom && !events.Terminal(fact) {
		fact, refusal = lastWord(fact)
	}
	return t.ID, fact, refusal
}

// lastWord is what becomes of a fact when the key may take only an end: what would free a
// token for another attempt ends the transfer, since nothing else could ever end it.
func lastWord(fact events.TransferFact) (events.TransferFact, *events.Refusal) {
	switch f := fact.(type) {
	case *events.Released:
		return &events.Failed{Code: events.AttemptsExhausted, Detail: string(f.Reason)}, nil
	case *events.Expired:
		return &events.Failed{Code: events.AttemptsExhausted, Detail: string(f.Reason)}, nil
	case *events.Requested, *events.Reserved, *events.Claimed, *events.Transferred, *events.Consumed, *events.Completed, *events.Reopened,
		*events.Waitlisted, *events.Failed, *events.Cancelled, *events.Superseded:
	}
	return nil, events.Refuse(events.KeyFull, "only an end may still be written")
}

func decideActive(s Standing, t projections.Transfer, c Command) (events.TransferFact, *events.Refusal) {
	switch c := c.(type) {
	case Request:
		return decideRequest(s, c)
	case Waitlist:
		return decideWaitlist(t, c)
	case Reserve:
		return decideReserve(s, t, c)
	case Claim:
		return decideClaim(s, t, c)
	case RecordMove:
		return decideMove(t, c)
	case Consume:
		return decideConsume(s, t, c)
	case Complete:
		return decideComplete(t, c)
	case Release:
		return decideRelease(t, c)
	case Expire:
		return decideExpire(t, c)
	case Reopen:
		return decideReopen(s, t, c)
	case Fail:
		return decideFail(t, c)
	case Cancel:
		return decideCancel(t, c)
	case Supersede:
		return decideSupersede(t, c)
	}
	return nil, events.Refuse(events.BadRequest, "unknown command")
}

func decideRequest(s Standing, c Request) (events.TransferFact, *events.Refusal) {
	if known := s.Find(c.Transfer); known != nil {
		return nil, events.Refuse(events.AlreadyActive, string(known.Phase))
	}
	if c.Origin != "" && (!s.HasSession || !s.Session.Open || s.Session.Server != c.Origin) {
		return nil, events.Refuse(events.NotHere, "the newest session does not name "+string(c.Origin))
	}
	if there := leftFor(s); c.Origin != "" && there != "" {
		return nil, events.Refuse(events.NotHere, "the player has left "+string(c.Origin)+" for "+string(there))
	}
	var second *events.Refusal
	if s.Active != nil {
		second = refuseSecond(*s.Active, c.Fact.Wish)
	}
	if s.Controls.Killed && (second == nil || second.Code == events.Replaced) {
		return nil, events.Refuse(events.KillSwitch, s.Controls.Kill.Why) // what is under way goes on all the same
	}
	if second != nil {
		return nil, second
	}
	if c.Limited != nil {
		if newest := c.Limited.newest(s.Done); newest != nil && newest.ID != c.Known {
			return nil, events.Refuse(events.WaitABit, "a transfer was completed meanwhile")
		}
	}
	fact := c.Fact
	return &fact, nil
}

// leftFor is the server where the newest transfer ended that went out of the very session that is open here, empty for none:
// the log holds a newer session, which this reader has not folded yet.
func leftFor(s Standing) events.HostID {
	t := s.Last()
	if !s.HasSession || t == nil || t.Claim == nil || t.Consumed == nil || t.Claim.Session != s.Session.Number || t.Consumed.Server == s.Session.Server {
		return ""
	}
	return t.Consumed.Server
}

// refuseSecond says what a second request meets. SUPERSEDED asks the caller to end the
// first with Supersede and to come again.
func refuseSecond(t projections.Transfer, w events.Wish) *events.Refusal {
	if sameWish(t.Request.Wish, w) {
		return events.Refuse(events.AlreadyActive, string(t.Phase))
	}
	if t.Phase == projections.Claimed || t.Phase == projections.Consumed {
		return events.Refuse(events.AlreadyMoving, string(t.Phase))
	}
	return events.Refuse(events.Replaced, t.ID.String())
}

// sameWish tells that a new wish is the same as, or weaker than, the one under way.
func sameWish(now, wish events.Wish) bool {
	same := func(have, want string) bool { return want == "" || want == have }
	return same(now.Region, wish.Region) && same(now.World, wish.World) && same(string(now.Pin), string(wish.Pin))
}

func decideWaitlist(t projections.Transfer, c Waitlist) (events.TransferFact, *events.Refusal) {
	if t.ID != c.Transfer || t.Phase != projections.Requested || t.Waitlisted {
		return nil, stale(t)
	}
	return &events.Waitlisted{Decision: c.Decision}, nil
}

func decideReserve(s Standing, t projections.Transfer, c Reserve) (events.TransferFact, *events.Refusal) {
	if t.ID != c.Transfer || t.Phase != projections.Requested && t.Phase != projections.Waiting {
		return nil, stale(t)
	}
	if t.MovedOnce && !c.InLogin {
		return nil, events.Refuse(events.NotArrived, "a move was sent before: nobody is moved twice")
	}
	if s.Controls.Killed {
		return nil, events.Refuse(events.KillSwitch, s.Controls.Kill.Why)
	}
	if s.Controls.IsDrained(c.Fact.Server) {
		return nil, events.Refuse(events.Drained, string(c.Fact.Server))
	}
	if s.Controls.Pauses(c.Fact.Server, c.Fact.Region, inLine(t, c.InLogin)) {
		return nil, events.Refuse(events.Paused, string(c.Fact.Server)+" "+c.Fact.Region)
	}
	if !c.InLogin && !holds(s, c.By) {
		return nil, events.Refuse(events.NotHere, "the session is held elsewhere")
	}
	if t.Facts >= events.MaxTransferFacts {
		return nil, events.Refuse(events.AttemptsExhausted, "")
	}
	fact := c.Fact
	fact.Attempt = t.Attempts + 1
	return &fact, nil
}

// inLine tells that a transfer waits for its turn: one that goes ahead of the line does not,
// nor does a login that is held for another attempt, whose turn it was before.
func inLine(t projections.Transfer, inLogin bool) bool {
	return !t.Request.Bypass && !(inLogin && t.MovedOnce)
}

func decideClaim(s Standing, t projections.Transfer, c Claim) (events.TransferFact, *events.Refusal) {
	if t.Token != c.Token || t.Phase != projections.Pending {
		return nil, stale(t)
	}
	if s.Controls.Killed {
		return nil, events.Refuse(events.KillSwitch, s.Controls.Kill.Why)
	}
	if t.MovedOnce && !c.InLogin {
		return nil, events.Refuse(events.NotArrived, "a move was sent before: nobody is moved twice")
	}
	if !c.InLogin && !holds(s, c.By) {
		return nil, events.Refuse(events.NotHere, "the session is held elsewhere")
	}
	if c.InLogin && ofLogin(s, t) { // whatever server the player was on before has no part in this
		return &events.Claimed{Attempt: c.Token.Attempt, Dispatcher: c.By.ID, Incarnation: c.By.Incarnation}, nil
	}
	return &events.Claimed{
		Attempt: c.Token.Attempt, Dispatcher: c.By.ID, Incarnation: c.By.Incarnation,
		Session: s.Session.Number, From: s.Session.Server, FromIncarnation: s.Origin,
	}, nil
}

// holds tells that src is the life of the dispatcher that holds the player's open session.
func holds(s Standing, src events.Source) bool {
	return s.HasSession && s.Session.Open && s.Session.Holder == src.ID && s.Session.HolderIncarnation == src.Incarnation
}

func decideMove(t projections.Transfer, c RecordMove) (events.TransferFact, *events.Refusal) {
	if t.Token != c.Token || t.Phase != projections.Claimed || t.ClaimSeq != c.Claim || t.Move != "" {
		return nil, stale(t)
	}
	return &events.Transferred{Attempt: c.Token.Attempt, How: c.How, Result: c.Result}, nil
}

func decideConsume(s Standing, t projections.Transfer, c Consume) (events.TransferFact, *events.Refusal) {
	if t.Destination() != c.Server {
		return nil, events.Refuse(events.NoPlace, "no token for "+string(c.Server))
	}
	switch t.Phase {
	case projections.Claimed:
	case projections.Pending:
		if !t.Reopened {
			return nil, events.Refuse(events.WaitABit, "not claimed yet")
		}
	case projections.Consumed:
		return nil, events.Refuse(events.TokenSpent, "consumed before")
	case projections.Requested, projections.Waiting, projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded:
		return nil, stale(t)
	}
	if t.Reserved.Incarnation != c.Incarnation || !slices.Contains(c.Held, t.Token) {
		return nil, refuseArrival(s, t, c)
	}
	return &events.Consumed{Attempt: t.Token.Attempt, Server: c.Server, Incarnation: c.Incarnation, Join: c.Join}, nil
}

// refuseArrival says what becomes of a player for whom the asking life of the destination
// holds no promise. Only the life that beats now, and that has looked since the place was
// promised, can say that the promise is gone: one that was replaced, and has not noticed yet,
// knows nothing of what its successor promised.
func refuseArrival(s Standing, t projections.Transfer, c Consume) *events.Refusal {
	switch replaced := s.There != nil && *s.There != c.Incarnation; {
	case replaced && *s.There == t.Reserved.Incarnation:
		return events.Refuse(events.NoPlace, "another life of the server has promised the place")
	case replaced:
		return events.Refuse(events.WaitABit, "another life of the server beats")
	case c.Listed != nil && t.Reserved.Incarnation == c.Incarnation && t.Reserved.Promise > *c.Listed:
		return events.Refuse(events.WaitABit, "the place was promised after the server looked")
	}
	return events.Refuse(events.PromiseGone, "the promise did not outlive its server")
}

func decideComplete(t projections.Transfer, c Complete) (events.TransferFact, *events.Refusal) {
	if t.Token != c.Token || t.Phase != projections.Consumed {
		return nil, stale(t)
	}
	if t.Destination() != c.Server {
		return nil, events.Refuse(events.WrongServer, string(c.Server))
	}
	return &events.Completed{Attempt: c.Token.Attempt, At: c.At}, nil
}

func decideRelease(t projections.Transfer, c Release) (events.TransferFact, *events.Refusal) {
	if c.Claim != 0 && c.Claim != t.ClaimSeq {
		return nil, stale(t) // a claimer that slept: the token is claimed anew
	}
	if !freeable(t, c.Token) && !(c.Reason == events.Unreachable && t.Token == c.Token && t.Phase == projections.Claimed) {
		return nil, stale(t)
	}
	return &events.Released{Attempt: c.Token.Attempt, Reason: c.Reason, Detail: c.Detail}, nil
}

func decideExpire(t projections.Transfer, c Expire) (events.TransferFact, *events.Refusal) {
	if !freeable(t, c.Token) || c.Claim != 0 && c.Claim != t.ClaimSeq {
		return nil, stale(t)
	}
	return &events.Expired{Attempt: c.Token.Attempt, Reason: c.Reason}, nil
}

// freeable tells that a token stands and that nobody has been moved for it.
func freeable(t projections.Transfer, token events.Token) bool {
	beforeMove := t.Phase == projections.Pending || t.Phase == projections.Claimed && t.Move == ""
	return t.Token == token && beforeMove
}

func decideReopen(s Standing, t projections.Transfer, c Reopen) (events.TransferFact, *events.Refusal) {
	if t.Token != c.Token || t.Phase != projections.Claimed || t.ClaimSeq != c.Claim || t.Move != "" {
		return nil, stale(t)
	}
	if !holds(s, c.By) || s.Session.Server != t.Claim.From {
		return nil, events.Refuse(events.NotHere, "the newest session is not where the player stood at the claim")
	}
	return &events.Reopened{Attempt: c.Token.Attempt, Claim: c.Claim, Evidence: c.Evidence, LastBeat: c.LastBeat, SilenceMs: c.SilenceMs}, nil
}

func decideFail(t projections.Transfer, c Fail) (events.TransferFact, *events.Refusal) {
	if t.ID != c.Transfer || len(c.In) > 0 && !slices.Contains(c.In, t.Phase) || c.Claim != 0 && c.Claim != t.ClaimSeq {
		return nil, stale(t)
	}
	if c.Server != "" && t.Destination() != c.Server {
		return nil, events.Refuse(events.WrongServer, string(c.Server))
	}
	return &events.Failed{Code: c.Code, Detail: c.Detail, Decision: c.Decision}, nil
}

func decideCancel(t projections.Transfer, c Cancel) (events.TransferFact, *events.Refusal) {
	if t.ID != c.Transfer {
		return nil, stale(t)
	}
	if t.Phase == projections.Claimed || t.Phase == projections.Consumed {
		return nil, events.Refuse(events.AlreadyMoving, string(t.Phase))
	}
	return &events.Cancelled{Code: c.Code, Detail: c.Detail}, nil
}

func decideSupersede(t projections.Transfer, c Supersede) (events.TransferFact, *events.Refusal) {
	if t.ID != c.Transfer {
		return nil, stale(t)
	}
	if t.Phase == projections.Claimed || t.Phase == projections.Consumed {
		return nil, events.Refuse(events.AlreadyMoving, string(t.Phase))
	}
	return &events.Superseded{By: c.By}, nil
}

// stale is the answer to a command about a state that has passed.
func stale(t projections.Transfer) *events.Refusal {
	return events.Refuse(events.TokenSpent, "transfer "+t.ID.String()+" is "+string(t.Phase))
}
