package actors

import (
	"context"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// JoinTriggers say which players are moved by joining, and where to: those who come to the network
// for the first time, and later those who may (NodeFirstJoin, NodeJoin). The zero value: nobody.
type JoinTriggers struct {
	Enabled bool
	// Regions are by the host name that was dialled, in lower case; "" is any that has no row of its
	// own. An empty region is any place.
	Regions map[string]string
}

// SetJoins replaces what joins do. It does not block; it holds from the next login on.
func (d *Dispatcher) SetJoins(j JoinTriggers) { d.joins.Store(&j) }

// wish is where joining by a host name leads, and the row that says so; false: nowhere.
func (j *JoinTriggers) wish(host string) (row string, w events.Wish, ok bool) {
	if !j.Enabled {
		return "", events.Wish{}, false
	}
	for _, name := range []string{host, ""} {
		if region, known := j.Regions[name]; known {
			return name, events.Wish{Region: region}, true
		}
	}
	return "", events.Wish{}, false
}

// routeFirst sends a login that nothing led here to a place of its own, where joining gives one,
// else to the server that the policy chooses.
func (d *Dispatcher) routeFirst(ctx context.Context, l Login) Route {
	t, refused := d.openJoin(ctx, l)
	switch {
	case t != nil:
		return d.routeTransfer(ctx, l, *t)
	case refused == events.LineFull && !d.mayWait():
		return nobodyTakes(refused)
	case slices.Contains([]events.Code{events.LineFull, events.KillSwitch, events.RateLimited}, refused):
		d.tellPlayer(l.Player, "refused."+string(refused), nil) // the rest the player has not asked for
	}
	return d.routePlain(ctx, l, false)
}

// openJoin opens the transfer of a login, if its player is moved by joining. Without one, a code
// says why the player is not, who else would be. Who is on the network already does not join it: a name
// is only claimed here, and may be another one's.
func (d *Dispatcher) openJoin(ctx context.Context, l Login) (*projections.Transfer, events.Code) {
	row, wish, leads := d.joins.Load().wish(l.Host)
	if s, known := d.view.Session(l.Player); !leads || l.Player.IsZero() || len(l.Failed) > 0 || known && s.Open {
		return nil, ""
	}
	node := NodeFirstJoin
	if d.seenBefore(ctx, l.Player) {
		node = NodeJoin
	}
	if !d.permitted(ctx, l.Player, l.Name, node) {
		return nil, ""
	}
	if !d.unconfirmed.enter(l.Player, l.Address) {
		d.logger.Warn("too many logins that no server has confirmed: this one gets no place of its own", "player", l.Player)
		return nil, events.RateLimited
	}
	a := d.Open(ctx, events.RequestAsk{
		Player: l.Player, Name: l.Name, Transfer: events.TransferID(d.NewID()), Trigger: events.TriggerJoin, Via: row, Wish: wish,
	}, "")
	t := d.view.Player(l.Player).Active
	if t == nil {
		d.unconfirmed.leave(l.Player)
		d.logger.Info("a login gets no place of its own", "player", l.Player, "code", a.Code, "detail", a.Detail)
		return nil, a.Code
	}
	d.unconfirmed.opened(l.Player)
	return t, ""
}

// ofLogin tells that a transfer belongs to a login which an edge holds: no session has begun
// since it was asked for. Whoever holds an earlier session has nothing to do with it.
func ofLogin(s Standing, t projections.Transfer) bool {
	return t.Request.Trigger == events.TriggerJoin && !(s.HasSession && !s.Session.OpenSeen.Before(t.Seen.Requested))
}

// joinPause is how long a login waits between two attempts to find it a place.
const joinPause = 500 * time.Millisecond

// routeJoin looks for a place for a login that is still held, and sends it there: the player
// comes only once. Without a place in time the login waits in line, on a server that has
// a seat for the player if there is one, or is turned away; which, is the operator's choice.
func (d *Dispatcher) routeJoin(ctx context.Context, l Login, t projections.Transfer) Route {
	held, end := d.hold(ctx)
	defer end()
	if t.Waitlisted {
		d.keepPlace(l.Player, t.ID)
	}
	for d.view.Ready() {
		s := d.standing(l.Player)
		switch {
		case s.Active == nil || s.Active.ID != t.ID:
			return d.routePlain(ctx, l, false)
		case !ofLogin(s, *s.Active) || !inPhases(s.Active.Phase, openPhases):
			return d.routeTransfer(ctx, l, *s.Active) // another login of the player, or another edge, has gone on with it
		}
		if r, done := d.placeOrSeat(held, l, s); done {
			return r
		}
		if !sleep(held, joinPause) {
			return d.giveUpJoin(l, t)
		}
	}
	return d.routeBlind(l)
}

// placeOrSeat tries once to find a login a place, and if nobody has one a seat to wait on. Not done: it
// is to be tried again.
func (d *Dispatcher) placeOrSeat(ctx context.Context, l Login, s Standing) (r Route, done bool) {
	decision, r, done := d.reserveForLogin(ctx, l, s)
	if done || decision == nil {
		return r, done
	}
	t := *s.Active
	code, turnedAway := whyNobody(*decision), false
	switch {
	case ctx.Err() != nil:
		return Route{}, false
	case code == events.RegionMissing || t.Request.Bypass: // no wait helps, or the player does not wait
	case !d.mayWait():
		turnedAway = true
	default:
		if code = d.refuseWait(t, *decision); code == "" {
			d.waitlist(ctx, s, *decision)
			return d.seatOf(l, false) // there the player waits for the turn
		}
	}
	d.finish(ctx, s, Fail{Transfer: t.ID, Code: code, Decision: decision, In: openPhases})
	return nobodyTakes(code), turnedAway
}

// reserveForLogin asks the destinations in turn for a place, and claims it. Without one it gives the
// decision that says why, or none when the transfer is to be looked at again.
func (d *Dispatcher) reserveForLogin(ctx context.Context, l Login, s Standing) (nobody *events.Decision, r Route, done bool) {
	t := *s.Active
	s.Session.Protocol, s.Session.Server = l.Protocol, "" // of this login, who stands nowhere yet
	run := d.runs.get(t.ID, *d.timing.Load(), d.view.Fleet(), d.Now())
	run.turn = d.turnOf(t, run.timing)
	if t.Request.Bypass {
		run.turn, run.fresh, run.until = d.boundOf(), true, d.Now().Add(run.timing.AttemptTimeout)
	}
	for _, id := range l.Failed {
		run.exclude[id] = events.Unreachable
	}
	won, decision, ok := d.reserveBest(ctx, s, run, true)
	d.runs.end(t.ID)
	if !ok || !won {
		early := d.Now().Sub(d.view.Fleet().Since) <= run.timing.Stale && passedOver(decision, events.Stale)
		if ok && !early {
			nobody = &decision
		}
		return nobody, Route{}, false
	}
	now := d.standing(l.Player)
	if now.Active == nil || now.Active.ID != t.ID || !d.claimInLogin(ctx, now) {
		d.background(func(ctx context.Context) { d.abandon(ctx, l.Player, t.ID) })
		return nil, Route{}, false
	}
	r, found := d.routeTo(now.Active.Destination())
	return nil, r, found
}

// abandon gives back the place of a login that could not claim it.
func (d *Dispatcher) abandon(ctx context.Context, player events.PlayerID, id events.TransferID) {
	if s := d.standing(player); s.Active != nil && s.Active.ID == id && s.Active.Phase == projections.Pending && ofLogin(s, *s.Active) {
		d.finish(ctx, s, Release{Token: s.Active.Token, Reason: events.PlayerDetached})
	}
}

// giveUpJoin ends the wait of a login: the client reads where it stands in line, and keeps
// the place for a while. Who left before being in line has given up.
func (d *Dispatcher) giveUpJoin(l Login, t projections.Transfer) Route {
	now := d.view.Player(l.Player).Active
	waits := now != nil && now.ID == t.ID && now.Waitlisted
	d.background(func(ctx context.Context) {
		d.abandon(ctx, l.Player, t.ID)
		if s := d.standing(l.Player); !waits && s.Active != nil && s.Active.ID == t.ID && ofLogin(s, *s.Active) {
			d.finish(ctx, s, Fail{Transfer: t.ID, Code: events.PlayerOffline, In: openPhases})
		}
	})
	if !waits {
		return nobodyTakes(events.NoCandidate)
	}
	return Route{Message: "login.waiting", Code: events.Waiting, Position: d.view.Position(t.Place), Keep: d.timing.Load().Grace}
}

// keepPlace writes that a player who waits in line came back, for those who would end the wait. It
// does not wait for it.
func (d *Dispatcher) keepPlace(player events.PlayerID, id events.TransferID) {
	by := d.timing.Load()
	long := time.Duration(ceil(by.JoinHold+by.Unheld+by.Grace, time.Second)) * time.Second
	d.amendLater(events.Limits, events.HeldKey(player), func(events.Fact) (events.Fact, time.Duration) {
		return &events.LoginHeld{Transfer: id}, long
	})
}

// placeKept tells that a player in line, who has been away for too long as the transfer has it, came back
// since. When nobody can say it is so: the next look tells.
func (d *Dispatcher) placeKept(ctx context.Context, t projections.Transfer) bool {
	e, err := d.standsAt(ctx, events.Limits, events.HeldKey(t.Player))
	f, stands := e.Fact.(*events.LoginHeld)
	return err != nil || stands && f.Transfer == t.ID
}

// hold gives a context that ends when a login has been held as long as it may be.
func (d *Dispatcher) hold(ctx context.Context) (context.Context, context.CancelFunc) {
	long := d.timing.Load().JoinHold
	if end, bounded := ctx.Deadline(); bounded {
		long = min(long, end.Sub(d.Now())-joinPause) // a word is still to be said to the client
	}
	return context.WithTimeout(ctx, long)
}

// mayWait tells that a login for which there is no place waits: so says the operator, or there is a
// lobby to do it in.
func (d *Dispatcher) mayWait() bool {
	x := d.routing.Load()
	if x.Queue {
		return true
	}
	q := question{lobbies: x.lobbies}
	w := d.watch()
	return slices.ContainsFunc(w.fleet.Backends, func(b *projections.Backend) bool {
		return q.isLobby(b) && b.State == events.Ready && b.Accepting && w.fleet.Silence(b.Seen, w.now) <= w.timing.Stale
	})
}

// nobodyTakes turns a login away.
func nobodyTakes(code events.Code) Route { return Route{Message: "login.none", Code: code} }
