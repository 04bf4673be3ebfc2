package actors

import (
	"context"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
)

// answerReserve promises a coordinate. The same (transfer, attempt) gets the same promise.
func (b *Backend) answerReserve(ctx context.Context, l *life, q events.ReserveAsk) events.ReserveAnswer {
	token := events.Token{Transfer: q.Transfer, Attempt: q.Attempt}
	if x := l.pool.find(token); x != nil {
		return b.promised(l, x)
	}
	seats, refusal := b.seats(ctx, l, q)
	if refusal != nil {
		return b.notPromised(l, q.Region, refusal)
	}
	region, at, refusal := b.safeCoordinate(ctx, l, q, seats)
	if refusal != nil {
		return b.notPromised(l, q.Region, refusal)
	}
	hold := time.Duration(q.TTLMs)*time.Millisecond + b.timing.TTLSlack
	player := Player{ID: q.Player, Name: q.Name}
	x := l.pool.promise(token, player, region, at, hold, l.Now())
	b.cfg.World.Expect(player, hold)
	return b.promised(l, x)
}

// seats tells how many players may be promised a place, or why nobody may.
func (b *Backend) seats(ctx context.Context, l *life, q events.ReserveAsk) (int, *events.Refusal) {
	if q.Incarnation != l.Source.Incarnation {
		return 0, events.Refuse(events.WrongIncarnation, "this is another life of "+string(l.Source.ID))
	}
	if q.TTLMs <= 0 || q.TTLMs > time.Hour.Milliseconds() || q.Attempt < 1 || q.Attempt > events.MaxAttempts {
		return 0, events.Refuse(events.BadRequest, "ttl or attempt out of range")
	}
	h, err := b.cfg.World.Health(ctx)
	if s := b.state(l, err); s == events.Starting || s == events.ShuttingDown || err != nil {
		return 0, events.Refuse(events.NotReady, string(s))
	}
	return h.MaxPlayers - h.Players, nil
}

// safeCoordinate pops a coordinate and looks at it again; an unsafe one is replaced once.
func (b *Backend) safeCoordinate(ctx context.Context, l *life, q events.ReserveAsk, seats int) (string, events.Position, *events.Refusal) {
	for range 2 {
		region, at, code := l.pool.take(q.Region, q.World, seats)
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
		l.pool.dropped()
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
	if !l.pool.giveBack(events.Token{Transfer: q.Transfer, Attempt: q.Attempt}) {
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
	if err := b.cfg.World.Tell(ctx, p.Player, b.text(q.Message, q.Args)); err != nil {
		return events.Answer{Code: events.NotReady, Detail: err.Error()}
	}
	return events.Answer{Code: events.OK}
}
