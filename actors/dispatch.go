package actors

import (
	"context"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// minTransferProtocol is the protocol of 1.20.5, the first client that can be sent elsewhere.
const minTransferProtocol = 766

// dispatch chooses a destination and reserves there; without one the transfer is parked in line.
func (d *Dispatcher) dispatch(ctx context.Context, s Standing, by Timing) bool {
	t := *s.Active
	defer d.line.dispatched(t.ID)
	if s.Controls.Killed {
		return d.killed(ctx, s)
	}
	if p := s.Session.Protocol; p > 0 && p < minTransferProtocol && s.Session.Kind != events.KindRelay {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.ClientTooOld, In: openPhases})
	}
	if t.Facts >= events.MaxTransferFacts {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.AttemptsExhausted, In: openPhases})
	}
	if x := d.runs.refused(t.ID); x.count >= by.MaxRetries {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.MoveRefused, Detail: x.text, In: openPhases})
	}
	r := d.runs.get(t.ID, by, d.view.Fleet(), d.Now())
	if r.attempts >= r.timing.MaxRetries {
		return d.afterRetries(ctx, s, r)
	}
	if t.Request.Bypass {
		return d.dispatchBypass(ctx, s, r)
	}
	r.turn = d.turnOf(t, r.timing)
	won, decision, ok := d.reserveBest(ctx, s, r, false)
	if !ok {
		return false
	}
	switch {
	case won:
		d.line.leave(t.ID)
		return true
	case d.tooEarly(t, r, decision):
		return false
	}
	return d.nobody(ctx, s, decision)
}

// earlyPause is how long a dispatch waits for the heartbeats of servers that it has not seen yet.
const earlyPause = 250 * time.Millisecond

// tooEarly tells that nobody was found because this process has only just begun to see: servers
// that are there have had no time to beat. The transfer is dispatched again shortly.
func (d *Dispatcher) tooEarly(t projections.Transfer, r *run, decision events.Decision) bool {
	unseen := slices.ContainsFunc(decision.Filtered, func(f events.Filtered) bool { return f.Code == events.Stale })
	if !unseen || d.Now().Sub(d.view.Fleet().Since) > r.timing.Stale {
		return false
	}
	d.attendLater(t, earlyPause)
	return true
}

// killed keeps a transfer's place while transfers are switched off; who does not wait ends.
func (d *Dispatcher) killed(ctx context.Context, s Standing) bool {
	t := *s.Active
	if t.Request.Bypass {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.KillSwitch, In: openPhases})
	}
	d.line.park(t)
	return false
}

// dispatchBypass asks for a place ahead of the line, which may be looked for freshly. It
// never waits.
func (d *Dispatcher) dispatchBypass(ctx context.Context, s Standing, r *run) bool {
	t := *s.Active
	r.turn, r.fresh, r.until = d.boundOf(), true, d.Now().Add(r.timing.AttemptTimeout)
	won, decision, ok := d.reserveBest(ctx, s, r, false)
	if !ok || won {
		return ok
	}
	if d.tooEarly(t, r, decision) {
		return false
	}
	d.runs.end(t.ID)
	return d.finish(ctx, s, Fail{Transfer: t.ID, Code: whyNobody(decision), Decision: &decision, In: openPhases})
}

// whyNobody is the reason that a player hears who does not wait for another destination.
func whyNobody(d events.Decision) events.Code {
	switch {
	case permanent(d):
		return events.RegionMissing
	case passedOver(d, events.BypassBound):
		return events.BypassBound
	case passedOver(d, events.Paused):
		return events.Paused
	}
	return events.NoCandidate
}

// afterRetries ends a dispatch that has used its attempts. When it was the origin that
// refused, another destination will not help; else the transfer waits for another dispatch.
func (d *Dispatcher) afterRetries(ctx context.Context, s Standing, r *run) bool {
	t := *s.Active
	d.runs.end(t.ID)
	if r.refusal != "" {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.MoveRefused, Detail: r.refusal, In: openPhases})
	}
	if t.Request.Bypass || t.Request.Wish.Pin != "" && !t.Request.Wait {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.AttemptsExhausted, In: openPhases})
	}
	_, decision := choose(d.question(s, r, false), r.snapshot)
	return d.wait(ctx, s, decision)
}

// nobody handles a dispatch that found no destination.
func (d *Dispatcher) nobody(ctx context.Context, s Standing, decision events.Decision) bool {
	t := *s.Active
	d.runs.end(t.ID)
	if permanent(decision) || t.Request.Wish.Pin != "" && !t.Request.Wait {
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: whyNobody(decision), Decision: &decision, In: openPhases})
	}
	return d.wait(ctx, s, decision)
}

// wait parks a transfer, if the rules of the line let it.
func (d *Dispatcher) wait(ctx context.Context, s Standing, decision events.Decision) bool {
	t := *s.Active
	if code := d.refuseWait(t, decision); code != "" {
		if d.inLobby(s) {
			d.attendLater(t, lobbyPause)
			return false
		}
		return d.finish(ctx, s, Fail{Transfer: t.ID, Code: code, Decision: &decision, In: openPhases})
	}
	d.line.park(t)
	d.waitlist(ctx, s, decision)
	return false
}

// refuseWait says why a transfer that nobody can serve now does not wait, or "". Who is in line
// is never too many.
func (d *Dispatcher) refuseWait(t projections.Transfer, decision events.Decision) events.Code {
	rules := d.lineRules.Load()
	switch {
	case !rules.Enabled:
		return whyNobody(decision)
	case !t.Waitlisted && !evacuates(t.Request) && d.view.Ahead(t.Place) >= rules.MaxSize:
		return events.LineFull
	}
	return ""
}

// waitlist writes that nobody can serve a transfer now, and tells the player: that is a fact once; later it is
// only so.
func (d *Dispatcher) waitlist(ctx context.Context, s Standing, decision events.Decision) {
	t := *s.Active
	if t.Waitlisted {
		return
	}
	done, refusal, err := d.write(ctx, t.Player, Waitlist{Transfer: t.ID, Decision: decision})
	if err != nil || refusal != nil {
		return
	}
	d.follow(t, done)
	message := "transfer.waiting"
	if evacuates(t.Request) {
		message = "transfer.staying"
	}
	d.tellPlayer(t.Player, message, nil)
}

func (d *Dispatcher) question(s Standing, r *run, inLogin bool) question {
	waits := inLine(*s.Active, inLogin)
	return question{
		paused: func(server events.HostID, region string) bool { return s.Controls.Pauses(server, region, waits) },
		wish:   s.Active.Request.Wish, protocol: s.Session.Protocol, home: s.Session.Server, last: lastPlace(s.Done),
		exclude: d.runs.excluded(r, d.Now()), drained: s.Controls.IsDrained, pledged: d.view.Pledged,
		lobbies: d.routing.Load().lobbies, memories: &d.memories, policy: *d.policy.Load(), turn: r.turn, fresh: r.fresh, now: r.began, stale: r.timing.Stale,
	}
}

// reserveBest asks destinations in the order of their rank until one promises and the
// promise stands in the log. ok is false when the transfer is no longer ours to serve: then
// nobody is asked any more, and the dispatch is over.
func (d *Dispatcher) reserveBest(ctx context.Context, s Standing, r *run, inLogin bool) (won bool, last events.Decision, ok bool) {
	t := *s.Active
	defer func() {
		if !ok {
			d.runs.end(t.ID)
		}
	}()
	asking, stop := d.whileSought(ctx, t)
	defer stop()
	for asking.Err() == nil && (inLogin || holds(d.standing(t.Player), d.Source)) {
		ranked, decision := choose(d.question(s, r, inLogin), r.snapshot)
		if len(ranked) == 0 || r.over(d.Now()) {
			return false, decision, true
		}
		d.notePick(ranked[0].backend.Server)
		asked := d.Now()
		answer, sig, code := d.askReserve(asking, t, r.timing, ranked[0])
		if asking.Err() != nil {
			d.takeBack(t, r.timing, ranked[0].backend.Server)
			break
		}
		if code != events.Promised {
			d.noteRefusal(r, ranked[0], answer, code)
			continue
		}
		r.attempts++
		fact := events.Reserved{
			Server: answer.Server, Incarnation: answer.Incarnation, Promise: answer.Promise, Region: answer.Region,
			At: answer.At, TTLMs: r.timing.TTL.Milliseconds(), Answer: sig, Decision: decision,
		}
		done, refusal, err := d.write(ctx, t.Player, Reserve{Transfer: t.ID, Fact: fact, By: d.Source, InLogin: inLogin})
		if err != nil || refusal != nil {
			if err == nil {
				d.giveUp(ctx, t, answer)
			}
			return false, decision, false
		}
		d.follow(t, done)
		if d.Now().Sub(asked) > r.timing.TTLSlack {
			return false, decision, d.tooLate(ctx, t.Player, done)
		}
		return true, decision, true
	}
	return false, last, false
}

// whileSought gives a context that ends as soon as the log shows that a transfer is over: the
// player has taken the wish back, or has another one by now, and shall not wait for the answer to
// this one. If another attempt was faster the answer is waited for, to be given back. stop must be
// called.
func (d *Dispatcher) whileSought(ctx context.Context, t projections.Transfer) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.wakeup.until(ctx, t.Player, func() bool {
			now := d.view.Player(t.Player).Active
			return now == nil || now.ID != t.ID
		})
		cancel()
	}()
	return ctx, func() {
		cancel()
		<-done
	}
}

// takeBack gives back what a destination may have promised for a question that was given up, once
// it has surely answered, if the transfer is over by then. Else somebody may go on with it.
func (d *Dispatcher) takeBack(t projections.Transfer, by Timing, server events.HostID) {
	attempt := t.Attempts + 1
	d.background(func(ctx context.Context) {
		if !sleep(ctx, by.AttemptTimeout) {
			return
		}
		if now := d.view.Player(t.Player).Find(t.ID); now == nil || now.Phase.Terminal() && now.Attempts < attempt {
			d.releasePromise(server, events.ReleaseAsk{Player: t.Player, Transfer: t.ID, Attempt: attempt, Reason: events.PlayerDetached})
		}
	})
}

// askReserve asks one destination for a coordinate.
func (d *Dispatcher) askReserve(ctx context.Context, t projections.Transfer, by Timing, c choice) (answer events.ReserveAnswer, sig string, code events.Code) {
	ctx, cancel := context.WithTimeout(ctx, by.AttemptTimeout)
	defer cancel()
	answer, sig, err := askSigned[events.ReserveAnswer](ctx, d.Identity, d.bus, events.ToBackend(c.backend.Server, events.VerbReserve), events.ReserveAsk{
		Player: t.Player, Name: t.Request.Name, Transfer: t.ID, Attempt: t.Attempts + 1, Place: t.Place,
		Region: c.region, World: t.Request.Wish.World, TTLMs: by.TTL.Milliseconds(), Incarnation: c.backend.Incarnation,
		Fresh: t.Request.Bypass,
	})
	if err != nil {
		d.logger.Warn("destination did not answer", "server", c.backend.Server, "error", err)
		return answer, "", events.NoAnswer
	}
	return answer, sig, answer.Code
}

// noteRefusal excludes a destination for this dispatch. A fault of its own also cools it
// down; that it has nothing to give, or not yet, or has just begun another life, is none: it
// corrects what is known of it.
func (d *Dispatcher) noteRefusal(r *run, c choice, answer events.ReserveAnswer, code events.Code) {
	server := c.backend.Server
	r.exclude[server] = code
	beat := c.backend.Seq // a newer one may have come meanwhile: it is believed
	switch code {
	case events.NoCoordinate:
		d.line.correct(projections.Spot{Server: server, Region: c.region}, correction{beat: beat, kept: answer.Kept})
	case events.Full, events.WrongIncarnation: // the heartbeat of the new life is on its way
		d.line.correct(projections.Spot{Server: server}, correction{beat: beat})
	case events.Paced:
	default:
		d.runs.coolDown(server, cooldown{until: d.Now().Add(r.timing.Cooldown), life: c.backend.Incarnation})
	}
}
