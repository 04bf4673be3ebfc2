package actors

import (
	"math"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// memories is what this dispatcher remembers of each destination: how often it was picked a
// moment ago, whose turn it is, and how far away it is. A cache: losing it costs balance,
// never a place.
type memories struct {
	mu    sync.RWMutex
	of    map[events.HostID]memory
	turns uint64
}

// memory of one destination at one moment.
type memory struct {
	turn   uint64    // number of the last pick made here, 0: never picked
	picks  float64   // picks that fade with the time passed since at
	others float64   // those that other dispatchers made
	at     time.Time // when picks and others had these values
	rtt    float64   // ms to connect, smoothed; NaN: never measured
	joined int       // players let in here ...
	beat   uint64    // ... since this heartbeat
}

var unknown = memory{rtt: math.NaN()}

func (m *memories) init() { m.of = map[events.HostID]memory{} }

// look gives what is remembered of a destination now. halfLife is the time in which a pick
// loses half its weight.
func (m *memories) look(id events.HostID, now time.Time, halfLife time.Duration) memory {
	if m == nil {
		return unknown
	}
	m.mu.RLock()
	x, ok := m.of[id]
	m.mu.RUnlock()
	if !ok {
		return unknown
	}
	return x.faded(now, halfLife)
}

func (x memory) faded(now time.Time, halfLife time.Duration) memory {
	if x.picks+x.others == 0 || halfLife <= 0 {
		return x
	}
	left := math.Exp2(-float64(max(now.Sub(x.at), 0)) / float64(halfLife))
	x.picks, x.others, x.at = x.picks*left, x.others*left, now
	return x
}

func (m *memories) change(id events.HostID, f func(*memory)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	x, ok := m.of[id]
	if !ok {
		x = unknown
	}
	f(&x)
	m.of[id] = x
}

// picked says that this dispatcher has just chosen a destination.
func (m *memories) picked(id events.HostID, now time.Time, halfLife time.Duration) {
	m.change(id, func(x *memory) {
		m.turns++
		*x = x.faded(now, halfLife)
		x.turn, x.at = m.turns, now
		x.picks++
	})
}

// letIn says that a player is on the way to a server that last beat at a sequence.
func (m *memories) letIn(id events.HostID, beat uint64) {
	m.change(id, func(x *memory) {
		if x.beat != beat {
			x.beat, x.joined = beat, 0
		}
		x.joined++
	})
}

// pickedElsewhere says that the log shows another dispatcher's claim for a destination.
func (m *memories) pickedElsewhere(id events.HostID, now time.Time, halfLife time.Duration) {
	m.change(id, func(x *memory) {
		*x = x.faded(now, halfLife)
		x.at = now
		x.others++
	})
}

// measured takes in one time to connect. A new one counts for a quarter.
func (m *memories) measured(id events.HostID, d time.Duration) {
	if d < 0 {
		return
	}
	took := float64(d) / float64(time.Millisecond)
	m.change(id, func(x *memory) {
		if math.IsNaN(x.rtt) {
			x.rtt = took
		}
		x.rtt += (took - x.rtt) / 4
	})
}

// keep drops what is remembered of hosts that are not known any more.
func (m *memories) keep(known func(events.HostID) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.of {
		if !known(id) {
			delete(m.of, id)
		}
	}
}

// NoteRTT says how long an edge of this process needed to connect to a server: the input
// proxyRtt of the policy. It does not block; a negative time is ignored.
func (d *Dispatcher) NoteRTT(server events.HostID, took time.Duration) {
	d.memories.measured(server, took)
}

// notePick remembers a choice as it is made, not when it has succeeded: whoever chooses in
// the same moment shall see it.
func (d *Dispatcher) notePick(id events.HostID) {
	d.memories.picked(id, d.Now(), d.policy.Load().rules().halfLife)
}

// noteClaim remembers the choices of others, which their claims show. It hears every fold.
func (d *Dispatcher) noteClaim(c projections.Change) {
	claim, ok := c.Event.Fact.(*events.Claimed)
	if !ok || claim.Dispatcher == d.Source.ID || !d.view.Ready() {
		return
	}
	if t, ok := d.view.Transfer(c.Event.Correlation); ok && t.Destination() != "" {
		d.memories.pickedElsewhere(t.Destination(), d.Now(), d.policy.Load().rules().halfLife)
	}
}

// lastPlace is where a player's last transfer led, as far as it is still held.
func lastPlace(done []projections.Transfer) place {
	for i := len(done) - 1; i >= 0; i-- {
		if t := &done[i]; t.Phase == projections.Completed && t.Reserved != nil {
			return place{t.Reserved.Server, t.Reserved.Region}
		}
	}
	return place{}
}
