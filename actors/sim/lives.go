package sim

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// writer writes the lives of some players of a Chronicle, one after the other, and comes back
// to those who wait in line.
type writer struct {
	c        *Chronicle
	rnd      *rand.Rand
	journeys *projections.Journeys
	sessions *projections.Sessions
	idle     []*person
	waiting  []*person // in line, who came first in front
}

// person is one player.
type person struct {
	id   events.PlayerID
	name string
}

const (
	chronicleTTL = 30_000 // milliseconds that a promise stands
	protocol     = 767    // of all clients
)

// chance is how often something happens to a life that comes to where it can, in a thousand.
type chance int

const (
	leftBefore    chance = 10  // the player leaves before there is a place
	otherWish     chance = 8   // and wants something else
	bypasses      chance = 10  // does not wait in line
	pinned        chance = 80  // wants one server and no other
	regional      chance = 500 // wants a region
	ttlPassed     chance = 8   // nobody claims the token in time
	moveRefused   chance = 15  // the origin does not send the player
	claimerLost   chance = 8   // the dispatcher that has claimed dies
	moveNoted     chance = 300 // the move is in the log before the arrival is
	notArrived    chance = 8   // the player never arrives
	leftOnArrival chance = 6   // or leaves at once
	unconfirmed   chance = 3   // or nobody knows where the player stands
	quits         chance = 60  // after the transfer
	comesBack     chance = 125 // who waits is looked at again
)

func newWriter(c *Chronicle, rnd *rand.Rand) *writer {
	return &writer{c: c, rnd: rnd, journeys: projections.NewJourneys(0), sessions: projections.NewSessions()}
}

func (w *writer) happens(c chance) bool { return w.rnd.IntN(1000) < int(c) }

// next lives one more life, or goes on with one that waits.
func (w *writer) next(ctx context.Context) error {
	if len(w.waiting) > 0 && (len(w.idle) == 0 || w.happens(comesBack)) {
		p := w.waiting[0]
		w.waiting = w.waiting[1:]
		return w.goOn(ctx, p)
	}
	i := w.rnd.IntN(len(w.idle))
	p := w.idle[i]
	w.idle[i] = w.idle[len(w.idle)-1]
	w.idle = w.idle[:len(w.idle)-1]
	if err := w.begin(ctx, p); err != nil {
		return err
	}
	return w.goOn(ctx, p)
}

// begin brings a player in who asks for a place.
func (w *writer) begin(ctx context.Context, p *person) error {
	if s, _ := w.sessions.Player(p.id); !s.Open {
		if err := w.enter(ctx, p, w.anyServer()); err != nil {
			return err
		}
	}
	return w.request(ctx, p)
}

func (w *writer) request(ctx context.Context, p *person) error {
	by, session := w.anyProxy(), w.session(p)
	wish := events.Wish{}
	switch {
	case w.happens(regional):
		wish.Region = RegionOf(w.anyServer())
	case w.happens(pinned):
		wish.Pin = w.anyServer()
	}
	return w.do(ctx, p, by, actors.Request{
		Transfer: events.TransferID(by.NewID()), Origin: session.Server,
		Fact: events.Requested{Trigger: events.TriggerCommand, Wish: wish, Origin: session.Server, Name: p.name, Bypass: w.happens(bypasses)},
	})
}

// goOn takes a life to its end, or into the line.
func (w *writer) goOn(ctx context.Context, p *person) error {
	t := w.active(p)
	switch {
	case w.happens(leftBefore):
		return w.giveUp(ctx, p, t)
	case w.happens(otherWish):
		if err := w.do(ctx, p, w.holder(p), actors.Supersede{Transfer: t.ID, By: events.TransferID(w.holder(p).NewID())}); err != nil {
			return err
		}
		if err := w.request(ctx, p); err != nil {
			return err
		}
	}
	for range 3 { // attempts of one dispatch
		served, err := w.attempt(ctx, p)
		if err != nil || served {
			return err
		}
		if w.active(p).Waitlisted && w.active(p).Token.IsZero() {
			break
		}
	}
	return w.park(ctx, p)
}

// attempt reserves a place and moves the player there. served is false when the life goes on
// without a token.
func (w *writer) attempt(ctx context.Context, p *person) (served bool, err error) {
	t, by := w.active(p), w.holder(p)
	spots, decision := w.c.grounds.rank(t.Request.Wish, w.session(p).Server, by)
	if len(spots) == 0 {
		return w.nobodyServes(ctx, p, decision)
	}
	fact := w.c.grounds.promise(spots[0], chronicleTTL, decision)
	defer w.c.grounds.freed(fact.Server)
	if err := w.do(ctx, p, by, actors.Reserve{Transfer: t.ID, Fact: fact, By: by.Source}); err != nil {
		return false, err
	}
	token := w.active(p).Token
	if w.happens(ttlPassed) {
		return false, w.do(ctx, p, by, actors.Expire{Token: token, Reason: events.TTLPassed})
	}
	if err := w.claim(ctx, p, token); err != nil {
		return false, err
	}
	if w.happens(moveRefused) {
		return false, w.do(ctx, p, w.holder(p), actors.Release{Token: token, Reason: events.MoveRefused, Detail: "the player is dead"})
	}
	return true, w.arrive(ctx, p, token)
}

// nobodyServes ends a pinned wish, and puts any other one in line.
func (w *writer) nobodyServes(ctx context.Context, p *person, d events.Decision) (served bool, err error) {
	t := w.active(p)
	switch {
	case t.Request.Wish.Pin != "" || t.Request.Bypass:
		return true, w.end(ctx, p, actors.Fail{Transfer: t.ID, Code: events.NoCandidate, Decision: &d})
	case t.Waitlisted:
		return false, nil
	}
	return false, w.do(ctx, p, w.holder(p), actors.Waitlist{Transfer: t.ID, Decision: d})
}

// park lets a player wait for the next turn.
func (w *writer) park(ctx context.Context, p *person) error {
	if t := w.active(p); t.Facts >= events.MaxTransferFacts {
		return w.end(ctx, p, actors.Fail{Transfer: t.ID, Code: events.AttemptsExhausted})
	}
	w.waiting = append(w.waiting, p)
	return nil
}

// claim takes the token for the holder of the session. Now and then that one dies, and another
// dispatcher that the player has come back through takes the claim away from it.
func (w *writer) claim(ctx context.Context, p *person, token events.Token) error {
	by := w.holder(p)
	if err := w.do(ctx, p, by, actors.Claim{Token: token, By: by.Source}); err != nil || !w.happens(claimerLost) {
		return err
	}
	if err := w.enter(ctx, p, w.session(p).Server); err != nil {
		return err
	}
	by = w.holder(p)
	reopen := actors.Reopen{Token: token, By: by.Source, Claim: w.active(p).ClaimSeq, Evidence: events.Stale, SilenceMs: 4000}
	if err := w.do(ctx, p, by, reopen); err != nil {
		return err
	}
	return w.do(ctx, p, by, actors.Claim{Token: token, By: by.Source})
}

// arrive moves a player whose token is claimed.
func (w *writer) arrive(ctx context.Context, p *person, token events.Token) error {
	t, holder := w.active(p), w.holder(p)
	there := t.Destination()
	move := actors.RecordMove{Token: token, Claim: t.ClaimSeq, How: events.HowTransfer, Result: events.MoveSent}
	lost := w.happens(notArrived)
	if lost {
		move.Result = events.MoveUnknown
	}
	if lost || w.happens(moveNoted) {
		if err := w.do(ctx, p, holder, move); err != nil {
			return err
		}
	}
	if err := w.leave(ctx, p, "transfer"); err != nil {
		return err
	}
	if lost {
		return w.end(ctx, p, actors.Fail{Transfer: t.ID, Code: events.NotArrived, Claim: t.ClaimSeq})
	}
	if err := w.enter(ctx, p, there); err != nil {
		return err
	}
	join := w.session(p).Join
	consume := actors.Consume{Server: there, Incarnation: w.c.grounds.lifeOf(there), Join: join, Held: []events.Token{token}}
	if err := w.do(ctx, p, w.anyProxy(), consume); err != nil {
		return err
	}
	switch {
	case w.happens(leftOnArrival):
		if err := w.leave(ctx, p, "left"); err != nil {
			return err
		}
		return w.end(ctx, p, actors.Fail{Transfer: t.ID, Code: events.PlayerLeft})
	case w.happens(unconfirmed):
		return w.end(ctx, p, actors.Fail{Transfer: t.ID, Code: events.PlacementUnconfirmed})
	}
	return w.end(ctx, p, actors.Complete{Token: token, Server: there, At: t.Reserved.At})
}

// giveUp ends a life whose player has gone.
func (w *writer) giveUp(ctx context.Context, p *person, t projections.Transfer) error {
	if err := w.leave(ctx, p, "left"); err != nil {
		return err
	}
	return w.end(ctx, p, actors.Cancel{Transfer: t.ID, Code: events.GraceOver})
}

// end writes a life's last fact; the player may go then.
func (w *writer) end(ctx context.Context, p *person, c actors.Command) error {
	if err := w.do(ctx, p, w.anyProxy(), c); err != nil {
		return err
	}
	w.idle = append(w.idle, p)
	if !w.session(p).Open || !w.happens(quits) {
		return nil
	}
	return w.leave(ctx, p, "left")
}

// do makes a fact of a command, by the rule that all dispatchers go by.
func (w *writer) do(ctx context.Context, p *person, by actors.Identity, c actors.Command) error {
	if err := w.c.take(ctx); err != nil {
		return err
	}
	s := actors.Standing{Player: w.journeys.Player(p.id)}
	s.Session, s.HasSession = w.sessions.Player(p.id)
	if s.HasSession {
		s.Origin = new(w.c.grounds.lifeOf(s.Session.Server))
	}
	transfer, fact, refusal := actors.Decide(s, c)
	if refusal != nil {
		return fmt.Errorf("%T of %s: %w", c, p.name, refusal)
	}
	e, err := w.c.write(ctx, by, events.TransferKey(p.id, transfer), transfer, s.Guard, fact)
	if err != nil {
		return err
	}
	if refusal := w.journeys.Apply(e, e.Time); refusal != nil {
		return fmt.Errorf("%T of %s at sequence %d: %w", fact, p.name, e.Seq, refusal)
	}
	w.c.counted(transfer, fact)
	return nil
}

// enter opens a session on a server, through any dispatcher.
func (w *writer) enter(ctx context.Context, p *person, server events.HostID) error {
	by := w.anyProxy()
	if old := w.session(p); old.Open {
		w.c.grounds.moved(old.Server, -1)
	}
	w.c.grounds.moved(server, 1)
	return w.record(ctx, p, by, &events.SessionOpened{Session: events.Session{
		Holder: by.Source.ID, HolderIncarnation: by.Source.Incarnation, Kind: w.c.cfg.Kind, Server: server, Join: events.JoinID(by.NewID()), Name: p.name, Protocol: protocol,
	}})
}

// leave closes a player's session.
func (w *writer) leave(ctx context.Context, p *person, reason string) error {
	s := w.session(p)
	w.c.grounds.moved(s.Server, -1)
	return w.record(ctx, p, w.holder(p), &events.SessionClosed{Session: s.Session, Reason: reason})
}

func (w *writer) record(ctx context.Context, p *person, by actors.Identity, f events.Fact) error {
	e, err := w.c.write(ctx, by, events.PlayerKey(p.id), events.TransferID{}, w.session(p).Last, f)
	if err != nil {
		return err
	}
	if refusal := w.sessions.Apply(e, e.Time); refusal != nil {
		return fmt.Errorf("%T of %s at sequence %d: %w", f, p.name, e.Seq, refusal)
	}
	return nil
}

func (w *writer) session(p *person) projections.Session {
	s, _ := w.sessions.Player(p.id)
	return s
}

// active is the player's transfer, zero when none is under way.
func (w *writer) active(p *person) projections.Transfer {
	if t := w.journeys.Player(p.id).Active; t != nil {
		return *t
	}
	return projections.Transfer{}
}

// holder is the dispatcher that holds the player's session.
func (w *writer) holder(p *person) actors.Identity {
	s := w.session(p)
	for _, x := range w.c.proxies {
		if x.Source.ID == s.Holder {
			return x
		}
	}
	return w.anyProxy()
}

func (w *writer) anyProxy() actors.Identity { return w.c.proxies[w.rnd.IntN(len(w.c.proxies))] }

func (w *writer) anyServer() events.HostID {
	return w.c.cfg.Backends[w.rnd.IntN(len(w.c.cfg.Backends))]
}
