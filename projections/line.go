package projections

import (
	"cmp"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
)

// Line is everybody who waits for a token: the active transfers without one, in the order of
// their places. It is a function of the facts alone, so every host that stands at the same
// sequence knows the same positions; who is away keeps the place and counts. A bypass never
// waits and is not in it, nor is a player who was sent away once: only the edge that holds
// that login may act for it.
//
// Its lanes are the wishes: a region, a server, or any place.
type Line struct {
	waiting  []InLine // by place
	bypasses map[Spot][]bypass
	drained  map[events.Wish][]time.Time // when the last who had waited in a lane left it with a token
}

// InLine is one transfer in line.
type InLine struct {
	Transfer   events.TransferID
	Player     events.PlayerID
	Place      uint64
	Wish       events.Wish // the lane
	Waitlisted bool        // the log says that nobody could serve it: the player was told
}

// Spot is one region of one server: where places are given.
type Spot struct {
	Server events.HostID
	Region string
}

// bypass is one place that was promised to who did not wait.
type bypass struct{ place uint64 } // of the request that passed

// drainSamples is how many departures the pace of a lane is measured by.
const drainSamples = 32

// NewLine is the empty line.
func NewLine() *Line {
	return &Line{bypasses: map[Spot][]bypass{}, drained: map[events.Wish][]time.Time{}}
}

// follow takes in what a fact has made of a transfer.
func (l *Line) follow(before, after Transfer, seen time.Time) {
	was, is := waits(before), waits(after)
	switch {
	case is && (!was || before.Waitlisted != after.Waitlisted):
		l.put(after)
	case was && !is:
		l.drop(before.Place)
	}
	if after.Phase != Pending || before.Phase != Requested && before.Phase != Waiting {
		return
	}
	switch {
	case after.Request.Bypass:
		l.noteBypass(after)
	case was && before.Waitlisted:
		l.noteDeparture(after.Request.Wish, seen)
	}
}

func (l *Line) noteDeparture(lane events.Wish, seen time.Time) {
	times := slices.Clone(l.drained[lane])
	if len(times) == drainSamples {
		times = times[1:]
	}
	l.drained[lane] = append(times, seen)
}

func waits(t Transfer) bool {
	return (t.Phase == Requested || t.Phase == Waiting) && !t.Request.Bypass && !t.MovedOnce
}

func (l *Line) find(place uint64) (int, bool) {
	return slices.BinarySearchFunc(l.waiting, place, func(x InLine, p uint64) int { return cmp.Compare(x.Place, p) })
}

func (l *Line) put(t Transfer) {
	x := InLine{Transfer: t.ID, Player: t.Player, Place: t.Place, Wish: t.Request.Wish, Waitlisted: t.Waitlisted}
	i, found := l.find(t.Place)
	if found {
		l.waiting[i] = x
		return
	}
	l.waiting = slices.Insert(l.waiting, i, x)
}

func (l *Line) drop(place uint64) {
	if i, found := l.find(place); found {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.forgetBypasses()
}

// noteBypass remembers a promise that overtook somebody.
func (l *Line) noteBypass(t Transfer) {
	if len(l.waiting) == 0 || l.waiting[0].Place > t.Place {
		return
	}
	at := Spot{t.Reserved.Server, t.Reserved.Region}
	l.bypasses[at] = append(l.bypasses[at], bypass{place: t.Place})
}

// forgetBypasses drops those that have passed nobody who still waits.
func (l *Line) forgetBypasses() {
	for at, list := range l.bypasses {
		list = slices.DeleteFunc(list, func(b bypass) bool { return len(l.waiting) == 0 || b.place < l.waiting[0].Place })
		l.bypasses[at] = list
		if len(list) == 0 {
			delete(l.bypasses, at)
		}
	}
}

// Bypassed counts the bypasses that got a place at a spot although they came after the one
// who has waited longest for it. waited is false when nobody waits for it.
func (l *Line) Bypassed(at Spot, world string) (n int, waited bool) {
	for i := range l.waiting {
		x := &l.waiting[i]
		if !x.Fits(at, world) {
			continue
		}
		for _, b := range l.bypasses[at] {
			if b.place > x.Place {
				n++
			}
		}
		return n, true
	}
	return 0, false
}

// Fits tells that a spot could serve the wish.
func (x *InLine) Fits(at Spot, world string) bool {
	w := &x.Wish
	return (w.Region == "" || w.Region == at.Region) && (w.World == "" || w.World == world) && (w.Pin == "" || w.Pin == at.Server)
}

// Len is how many are in line, over all lanes.
func (l *Line) Len() int { return len(l.waiting) }

// Ahead is how many are in line before a place, over all lanes.
func (l *Line) Ahead(place uint64) int {
	i, _ := l.find(place)
	return i
}

// Position is the place in line as a player understands it: 1 is next, counted in the lane
// of the player's own wish. It is 0 for who is not in line.
func (l *Line) Position(place uint64) int {
	i, found := l.find(place)
	if !found {
		return 0
	}
	n := 1
	for k := range l.waiting[:i] {
		if l.waiting[k].Wish == l.waiting[i].Wish {
			n++
		}
	}
	return n
}

// ETA is how long a position of a lane will take at the pace at which that lane has moved of
// late. ok is false when too few have left it to say, or none for long.
func (l *Line) ETA(lane events.Wish, position int, now time.Time) (eta time.Duration, ok bool) {
	times := l.drained[lane]
	if len(times) < 2 || now.Sub(times[len(times)-1]) > drainMemory || now.Sub(times[0]) < drainSpan {
		return 0, false
	}
	// From the first departure to now: a lane that stands still grows slower as one looks.
	each := now.Sub(times[0]) / time.Duration(len(times)-1)
	return each * time.Duration(position), true
}

// drainSpan is the least time that a pace is measured over: many leave together when a server
// comes back, which says nothing of those behind them.
const drainSpan = time.Second

// drainMemory is how long the pace of a lane that stands still says something.
const drainMemory = 2 * time.Minute

// Queued is one of those in line, with where the player is.
type Queued struct {
	InLine
	Session    Session
	HasSession bool
}

// InOrder visits everybody in line, lowest place first, until visit returns false. visit
// runs under the lock of the View and must not ask it anything.
func (v *View) InOrder(visit func(q Queued) bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	for _, x := range v.journeys.line.waiting {
		q := Queued{InLine: x}
		q.Session, q.HasSession = v.sessions.Player(x.Player)
		if !visit(q) {
			return
		}
	}
}

// Position gives a transfer's place in its lane, 0 when it is not in line.
func (v *View) Position(place uint64) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.line.Position(place)
}

// Ahead is how many are in line before a place, over all lanes.
func (v *View) Ahead(place uint64) int {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.line.Ahead(place)
}

// ETA is how long a position of a lane will take; see Line.ETA.
func (v *View) ETA(lane events.Wish, position int, now time.Time) (time.Duration, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.line.ETA(lane, position, now)
}

// Bypassed counts the bypasses that have passed the longest waiting of a spot.
func (v *View) Bypassed(at Spot, world string) (n int, waited bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.journeys.line.Bypassed(at, world)
}
