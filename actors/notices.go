package actors

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

const (
	// noticeTick is how often it is looked who is to hear of the own position.
	noticeTick = 500 * time.Millisecond
	// noticePause is the least time between two positions for one player.
	noticePause = time.Second
	// noticesPerTick bounds the positions for the players of one server: each message costs
	// a game server up to a tick.
	noticesPerTick = 5
)

// notices are what the waiting players of this dispatcher have heard of their positions.
type notices struct {
	mu   sync.Mutex
	told map[events.TransferID]notice
	busy map[events.HostID]bool // servers that are still being told
}

// notice is what a player was told last.
type notice struct {
	at       time.Time
	position int
	still    string // the message of why the line stands still; empty: it does not
}

// news of a position, or of a line that stands still or goes on, to be told.
type news struct {
	projections.Queued
	notice // what the player knows from now on
	last   notice
}

// message is what the player reads.
func (x news) message() string {
	switch {
	case x.still == x.last.still:
		return "transfer.position"
	case x.still == "":
		return "transfer.resumed"
	}
	return x.still
}

func (n *notices) init() {
	n.told = map[events.TransferID]notice{}
	n.busy = map[events.HostID]bool{}
}

// runNotices tells the waiting players of this dispatcher where they stand, on a change and
// now and then, until ctx ends.
func (d *Dispatcher) runNotices(ctx context.Context) error {
	tick := time.NewTicker(noticeTick)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			d.passNotices()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// passNotices tells, of each server, those who have waited longest for word.
func (d *Dispatcher) passNotices() {
	due := d.dueNotices()
	slices.SortStableFunc(due, func(a, b news) int { return a.last.at.Compare(b.last.at) })
	batches := map[events.HostID][]news{}
	for _, x := range due {
		if list := batches[x.Session.Server]; len(list) < noticesPerTick {
			batches[x.Session.Server] = append(list, x)
		}
	}
	for server, batch := range batches {
		if d.notices.begin(server) {
			d.notices.note(batch)
			d.tellPositions(server, batch)
		}
	}
}

// dueNotices lists who is to hear of the own position, lowest place first.
func (d *Dispatcher) dueNotices() []news {
	now, every, still := d.Now(), d.lineRules.Load().Notify, d.standstill()
	lanes := map[events.Wish]int{}
	d.notices.mu.Lock()
	defer d.notices.mu.Unlock()
	told := make(map[events.TransferID]notice, len(d.notices.told))
	var due []news
	d.view.InOrder(func(q projections.Queued) bool {
		lanes[q.Wish]++
		if !q.HasSession || !q.Session.Open || q.Session.Holder != d.Source.ID || q.Session.HolderIncarnation != d.Source.Incarnation {
			return true
		}
		x := news{Queued: q, notice: notice{at: now, position: lanes[q.Wish], still: still(q.Wish)}}
		last, heard := d.notices.told[q.Transfer]
		if heard {
			told[q.Transfer], x.last = last, last
		}
		silence := now.Sub(last.at)
		positionDue := q.Waitlisted && (!heard || silence >= every || silence >= noticePause && last.position != x.position)
		if positionDue || last.still != x.still {
			due = append(due, x)
		}
		return true
	})
	d.notices.told = told
	return due
}

// standstill gives the message of why nobody with a wish is served, by an operator's decision;
// empty when somebody may be.
func (d *Dispatcher) standstill() func(events.Wish) string {
	const paused = "transfer.paused"
	controls, fleet := d.view.Controls(), d.view.Fleet()
	switch {
	case controls.Killed:
		return func(events.Wish) string { return "transfer.stopped" }
	case controls.LinePaused():
		return func(events.Wish) string { return paused }
	case len(controls.Paused) == 0:
		return func(events.Wish) string { return "" }
	}
	known := map[events.Wish]string{}
	return func(w events.Wish) string {
		still, ok := known[w]
		if !ok {
			if onlyPaused(w, controls, fleet) {
				still = paused
			}
			known[w] = still
		}
		return still
	}
}

// onlyPaused tells that every place a wish could be served at is paused, and there is one.
func onlyPaused(w events.Wish, c projections.Controls, f *projections.Fleet) bool {
	found, lane := false, projections.InLine{Wish: w}
	for _, b := range f.Backends {
		for i := range b.Regions {
			at := projections.Spot{Server: b.Server, Region: b.Regions[i].Name}
			switch {
			case !lane.Fits(at, b.Regions[i].World) || c.IsDrained(b.Server):
			case !c.IsPaused(at.Server, at.Region):
				return false
			default:
				found = true
			}
		}
	}
	return found
}

// note takes in what is about to be told.
func (n *notices) note(batch []news) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, x := range batch {
		n.told[x.Transfer] = x.notice
	}
}

// unheard takes back what could not be told of a line that stands still or goes on. A
// position that could not be told is soon an old one: it is not told again.
func (n *notices) unheard(x news) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now, ok := n.told[x.Transfer]; ok {
		now.still = x.last.still
		n.told[x.Transfer] = now
	}
}

// begin takes the right to tell a server's players; false while others are being told.
func (n *notices) begin(server events.HostID) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy[server] {
		return false
	}
	n.busy[server] = true
	return true
}

func (n *notices) end(server events.HostID) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.busy, server)
}

// tellPositions does not wait.
func (d *Dispatcher) tellPositions(server events.HostID, batch []news) {
	d.background(func(ctx context.Context) {
		defer d.notices.end(server)
		for _, x := range batch {
			if d.tellAt(ctx, x.Session, x.Player, x.message(), d.positionArgs(x)) {
				d.count.told.Add(1)
			} else {
				d.notices.unheard(x)
			}
		}
	})
}

// positionArgs are where the player stands. How long it takes nobody knows while the line
// stands still.
func (d *Dispatcher) positionArgs(x news) []events.Arg {
	eta, known := d.view.ETA(x.Wish, x.position, d.Now())
	return []events.Arg{lengthArg("eta", eta, known && x.still == ""), {Name: "position", Value: strconv.Itoa(x.position)}}
}
