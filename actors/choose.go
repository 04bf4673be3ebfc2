package actors

import (
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// question is what a choice is made for.
type question struct {
	wish     events.Wish
	protocol int                                    // of the client, 0 unknown
	home     events.HostID                          // where the player stands, empty when nowhere
	last     place                                  // of the player's last transfer
	exclude  map[events.HostID]events.Code          // tried in this dispatch, cooling down, …: with the reason
	drained  func(events.HostID) bool               // by an operator
	paused   func(events.HostID, string) bool       // a region of a server, by an operator; nil: none is
	lobbies  map[events.HostID]bool                 // named as such: they only ask
	pledged  func(*projections.Backend, string) int // promised since the heartbeat, in a region
	memories *memories                              // of picks and distances; nil: none
	policy   Policy
	turn     turn                          // whether it is the player's turn to ask there; nil: everywhere
	fresh    bool                          // a destination that keeps nothing may look for a place
	cooling  map[events.HostID]events.Code // of a join: failed a moment ago, the last resort
	join     bool                          // a seat on a server is all that is wanted: whole servers are ranked
	now      time.Time
	stale    time.Duration
}

// place is a region of a server; none when the server is empty.
type place struct {
	server events.HostID
	region string
}

// choice is a destination that passed the filters.
type choice struct {
	backend *projections.Backend
	region  string  // empty for a join
	kept    int     // ready in the region and not promised since the heartbeat
	all     int     // the same over all regions of the backend
	pledged int     // promised since the heartbeat, in all regions
	joined  int     // let in by this dispatcher since the heartbeat
	picks   float64 // recent ones, as the policy counts them
	turn    uint64  // number of the last pick
	rtt     float64

	tier  int     // lower tiers come first, whatever the score
	score float64 // lower is better
	tired float64 // of two that score alike the one less often picked comes first; 0: does not matter
	spare int     // of two regions of one server that score alike the fuller one comes first; 0: does not matter
	row   int     // where its raw values stand
}

// choose ranks the destinations of a snapshot, best first, and records why. It gives at most
// events.MaxCandidates of them, which is also what the record holds. It is pure and
// deterministic: ties fall to the server less often picked a moment ago where the policy counts
// that at all, then to the lower server id, then to the lower region.
func choose(q question, f *projections.Fleet) ([]choice, events.Decision) {
	r := rankings.Get().(*ranking)
	defer rankings.Put(r)
	r.rank(&q, f)
	return slices.Clone(r.best), r.record(&q, f)
}

// rankings are kept for reuse: a choice over a thousand backends needs room that the next one
// can use again.
var rankings = sync.Pool{New: func() any { return new(ranking) }}

// ranking is one choice being made. Reused, it allocates nothing.
type ranking struct {
	cands  []choice
	raws   []float64 // of each candidate one value for each term
	bits   uint32    // the terms that somebody reports
	best   []choice  // the first of the order, best first
	out    []ruledOut
	newest time.Time // when the newest heartbeat was seen
}

// ruledOut counts the destinations that one reason ruled out.
type ruledOut struct {
	code     events.Code
	count    int
	examples [events.MaxExamples]events.HostID
}

func (r *ranking) rank(q *question, f *projections.Fleet) {
	r.cands, r.raws, r.best, r.out, r.bits = r.cands[:0], r.raws[:0], r.best[:0], r.out[:0], 0
	r.newest = time.Time{}
	p := q.policy.rules()
	for _, b := range f.Backends {
		if b.Seen.After(r.newest) {
			r.newest = b.Seen
		}
		code := refuseBackend(q, b)
		if code == "" && q.join {
			code = r.seat(q, p, b)
		} else if code == "" {
			code = r.admit(q, p, b)
		}
		if code != "" {
			r.ruleOut(code, b.Server)
		}
	}
	r.score(p, q)
	r.order()
}

func refuseBackend(q *question, b *projections.Backend) events.Code {
	switch {
	case q.wish.Pin != "" && q.wish.Pin != b.Server:
		return events.Excluded
	case q.exclude[b.Server] != "":
		return q.exclude[b.Server]
	case q.now.Sub(b.Seen) > q.stale:
		return events.Stale
	case b.State != events.Ready && !(q.join && b.State == events.Degraded):
		return events.NotReady
	case !b.Accepting:
		return events.NotAccepting
	case b.Claimed > 0:
		return events.AddressChanged
	case q.drained(b.Server):
		return events.Drained
	case q.lobbies[b.Server] && !q.join:
		return events.LobbyOnly
	case events.CheckSchema(b.Schema) != nil:
		return events.SchemaRange
	case !speaks(b.ProtocolMin, b.ProtocolMax, q.protocol):
		return events.ProtocolAbsent
	}
	return ""
}

// admit takes in the regions of a backend that fit the wish and have something kept.
func (r *ranking) admit(q *question, p *policy, b *projections.Backend) events.Code {
	if p.fixed != "" && p.fixed != b.Server && q.wish.Pin == "" {
		return events.Excluded
	}
	code, first, all, pledged := events.RegionMissing, len(r.cands), 0, 0
	for i := range b.Regions {
		x := &b.Regions[i]
		since := q.pledged(b, x.Name)
		kept := max(x.Kept-since, 0)
		all, pledged = all+kept, pledged+since
		if q.wish.Region != "" && q.wish.Region != x.Name || q.wish.World != "" && q.wish.World != x.World {
			continue
		}
		if q.paused != nil && q.paused(b.Server, x.Name) {
			code = events.Paused
			continue
		}
		if kept == 0 && !q.fresh {
			code = events.NoneKept
			if b.MaxPlayers > 0 && b.Players+b.Outstanding >= b.MaxPlayers {
				code = events.Full // coordinates it may have, but no seat
			}
			continue
		}
		if q.turn != nil {
			if refused := q.turn(b, x); refused != "" {
				code = refused
				continue
			}
		}
		r.cands = append(r.cands, choice{backend: b, region: x.Name, kept: kept, row: len(r.cands), tier: p.tier(q, b)})
	}
	found := r.cands[first:]
	if len(found) == 0 {
		return code
	}
	m := q.memories.look(b.Server, q.now, p.halfLife)
	for i := range found {
		found[i].all, found[i].pledged = all, pledged
		found[i].recall(p, m)
	}
	return ""
}

// seat takes in a whole server for a player who needs no coordinate there.
func (r *ranking) seat(q *question, p *policy, b *projections.Backend) events.Code {
	c := choice{backend: b, row: len(r.cands), tier: p.joinTier(q, b)}
	for i := range b.Regions {
		c.pledged += q.pledged(b, b.Regions[i].Name)
	}
	c.recall(p, q.memories.look(b.Server, q.now, p.halfLife))
	switch {
	case b.Advertise == "":
		return events.Unreachable
	case b.MaxPlayers > 0 && c.bound() >= b.MaxPlayers:
		return events.Full
	}
	r.cands = append(r.cands, c)
	return ""
}

// recall takes in what is remembered of the choice's server.
func (c *choice) recall(p *policy, m memory) {
	c.picks, c.turn, c.rtt = m.picks, m.turn, m.rtt
	if p.shared {
		c.picks += m.others
	}
	if m.beat == c.backend.Seq {
		c.joined = m.joined
	}
}

// joinTier puts healthy servers before degraded ones and those that failed a moment ago, among
// them lobbies before others, and the server of a fixed policy before the rest: nobody is
// turned away while one can hold the player.
func (p *policy) joinTier(q *question, b *projections.Backend) int {
	tier := 0
	if q.cooling[b.Server] != "" {
		tier += 8
	}
	if b.State != events.Ready {
		tier += 4
	}
	if !q.isLobby(b) {
		tier += 2
	}
	if p.fixed != "" && p.fixed != b.Server {
		tier++
	}
	return tier
}

// tier says whether a request that names no server is served at home first or last.
func (p *policy) tier(q *question, b *projections.Backend) int {
	if q.wish.Pin == "" && q.home != "" && (q.home == b.Server) != p.home {
		return 1
	}
	return 0
}

// isLobby tells that a server only asks.
func (q *question) isLobby(b *projections.Backend) bool {
	return len(b.Regions) == 0 || q.lobbies[b.Server]
}

func (r *ranking) ruleOut(code events.Code, id events.HostID) {
	i := slices.IndexFunc(r.out, func(x ruledOut) bool { return x.code == code })
	if i < 0 {
		i = len(r.out)
		r.out = append(r.out, ruledOut{code: code})
	}
	x := &r.out[i]
	if x.count < len(x.examples) {
		x.examples[x.count] = id
	}
	x.count++
}

// score gives each candidate what its policy makes of it.
func (r *ranking) score(p *policy, q *question) {
	if p.kind == Weighted {
		r.weigh(p, q)
		return
	}
	for i := range r.cands {
		c := &r.cands[i]
		c.spare = c.kept
		switch p.kind {
		case RoundRobin:
			c.score = float64(c.turn)
		case LeastPlayers:
			c.score = float64(c.bound()) / p.divisor(c.backend.Server)
		}
	}
}

// bound counts the players that a backend has, has promised a place, or is being joined by.
func (c *choice) bound() int {
	return max(c.backend.Players, 0) + max(c.backend.Outstanding, 0) + c.pledged + c.joined
}

// order finds the best candidates. There are few of them and many others, so each candidate
// is held against the last of the best first.
func (r *ranking) order() {
	for i := range r.cands {
		c := &r.cands[i]
		at := len(r.best)
		if at == events.MaxCandidates {
			if !c.before(&r.best[at-1]) {
				continue
			}
			r.best = r.best[:at-1]
			at--
		}
		for at > 0 && c.before(&r.best[at-1]) {
			at--
		}
		r.best = slices.Insert(r.best, at, *c)
	}
}

// before is the order of candidates: total, so that every dispatcher agrees on it.
func (c *choice) before(x *choice) bool {
	switch {
	case c.tier != x.tier:
		return c.tier < x.tier
	case c.score != x.score:
		return c.score < x.score
	case c.tired != x.tired:
		return c.tired < x.tired
	case c.backend.Server != x.backend.Server:
		return c.backend.Server < x.backend.Server
	case c.spare != x.spare:
		return c.spare > x.spare
	}
	return c.region < x.region
}

// permanent tells that no wait can help: hosts are known, and none of them has such a region.
func permanent(d events.Decision) bool {
	known, missing := 0, 0
	for _, f := range d.Filtered {
		if f.Code == events.Excluded {
			continue
		}
		known += f.Count
		if f.Code == events.RegionMissing || f.Code == events.LobbyOnly {
			missing += f.Count
		}
	}
	return len(d.Candidates) == 0 && known > 0 && missing == known
}

// passedOver tells that a reason kept some destination out.
func passedOver(d events.Decision, code events.Code) bool {
	return slices.ContainsFunc(d.Filtered, func(f events.Filtered) bool { return f.Code == code })
}
