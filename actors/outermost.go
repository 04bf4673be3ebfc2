package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// A network may have fronts, and players who connect straight to a backend beside them. Both
// kinds of dispatcher hear each join. The outermost one of ours holds the player: the front
// whose connection it is, else the dispatcher beside the backend.

// serveDispatchers answers other dispatchers, also while an operator has drained this one.
func (d *Dispatcher) serveDispatchers(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error {
		return d.bus.Serve(ctx, events.ToDispatcher(d.Source.ID, events.VerbHolds), "", func() {},
			answerWith(d.Identity, fromDispatcher, refusePlain, d.answerHolds))
	})
}

// answerHolds tells whether a player who joined came over a connection of this front, be it
// that it has ended: the backend may not have seen the player go. It opens the session of one
// that stands: the news of the join may have been lost.
func (d *Dispatcher) answerHolds(_ context.Context, _ events.HostID, q events.HoldsAsk) events.Answer {
	news := events.Joined{Player: q.Player, Name: q.Name, Join: q.Join, Incarnation: q.Incarnation}
	if !d.conns.hadJoin(q.Join, d.Now()) && (d.misnamed(q.Server, news) || !d.conns.joined(d, q.Server, news)) {
		return events.Answer{Code: events.NotHere}
	}
	return events.Answer{Code: events.OK}
}

// holdsPatience is how long one look at the fronts takes at most.
const holdsPatience = 500 * time.Millisecond

// outermost waits until it is known that no front holds a player who joined the backend
// beside this dispatcher: each that lives has said so. It gives false when one does, or the
// player is gone. A front that does not answer may hold the player, as long as it is not
// presumed dead: then its connections are gone with it.
func (d *Dispatcher) outermost(ctx context.Context, h *held) bool {
	for ctx.Err() == nil && !d.conns.ended(h) {
		s, known := d.view.Session(h.player)
		if known && d.heldInFront(s, d.conns.joinOf(h)) {
			return false
		}
		if d.deniedByAll(ctx, h) {
			return true
		}
		d.awaitSessionChange(ctx, h.player, s)
	}
	return false
}

// heldInFront tells that another dispatcher, which lives, holds the player by this join.
func (d *Dispatcher) heldInFront(s projections.Session, join events.JoinID) bool {
	return s.Open && s.Join == join && s.HolderIncarnation != d.Source.Incarnation &&
		!d.watch().presumedDead(s.Holder, s.HolderIncarnation).yes
}

// fronts are the dispatchers that players connect to and that are not presumed dead.
func (d *Dispatcher) fronts() []events.HostID {
	var out []events.HostID
	w := d.watch()
	for _, p := range w.fleet.Proxies {
		front := slices.Contains(p.Kinds, events.KindEdge) || slices.Contains(p.Kinds, events.KindRelay)
		if front && p.Proxy != d.Source.ID && !w.presumedDead(p.Proxy, p.Incarnation).yes {
			out = append(out, p.Proxy)
		}
	}
	return out
}

// deniedByAll asks every front at once.
func (d *Dispatcher) deniedByAll(ctx context.Context, h *held) bool {
	ctx, cancel := context.WithTimeout(ctx, holdsPatience)
	defer cancel()
	q := events.HoldsAsk{Server: h.Server, Player: h.player, Name: h.Name, Join: d.conns.joinOf(h), Incarnation: h.life}
	g, ctx := errgroup.WithContext(ctx)
	for _, id := range d.fronts() {
		g.Go(func() error {
			a, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToDispatcher(id, events.VerbHolds), q)
			if err == nil && a.Code != events.NotHere {
				err = errHeldInFront
			}
			return err
		})
	}
	return g.Wait() == nil
}

var errHeldInFront = errors.New("a front holds the player")
