package actors

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// claimAndMove takes the token and sends the player. Whoever loses the claim stops here.
func (d *Dispatcher) claimAndMove(ctx context.Context, s Standing, by Timing) bool {
	t := *s.Active
	done, refusal, err := d.write(ctx, t.Player, Claim{Token: t.Token, By: d.Source})
	if err != nil || refusal != nil {
		d.logger.Debug("not claimed", "refusal", refusal, "error", err, "transfer", logged(t))
		return false
	}
	d.follow(t, done)
	claimed, ok := done.fact.(*events.Claimed)
	if !ok {
		return false
	}
	s.Session.Server = claimed.From // as it was decided on, which may be later than s
	q := d.moveAsk(t, s, done.seq)
	q.FromIncarnation = claimed.FromIncarnation
	return d.afterMove(ctx, s, by, q, d.move(ctx, by, s, q))
}

// move lets the origin send the player, or, where the client is ours to redirect, lets the origin let go
// of the player and redirects the client. The claim is fenced at the origin either way.
func (d *Dispatcher) move(ctx context.Context, by Timing, s Standing, q events.MoveAsk) events.Answer {
	h, ok := d.connectionOf(s.Session.Number)
	staged := q.How == events.HowRedirect || ok && h.Redial != "" && q.How == events.HowTransfer
	switch {
	case !staged:
		return d.askMove(ctx, by, s.Session.Server, q)
	case !ok:
		return events.Answer{Code: events.NotHere, Detail: "the connection has ended"}
	}
	t := *s.Active
	marker, err := d.stageMove(ctx, h, t)
	if err != nil {
		return events.Answer{Code: events.Refused, Detail: err.Error()}
	}
	if q.How == events.HowTransfer {
		q.Marker = hex.EncodeToString(marker[:])
		return d.askMove(ctx, by, s.Session.Server, q)
	}
	if answer := d.askMove(ctx, by, s.Session.Server, q); answer.Code != events.Sent {
		return answer
	}
	return d.redirect(ctx, h, t, marker)
}

// queryMove asks once more what became of a move that was not answered. An origin that has
// not heard of the claim says so, and from then on refuses it: the player may be moved again.
func (d *Dispatcher) queryMove(ctx context.Context, by Timing, origin events.HostID, q events.MoveAsk) events.Answer {
	q.Query = true
	return d.askMove(ctx, by, origin, q)
}

func (d *Dispatcher) moveAsk(t projections.Transfer, s Standing, claim uint64) events.MoveAsk {
	q := events.MoveAsk{Player: t.Player, Name: s.Session.Name, Token: t.Token, Claim: claim, How: events.HowTransfer, At: t.Reserved.At}
	switch {
	case t.Destination() == s.Session.Server:
		q.How = events.HowLocal
	case d.canRedirect(s.Session.Number):
		q.How = events.HowRedirect
	case s.Session.Kind == events.KindDirect:
		if b := d.view.Fleet().Backend(t.Destination()); b != nil {
			q.Address = b.Public
		}
	default:
		q.Address = cmp.Or(d.redial(s.Session.Number), edgeAddress(t.Token, d.cfg.Domain, d.cfg.Port))
	}
	return q
}

// askMove gives the origin's answer; a code of "" means that nobody knows, NO_ANSWER that
// this request has reached nobody.
func (d *Dispatcher) askMove(ctx context.Context, by Timing, origin events.HostID, q events.MoveAsk) events.Answer {
	ctx, cancel := context.WithTimeout(ctx, by.MoveTimeout)
	defer cancel()
	answer, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(origin, events.VerbMove), q)
	if errors.Is(err, events.ErrNobody) || errors.Is(err, ErrNotSent) {
		return events.Answer{Code: events.NoAnswer, Detail: "the server " + string(origin) + " does not answer"}
	}
	if err != nil {
		d.logger.Warn("move without an answer: outcome unknown", "origin", origin, "error", err)
		return events.Answer{}
	}
	return answer
}

func (d *Dispatcher) afterMove(ctx context.Context, s Standing, by Timing, q events.MoveAsk, answer events.Answer) bool {
	t := *s.Active
	switch answer.Code {
	case events.Sent:
		if d.arrives(ctx, t.Player, q.Token, by.SentPause) {
			return false
		}
		return d.recordMove(ctx, s, q, events.MoveSent)
	case "", events.NotKnown:
		return d.afterUnknown(ctx, s, by, q)
	default:
		return d.moveRefused(ctx, s, by, q, answer)
	}
}

// unmoved tells that a player was certainly not sent for a claim, and will not be: so says the
// origin, each time it is asked.
func unmoved(code events.Code) bool {
	return code == events.NotSent || code == events.NotHere || code == events.Refused
}

// moveRefused frees the token of a move that certainly did not happen, however long the store
// takes to hear it: often both are lost together, and then nobody else knows.
func (d *Dispatcher) moveRefused(ctx context.Context, s Standing, by Timing, q events.MoveAsk, answer events.Answer) bool {
	t := *s.Active
	r := d.runs.get(t.ID, by, d.view.Fleet(), d.Now())
	r.refusal = string(answer.Code)
	if answer.Detail != "" {
		r.refusal += ": " + answer.Detail
	}
	d.runs.refuse(t.ID, r.refusal)
	released := d.insist(ctx, s, Release{Token: q.Token, Claim: q.Claim, Reason: events.MoveRefused, Detail: r.refusal})
	if answer.Code == events.NotHere || answer.Code == events.NoAnswer {
		d.awaitNews(ctx, s, by)
	}
	return released
}

// awaitNews waits until the log shows what the origin knows already: that the player is not
// there any more.
func (d *Dispatcher) awaitNews(ctx context.Context, s Standing, by Timing) {
	ctx, cancel := context.WithTimeout(ctx, by.Stale)
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
func (d *Dispatcher) afterUnknown(ctx context.Context, s Standing, by Timing, q events.MoveAsk) bool {
	for {
		if !d.view.Ready() && sleep(ctx, 200*time.Millisecond) {
			continue
		}
		answer := d.queryMove(ctx, by, s.Session.Server, q)
		switch answer.Code {
		case "", events.NotKnown, events.NoAnswer: // nobody there now says nothing of then
		default:
			return d.afterMove(ctx, s, by, q, answer)
		}
		done, err := d.writeOnce(ctx, s, recordOf(q, events.MoveUnknown))
		if err == nil || !sleep(ctx, 200*time.Millisecond) {
			return done
		}
	}
}

// recordMove says that a move was sent, however long the store takes to hear it: until then
// this process alone knows that the player may be under way.
func (d *Dispatcher) recordMove(ctx context.Context, s Standing, q events.MoveAsk, result events.MoveResult) bool {
	return d.insist(ctx, s, recordOf(q, result))
}

func recordOf(q events.MoveAsk, result events.MoveResult) RecordMove {
	return RecordMove{Token: q.Token, Claim: q.Claim, How: q.How, Result: result}
}

// insist writes what this process alone knows, again and again until the store has heard it
// or the log has gone on without it.
func (d *Dispatcher) insist(ctx context.Context, s Standing, c Command) bool {
	for {
		done, err := d.writeOnce(ctx, s, c)
		if err == nil || !sleep(ctx, 200*time.Millisecond) {
			return done
		}
	}
}

func (d *Dispatcher) writeOnce(ctx context.Context, s Standing, c Command) (bool, error) {
	done, refusal, err := d.write(ctx, s.Active.Player, c)
	if err != nil || refusal != nil {
		return false, err
	}
	d.follow(*s.Active, done)
	return true, nil
}

// enquire asks the origin what became of a claim that somebody else left behind.
func (d *Dispatcher) enquire(ctx context.Context, s Standing, by Timing, reopen *Reopen) bool {
	t := *s.Active
	q := events.MoveAsk{
		Player: t.Player, Name: t.Request.Name, Token: t.Token, Claim: t.ClaimSeq, How: events.HowTransfer, FromIncarnation: t.Claim.FromIncarnation,
	}
	answer := d.queryMove(ctx, by, t.Claim.From, q)
	if reopen != nil {
		if !unmoved(answer.Code) {
			return false // it was sent, or nobody knows: the token's time decides
		}
		return d.finish(ctx, s, *reopen)
	}
	if unmoved(answer.Code) && !t.MovedOnce {
		return d.finish(ctx, s, Expire{Token: t.Token, Claim: t.ClaimSeq, Reason: events.TTLPassed})
	}
	return d.finish(ctx, s, Fail{
		Transfer: t.ID, Claim: t.ClaimSeq, Code: events.NotArrived, Detail: "origin says: " + string(answer.Code),
		In: []projections.Phase{projections.Claimed},
	})
}
