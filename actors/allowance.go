package actors

import (
	"context"
	"strconv"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Names of limits. Those of events are the events' own.
const (
	LimitCommand = "rtp"
	LimitJoin    = "join"
	LimitAPI     = "api"
)

// Limits say how often players may be moved, by the name of what asks for it.
type Limits map[string]Limit

// Limit says how often a player may be moved. What counts is the arrival.
type Limit struct {
	Cooldown  time.Duration // rest between an arrival and the next request, in whole seconds; 0: none
	PerDay    int           // arrivals in a day of UTC; 0: any number
	PerServer bool          // counted apart for each server where the player asks
}

// SetLimits replaces the limits. It does not block; it holds from the next request and the
// next arrival on. A rest that has begun goes on.
func (d *Dispatcher) SetLimits(l Limits) { d.limits.Store(&l) }

// allowance is the limit that holds for a request, and where it counts.
type allowance struct {
	Limit

	name   string
	server events.HostID // empty: on the whole network
}

// allowanceOf gives the limit of a request, nil when it has none.
func (d *Dispatcher) allowanceOf(q events.Requested) *allowance {
	name := limitName(q.Trigger, q.Via)
	l := (*d.limits.Load())[name]
	if l.Cooldown <= 0 && l.PerDay <= 0 {
		return nil
	}
	a := &allowance{Limit: l, name: name}
	if l.PerServer {
		a.server = q.Origin
	}
	return a
}

func limitName(t events.Trigger, via string) string {
	switch t {
	case events.TriggerCommand:
		return LimitCommand
	case events.TriggerJoin:
		return LimitJoin
	case events.TriggerEvent:
		return via
	case events.TriggerAPI:
		return LimitAPI
	case events.TriggerEvacuate, events.TriggerAllocate: // nobody asked for it
	}
	return ""
}

// covers tells that a transfer counts for this allowance.
func (a *allowance) covers(t projections.Transfer) bool {
	return limitName(t.Request.Trigger, t.Request.Via) == a.name && (a.server == "" || t.Request.Origin == a.server)
}

// newest is the newest arrival that counts for this allowance, nil when none is held. done
// is in the order of the log.
func (a *allowance) newest(done []projections.Transfer) (last *projections.Transfer) {
	for i := range done {
		if done[i].Phase == projections.Completed && a.covers(done[i]) {
			last = &done[i]
		}
	}
	return last
}

// writeMeasured is writeFresh for a request, which it refuses beyond the player's limit.
func (d *Dispatcher) writeMeasured(ctx context.Context, w *warrant, c Request) (landed, *events.Refusal, error) {
	c.Limited = d.allowanceOf(c.Fact)
	if c.Limited != nil && w.permits(ctx, NodeNoCooldown) {
		c.Limited = nil
	}
	if c.Limited != nil {
		known, refusal, err := d.exhausted(ctx, w.player, c.Limited)
		if refusal != nil || err != nil {
			return landed{}, refusal, err
		}
		c.Known = known
	}
	return d.writeFresh(ctx, w.player, c)
}

// exhausted refuses a request of a player who still rests, or has used up the day. The store
// says so, and the fold where the arrival has not been charged yet: whoever was to do it may
// have died. The detail is the number of seconds to wait. known is the arrival that was
// looked at.
func (d *Dispatcher) exhausted(ctx context.Context, player events.PlayerID, a *allowance) (known events.TransferID, refusal *events.Refusal, err error) {
	if err := d.freshen(ctx, player); err != nil {
		return known, nil, err
	}
	newest := a.newest(d.view.Player(player).Done)
	if newest != nil {
		known = newest.ID
	}
	left, err := d.restLeft(ctx, player, a, newest)
	if err == nil && left > 0 {
		return known, events.Refuse(events.Resting, seconds(left)), nil
	}
	if err != nil || a.PerDay <= 0 {
		return known, nil, err
	}
	uses, err := d.countUse(ctx, player, a, newest)
	if err != nil || uses == nil || uses.Count < a.PerDay {
		return known, nil, err
	}
	return known, events.Refuse(events.LimitReached, seconds(time.Unix(uses.Until, 0).Sub(d.Now()))), nil
}

// freshen waits until the fold holds all of the player that the log's leader holds.
func (d *Dispatcher) freshen(ctx context.Context, player events.PlayerID) error {
	last, err := d.leaderSeq(ctx, player)
	if err != nil {
		return err
	}
	return d.view.WaitFolded(ctx, events.Transfers, last)
}

// restLeft is how long a player still rests: while the fact of it stands, or until the
// newest arrival is old enough.
func (d *Dispatcher) restLeft(ctx context.Context, player events.PlayerID, a *allowance, newest *projections.Transfer) (time.Duration, error) {
	if a.Cooldown <= 0 {
		return 0, nil
	}
	if newest != nil {
		if left := a.Cooldown - d.Now().Sub(newest.Seen.Last); left > 0 {
			return left, nil
		}
	}
	e, err := d.standsAt(ctx, events.Limits, events.CooldownKey(player, a.name, a.server))
	f, rests := e.Fact.(*events.CooldownSet)
	if err != nil || !rests {
		return 0, err
	}
	whole := time.Duration(f.Seconds) * time.Second
	return min(max(whole-d.Now().Sub(e.Stored), time.Second), whole), nil // for the eye alone: the two clocks may differ
}

// seconds is a length as machines read it, rounded up.
func seconds(d time.Duration) string { return strconv.FormatInt(max(ceil(d, time.Second), 1), 10) }

// charge writes down that a player has arrived, once, however often it is called.
func (d *Dispatcher) charge(ctx context.Context, t projections.Transfer) error {
	a := d.allowanceOf(*t.Request)
	if a == nil {
		return nil
	}
	if a.Cooldown > 0 {
		_, err := d.amend(ctx, events.Limits, events.CooldownKey(t.Player, a.name, a.server), func(now events.Fact) (events.Fact, time.Duration) {
			left := ceil(a.Cooldown-d.Now().Sub(t.Seen.Last), time.Second)
			if f, ok := now.(*events.CooldownSet); ok && f.Transfer == t.ID || left <= 0 {
				return nil, 0
			}
			return &events.CooldownSet{Limit: a.name, Server: a.server, Seconds: left, Transfer: t.ID}, time.Duration(left) * time.Second
		})
		if err != nil {
			return err
		}
	}
	if a.PerDay <= 0 {
		return nil
	}
	_, err := d.countUse(ctx, t.Player, a, &t)
	return err
}

// countUse gives the count of the player's day, with the arrival in it; nil is none. An
// arrival of another day counts no more.
func (d *Dispatcher) countUse(ctx context.Context, player events.PlayerID, a *allowance, arrival *projections.Transfer) (*events.UsesCounted, error) {
	now := d.Now()
	fact, err := d.amend(ctx, events.Limits, events.UsesKey(player, a.name, a.server), func(stands events.Fact) (events.Fact, time.Duration) {
		f, _ := stands.(*events.UsesCounted)
		if arrival == nil || f != nil && f.Transfer == arrival.ID || !endOfDay(arrival.Seen.Last).Equal(endOfDay(now)) {
			return nil, 0
		}
		next := events.UsesCounted{Limit: a.name, Server: a.server, Count: 1, Until: endOfDay(now).Unix(), Transfer: arrival.ID}
		if f != nil && f.Until == next.Until {
			next.Count += f.Count
		}
		return &next, time.Duration(ceil(endOfDay(now).Sub(now), time.Second)) * time.Second
	})
	f, _ := fact.(*events.UsesCounted)
	if f != nil && f.Until <= now.Unix() {
		f = nil
	}
	return f, err
}

// endOfDay is when the day of UTC ends in which t lies.
func endOfDay(t time.Time) time.Time { return t.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour) }
