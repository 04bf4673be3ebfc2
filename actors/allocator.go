package actors

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Allocation is a seat on an instance: promised by it, and held by a token that the player shows there.
type Allocation struct {
	Transfer  projections.Transfer
	Instance  *projections.Instance // as it beat when it was chosen
	Degraded  bool                  // it is the fallback: nobody fitted
	ExpiresIn time.Duration         // how long the seat is held
}

// AllocationAsk asks for a seat. Transfer is the caller's id for it: the same again gives the same seat.
type AllocationAsk struct {
	Player   events.PlayerID
	NativeID string
	Name     string
	Transfer events.TransferID
	Seat     Seat
	Via      string        // whose token asked
	Fallback events.HostID // asked when nobody fits; empty: nobody is
}

// allocated tells that a transfer is a seat on an instance: nobody is moved for it, the player comes
// with the token.
func allocated(r *events.Requested) bool { return r.Trigger == events.TriggerAllocate }

// planSeat ends a seat that nobody has taken in its time. No session owns it: dispatchers take turns.
func planSeat(t projections.Transfer, w watch) act {
	over := w.now.Sub(t.Seen.Reserved) - ttl(t) - w.timing.TTLSlack
	return w.inTurn(t, false, over, Fail{Transfer: t.ID, Code: events.NotArrived, In: []projections.Phase{projections.Pending, projections.Claimed}})
}

// Allocate takes a seat for a player on the best instance, and claims it. A refusal says what stands
// in the way; NO_CAPACITY names why each instance was left out. It is written down only when somebody
// was asked for the seat.
func (d *Dispatcher) Allocate(ctx context.Context, q AllocationAsk) (Allocation, *events.Refusal) {
	if a, known := d.heldSeat(q.Player, q.Transfer); known {
		return a, nil
	}
	if c := d.view.Controls(); c.Killed {
		return Allocation{}, events.Refuse(events.KillSwitch, c.Kill.Why)
	}
	exclude := map[events.HostID]bool{}
	if ranked, _, refusal := d.rankSeats(q, exclude); refusal != nil && len(ranked) == 0 {
		return Allocation{}, refusal
	}
	done, refusal, err := d.write(ctx, q.Player, Request{Transfer: q.Transfer, Fact: events.Requested{
		Trigger: events.TriggerAllocate, Via: q.Via, Wish: events.Wish{Region: q.Seat.Zone, World: q.Seat.Scene}, Name: q.Name, NativeID: q.NativeID, Bypass: true,
	}})
	switch {
	case err != nil:
		return Allocation{}, transportDown(err)
	case refusal != nil && refusal.Code == events.AlreadyActive:
		if a, known := d.awaitHeldSeat(ctx, q.Player); known {
			return a, nil
		}
		return Allocation{}, refusal
	case refusal != nil && refusal.Code == events.Replaced:
		return Allocation{}, events.Refuse(events.AlreadyMoving, "another seat is being taken for the player: ask again")
	case refusal != nil:
		return Allocation{}, refusal
	}
	return d.seatAt(ctx, q, done.transfer, exclude)
}

// Reallocate takes another seat for a player whom the instance of the token refused, and asks that
// one no more.
func (d *Dispatcher) Reallocate(ctx context.Context, q AllocationAsk, refused events.Token, reason string) (Allocation, *events.Refusal) {
	last, err := d.leaderSeq(ctx, q.Player) // another host may have given it
	if err == nil {
		err = d.view.WaitFolded(ctx, events.Transfers, last)
	}
	if err != nil {
		return Allocation{}, transportDown(err)
	}
	t := d.view.Player(q.Player).Active
	if t == nil || t.Token != refused {
		if a, known := d.heldSeat(q.Player, refused.Transfer); known {
			return a, nil // another seat was taken already
		}
		return Allocation{}, events.Refuse(events.TokenSpent, "the seat of "+refused.String()+" is not held any more")
	}
	server := t.Destination()
	done, refusal, err := d.write(ctx, q.Player, Release{Token: refused, Reason: events.Unreachable, Detail: reason})
	switch {
	case err != nil:
		return Allocation{}, transportDown(err)
	case refusal != nil:
		return Allocation{}, refusal
	}
	d.follow(*t, done)
	q.Transfer = t.ID
	return d.seatAt(ctx, q, t.ID, map[events.HostID]bool{server: true})
}

// awaitHeldSeat gives the seat that another call, maybe over another host, is taking for the player:
// within the time that one attempt may last.
func (d *Dispatcher) awaitHeldSeat(ctx context.Context, player events.PlayerID) (a Allocation, known bool) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.Load().AttemptTimeout)
	defer cancel()
	d.wakeup.until(ctx, player, func() bool {
		a, known = d.heldSeat(player, events.TransferID{})
		t := d.view.Player(player).Active
		return known || t == nil || !allocated(t.Request)
	})
	return a, known
}

// heldSeat gives the seat that stands for a player; a zero transfer means whichever.
func (d *Dispatcher) heldSeat(player events.PlayerID, id events.TransferID) (Allocation, bool) {
	t := d.view.Player(player).Active
	if t == nil || !allocated(t.Request) || t.Reserved == nil || t.Phase != projections.Claimed && t.Phase != projections.Consumed || !id.IsZero() && t.ID != id {
		return Allocation{}, false
	}
	a := Allocation{Transfer: *t, Instance: d.view.Fleet().Instance(t.Destination()), ExpiresIn: max(ttl(*t)-d.Now().Sub(t.Seen.Reserved), 0)}
	if a.Instance == nil || a.Instance.Incarnation != t.Reserved.Incarnation {
		return Allocation{}, false
	}
	a.Degraded = t.Reserved.Decision.Policy == policyFallback
	return a, true
}

// Policies of an allocation, as its decision names them.
const (
	policyTiers    = "tiers/1"
	policyFallback = "fallback/1"
)

// rankSeats gives who may be asked, best first; the fallback alone when nobody fits, or nobody and the reason.
func (d *Dispatcher) rankSeats(q AllocationAsk, exclude map[events.HostID]bool) ([]*projections.Instance, events.Decision, *events.Refusal) {
	f := d.view.Fleet()
	decision := events.Decision{Policy: policyTiers, Snapshot: f.Seq, Candidates: []events.Candidate{}}
	now := d.Now()
	if !f.Hears(now, d.Stale()) {
		return nil, decision, transportDown(fmt.Errorf("this host does not hear the instances now"))
	}
	var ranked []*projections.Instance
	ranked, decision.Filtered = allocate(seating{seat: q.Seat, fleet: f, now: now, stale: d.Stale(), drained: d.view.Controls().IsDrained, exclude: exclude})
	if x := f.Instance(q.Fallback); len(ranked) == 0 && q.Fallback != "" && x != nil && !exclude[q.Fallback] {
		ranked, decision.Policy = []*projections.Instance{x}, policyFallback
	}
	for i, x := range ranked[:min(len(ranked), events.MaxCandidates)] {
		decision.Candidates = append(decision.Candidates, events.Candidate{Server: x.Placement, Region: q.Seat.Zone, Score: float64(i), Terms: []events.Term{}})
	}
	if len(ranked) == 0 {
		return nil, decision, events.Refuse(events.NoCapacity, leftOut(decision.Filtered))
	}
	return ranked, decision, nil
}

// leftOut says why nobody could give a seat.
func leftOut(filtered []events.Filtered) string {
	if len(filtered) == 0 {
		return "no instance is known"
	}
	var parts []string
	for _, f := range filtered {
		parts = append(parts, fmt.Sprintf("%d %s (%s)", f.Count, f.Code, strings.Join(f.Examples, " ")))
	}
	return strings.Join(parts, ", ")
}

// seatAt asks the instances in the order of their rank until one promises a seat, and claims it. When
// none does the transfer ends with the reason.
func (d *Dispatcher) seatAt(ctx context.Context, q AllocationAsk, id events.TransferID, exclude map[events.HostID]bool) (Allocation, *events.Refusal) {
	by := *d.timing.Load()
	for range by.MaxRetries {
		ranked, decision, refusal := d.rankSeats(q, exclude)
		if refusal != nil {
			return d.noSeat(ctx, q.Player, id, decision, refusal)
		}
		x := ranked[0]
		t := d.view.Player(q.Player).Find(id)
		if t == nil || t.Phase != projections.Requested {
			return Allocation{}, events.Refuse(events.AlreadyMoving, "the request changed meanwhile: ask again")
		}
		answer, sig, code := d.askReserve(ctx, *t, by, choice{backend: &projections.Backend{BackendBeat: events.BackendBeat{Server: x.Placement, Incarnation: x.Incarnation}}, region: q.Seat.Zone})
		if code != events.Promised {
			exclude[x.Placement] = true
			d.logger.Info("an instance gives no seat", "instance", x.Placement, "code", code, "transfer", id.Short())
			continue
		}
		token, refusal, err := d.claimSeat(ctx, *t, answer, sig, decision, by)
		switch {
		case err != nil:
			return Allocation{}, transportDown(err)
		case refusal != nil:
			d.releasePromise(x.Placement, events.ReleaseAsk{
				Player: q.Player, Transfer: id, Attempt: t.Attempts + 1, Incarnation: answer.Incarnation, Promise: answer.Promise, Reason: events.LostRace,
			})
			return Allocation{}, refusal
		}
		if t = d.view.Player(q.Player).Find(id); t == nil || t.Token != token {
			return Allocation{}, events.Refuse(events.AlreadyMoving, "the seat changed meanwhile: ask again")
		}
		return Allocation{Transfer: *t, Instance: x, Degraded: decision.Policy == policyFallback, ExpiresIn: by.TTL}, nil
	}
	_, decision, _ := d.rankSeats(q, exclude)
	return d.noSeat(ctx, q.Player, id, decision, events.Refuse(events.NoCapacity, leftOut(decision.Filtered)))
}

// claimSeat writes the promise and the claim: the token is good from then on.
func (d *Dispatcher) claimSeat(ctx context.Context, t projections.Transfer, answer events.ReserveAnswer, sig string, why events.Decision, by Timing) (events.Token, *events.Refusal, error) {
	done, refusal, err := d.write(ctx, t.Player, Reserve{Transfer: t.ID, By: d.Source, InLogin: true, Fact: events.Reserved{
		Server: answer.Server, Incarnation: answer.Incarnation, Promise: answer.Promise, Region: answer.Region, At: answer.At,
		TTLMs: by.TTL.Milliseconds(), Answer: sig, Decision: why,
	}})
	if err != nil || refusal != nil {
		return events.Token{}, refusal, err
	}
	token := events.Token{Transfer: t.ID, Attempt: t.Attempts + 1}
	if r, ok := done.fact.(*events.Reserved); ok {
		token.Attempt = r.Attempt
	}
	_, refusal, err = d.write(ctx, t.Player, Claim{Token: token, By: d.Source, InLogin: true})
	return token, refusal, err
}

// noSeat ends a request that nobody can serve.
func (d *Dispatcher) noSeat(ctx context.Context, player events.PlayerID, id events.TransferID, decision events.Decision, refusal *events.Refusal) (Allocation, *events.Refusal) {
	_, _, err := d.write(ctx, player, Fail{Transfer: id, Code: refusal.Code, Detail: refusal.Detail, Decision: &decision, In: openPhases})
	if err != nil {
		d.logger.Warn("the end of a request for a seat is not written", "transfer", id.Short(), "error", err)
	}
	return Allocation{}, refusal
}
