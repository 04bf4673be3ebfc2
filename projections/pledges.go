package projections

import "github.com/landfall/landfall/events"

// Pledges counts the promises that the log shows and a backend's heartbeat does not yet:
// a coordinate promised after the beat was taken is no longer kept, whatever the beat says.
type Pledges struct {
	servers map[events.HostID]*pledged
}

type pledged struct {
	incarnation events.Incarnation
	promises    map[uint64]string // promise number -> region
}

// NewPledges is the empty fold.
func NewPledges() *Pledges { return &Pledges{servers: map[events.HostID]*pledged{}} }

// Reserved takes in a promise that stands in the log.
func (p *Pledges) Reserved(f *events.Reserved) {
	s := p.servers[f.Server]
	if s == nil || s.incarnation != f.Incarnation {
		s = &pledged{incarnation: f.Incarnation, promises: map[uint64]string{}}
		p.servers[f.Server] = s
	}
	s.promises[f.Promise] = f.Region
}

// Beat forgets the promises that a heartbeat already counts.
func (p *Pledges) Beat(b *events.BackendBeat) {
	s := p.servers[b.Server]
	if s == nil {
		return
	}
	if s.incarnation != b.Incarnation {
		delete(p.servers, b.Server)
		return
	}
	for n := range s.promises {
		if n <= b.Promise {
			delete(s.promises, n)
		}
	}
}

// Count gives the promises of a region above the given heartbeat's.
func (p *Pledges) Count(b *events.BackendBeat, region string) int {
	s := p.servers[b.Server]
	if s == nil || s.incarnation != b.Incarnation {
		return 0
	}
	n := 0
	for number, r := range s.promises {
		if number > b.Promise && r == region {
			n++
		}
	}
	return n
}
