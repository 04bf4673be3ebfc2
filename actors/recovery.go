package actors

import "time"

// What an outage of the store leaves behind: while it lasts nothing can be reported and nobody can
// be told, so no deadline is held against anybody because of it.

// toReport is how long, after a dispatcher has been blind, the servers have to report who has
// arrived and who stands in the own place: until then no token that somebody may have come for is
// ended, and no placement given up. A server repeats its reports every second.
const toReport = 5 * time.Second

// reported tells that what happened while this dispatcher was blind has had its time to be heard of.
func (w watch) reported() bool { return w.now.Sub(w.fleet.Since) >= toReport }

// landed takes in that a heartbeat made at a moment was taken. The one before it may be so old that
// this life counted as silent: then it is back.
func (l *life) landed(at time.Time, stale time.Duration) {
	if before := l.beaten.Load(); before != nil && at.Sub(*before) > stale {
		l.back.Store(&at)
	}
	l.beaten.Store(&at)
}

// outOfReach tells that this life's heartbeats are not taken: nothing that it reports is heard.
func (l *life) outOfReach(stale time.Duration) bool {
	return l.beaten.Load() != nil && !l.standsSure(stale)
}

// longer is how much longer a promise stands that is due now: as long as nobody could have heard
// of an arrival, and then for as long as dispatchers keep its token, and a slack.
func (l *life) longer(t Timing) time.Duration {
	if l.outOfReach(t.Stale) {
		return time.Second // and then it is looked again
	}
	back := l.back.Load()
	if back == nil {
		return 0
	}
	return toReport + t.TTLSlack - l.Now().Sub(*back)
}
