package projections

import "github.com/landfall/landfall/events"

// Pledges counts the promises that the log shows and a backend's heartbeat does not yet:
// a coordinate promised after the beat was taken is no longer kept, whatever the beat says.
type Pledges struct {
	servers map[events.HostID]map[events.Incarnation]promises
}

type promises map[uint64]string // promise number -> region

// NewPledges is the empty fold.
func NewPledges() *Pledges {
	return &Pledges{servers: map[events.HostID]map[events.Incarnation]promises{}}
}

// Reserved takes in a promise that stands in the log.
func (p *Pledges) Reserved(f *events.Reserved) {
	lives := p.servers[f.Server]
	if lives == nil {
		lives = map[events.Incarnation]promises{}
		p.servers[f.Server] = lives
	}
	if lives[f.Incarnation] == nil {
		lives[f.Incarnation] = promises{}
	}
	lives[f.Incarnation][f.Promise] = f.Region
}

// Beat forgets the promises that a heartbeat already counts, and those of other lives.
func (p *Pledges) Beat(b *events.BackendBeat) {
	lives := p.servers[b.Server]
	for incarnation, given := range lives {
		for n := range given {
			if n <= b.Promise {
				delete(given, n)
			}
		}
		if incarnation != b.Incarnation || len(given) == 0 {
			delete(lives, incarnation)
		}
	}
	if len(lives) == 0 {
		delete(p.servers, b.Server)
	}
}

// Count gives the promises of a region above the given heartbeat's.
func (p *Pledges) Count(b *events.BackendBeat, region string) int {
	n := 0
	for number, r := range p.servers[b.Server][b.Incarnation] {
		if number > b.Promise && r == region {
			n++
		}
	}
	return n
}

// Keep drops the promises of servers that are not known: nobody can choose them.
func (p *Pledges) Keep(known func(events.HostID) bool) {
	for id := range p.servers {
		if !known(id) {
			delete(p.servers, id)
		}
	}
}
