package projections

import (
	"time"

	"github.com/landfall/landfall/events"
)

// The four folds of a View, as its feeds drive them.
type (
	transfersFold struct{ v *View }
	// sessionsFold and controlFold build a new fold beside the one that answers reads while
	// they catch up: their tails start from the newest fact of each key, so half of it would
	// be a wrong answer (the kill switch would seem to be off).
	sessionsFold struct {
		v    *View
		next *Sessions
	}
	controlFold struct {
		v    *View
		next *Controls
	}
	fleetFold struct{ v *View }
)

func (f transfersFold) reset(s events.StreamState, _ bool) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.v.journeys = NewJourneys(s.First)
	f.v.journeys.keeps = f.v.cfg.Retention
	f.v.pledges = NewPledges()
}

func (f transfersFold) apply(e events.Event, seen time.Time) *events.Refusal {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	refusal := f.v.journeys.Apply(e, seen)
	if r, ok := e.Fact.(*events.Reserved); ok && refusal == nil {
		f.v.pledges.Reserved(r)
	}
	return refusal
}

func (f transfersFold) skip(key string, seq uint64) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.v.journeys.Skip(key, seq)
}

func (f transfersFold) settle(key string, seq uint64, now time.Time) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.v.journeys.Settle(key, seq, now)
}

func (transfersFold) sight(bool, time.Time) {}

func (f *sessionsFold) reset(events.StreamState, bool) { f.next = NewSessions() }

func (f *sessionsFold) apply(e events.Event, seen time.Time) *events.Refusal {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	return f.current().Apply(e, seen)
}

func (f *sessionsFold) skip(key string, seq uint64) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	f.current().Skip(key, seq)
}

func (f *sessionsFold) sight(live bool, _ time.Time) {
	f.v.mu.Lock()
	defer f.v.mu.Unlock()
	if live && f.next != nil {
		f.v.sessions, f.next = f.next, nil
	}
}

func (f *sessionsFold) current() *Sessions {
	if f.next != nil {
		return f.next
	}
	return f.v.sessions
}

func (f *controlFold) reset(events.StreamState, bool) { f.next = &Controls{} }

func (f *controlFold) apply(e events.Event, _ time.Time) *events.Refusal {
	current := f.v.controls.Load()
	if f.next != nil {
		current = f.next
	}
	changed, refusal := current.Apply(e)
	if f.next != nil {
		f.next = &changed
	} else {
		f.v.controls.Store(&changed)
	}
	return refusal
}

func (*controlFold) skip(string, uint64) {}

func (f *controlFold) sight(live bool, _ time.Time) {
	if live && f.next != nil {
		f.v.controls.Store(f.next)
		f.next = nil
	}
}

// reset keeps the last snapshot, which only grows older, until newer beats replace it.
func (f fleetFold) reset(s events.StreamState, _ bool) {
	f.v.fleet.Store(f.v.fleet.Load().From(s.Last))
}

func (f fleetFold) apply(e events.Event, seen time.Time) *events.Refusal {
	old := f.v.fleet.Load()
	next, refusal := old.Apply(e, seen)
	if f.v.cfg.Stale != nil {
		next = next.after(old, f.v.cfg.Stale())
	}
	f.v.fleet.Store(next)
	if beat, ok := e.Fact.(*events.BackendBeat); ok {
		f.v.mu.Lock()
		f.v.pledges.Beat(beat)
		f.v.mu.Unlock()
	}
	return refusal
}

func (fleetFold) skip(string, uint64) {}

func (f fleetFold) sight(live bool, now time.Time) {
	f.v.fleet.Store(f.v.fleet.Load().WithSight(live, now))
}
