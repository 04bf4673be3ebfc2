package actors

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// Up implements WorldEvents.
func (b *Backend) Up(worldID string) {
	b.mu.Lock()
	restarted := b.worldID != "" && b.worldID != worldID
	b.up, b.worldID = true, worldID
	if restarted {
		b.present = map[events.PlayerID]*presence{}
		b.moves = map[events.PlayerID]*move{}
	}
	b.mu.Unlock()
	if restarted {
		if l := b.life.Load(); l != nil {
			l.serving.Store(false) // it ends
		}
		select {
		case b.reborn <- struct{}{}:
		default:
		}
	}
	b.beatNow()
}

// Down implements WorldEvents.
func (b *Backend) Down(err error) {
	b.logger.Error("the game server does not answer, trying on", "error", err)
	b.mu.Lock()
	b.up, b.missed = false, true
	b.mu.Unlock()
	b.beatNow()
}

// Joined implements WorldEvents.
func (b *Backend) Joined(p Player) {
	at := presence{Player: p, join: events.JoinID(b.cfg.NewID())}
	b.mu.Lock()
	b.present[p.ID] = &at
	b.mu.Unlock()
	b.background(func(ctx context.Context) {
		b.announceJoin(ctx, at)
		b.arrive(ctx, at)
	})
}

// Left implements WorldEvents.
func (b *Backend) Left(p Player, reason string) {
	b.mu.Lock()
	at, ok := b.present[p.ID]
	delete(b.present, p.ID)
	b.mu.Unlock()
	if !ok {
		return
	}
	b.background(func(ctx context.Context) {
		l := b.life.Load()
		err := announce(ctx, l.Identity, b.cfg.Bus, events.NewsOf(l.Source.ID, events.VerbLeft),
			events.Left{Player: p.ID, Name: p.Name, Join: at.join, Reason: reason})
		if err != nil {
			b.logger.Warn("leave not announced", "player", p.ID, "error", err)
		}
	})
}

// Asked implements WorldEvents.
func (b *Backend) Asked(p Player, where string) {
	b.background(func(ctx context.Context) {
		answered := make(chan struct{})
		b.background(func(ctx context.Context) { b.tellLate(ctx, p, answered) })
		key, args := b.answerAsked(ctx, p, where)
		close(answered)
		if err := b.cfg.World.Tell(ctx, p, b.text(p, key, args)); err != nil {
			b.logger.Warn("answer not shown", "player", p.ID, "error", err)
		}
	})
}

// NoSuchPlace implements WorldEvents.
func (b *Backend) NoSuchPlace(p Player, asked string, places []string) {
	b.background(func(ctx context.Context) {
		detail := []events.Arg{{Name: "detail", Value: cutShort(asked) + " (" + strings.Join(places, ", ") + ")"}}
		if err := b.cfg.World.Tell(ctx, p, b.text(p, "refused."+string(events.RegionMissing), detail)); err != nil {
			b.logger.Warn("answer not shown", "player", p.ID, "error", err)
		}
	})
}

// answerPatience is how long a player who asked reads nothing.
const answerPatience = 1500 * time.Millisecond

// tellLate tells a player who asked that the answer takes its time, unless it comes soon.
func (b *Backend) tellLate(ctx context.Context, p Player, answered <-chan struct{}) {
	late := time.NewTimer(answerPatience)
	defer late.Stop()
	select {
	case <-late.C:
		_ = b.cfg.World.Tell(ctx, p, b.text(p, "transfer.slow", nil))
	case <-answered:
	case <-ctx.Done():
	}
}

// Cancelled implements WorldEvents.
func (b *Backend) Cancelled(p Player) {
	b.background(func(ctx context.Context) {
		tried := b.errands.end(p.ID)
		a := b.Cancel(ctx, p.ID)
		key, args := "refused."+string(a.Code), []events.Arg{{Name: "detail", Value: a.Detail}}
		if a.Code == events.OK {
			return // the dispatcher tells the player
		}
		switch {
		case tried:
			key = "failed." + string(events.Cancel)
		case a.Code == events.NotKnown:
			key = "transfer.none"
		}
		if err := b.cfg.World.Tell(ctx, p, b.text(p, key, args)); err != nil {
			b.logger.Warn("answer not shown", "player", p.ID, "error", err)
		}
	})
}

// Cancel ends the transfer of a player who is here, by the player's will; see
// events.CancelAsk. TRANSPORT_DOWN when no dispatcher answered within 3 s.
func (b *Backend) Cancel(ctx context.Context, player events.PlayerID) events.Answer {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	l := b.life.Load()
	a, err := ask[events.Answer](ctx, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbCancel), events.CancelAsk{Player: player})
	if err != nil {
		return events.Answer{Code: events.TransportDown, Detail: err.Error()}
	}
	return a
}

// answerAsked gives the message that answers a player. What is not a place is refused here,
// with what the player wrote: it never becomes another wish.
func (b *Backend) answerAsked(ctx context.Context, p Player, where string) (string, []events.Arg) {
	wish, err := ParseWish(where)
	if err != nil {
		return "refused." + string(events.RegionMissing), []events.Arg{{Name: "detail", Value: err.Error()}}
	}
	return b.request(ctx, p, wish)
}

// request opens a transfer for a player and gives the message that answers the player. One
// id for all tries: a lost answer cannot open a second transfer.
func (b *Backend) request(ctx context.Context, p Player, wish events.Wish) (string, []events.Arg) {
	q := events.RequestAsk{
		Player: p.ID, Name: p.Name, NativeID: p.NativeID, Transfer: events.TransferID(b.cfg.NewID()), Trigger: events.TriggerCommand, Wish: wish,
	}
	a := b.askOnce(ctx, q)
	if b.isLobby() && passes(a.Code) {
		b.background(func(ctx context.Context) { b.tryOn(ctx, p, q) })
	}
	return answerText(a)
}

// answerText is what a player reads about a request.
func answerText(a events.RequestAnswer) (string, []events.Arg) {
	switch a.Code {
	case events.Accepted:
		return "transfer.accepted", nil
	case events.Active:
		return "transfer.active", []events.Arg{{Name: "state", Value: a.State}}
	default:
		return "refused." + string(a.Code), []events.Arg{{Name: "detail", Value: a.Detail}, {Name: "wait", Value: a.Detail}}
	}
}

// askOnce passes a request on, if the rate allows it. TRANSPORT_DOWN: no dispatcher has answered.
func (b *Backend) askOnce(ctx context.Context, q events.RequestAsk) events.RequestAnswer {
	if !b.requests.take(b.cfg.Now()) {
		return events.RequestAnswer{Code: events.RateLimited}
	}
	for range 3 {
		l := b.life.Load()
		once, cancel := context.WithTimeout(ctx, 3*time.Second)
		a, err := ask[events.RequestAnswer](once, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbRequest), q)
		cancel()
		if err == nil {
			return a
		}
		b.logger.Warn("request not answered", "player", q.Player, "error", err)
		if !sleep(ctx, 300*time.Millisecond) {
			break
		}
	}
	return events.RequestAnswer{Code: events.TransportDown}
}

// announceEvery is how often a backend repeats who is there, for dispatchers that missed it.
const announceEvery = 10 * time.Second

func (b *Backend) announceAgain(ctx context.Context, _ *life) error {
	for sleep(ctx, announceEvery) {
		b.forgetMoves()
		for _, p := range b.everybody() {
			b.announceJoin(ctx, p)
		}
	}
	return ctx.Err()
}

func (b *Backend) everybody() []presence {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]presence, 0, len(b.present))
	for _, p := range b.present {
		out = append(out, *p)
	}
	return out
}

func (b *Backend) announceJoin(ctx context.Context, p presence) {
	l := b.life.Load()
	err := announce(ctx, l.Identity, b.cfg.Bus, events.NewsOf(l.Source.ID, events.VerbJoined),
		events.Joined{Player: p.ID, Name: p.Name, Join: p.join, Incarnation: l.Source.Incarnation, Remote: p.Remote})
	if err != nil {
		b.logger.Warn("join not announced, will be repeated", "player", p.ID, "error", err)
	}
}

// arrive finds out what a player who is here came for, and puts the player there. While no
// dispatcher can be reached a player who was promised a place stays at spawn and is told so.
func (b *Backend) arrive(ctx context.Context, p presence) {
	toldWaiting := false
	for pause := 100 * time.Millisecond; b.stillHere(p); pause = min(2*pause, time.Second) {
		l := b.life.Load()
		held, listed := l.pool.held(p.ID)
		a, err := b.askArrived(ctx, l, p, held, listed)
		switch {
		case err == nil && a.Code == events.Place:
			b.place(ctx, l, p, a)
			return
		case err == nil && a.Code == events.WaitABit:
			pause = waitOf(a)
		case err == nil && a.Code != events.TransportDown:
			return // a plain join
		case len(held) == 0 && !errors.Is(err, context.DeadlineExceeded) && pause >= time.Second:
			return
		case len(held) > 0 && !toldWaiting:
			toldWaiting = true
			_ = b.cfg.World.Tell(ctx, p.Player, b.text(p.Player, "transfer.unconfirmed", nil))
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

// waitOf is how long a dispatcher lets an arrival wait: as long as it says, within what an arrival can wait at all.
func waitOf(a events.ArrivedAnswer) time.Duration {
	const least, most = 10 * time.Millisecond, 10 * time.Second
	return time.Duration(min(max(a.WaitMs, least.Milliseconds()), most.Milliseconds())) * time.Millisecond
}

func (b *Backend) askArrived(ctx context.Context, l *life, p presence, held []events.Token, listed uint64) (events.ArrivedAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return ask[events.ArrivedAnswer](ctx, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbArrived), events.ArrivedAsk{
		Player: p.ID, Name: p.Name, Join: p.join, Incarnation: l.Source.Incarnation, Held: held, Listed: &listed,
	})
}

func (b *Backend) stillHere(p presence) bool {
	now, ok := b.here(p.ID)
	return ok && now.join == p.join
}

// place teleports an arrived player, once, and reports where the player stands. A coordinate
// that is no longer kept for the player may be another one's.
func (b *Backend) place(ctx context.Context, l *life, p presence, a events.ArrivedAnswer) {
	first, stands := l.pool.spend(a.Token, a.At)
	switch {
	case !stands:
		b.reportPlaced(ctx, l, events.PlacedAsk{
			Player: p.ID, Token: a.Token, Code: events.PlacementUnconfirmed, Detail: "the place was not kept so long", At: a.At,
		})
		return
	case !first:
		return // the same arrival was answered twice, and the other answer is being carried out
	}
	b.cfg.World.Expect(p.Player, 0)
	q := events.PlacedAsk{Player: p.ID, Token: a.Token, Code: events.OK}
	at, err := b.cfg.World.Place(ctx, p.Player, a.At)
	q.At = at
	if err != nil {
		q.Code, q.Detail, q.At = events.PlacementUnconfirmed, err.Error(), a.At
	}
	b.reportPlaced(ctx, l, q)
	l.pool.settle(a.Token)
	b.forget(a.At)
	if err == nil {
		_ = b.cfg.World.Tell(ctx, p.Player, b.text(p.Player, "transfer.arrived", nil))
	}
}

// reportPlaced repeats the report until a dispatcher has taken it or the transfer's own
// deadline has passed, which does not run while the network is out of reach.
func (b *Backend) reportPlaced(ctx context.Context, l *life, q events.PlacedAsk) {
	began := l.Now()
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		once, end := context.WithTimeout(ctx, 3*time.Second)
		a, err := ask[events.Answer](once, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbPlaced), q)
		end()
		if err == nil && a.Code != events.TransportDown {
			return
		}
		by := b.timing.Load()
		if l.outOfReach(by.Stale) {
			began = l.Now()
		}
		if l.Now().Sub(began) > by.Placement || !sleep(ctx, pause) {
			return
		}
	}
}
