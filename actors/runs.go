package actors

import (
	"maps"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// runs is what this dispatcher remembers of the dispatches it works on, and of
// destinations that failed a moment ago. All of it is a cache: losing it costs a retry.
type runs struct {
	mu        sync.Mutex
	byID      map[events.TransferID]*run
	cooldowns map[events.HostID]cooldown
	refusals  map[events.TransferID]refusal
}

// refusal is how often the origin has refused to move a player, over all dispatches of one
// transfer: another destination, or waiting in line, does not help against that.
type refusal struct {
	count int
	text  string // the last one
}

// run is one dispatch: up to MaxRetries attempts by one timing on one snapshot.
type run struct {
	began    time.Time // when the snapshot was taken: how old a heartbeat is counts from then
	timing   Timing
	snapshot *projections.Fleet
	attempts int
	exclude  map[events.HostID]events.Code
	refusal  string    // why the origin last refused to move the player
	turn     turn      // see question
	fresh    bool      // see question
	until    time.Time // when it must have ended, zero: never
}

// over tells that no destination may be asked any more.
func (r *run) over(now time.Time) bool { return !r.until.IsZero() && now.After(r.until) }

func (r *runs) init() {
	r.byID = map[events.TransferID]*run{}
	r.cooldowns = map[events.HostID]cooldown{}
	r.refusals = map[events.TransferID]refusal{}
}

func (r *runs) refuse(id events.TransferID, text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals[id] = refusal{r.refusals[id].count + 1, text}
}

func (r *runs) refused(id events.TransferID) refusal {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.refusals[id]
}

// get gives the dispatch under way for a transfer, or begins one. One that goes on after so long
// that its snapshot says nothing any more takes a fresh one.
func (r *runs) get(id events.TransferID, by Timing, snapshot *projections.Fleet, now time.Time) *run {
	r.mu.Lock()
	defer r.mu.Unlock()
	x, ok := r.byID[id]
	if !ok {
		x = &run{began: now, timing: by, snapshot: snapshot, exclude: map[events.HostID]events.Code{}}
		r.byID[id] = x
	}
	if now.Sub(x.began) > x.timing.Stale {
		x.began, x.snapshot = now, snapshot
	}
	return x
}

// end forgets a dispatch: the next one begins with a fresh snapshot.
func (r *runs) end(id events.TransferID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, id)
}

// forget drops the dispatches of transfers that are no longer known.
func (r *runs) forget(known func(events.TransferID) bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.byID {
		if !known(id) {
			delete(r.byID, id)
		}
	}
	for id := range r.refusals {
		if !known(id) {
			delete(r.refusals, id)
		}
	}
}

// cooldown is the rest of a destination after a fault of its own.
type cooldown struct {
	until time.Time
	life  events.Incarnation // whose fault it was; zero: of whatever life it has
}

func (r *runs) coolDown(id events.HostID, c cooldown) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cooldowns[id] = c
}

// beats ends the rest of a destination that has begun another life: what failed is gone.
func (r *runs) beats(id events.HostID, life events.Incarnation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, rests := r.cooldowns[id]; rests && c.life != (events.Incarnation{}) && c.life != life {
		delete(r.cooldowns, id)
	}
}

// excluded gives what a dispatch must not choose: what it has tried, and what cools down.
func (r *runs) excluded(x *run, now time.Time) map[events.HostID]events.Code {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make(map[events.HostID]events.Code, len(x.exclude)+len(r.cooldowns))
	for id, c := range r.cooldowns {
		if now.Before(c.until) {
			out[id] = events.OnCooldown
		} else {
			delete(r.cooldowns, id)
		}
	}
	maps.Copy(out, x.exclude)
	return out
}
