package actors

import (
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Outlook is what a choice is made from, beside the wish.
type Outlook struct {
	Fleet *projections.Fleet
	// Pledged counts the promises of a region that its server's heartbeat does not count yet.
	Pledged func(b *projections.Backend, region string) int
	Home    events.HostID // where the player stands, empty when nowhere
	Now     time.Time
	Stale   time.Duration // silence after which a server is out
}

// Rank chooses as a dispatcher does that remembers nothing of its own picks: the destinations
// of the snapshot that can serve the wish, best first, at most events.MaxCandidates, and the
// record of why.
func (p Policy) Rank(w events.Wish, o Outlook) ([]projections.Spot, events.Decision) {
	found, decision := choose(question{
		wish: w, home: o.Home, pledged: o.Pledged, policy: p, now: o.Now, stale: o.Stale,
		drained: func(events.HostID) bool { return false },
	}, o.Fleet)
	spots := make([]projections.Spot, len(found))
	for i, c := range found {
		spots[i] = projections.Spot{Server: c.backend.Server, Region: c.region}
	}
	return spots, decision
}
