package actors

import (
	"context"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// slowAfter is how long a player reads nothing about a transfer before hearing that it is still
// being worked on.
const slowAfter = 5 * time.Second

// slow tells that a player has read nothing for too long of a transfer that nobody has ended: it
// is not in line, where positions are told, and the player is not on the way between two servers.
func slow(t projections.Transfer, now time.Time) bool {
	since := t.Seen.Requested
	switch t.Phase {
	case projections.Requested, projections.Pending, projections.Claimed:
		if t.Waitlisted || t.Move == events.MoveSent {
			return false
		}
	case projections.Consumed: // arrived, and not yet in the place
		since = t.Seen.Last
	case projections.Waiting, projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded:
		return false
	}
	return now.Sub(since) >= slowAfter
}

// tellSlow tells the players of this dispatcher, once for each transfer, that it takes long. Who
// hears of a line that stands still has been told why. It does not wait, and what cannot be told
// at once is not told later, when it may be over.
func (d *Dispatcher) tellSlow(active []projections.Transfer) {
	now, still := d.Now(), d.standstill()
	told := map[events.TransferID]bool{}
	for i := range active {
		t := &active[i]
		if d.slowTold[t.ID] {
			told[t.ID] = true
			continue
		}
		if !slow(*t, now) || t.Phase == projections.Requested && still(t.Request.Wish) != "" {
			continue
		}
		s, ok := d.view.Session(t.Player)
		if !ok || !s.Open || s.Holder != d.Source.ID || s.HolderIncarnation != d.Source.Incarnation {
			continue
		}
		told[t.ID] = true
		player := t.Player
		d.background(func(ctx context.Context) {
			if d.tellAt(ctx, s, player, "transfer.slow", nil) {
				d.count.told.Add(1)
			}
		})
	}
	d.slowTold = told
}
