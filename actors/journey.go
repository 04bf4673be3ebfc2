package actors

import (
	"context"
	"slices"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// attend does what this dispatcher owes a player now, step by step, until nothing is owed.
func (d *Dispatcher) attend(ctx context.Context, player events.PlayerID) {
	for ctx.Err() == nil && d.view.Ready() {
		s := d.standing(player)
		if w := d.watch(); !d.carryOut(ctx, s, w.timing, plan(s, w)) {
			return
		}
	}
}

// carryOut does what was planned by a timing. It reports whether something was done that may
// ask for more.
func (d *Dispatcher) carryOut(ctx context.Context, s Standing, by Timing, a act) bool {
	switch a := a.(type) {
	case idle:
		return false
	case dispatch:
		if code := hopeless(s.Active.Request.Wish, s.Session.Protocol, d.view.Fleet(), d.routing.Load().lobbies); code != "" {
			return d.endHopeless(ctx, s, code, by)
		}
		if d.line.waits(s.Active.ID) {
			return false // the line decides when it is this transfer's turn
		}
		return d.dispatch(ctx, s, by)
	case moveAct:
		return d.claimAndMove(ctx, s, by)
	case do:
		if _, waits := a.command.(Cancel); waits && ofLogin(s, *s.Active) && d.placeKept(ctx, *s.Active) {
			return false
		}
		return d.finish(ctx, s, a.command)
	case enquire:
		return d.enquire(ctx, s, by, a.reopen)
	}
	return false
}

// hopeless gives the reason why no wait can help, or "": hosts are known, be they ready or not,
// and none of them has such a region, or none of those that have it speaks the client's version. Lobbies
// have a region for nobody.
func hopeless(w events.Wish, protocol int, f *projections.Fleet, lobbies map[events.HostID]bool) events.Code {
	known, code := false, events.RegionMissing
	for _, b := range f.Backends {
		if w.Pin != "" && w.Pin != b.Server {
			continue
		}
		known = true
		if lobbies[b.Server] || !slices.ContainsFunc(b.Regions, func(r events.RegionBeat) bool {
			return (w.Region == "" || w.Region == r.Name) && (w.World == "" || w.World == r.World)
		}) {
			continue
		}
		if speaks(b.ProtocolMin, b.ProtocolMax, protocol) {
			return ""
		}
		code = events.ProtocolAbsent
	}
	if !known {
		return ""
	}
	return code
}

// Protocols of games beside Minecraft, whose own are below, or above as snapshots. A server of such a game says
// in its heartbeat that it speaks this one, and no other.
const (
	ProtocolVintageStory = foreignProtocols + 1
	ProtocolTCP          = foreignProtocols + 2 // any other game, over plain TCP

	foreignProtocols   = 0x20000000
	snapshotsOfVersion = 0x40000000
)

// speaks tells that who takes clients from low to high takes a client of that version, as far
// as either is known. A client of another game is only sent where that game is spoken.
func speaks(low, high, protocol int) bool {
	if protocol > foreignProtocols && protocol < snapshotsOfVersion {
		return protocol >= low && protocol <= high && low > foreignProtocols
	}
	return protocol == 0 || low == 0 || protocol >= low && protocol <= high
}

// endHopeless ends a transfer to a place that is not there for this player.
func (d *Dispatcher) endHopeless(ctx context.Context, s Standing, code events.Code, by Timing) bool {
	t := *s.Active
	d.line.leave(t.ID)
	_, decision := choose(d.question(s, &run{began: d.Now(), timing: by}, false), d.view.Fleet())
	return d.finish(ctx, s, Fail{Transfer: t.ID, Code: code, Decision: &decision, In: openPhases})
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

// follow does what follows from a fact that this dispatcher wrote: gives a coordinate back.
// That may be lost with this process: promises end by themselves. The player is told of an
// end by whoever holds the player, see noteEnd.
func (d *Dispatcher) follow(before projections.Transfer, done landed) {
	d.logger.Info("transfer", "fact", events.TypeName(done.fact), "seq", done.seq, "transfer", logged(before))
	switch f := done.fact.(type) {
	case *events.Released:
		d.giveBack(before, f.Reason)
	case *events.Expired:
		d.giveBack(before, f.Reason)
	case *events.Failed:
		d.giveBackUnlessMoved(before, f.Code)
	case *events.Cancelled:
		d.giveBackUnlessMoved(before, f.Code)
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
	d.releasePromise(t.Reserved.Server, events.ReleaseAsk{
		Player: t.Player, Transfer: t.ID, Attempt: t.Token.Attempt, Incarnation: t.Reserved.Incarnation, Promise: t.Reserved.Promise, Reason: reason,
	})
}

// tooLate ends a token whose reservation took so long to land that its promise may end before
// it: the destination keeps a promise no more than the slack longer than a token. It gives
// false: the transfer is to be dispatched anew.
func (d *Dispatcher) tooLate(ctx context.Context, player events.PlayerID, done landed) bool {
	if s := d.standing(player); s.Active != nil && s.Active.ID == done.transfer {
		d.finish(ctx, s, Expire{Token: s.Active.Token, Reason: events.TTLPassed})
	}
	return false
}

// giveUp takes back a promise whose reservation did not land. Who still holds the player does
// so at once, before it asks again for the same attempt: it would get the same promise. Anybody
// else waits until the log shows that this attempt is another one's or will never be: until then
// whoever holds the player now, be it this dispatcher again, may be about to record that very
// promise. What is not given back ends by itself.
func (d *Dispatcher) giveUp(ctx context.Context, before projections.Transfer, answer events.ReserveAnswer) {
	attempt := before.Attempts + 1
	q := events.ReleaseAsk{
		Player: before.Player, Transfer: before.ID, Attempt: attempt, Incarnation: answer.Incarnation, Promise: answer.Promise, Reason: events.LostRace,
	}
	if s := d.standing(before.Player); holds(s, d.Source) && s.Active != nil && s.Active.ID == before.ID && s.Active.Attempts < attempt {
		d.askRelease(ctx, answer.Server, q)
		return
	}
	d.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, d.timing.Load().TTL)
		defer cancel()
		ours := false
		decided := d.wakeup.until(ctx, before.Player, func() bool {
			t := d.view.Player(before.Player).Find(before.ID)
			if t == nil || t.Phase.Terminal() {
				return true
			}
			r := t.Reserved
			ours = t.Attempts == attempt && r != nil && r.Server == answer.Server && r.Incarnation == answer.Incarnation && r.Promise == answer.Promise
			return t.Attempts >= attempt
		})
		if decided && !ours {
			d.askRelease(ctx, answer.Server, q)
		}
	})
}

func (d *Dispatcher) releasePromise(server events.HostID, q events.ReleaseAsk) {
	d.background(func(ctx context.Context) { d.askRelease(ctx, server, q) })
}

func (d *Dispatcher) askRelease(ctx context.Context, server events.HostID, q events.ReleaseAsk) {
	ctx, cancel := context.WithTimeout(ctx, d.timing.Load().AttemptTimeout)
	defer cancel()
	_, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(server, events.VerbRelease), q)
	if err != nil {
		d.logger.Debug("promise not given back, it ends by itself", "server", server, "error", err)
	}
}
