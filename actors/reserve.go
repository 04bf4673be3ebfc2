package actors

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
)

// answerReserve promises a coordinate. The same (transfer, attempt) gets the same promise,
// for as long again: whoever asks counts from the own question.
// It is silent while it does not know whether it was replaced.
func (b *Backend) answerReserve(ctx context.Context, l *life, q events.ReserveAsk) events.ReserveAnswer {
	if !b.sure(ctx, l) {
		return events.ReserveAnswer{}
	}
	if refusal := refuseAsk(l, q); refusal != nil {
		return b.notPromised(l, q.Region, refusal)
	}
	token := events.Token{Transfer: q.Transfer, Attempt: q.Attempt}
	hold := time.Duration(q.TTLMs)*time.Millisecond + b.timing.Load().TTLSlack
	player := Player{ID: q.Player, Name: q.Name}
	if x := l.pool.renew(token, hold); x != nil {
		b.cfg.World.Expect(player, hold)
		return b.promised(l, x)
	}
	region, at, refusal := b.givePlace(ctx, l, q)
	if refusal != nil {
		return b.notPromised(l, q.Region, refusal)
	}
	x := l.pool.promise(token, player, region, at, hold)
	b.cfg.World.Expect(player, hold)
	return b.promised(l, x)
}

func refuseAsk(l *life, q events.ReserveAsk) *events.Refusal {
	switch {
	case q.Incarnation != l.Source.Incarnation:
		return events.Refuse(events.WrongIncarnation, "this is another life of "+string(l.Source.ID))
	case q.TTLMs <= 0 || q.TTLMs > maxTTL.Milliseconds() || q.Attempt < 1 || q.Attempt > events.MaxAttempts:
		return events.Refuse(events.BadRequest, "ttl or attempt out of range")
	}
	return nil
}

// givePlace takes a coordinate for a request: at the pace of this destination the lowest place
// that asks goes first. Who does not wait in line does not wait here either.
func (b *Backend) givePlace(ctx context.Context, l *life, q events.ReserveAsk) (string, events.Position, *events.Refusal) {
	switch {
	case q.Fresh:
		return b.placeNow(ctx, l, q)
	case !l.pool.keeps(q.Region, q.World):
		return "", events.Position{}, events.Refuse(events.NoCoordinate, "")
	case !l.slots.enter(ctx, q.Place):
		return "", events.Position{}, events.Refuse(events.Paced, "")
	}
	region, at, refusal := b.placeNow(ctx, l, q)
	if refusal != nil {
		l.slots.giveBack()
	}
	return region, at, refusal
}

func (b *Backend) placeNow(ctx context.Context, l *life, q events.ReserveAsk) (string, events.Position, *events.Refusal) {
	free, refusal := b.seats(ctx, l)
	if refusal != nil {
		return "", events.Position{}, refusal
	}
	region, at, refusal := b.safeCoordinate(ctx, l, q, free)
	if refusal != nil && refusal.Code == events.NoCoordinate && q.Fresh {
		return b.freshCoordinate(ctx, l, q, free)
	}
	return region, at, refusal
}

// freshCoordinate looks for a coordinate for one player, as long as the caller waits. The seat
// is taken first: the search takes time, and others ask meanwhile.
func (b *Backend) freshCoordinate(ctx context.Context, l *life, q events.ReserveAsk, free seats) (string, events.Position, *events.Refusal) {
	i := slices.IndexFunc(b.cfg.Regions, func(r Region) bool {
		return (q.Region == "" || q.Region == r.Name) && (q.World == "" || q.World == r.World)
	})
	switch {
	case i < 0:
		return "", events.Position{}, events.Refuse(events.NoCoordinate, "")
	case !l.pool.sit(free):
		return "", events.Position{}, events.Refuse(events.Full, "")
	}
	r := b.cfg.Regions[i]
	at, err := findIn(ctx, b.cfg.World, r)
	if err != nil {
		l.pool.stand()
		return "", at, events.Refuse(events.NoCoordinate, err.Error())
	}
	l.pool.adopt(r.Name)
	return r.Name, at, nil
}

// seats tells how many players may be promised a place, or why nobody may.
func (b *Backend) seats(ctx context.Context, l *life) (seats, *events.Refusal) {
	settled := l.pool.arrived()
	h, err := b.cfg.World.Health(ctx)
	if s := b.state(l, err); s == events.Starting || s == events.ShuttingDown || err != nil {
		return seats{}, events.Refuse(events.NotReady, string(s))
	}
	return seats{free: h.MaxPlayers - h.Players, settled: settled}, nil
}

// safeCoordinate pops a coordinate and looks at it again; an unsafe one is replaced once.
func (b *Backend) safeCoordinate(ctx context.Context, l *life, q events.ReserveAsk, free seats) (string, events.Position, *events.Refusal) {
	for range 2 {
		region, at, code := l.pool.take(q.Region, q.World, free)
		if code != events.OK {
			return "", at, events.Refuse(code, "")
		}
		err := b.cfg.World.Check(ctx, at)
		if err == nil {
			return region, at, nil
		}
		if !errors.Is(err, ErrUnsafe) {
			l.pool.put(region, at)
			return "", at, events.Refuse(events.NotReady, err.Error())
		}
		l.pool.dropped(region)
		b.forget(at)
	}
	return "", events.Position{}, events.Refuse(events.Unsafe, "two coordinates in a row were no longer safe")
}

func (b *Backend) promised(l *life, x *promise) events.ReserveAnswer {
	return events.ReserveAnswer{
		Code: events.Promised, Server: l.Source.ID, Incarnation: l.Source.Incarnation,
		Promise: x.number, Region: x.region, At: x.at, Kept: l.pool.kept(x.region),
	}
}

func (b *Backend) notPromised(l *life, region string, r *events.Refusal) events.ReserveAnswer {
	return events.ReserveAnswer{
		Code: r.Code, Detail: r.Detail, Server: l.Source.ID, Incarnation: l.Source.Incarnation, Region: region, Kept: l.pool.kept(region),
	}
}

// answerRelease takes a promise back.
func (b *Backend) answerRelease(l *life, q events.ReleaseAsk) events.Answer {
	if q.Incarnation != l.Source.Incarnation || !l.pool.giveBack(events.Token{Transfer: q.Transfer, Attempt: q.Attempt}, q.Promise) {
		return events.Answer{Code: events.NotKnown}
	}
	b.cfg.World.Expect(Player{ID: q.Player}, 0)
	b.beatNow()
	return events.Answer{Code: events.OK}
}

// forget lets go of a coordinate's chunk, in the background.
func (b *Backend) forget(at events.Position) {
	b.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		if err := b.cfg.World.Forget(ctx, at); err != nil {
			b.logger.Warn("chunk not let go, the next start will", "error", err)
		}
	})
}

// answerTell shows a message to a player who is here.
func (b *Backend) answerTell(ctx context.Context, q events.TellAsk) events.Answer {
	p, ok := b.here(q.Player)
	if !ok {
		return events.Answer{Code: events.NotHere}
	}
	reader := p.Player
	if q.Locale != "" {
		reader.Locale = q.Locale
	}
	if err := b.cfg.World.Tell(ctx, p.Player, b.text(reader, q.Message, q.Args)); err != nil {
		return events.Answer{Code: events.NotReady, Detail: err.Error()}
	}
	b.noteWait(p, q.Message)
	return events.Answer{Code: events.OK}
}
