package actors

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

const (
	// EvacuationRate is how many players are asked to go in a second, unless somebody says
	// otherwise; MinEvacuationRate and MaxEvacuationRate bound what may be said.
	EvacuationRate    = 2.0
	MinEvacuationRate = 0.1
	MaxEvacuationRate = 1000.0

	// EvacuationRetry is how long a player who could not be moved is left alone.
	EvacuationRetry = 30 * time.Second

	evacuationLease = 15 * time.Second
	evacuationLook  = time.Second
)

// runEvacuations empties servers as long as operators want it, one loop for each, until ctx ends.
func (d *Dispatcher) runEvacuations(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	running, ended := map[events.HostID]bool{}, make(chan events.HostID)
	for {
		for host := range d.view.Controls().Evacuated {
			if running[host] {
				continue
			}
			running[host] = true
			group.Go(func() {
				d.evacuate(ctx, host)
				select {
				case ended <- host:
				case <-ctx.Done():
				}
			})
		}
		select {
		case <-d.evacuations:
		case host := <-ended:
			delete(running, host)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// evacuate asks the players of a server to go, lowest session first, at the pace that was
// ordered. Dispatchers take turns by a lease; two at once do no harm, since a player has one
// transfer at a time. The transfers are everybody's: the holder of each session dispatches.
func (d *Dispatcher) evacuate(ctx context.Context, host events.HostID) {
	l := &lease{d: d, name: "evacuate." + string(host), ttl: evacuationLease}
	defer l.giveBack(ctx)
	var order *events.EvacuateSet
	var since time.Time
	for ctx.Err() == nil {
		controls := d.view.Controls()
		now, asked := controls.Evacuated[host], false
		if now == nil {
			return
		}
		if now != order {
			order, since = now, d.Now()
		}
		if d.view.Ready() && !controls.Killed && l.take(ctx) {
			asked = d.evacuateSome(ctx, l, order, since)
		}
		if !asked {
			sleep(ctx, evacuationLook)
		}
	}
}

// evacuateSome asks as many players as are due in a second by an order seen at since, and
// waits after each, as long as the lease is held. It reports whether there was anybody to ask.
func (d *Dispatcher) evacuateSome(ctx context.Context, l *lease, order *events.EvacuateSet, since time.Time) bool {
	all, step := d.toEvacuate(order.Host, since), evacuationStep(order.PerSecond)
	for i, p := range all {
		if i > 0 && (time.Duration(i)*step >= evacuationLook || !l.take(ctx)) || d.view.Controls().Evacuated[order.Host] != order || ctx.Err() != nil {
			break
		}
		d.evacuatePlayer(ctx, order.Host, p)
		sleep(ctx, step)
	}
	return len(all) > 0
}

// evacuationStep is the time from one player to the next.
func evacuationStep(perSecond float64) time.Duration {
	if math.IsNaN(perSecond) || perSecond <= 0 {
		perSecond = EvacuationRate
	}
	return time.Duration(float64(time.Second) / min(max(perSecond, MinEvacuationRate), MaxEvacuationRate))
}

// evacuee is a player who stands on a server that is being emptied.
type evacuee struct {
	player  events.PlayerID
	session projections.Session
}

// toEvacuate lists the players of a server who are to be asked now, lowest session first: not
// who is on the way or in line already, nor who could not be moved a moment ago. An order
// seen at since is for everybody once.
func (d *Dispatcher) toEvacuate(host events.HostID, since time.Time) []evacuee {
	var out []evacuee
	w := d.watch()
	for player, s := range d.view.OpenOn(host) {
		if p := d.view.Player(player); p.Active != nil || leftAlone(p, host, since, w.now) || w.presumedDead(s.Holder, s.HolderIncarnation).yes {
			continue
		}
		out = append(out, evacuee{player, s})
	}
	slices.SortFunc(out, func(a, b evacuee) int { return cmp.Compare(a.session.Number, b.session.Number) })
	return out
}

// leftAlone tells that a player of a server was asked since then, could not be moved, and is
// not to be asked again yet. A client that is too old does not grow younger.
func leftAlone(p projections.Player, host events.HostID, since, now time.Time) bool {
	t := p.Last()
	return t != nil && t.Request.Trigger == events.TriggerEvacuate && t.Request.Origin == host && !t.Seen.Last.Before(since) &&
		(t.Code == events.ClientTooOld || now.Sub(t.Seen.Last) < EvacuationRetry)
}

func (d *Dispatcher) evacuatePlayer(ctx context.Context, host events.HostID, p evacuee) {
	a := d.Open(ctx, events.RequestAsk{
		Player: p.player, Name: p.session.Name, Transfer: events.TransferID(d.NewID()), Trigger: events.TriggerEvacuate,
	}, host)
	switch a.Code {
	case events.Accepted:
		d.tellPlayer(p.player, "transfer.leaving", nil)
	case events.Active, events.NotHere: // on the way already, or gone
	default:
		d.logger.Warn("a player is not asked to leave", "server", host, "player", p.player, "code", a.Code, "detail", a.Detail)
	}
}

// evacuates tells that a transfer was not the player's own wish: the player need not ask for
// room in line, and plays on while there is none elsewhere.
func evacuates(r *events.Requested) bool { return r.Trigger == events.TriggerEvacuate }
