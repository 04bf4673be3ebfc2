package actors

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// tellPatience is how long a message waits for a player who is between two servers.
const tellPatience = 30 * time.Second

// noteEnd hears every fold, and tells the players of this dispatcher why their transfers
// ended, whoever has written it: a writer may die before it can tell, or never learn that
// its fact has landed.
func (d *Dispatcher) noteEnd(c projections.Change) {
	t, ok := d.view.Transfer(c.Event.Correlation)
	if !ok || t.Last != c.Seq || t.Phase != projections.Failed && t.Phase != projections.Cancelled {
		return
	}
	detail := ""
	switch f := c.Event.Fact.(type) {
	case *events.Failed:
		detail = f.Detail
	case *events.Cancelled:
		detail = f.Detail
	default: // a key that is full ends without a fact of its own
	}
	q := endText(t, detail)
	d.background(func(ctx context.Context) { d.tellHeld(ctx, q, t) })
}

// endText says why a transfer ended.
func endText(t projections.Transfer, detail string) events.TellAsk {
	return events.TellAsk{Player: t.Player, Message: "failed." + string(t.Code), Args: []events.Arg{
		{Name: "code", Value: string(t.Code)}, {Name: "detail", Value: detail},
		{Name: "region", Value: t.Request.Wish.Region}, {Name: "server", Value: string(t.Destination())},
	}}
}

// tellMissed tells a player who has come back of an end that came while the player was away,
// and longer ago than messages wait: who was in line would else go on waiting.
func (d *Dispatcher) tellMissed(player events.PlayerID) {
	s, _ := d.view.Session(player)
	done := d.view.Player(player).Done
	if !s.Open || len(done) == 0 {
		return
	}
	t := done[len(done)-1]
	if !missed(t, s) {
		return
	}
	q := endText(t, "")
	d.tellPlayer(player, q.Message, q.Args)
}

// missed tells that nobody can have told a player of an end before this session: the one before
// it had begun before the end, and was over then. Where its close is not held its holder had died,
// and only an absence that was judged too long proves that it was.
func missed(t projections.Transfer, s projections.Session) bool {
	ended := t.Phase == projections.Failed || t.Phase == projections.Cancelled
	away := s.Away > 0 && !t.Seen.Last.Before(s.OpenSeen.Add(-s.Away)) || s.Away == 0 && t.Code == events.GraceOver
	return ended && away && s.Before.Before(t.Seen.Last) && s.OpenSeen.Sub(t.Seen.Last) >= tellPatience
}

// tellHeld shows the message of an end to its player as soon as this dispatcher holds the
// player, within tellPatience. Another living holder that has heard of the end tells the player
// itself, wherever the player goes meanwhile, as soon as the player's server answers; for one
// that has not, the first in turn does.
func (d *Dispatcher) tellHeld(ctx context.Context, q events.TellAsk, ended projections.Transfer) {
	happened := ended.Seen.Last
	ctx, cancel := context.WithTimeout(ctx, tellPatience-d.Now().Sub(happened))
	defer cancel()
	var other projections.Session
	since, mine := d.Now(), false
	for ctx.Err() == nil {
		s, ok := d.view.Session(q.Player)
		mine = mine || ok && s.Open && s.Holder == d.Source.ID && s.HolderIncarnation == d.Source.Incarnation
		w := d.watch()
		speaks := mine
		switch {
		case mine:
		case !ok || !s.Open || s.Number != other.Number || w.presumedDead(s.Holder, s.HolderIncarnation).yes:
			other, since = s, d.Now()
		case !w.lived(s.Holder, s.HolderIncarnation, happened):
			speaks = w.firstOf(ended.ID, happened)
		case w.mute(s.Server):
			since = d.Now() // the holder cannot have told yet
		case d.Now().Sub(since) > w.timing.Stale+time.Second:
			return
		}
		if speaks && s.Open && d.tellAt(ctx, s, q.Player, q.Message, q.Args) {
			d.count.told.Add(1)
			return
		}
		d.awaitSessionChange(ctx, q.Player, s)
	}
}

// mute tells that a server shows its players nothing now: its backend is silent.
func (w watch) mute(id events.HostID) bool {
	b := w.fleet.Backend(id)
	return b == nil || w.fleet.Silence(b.Seen, w.now) > w.timing.Stale
}

// lived tells that a life of a dispatcher had begun by then: what was written since it has heard
// of, or will. What it has not been seen to begin after, it had.
func (w watch) lived(id events.HostID, inc events.Incarnation, then time.Time) bool {
	p := w.fleet.Proxy(id)
	return p == nil || p.Incarnation != inc || !p.Since.After(then)
}

// firstOf tells that this dispatcher is the first in the order of a transfer among the living
// that had begun by then.
func (w watch) firstOf(id events.TransferID, then time.Time) bool {
	mine := turnHash(id[:], w.self.ID)
	return !slices.ContainsFunc(w.fleet.Proxies, func(p *projections.Proxy) bool {
		return p.Proxy != w.self.ID && w.fleet.Silence(p.Seen, w.now) <= w.timing.Stale && !p.Since.After(then) && turnHash(id[:], p.Proxy) < mine
	})
}

// awaitSessionChange waits for another session fact of a player, a moment at most.
func (d *Dispatcher) awaitSessionChange(ctx context.Context, player events.PlayerID, s projections.Session) {
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	d.wakeup.until(ctx, player, func() bool {
		now, _ := d.view.Session(player)
		return now.Last != s.Last
	})
}

// tellPlayer shows a message where the player stands, or as soon as the player stands
// somewhere. It does not wait for it.
func (d *Dispatcher) tellPlayer(player events.PlayerID, message string, args []events.Arg) {
	slices.SortFunc(args, func(a, b events.Arg) int { return strings.Compare(a.Name, b.Name) })
	if args == nil {
		args = []events.Arg{}
	}
	d.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, tellPatience)
		defer cancel()
		for ctx.Err() == nil {
			if !d.wakeup.until(ctx, player, func() bool { s, ok := d.view.Session(player); return ok && s.Open }) {
				return
			}
			s, _ := d.view.Session(player)
			if d.tellAt(ctx, s, player, message, args) {
				d.count.told.Add(1)
				return
			}
			sleep(ctx, 500*time.Millisecond)
		}
	})
}

func (d *Dispatcher) tellAt(ctx context.Context, s projections.Session, player events.PlayerID, message string, args []events.Arg) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(s.Server, events.VerbTell),
		events.TellAsk{Player: player, Name: s.Name, Message: message, Args: args})
	return err == nil && answer.Code == events.OK
}
