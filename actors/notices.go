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
	told map[events.TransferID]notice // belongs to the goroutine of runNotices

	mu   sync.Mutex
	busy map[events.HostID]bool // servers that are still being told
}

// notice is one position that a player was told.
type notice struct {
	at       time.Time
	position int
}

// news of a position, to be told.
type news struct {
	projections.Queued
	position int
	last     time.Time // when this player was told before
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
	slices.SortStableFunc(due, func(a, b news) int { return a.last.Compare(b.last) })
	batches := map[events.HostID][]news{}
	for _, x := range due {
		if list := batches[x.Session.Server]; len(list) < noticesPerTick {
			batches[x.Session.Server] = append(list, x)
		}
	}
	for server, batch := range batches {
		if d.notices.begin(server) {
			for _, x := range batch {
				d.notices.told[x.Transfer] = notice{at: d.Now(), position: x.position}
			}
			d.tellPositions(server, batch)
		}
	}
}

// dueNotices lists who is to hear of the own position, lowest place first.
func (d *Dispatcher) dueNotices() []news {
	now, every := d.Now(), d.lineRules.Load().Notify
	lanes := map[events.Wish]int{}
	told := make(map[events.TransferID]notice, len(d.notices.told))
	var due []news
	d.view.InOrder(func(q projections.Queued) bool {
		lanes[q.Wish]++
		if !q.Waitlisted || !q.HasSession || !q.Session.Open || q.Session.Holder != d.Source.ID || q.Session.HolderIncarnation != d.Source.Incarnation {
			return true
		}
		x := news{Queued: q, position: lanes[q.Wish]}
		last, heard := d.notices.told[q.Transfer]
		if heard {
			told[q.Transfer], x.last = last, last.at
		}
		silence := now.Sub(last.at)
		if !heard || silence >= every || silence >= noticePause && last.position != x.position {
			due = append(due, x)
		}
		return true
	})
	d.notices.told = told
	return due
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

// tellPositions does not wait. A position that cannot be told is soon an old one: it is not
// told again.
func (d *Dispatcher) tellPositions(server events.HostID, batch []news) {
	d.background(func(ctx context.Context) {
		defer d.notices.end(server)
		for _, x := range batch {
			eta, known := d.view.ETA(x.Wish, x.position, d.Now())
			if d.tellAt(ctx, x.Session, x.Player, "transfer.position", []events.Arg{
				lengthArg("eta", eta, known), {Name: "position", Value: strconv.Itoa(x.position)},
			}) {
				d.count.told.Add(1)
			}
		}
	})
}
