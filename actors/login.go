package actors

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Login is a client that an edge holds before it has been connected to a server.
type Login struct {
	Player   events.PlayerID
	Name     string
	Protocol int
	Token    events.Token    // from the host name, zero when there was none
	Host     string          // the host name that was dialled, in lower case
	Address  netip.Addr      // the client's; not valid when nobody knows it
	Failed   []events.HostID // could not be dialled in this login, oldest first
}

// Route is where a login goes. Without a server, Message is what the client reads.
type Route struct {
	Server  events.HostID
	Address string
	Message string
	Code    events.Code
	// Position in line and how long that place is kept, for a Message that speaks of them.
	Position int
	Keep     time.Duration
}

// Args are what Message says.
func (r Route) Args() []events.Arg {
	if r.Position == 0 {
		return nil
	}
	return []events.Arg{lengthArg("keep", r.Keep, true), {Name: "position", Value: strconv.Itoa(r.Position)}}
}

// edgeAddress is where a client of an edge network reconnects with its token.
func edgeAddress(t events.Token, domain string, port int) string {
	return t.Label() + "." + domain + ":" + strconv.Itoa(port)
}

// Route decides where a login goes: by its token, then by its player, then by choice, which may be
// a place of its own (JoinTriggers). It may hold the login for a token that the log does not show yet
// (up to LoginHold) or for a place (up to JoinHold), and when the destination could not be dialled it
// makes the next attempt itself.
func (d *Dispatcher) Route(ctx context.Context, l Login) Route {
	d.noteFailed(l)
	if !d.view.Ready() {
		return d.routeBlind(l)
	}
	if t, ok := d.byToken(ctx, l); ok {
		return d.routeTransfer(ctx, l, t)
	}
	if t := d.view.Player(l.Player).Active; t != nil {
		return d.routeTransfer(ctx, l, *t)
	}
	if l.Token.IsZero() {
		return d.routeFirst(ctx, l)
	}
	return d.routePlain(ctx, l, true)
}

// byToken finds the transfer that a login's token names, waiting for it if need be.
func (d *Dispatcher) byToken(ctx context.Context, l Login) (projections.Transfer, bool) {
	if l.Token.IsZero() {
		return projections.Transfer{}, false
	}
	var found projections.Transfer
	hold, cancel := context.WithTimeout(ctx, d.timing.Load().LoginHold)
	defer cancel()
	known, spent, owner := false, false, l.Player
	if _, held := d.view.Transfer(l.Token.Transfer); !held {
		_, spent, _ = d.ending(hold, l.Player, l.Token.Transfer) // if nobody can say, it is waited for
	}
	d.wakeup.until(hold, l.Player, func() bool {
		found, known = d.view.Transfer(l.Token.Transfer)
		return spent || known && claimShows(found, l.Token)
	})
	if known {
		owner = found.Player
	}
	code := refuseToken(l, found, known)
	if spent {
		code = events.TokenSpent
	}
	if code != "" {
		d.logger.Warn("token of a login is of no use", "code", code, "transfer", l.Token.Transfer.Short(), "player", l.Player)
		d.audit(events.Rejected{
			Source: d.Source.String(), Code: code, Subject: events.Transfers.Subject(events.TransferKey(owner, l.Token.Transfer)),
			Detail: fmt.Sprintf("token %s shown by %s (%s)", l.Token, l.Name, l.Player),
		})
		d.tellPlayer(l.Player, "token."+string(code), nil)
		return projections.Transfer{}, false
	}
	return found, true
}

// claimShows tells that the fold has reached what a client with this token must have been
// through: its attempt was claimed, or is over. Before that its facts are still on their way.
func claimShows(t projections.Transfer, token events.Token) bool {
	ahead := t.Attempts < token.Attempt || t.Token == token && t.Phase == projections.Pending && !t.Reopened
	return t.Phase.Terminal() || !ahead
}

// routeTransfer sends a login where its active transfer leads.
func (d *Dispatcher) routeTransfer(ctx context.Context, l Login, t projections.Transfer) Route {
	s := d.standing(l.Player)
	dialled := t.Destination() != "" && !slices.Contains(l.Failed, t.Destination())
	switch t.Phase {
	case projections.Claimed, projections.Consumed:
		if r, ok := d.routeTo(t.Destination()); ok && dialled && !d.cameForAnOldLife(l, t) {
			return r
		}
		if t.Phase == projections.Claimed {
			return d.nextInLogin(ctx, l, s)
		}
	case projections.Pending:
		if r, ok := d.routeTo(t.Destination()); ok && dialled && d.claimInLogin(ctx, s) {
			return r
		}
		return d.nextInLogin(ctx, l, s)
	case projections.Requested, projections.Waiting:
		switch {
		case t.MovedOnce:
			return d.nextInLogin(ctx, l, s)
		case ofLogin(s, t):
			return d.routeJoin(ctx, l, t)
		}
	case projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded:
	}
	return d.routePlain(ctx, l, true)
}

// cameForAnOldLife tells that a client is on the way to a promise that died with the life of
// the server that gave it. What has taken its name since is to be asked like any other.
func (d *Dispatcher) cameForAnOldLife(l Login, t projections.Transfer) bool {
	_, reborn := d.watch().reborn(t)
	return reborn && t.Phase == projections.Claimed && l.Token == t.Token
}

func (d *Dispatcher) claimInLogin(ctx context.Context, s Standing) bool {
	t := *s.Active
	done, refusal, err := d.write(ctx, t.Player, Claim{Token: t.Token, By: d.Source, InLogin: true})
	if err != nil || refusal != nil {
		return false
	}
	d.follow(t, done)
	return true
}

// nextInLogin gives up a destination that could not be reached and reserves at another one
// for the login that is still held: it is the same reconnect, so nobody is moved twice.
func (d *Dispatcher) nextInLogin(ctx context.Context, l Login, s Standing) Route {
	if s.Active == nil {
		return d.routePlain(ctx, l, true)
	}
	if p := s.Active.Phase; p == projections.Claimed || p == projections.Pending {
		if !d.finish(ctx, s, Release{Token: s.Active.Token, Reason: events.Unreachable, Detail: string(s.Active.Destination())}) {
			return d.routePlain(ctx, l, true)
		}
		s = d.standing(l.Player)
	}
	if s.Active == nil || !inPhases(s.Active.Phase, openPhases) {
		return d.routePlain(ctx, l, true)
	}
	r := d.runs.get(s.Active.ID, *d.timing.Load(), d.view.Fleet(), d.Now())
	r.turn, r.fresh = nil, false // it was this player's turn once
	for _, id := range l.Failed {
		r.exclude[id] = events.Unreachable
	}
	won, decision, ok := d.reserveBest(ctx, s, r, true)
	s = d.standing(l.Player)
	if ok && won && s.Active != nil && d.claimInLogin(ctx, s) {
		if route, found := d.routeTo(s.Active.Destination()); found {
			return route
		}
	}
	if s.Active != nil {
		d.finish(ctx, s, Fail{Transfer: s.Active.ID, Code: events.Unreachable, Decision: &decision, In: openPhases})
	}
	return d.routePlain(ctx, l, true)
}

// routePlain sends a login to the server that the policy chooses. Without one it waits for a seat, or is
// turned away, as the operator has it. Who comes back (to a transfer, or where returns are sticky) goes to
// the server of the last session if that can take the player.
func (d *Dispatcher) routePlain(ctx context.Context, l Login, back bool) Route {
	waits := d.routing.Load().Queue
	if !waits || d.seats.empty() {
		if r, ok := d.seatOf(l, back); ok {
			return r
		}
	}
	if waits {
		return d.awaitSeat(ctx, l, back)
	}
	return nobodyTakes(events.NoCandidate)
}

// seatOf gives a login a seat on the best server that has one.
func (d *Dispatcher) seatOf(l Login, back bool) (Route, bool) {
	d.seating.Lock()
	defer d.seating.Unlock()
	q := d.joinQuestion(l)
	if s, ok := d.view.Session(l.Player); ok && (back || d.routing.Load().Sticky) {
		home := q
		home.wish.Pin, home.cooling = s.Server, nil
		home.exclude = d.runs.excluded(&run{exclude: q.exclude}, q.now)
		if ranked, decision := choose(home, d.view.Fleet()); len(ranked) > 0 {
			return d.seat(l, ranked[0], decision), true
		}
	}
	ranked, decision := choose(q, d.view.Fleet())
	if len(ranked) == 0 {
		d.logger.Warn("no server can take a login", "name", l.Name, "player", l.Player, "decision", decided(decision))
		return Route{}, false
	}
	return d.seat(l, ranked[0], decision), true
}

func (d *Dispatcher) joinQuestion(l Login) question {
	q := question{
		join: true, protocol: l.Protocol, now: d.Now(), stale: d.timing.Load().Stale, drained: d.view.Controls().IsDrained, pledged: d.view.Pledged,
		lobbies: d.routing.Load().lobbies, memories: &d.memories, policy: *d.policy.Load(), exclude: map[events.HostID]events.Code{},
		cooling: d.runs.excluded(&run{}, d.Now()),
	}
	for _, id := range l.Failed {
		q.exclude[id] = events.Unreachable
	}
	return q
}

// seat sends a login to a server, and remembers it, so that a crowd spreads before the next
// heartbeats count it.
func (d *Dispatcher) seat(l Login, c choice, decision events.Decision) Route {
	b := c.backend
	d.notePick(b.Server)
	d.memories.letIn(b.Server, b.Seq)
	d.logger.Info("login", "server", b.Server, "name", l.Name, "player", l.Player, "decision", decided(decision))
	return Route{Server: b.Server, Address: b.Advertise}
}

// routeBlind sends a login somewhere while the log is out of sight: where the player was
// being moved when it was last seen, else to the server of the last session, else to any
// that was seen accepting, however long ago.
func (d *Dispatcher) routeBlind(l Login) Route {
	if t := d.view.Player(l.Player).Active; t != nil && t.Phase == projections.Claimed && !slices.Contains(l.Failed, t.Destination()) {
		if r, ok := d.routeTo(t.Destination()); ok {
			return r
		}
	}
	s, ok := d.view.Session(l.Player)
	var anywhere Route
	for _, b := range d.view.Fleet().Backends {
		if slices.Contains(l.Failed, b.Server) || !b.Accepting || b.Advertise == "" || !speaks(b.ProtocolMin, b.ProtocolMax, l.Protocol) {
			continue
		}
		r := Route{Server: b.Server, Address: b.Advertise, Code: events.TransportDown}
		if ok && s.Server == b.Server {
			return r
		}
		if anywhere.Server == "" {
			anywhere = r
		}
	}
	if anywhere.Server == "" {
		return Route{Message: "login.down", Code: events.TransportDown}
	}
	return anywhere
}

func (d *Dispatcher) routeTo(id events.HostID) (Route, bool) {
	b := d.view.Fleet().Backend(id)
	if b == nil || b.Advertise == "" {
		return Route{}, false
	}
	return Route{Server: b.Server, Address: b.Advertise}, true
}
