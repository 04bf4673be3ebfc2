package actors

import (
	"context"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// minTransferProtocol is the protocol of 1.20.5, the first client that can be sent elsewhere.
const minTransferProtocol = 766

// attend does what this dispatcher owes a player now, step by step, until nothing is owed.
func (d *Dispatcher) attend(ctx context.Context, player events.PlayerID) {
	for ctx.Err() == nil && d.view.Ready() {
		s := d.standing(player)
		if !d.carryOut(ctx, s, plan(s, d.watch())) {
			return
		}
	}
}

// carryOut reports whether something was done that may ask for more.
func (d *Dispatcher) carryOut(ctx context.Context, s Standing, a act) bool {
	switch a := a.(type) {
	case idle:
		return false
	case dispatch:
		if d.line.waits(s.Active.ID) {
			return false // the line decides when it is this transfer's turn
		}
		return d.dispatch(ctx, s)
	case moveAct:
		return d.claimAndMove(ctx, s)
	case do:
		return d.finish(ctx, s, a.command)
	case enquire:
		return d.enquire(ctx, s, a.reopen)
	}
	return false
}

// finish writes what a deadline demands, and does what follows from it.
func (d *Dispatcher) finish(ctx context.Context, s Standing, c Command) bool {
	t := *s.Active
	done, refusal, err := d.write(ctx, t.Player, c)
	if err != nil || refusal != nil {
		d.logger.Debug("not written", "command", c, "refusal", refusal, "error", err)
		return false
	}
	d.follow(t, done)
	return true
}

// follow does what follows from a fact that this dispatcher wrote: gives a coordinate back,
// tells the player. Each may be lost with this process: promises end by themselves.
func (d *Dispatcher) follow(before projections.Transfer, done landed) {
	d.logger.Info("transfer", "fact", events.TypeName(done.fact), "seq", done.seq, describe(before))
	switch f := done.fact.(type) {
	case *events.Released:
		d.giveBack(before, f.Reason)
	case *events.Expired:
		d.giveBack(before, f.Reason)
	case *events.Failed:
		d.giveBackUnlessMoved(before, f.Code)
		d.tellEnd(before, f.Code, f.Detail)
	case *events.Cancelled:
		d.giveBackUnlessMoved(before, f.Code)
		d.tellEnd(before, f.Code, f.Detail)
	case *events.Superseded:
		d.giveBackUnlessMoved(before, events.Replaced)
	case *events.Completed:
		d.runs.end(before.ID)
	case *events.Requested, *events.Reserved, *events.Claimed, *events.Transferred, *events.Consumed, *events.Reopened, *events.Waitlisted:
	}
}

func (d *Dispatcher) giveBackUnlessMoved(t projections.Transfer, reason events.Code) {
	d.runs.end(t.ID)
	if t.Phase == projections.Pending || t.Phase == projections.Claimed && t.Move == "" {
		d.giveBack(t, reason)
	}
}

// giveBack tells a destination that a promise is no longer needed.
func (d *Dispatcher) giveBack(t projections.Transfer, reason events.Code) {
	if t.Reserved == nil {
		return
	}
	d.releasePromise(t.Reserved.Server, events.ReleaseAsk{Player: t.Player, Transfer: t.ID, Attempt: t.Token.Attempt, Reason: reason})
}

func (d *Dispatcher) releasePromise(server events.HostID, q events.ReleaseAsk) {
	d.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, d.timing.AttemptTimeout)
		defer cancel()
		_, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(server, events.VerbRelease), q)
		if err != nil {
			d.logger.Debug("promise not given back, it ends by itself", "server", server, "error", err)
		}
	})
}

// dispatch chooses a destination and reserves there; without one the transfer is parked in line.
func (d *Dispatcher) dispatch(ctx context.Context, s Standing) bool {
	t := *s.Active
	if s.Controls.Killed {
		d.line.park(t)
		return false
	}
	if p := s.Session.Protocol; p > 0 && p < minTransferProtocol && s.Session.Kind != events.KindRelay {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.ClientTooOld, In: openPhases})
	}
	if t.Facts >= events.MaxTransferFacts {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.AttemptsExhausted, In: openPhases})
	}
	r := d.runs.get(t.ID, d.view.Fleet())
	if r.attempts >= d.timing.MaxRetries {
		return d.afterRetries(ctx, s, r)
	}
	if d.line.before(t) {
		return d.wait(ctx, s, behindOthers())
	}
	won, decision, ok := d.reserveBest(ctx, s, r, false)
	if !ok {
		return false
	}
	if won {
		d.line.leave(t.ID)
		return true
	}
	return d.nobody(ctx, s, decision)
}

// behindOthers is the decision not to look for a destination: others wait for the same.
func behindOthers() events.Decision {
	return events.Decision{
		Policy: policyKept, Candidates: []events.Candidate{},
		Filtered: []events.Filtered{{Code: events.Waiting, Count: 1, Examples: []string{}}},
	}
}

// afterRetries ends a dispatch that has used its attempts. When it was the origin that
// refused, another destination will not help; else the transfer waits for another dispatch.
func (d *Dispatcher) afterRetries(ctx context.Context, s Standing, r *run) bool {
	t := *s.Active
	d.runs.end(t.ID)
	if r.refusal != "" {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.MoveRefused, Detail: r.refusal, In: openPhases})
	}
	if t.Request.Wish.Pin != "" && !t.Request.Wait {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.AttemptsExhausted, In: openPhases})
	}
	_, decision := choose(d.question(s, r), r.snapshot)
	return d.wait(ctx, s, decision)
}

// nobody handles a dispatch that found no destination.
func (d *Dispatcher) nobody(ctx context.Context, s Standing, decision events.Decision) bool {
	t := *s.Active
	d.runs.end(t.ID)
	switch {
	case permanent(decision):
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.RegionMissing, Decision: &decision, In: openPhases})
	case t.Request.Wish.Pin != "" && !t.Request.Wait:
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.NoCandidate, Decision: &decision, In: openPhases})
	}
	return d.wait(ctx, s, decision)
}

// wait parks a transfer. That nobody can serve it is a fact once; later it is only so.
func (d *Dispatcher) wait(ctx context.Context, s Standing, decision events.Decision) bool {
	t := *s.Active
	d.line.park(t)
	if t.Waitlisted {
		return false
	}
	done, refusal, err := d.write(ctx, t.Player, Waitlist{Transfer: t.ID, Decision: decision})
	if err == nil && refusal == nil {
		d.follow(t, done)
		d.tellPlayer(t.Player, "transfer.waiting", nil)
	}
	return false
}

func (d *Dispatcher) question(s Standing, r *run) question {
	return question{
		wish: s.Active.Request.Wish, protocol: s.Session.Protocol, exclude: d.runs.excluded(r, d.Now()),
		drained: s.Controls.IsDrained, pledged: d.view.Pledged, now: d.Now(), stale: d.timing.Stale,
	}
}

// reserveBest asks destinations in the order of their rank until one promises and the
// promise stands in the log. ok is false when the transfer is no longer ours to serve.
func (d *Dispatcher) reserveBest(ctx context.Context, s Standing, r *run, inLogin bool) (won bool, last events.Decision, ok bool) {
	t := *s.Active
	for ctx.Err() == nil {
		ranked, decision := choose(d.question(s, r), r.snapshot)
		if len(ranked) == 0 {
			return false, decision, true
		}
		answer, sig, code := d.askReserve(ctx, t, ranked[0])
		if code != events.Promised {
			d.noteRefusal(r, ranked[0].backend.Server, code)
			continue
		}
		r.attempts++
		fact := events.Reserved{
			Server: answer.Server, Incarnation: answer.Incarnation, Promise: answer.Promise, Region: answer.Region,
			At: answer.At, TTLMs: d.timing.TTL.Milliseconds(), Answer: sig, Decision: decision,
		}
		done, refusal, err := d.write(ctx, t.Player, Reserve{Transfer: t.ID, Fact: fact, By: d.Source, InLogin: inLogin})
		if err != nil || refusal != nil {
			if err == nil && !d.stands(t, answer) {
				d.releasePromise(answer.Server, events.ReleaseAsk{Player: t.Player, Transfer: t.ID, Attempt: t.Attempts + 1, Reason: events.LostRace})
			}
			return false, decision, false
		}
		d.follow(t, done)
		return true, decision, true
	}
	return false, last, false
}

// stands tells that a promise is the one in the log, be it that another dispatcher asked for
// the same attempt and was faster: a destination gives one promise for one attempt.
func (d *Dispatcher) stands(t projections.Transfer, answer events.ReserveAnswer) bool {
	now := d.view.Player(t.Player).Find(t.ID)
	return now != nil && now.Reserved != nil && now.Reserved.Server == answer.Server &&
		now.Reserved.Incarnation == answer.Incarnation && now.Reserved.Promise == answer.Promise
}

// askReserve asks one destination for a coordinate.
func (d *Dispatcher) askReserve(ctx context.Context, t projections.Transfer, c choice) (answer events.ReserveAnswer, sig string, code events.Code) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.AttemptTimeout)
	defer cancel()
	answer, sig, err := askSigned[events.ReserveAnswer](ctx, d.Identity, d.bus, events.ToBackend(c.backend.Server, events.VerbReserve), events.ReserveAsk{
		Player: t.Player, Name: t.Request.Name, Transfer: t.ID, Attempt: t.Attempts + 1, Place: t.Place,
		Region: c.region, World: t.Request.Wish.World, TTLMs: d.timing.TTL.Milliseconds(), Incarnation: c.backend.Incarnation,
	})
	if err != nil {
		d.logger.Warn("destination did not answer", "server", c.backend.Server, "error", err)
		return answer, "", events.NoAnswer
	}
	return answer, sig, answer.Code
}

// noteRefusal excludes a destination for this dispatch; a fault of its own also cools it down.
func (d *Dispatcher) noteRefusal(r *run, server events.HostID, code events.Code) {
	r.exclude[server] = code
	if code != events.NoCoordinate && code != events.Full {
		d.runs.coolDown(server, d.Now().Add(d.timing.Cooldown))
	}
}

// claimAndMove takes the token and sends the player. Whoever loses the claim stops here.
func (d *Dispatcher) claimAndMove(ctx context.Context, s Standing) bool {
	t := *s.Active
	done, refusal, err := d.write(ctx, t.Player, Claim{Token: t.Token, By: d.Source})
	if err != nil || refusal != nil {
		d.logger.Debug("not claimed", "refusal", refusal, "error", err, describe(t))
		return false
	}
	d.follow(t, done)
	q := d.moveAsk(t, s, done.seq)
	return d.afterMove(ctx, s, q, d.askMove(ctx, s.Session.Server, q))
}

// queryMove asks once more what became of a move that was not answered. An origin that has
// not heard of the claim says so, and from then on refuses it: the player may be moved again.
func (d *Dispatcher) queryMove(ctx context.Context, origin events.HostID, q events.MoveAsk) events.Answer {
	q.Query = true
	return d.askMove(ctx, origin, q)
}

func (d *Dispatcher) moveAsk(t projections.Transfer, s Standing, claim uint64) events.MoveAsk {
	q := events.MoveAsk{Player: t.Player, Name: s.Session.Name, Token: t.Token, Claim: claim, How: events.HowTransfer, At: t.Reserved.At}
	switch {
	case t.Destination() == s.Session.Server:
		q.How = events.HowLocal
	case s.Session.Kind == events.KindDirect:
		if b := d.view.Fleet().Backend(t.Destination()); b != nil {
			q.Address = b.Public
		}
	default:
		q.Address = edgeAddress(t.Token, d.cfg.Domain, d.cfg.Port)
	}
	return q
}

// askMove gives the origin's answer; a code of "" means that nobody knows.
func (d *Dispatcher) askMove(ctx context.Context, origin events.HostID, q events.MoveAsk) events.Answer {
	ctx, cancel := context.WithTimeout(ctx, d.timing.MoveTimeout)
	defer cancel()
	answer, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(origin, events.VerbMove), q)
	if errors.Is(err, events.ErrNobody) || errors.Is(err, ErrNotSent) {
		return events.Answer{Code: events.Refused, Detail: "the server " + string(origin) + " does not answer"}
	}
	if err != nil {
		d.logger.Warn("move without an answer: outcome unknown", "origin", origin, "error", err)
		return events.Answer{}
	}
	return answer
}

func (d *Dispatcher) afterMove(ctx context.Context, s Standing, q events.MoveAsk, answer events.Answer) bool {
	t := *s.Active
	switch answer.Code {
	case events.Sent:
		if d.arrives(ctx, t.Player, q.Token, d.timing.SentPause) {
			return false
		}
		return d.recordMove(ctx, s, q, events.MoveSent)
	case "", events.NotKnown:
		return d.afterUnknown(ctx, s, q)
	}
	r := d.runs.get(t.ID, d.view.Fleet())
	r.refusal = string(answer.Code)
	if answer.Detail != "" {
		r.refusal += ": " + answer.Detail
	}
	released := d.finish(ctx, s, Release{Token: q.Token, Claim: q.Claim, Reason: events.MoveRefused, Detail: r.refusal})
	if answer.Code == events.NotHere {
		d.awaitNews(ctx, s)
	}
	return released
}

// awaitNews waits until the log shows what the origin knows already: that the player is not
// there any more.
func (d *Dispatcher) awaitNews(ctx context.Context, s Standing) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.Stale)
	defer cancel()
	d.wakeup.until(ctx, s.Active.Player, func() bool {
		now, _ := d.view.Session(s.Active.Player)
		return now.Last != s.Session.Last
	})
}

// arrives waits a while for the arrival to stand in the log.
func (d *Dispatcher) arrives(ctx context.Context, player events.PlayerID, token events.Token, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return d.wakeup.until(ctx, player, func() bool {
		t := d.view.Player(player).Find(token.Transfer)
		return t == nil || t.Token != token || t.Phase != projections.Claimed
	})
}

// afterUnknown asks the origin once more what became of a move, and when nobody can say,
// records just that. If the store is away the origin is asked again first: both are often
// lost together.
func (d *Dispatcher) afterUnknown(ctx context.Context, s Standing, q events.MoveAsk) bool {
	for {
		if !d.view.Ready() && sleep(ctx, 200*time.Millisecond) {
			continue
		}
		answer := d.queryMove(ctx, s.Session.Server, q)
		if answer.Code != "" && answer.Code != events.NotKnown {
			return d.afterMove(ctx, s, q, answer)
		}
		done, err := d.recordOnce(ctx, s, q, events.MoveUnknown)
		if err == nil || !sleep(ctx, 200*time.Millisecond) {
			return done
		}
	}
}

// recordMove says that a move was sent, however long the store takes to hear it: until then
// this process alone knows that the player may be under way.
func (d *Dispatcher) recordMove(ctx context.Context, s Standing, q events.MoveAsk, result events.MoveResult) bool {
	for {
		done, err := d.recordOnce(ctx, s, q, result)
		if err == nil || !sleep(ctx, 200*time.Millisecond) {
			return done
		}
	}
}

func (d *Dispatcher) recordOnce(ctx context.Context, s Standing, q events.MoveAsk, result events.MoveResult) (bool, error) {
	done, refusal, err := d.write(ctx, q.Player, RecordMove{Token: q.Token, Claim: q.Claim, How: q.How, Result: result})
	if err != nil || refusal != nil {
		return false, err
	}
	d.follow(*s.Active, done)
	return true, nil
}

// enquire asks the origin what became of a claim that somebody else left behind.
func (d *Dispatcher) enquire(ctx context.Context, s Standing, reopen *Reopen) bool {
	t := *s.Active
	q := events.MoveAsk{Player: t.Player, Name: t.Request.Name, Token: t.Token, Claim: t.ClaimSeq, How: events.HowTransfer}
	answer := d.queryMove(ctx, t.Claim.From, q)
	if reopen != nil {
		if answer.Code != events.NotSent {
			return false // it was sent, or nobody knows: the token's time decides
		}
		return d.finish(ctx, s, *reopen)
	}
	if answer.Code == events.NotSent && !t.MovedOnce {
		return d.finish(ctx, s, Expire{Token: t.Token, Claim: t.ClaimSeq, Reason: events.TTLPassed})
	}
	return d.finish(ctx, s, Fail{
		Transfer: t.ID, Claim: t.ClaimSeq, Code: events.NotArrived, Detail: "origin says: " + string(answer.Code),
		In: []projections.Phase{projections.Claimed},
	})
}
