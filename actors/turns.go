package actors

import (
	"math"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// turns says whose turn it is to ask for a place, at one moment. One walks the line in order;
// everybody in it takes one of what each spot keeps that could serve the wish, so that at a
// spot which keeps k the first k may ask. It is not safe for concurrent use.
type turns struct {
	watch  watch
	spots  []spot
	left   int                        // spots where something is left
	spent  map[asker]bool             // those for whom nothing is left
	gone   map[holder]bool            // dispatchers judged dead (or not) in this walk
	silent map[events.TransferID]bool // not waited for any more
}

// spot is a region of a server that keeps something.
type spot struct {
	at       projections.Spot
	world    string
	min, max int  // protocols it speaks, 0: all
	cooling  bool // not to be asked by this dispatcher now
	pinOnly  bool // the policy sends nobody there who did not name the server
	kept     int
	left     int
}

// turn gives the reason why somebody must not ask for a place in a region now, or "".
type turn func(b *projections.Backend, r *events.RegionBeat) events.Code

// asker is what matters of a player in line.
type asker struct {
	wish     events.Wish
	protocol int
}

type holder struct {
	id          events.HostID
	incarnation events.Incarnation
}

// newTurns looks at what is kept now for a wish, or for any. While transfers are switched off
// or the line stands still there is nothing.
func (d *Dispatcher) newTurns(wish events.Wish, w watch) *turns {
	t := &turns{watch: w, spent: map[asker]bool{}, gone: map[holder]bool{}}
	t.silent = d.line.silentHeads(w.now, w.timing.silentAfter())
	controls := d.view.Controls()
	if controls.Killed || controls.LinePaused() {
		return t
	}
	q := question{drained: controls.IsDrained, lobbies: d.routing.Load().lobbies, now: w.now, stale: w.timing.Stale}
	cooling := d.runs.excluded(&run{}, w.now)
	most, fixed, want := d.window(w.timing), d.policy.Load().rules().fixed, projections.InLine{Wish: wish}
	for _, b := range w.fleet.Backends {
		if refuseBackend(&q, b) != "" {
			continue
		}
		for i := range b.Regions {
			r := &b.Regions[i]
			at := projections.Spot{Server: b.Server, Region: r.Name}
			if !want.Fits(at, r.World) || controls.IsPaused(b.Server, r.Name) {
				continue
			}
			kept := min(d.line.keptAt(b, r)-d.view.Pledged(b, r.Name), most)
			if kept > 0 {
				t.spots = append(t.spots, spot{
					at: at, world: r.World, min: b.ProtocolMin, max: b.ProtocolMax,
					cooling: cooling[b.Server] != "", pinOnly: fixed != "" && fixed != b.Server, kept: kept, left: kept,
				})
			}
		}
	}
	t.left = len(t.spots)
	return t
}

// silentAfter is how long the first in line may go without being served although something
// is kept: its dispatcher does not act.
func (t Timing) silentAfter() time.Duration {
	return 2*t.AttemptTimeout + t.Cooldown + time.Second
}

// window is how many may ask one spot at once: no more than it gives while they wait.
func (d *Dispatcher) window(by Timing) int {
	rate := d.lineRules.Load().DrainPerSecond
	if rate <= 0 {
		return math.MaxInt
	}
	return int(math.Ceil(max(rate, 1) + rate*by.AttemptTimeout.Seconds()))
}

func (t *turns) ours(q projections.Queued) bool {
	return q.HasSession && q.Session.Open && q.Session.Holder == t.watch.self.ID && q.Session.HolderIncarnation == t.watch.self.Incarnation
}

// counts tells that a player in line is there to be served. Who is away, or whose dispatcher
// is gone or does not act, is passed over and keeps the place.
func (t *turns) counts(q projections.Queued) bool {
	if !q.HasSession || !q.Session.Open || t.silent[q.Transfer] {
		return false
	}
	h := holder{q.Session.Holder, q.Session.HolderIncarnation}
	gone, known := t.gone[h]
	if !known {
		gone = t.watch.presumedDead(h.id, h.incarnation).yes
		t.gone[h] = gone
	}
	return !gone
}

// open tells that it is the turn of a player of this dispatcher.
func (t *turns) open(q projections.Queued) bool {
	if t.left == 0 || t.spent[asker{q.Wish, q.Session.Protocol}] {
		return false
	}
	for i := range t.spots {
		if s := &t.spots[i]; s.left > 0 && !s.cooling && s.fits(q) {
			return true
		}
	}
	return false
}

// take counts a player who is before others. It reports whether the player is the first
// somewhere.
func (t *turns) take(q projections.Queued) (first bool) {
	who := asker{q.Wish, q.Session.Protocol}
	if t.left == 0 || t.spent[who] {
		return false
	}
	found := false
	for i := range t.spots {
		s := &t.spots[i]
		if s.left == 0 || !s.fits(q) {
			continue
		}
		found = true
		first = first || s.left == s.kept
		if s.left--; s.left == 0 {
			t.left--
		}
	}
	t.spent[who] = !found
	return first
}

func (s *spot) fits(q projections.Queued) bool {
	return speaks(s.min, s.max, q.Session.Protocol) && q.Fits(s.at, s.world) && (!s.pinOnly || q.Wish.Pin != "")
}

// turnOf says where it is a transfer's turn to ask, now. It gives nil when nobody is before
// it, or there is no line.
func (d *Dispatcher) turnOf(p projections.Transfer, by Timing) turn {
	if !d.lineRules.Load().Enabled || d.view.Ahead(p.Place) == 0 {
		return nil
	}
	t := d.turnsBefore(p.Place, p.Request.Wish, d.watchBy(by))
	open := make(map[projections.Spot]bool, len(t.spots))
	for i := range t.spots {
		open[t.spots[i].at] = t.spots[i].left > 0
	}
	return func(b *projections.Backend, r *events.RegionBeat) events.Code {
		if open[projections.Spot{Server: b.Server, Region: r.Name}] {
			return ""
		}
		return events.Waiting
	}
}

// turnsBefore is what is left for a wish when everybody before a place has taken one.
func (d *Dispatcher) turnsBefore(place uint64, wish events.Wish, w watch) *turns {
	t := d.newTurns(wish, w)
	d.view.InOrder(func(q projections.Queued) bool {
		if q.Place >= place || t.left == 0 {
			return false
		}
		if t.counts(q) {
			t.take(q)
		}
		return true
	})
	return t
}

// anyTurn tells that somebody would be served at once.
func (d *Dispatcher) anyTurn(q projections.Queued) bool {
	return d.turnsBefore(q.Place, q.Wish, d.watch()).open(q)
}

// boundOf says where a transfer that does not wait may ask: not where as many have passed
// those who do as may.
func (d *Dispatcher) boundOf() turn {
	most := d.lineRules.Load().MaxBypass
	return func(b *projections.Backend, r *events.RegionBeat) events.Code {
		passed, waited := d.view.Bypassed(projections.Spot{Server: b.Server, Region: r.Name}, r.World)
		if waited && passed >= most {
			return events.BypassBound
		}
		return ""
	}
}
