package actors

import (
	"cmp"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// policyKept is the name of the only policy of this version: most coordinates kept wins.
const policyKept = "kept/1"

// question is what a choice is made for.
type question struct {
	wish     events.Wish
	protocol int                                    // of the client, 0 unknown
	exclude  map[events.HostID]events.Code          // tried in this dispatch, cooling down, …: with the reason
	drained  func(events.HostID) bool               // by an operator
	pledged  func(*projections.Backend, string) int // promised since the heartbeat, in a region
	now      time.Time
	stale    time.Duration
}

// choice is a destination that passed the filters.
type choice struct {
	backend *projections.Backend
	region  string
	kept    int
}

// choose ranks the destinations of a snapshot, best first, and records why. It is pure and
// deterministic: ties fall to the lower server id, then the lower region.
func choose(q question, f *projections.Fleet) ([]choice, events.Decision) {
	var ranked []choice
	out := filterCount{}
	for _, b := range f.Backends {
		if code := refuseBackend(q, b); code != "" {
			out.add(code, string(b.Server))
			continue
		}
		found, code := regionsFor(q, b)
		if code != "" {
			out.add(code, string(b.Server))
		}
		ranked = append(ranked, found...)
	}
	slices.SortStableFunc(ranked, func(a, b choice) int { return cmp.Compare(b.kept, a.kept) })
	return ranked, record(q, f, ranked, out)
}

func refuseBackend(q question, b *projections.Backend) events.Code {
	switch {
	case q.wish.Pin != "" && q.wish.Pin != b.Server:
		return events.Excluded
	case q.exclude[b.Server] != "":
		return q.exclude[b.Server]
	case q.now.Sub(b.Seen) > q.stale:
		return events.Stale
	case b.State != events.Ready:
		return events.NotReady
	case !b.Accepting:
		return events.NotAccepting
	case q.drained(b.Server):
		return events.Drained
	case b.Schema != events.SchemaVersion:
		return events.SchemaRange
	case q.protocol > 0 && b.ProtocolMin > 0 && (q.protocol < b.ProtocolMin || q.protocol > b.ProtocolMax):
		return events.ProtocolAbsent
	}
	return ""
}

// regionsFor gives the regions of a backend that fit the wish and have something kept.
func regionsFor(q question, b *projections.Backend) ([]choice, events.Code) {
	var found []choice
	code := events.RegionMissing
	for i := range b.Regions {
		r := &b.Regions[i]
		if q.wish.Region != "" && q.wish.Region != r.Name || q.wish.World != "" && q.wish.World != r.World {
			continue
		}
		code = events.NoneKept
		if kept := r.Kept - q.pledged(b, r.Name); kept > 0 {
			found = append(found, choice{backend: b, region: r.Name, kept: kept})
		}
	}
	if len(found) > 0 {
		return found, ""
	}
	return nil, code
}

func record(q question, f *projections.Fleet, ranked []choice, out filterCount) events.Decision {
	d := events.Decision{Policy: policyKept, Snapshot: f.Seq, Candidates: []events.Candidate{}, Filtered: out.list()}
	var newest time.Time
	for _, b := range f.Backends {
		if b.Seen.After(newest) {
			newest = b.Seen
		}
	}
	if !newest.IsZero() {
		d.AgeMs = max(q.now.Sub(newest).Milliseconds(), 0)
	}
	for _, c := range ranked[:min(len(ranked), events.MaxCandidates)] {
		score := 1 / (1 + float64(c.kept))
		d.Candidates = append(d.Candidates, events.Candidate{
			Server: c.backend.Server, Region: c.region, Score: score,
			Terms: []events.Term{{Name: "kept", Raw: float64(c.kept), Score: score}},
		})
	}
	return d
}

// filterCount counts refused destinations by reason.
type filterCount map[events.Code]*events.Filtered

func (f filterCount) add(code events.Code, server string) {
	x, ok := f[code]
	if !ok {
		x = &events.Filtered{Code: code}
		f[code] = x
	}
	x.Count++
	if len(x.Examples) < events.MaxExamples {
		x.Examples = append(x.Examples, server)
	}
}

func (f filterCount) list() []events.Filtered {
	out := make([]events.Filtered, 0, len(f))
	for _, x := range f {
		out = append(out, *x)
	}
	slices.SortFunc(out, func(a, b events.Filtered) int { return cmp.Compare(a.Code, b.Code) })
	return out
}

// permanent tells that no wait can help: hosts are known, and none of them has such a region.
func permanent(d events.Decision) bool {
	known, missing := 0, 0
	for _, f := range d.Filtered {
		if f.Code == events.Excluded {
			continue
		}
		known += f.Count
		if f.Code == events.RegionMissing {
			missing += f.Count
		}
	}
	return len(d.Candidates) == 0 && known > 0 && missing == known
}

// forJoin ranks the servers that may take a plain join, best first: healthy ones before
// degraded ones, the emptiest first. q.exclude holds those that could not be reached.
func forJoin(q question, f *projections.Fleet) []*projections.Backend {
	var out []*projections.Backend
	for _, b := range f.Backends {
		code := refuseBackend(q, b)
		usable := code == "" || code == events.NotReady && b.State == events.Degraded
		if usable && b.Advertise != "" && (b.MaxPlayers == 0 || b.Players < b.MaxPlayers) {
			out = append(out, b)
		}
	}
	load := func(b *projections.Backend) float64 {
		degraded := 0.0
		if b.State != events.Ready {
			degraded = 1000
		}
		return degraded + float64(b.Players+b.Outstanding)/float64(max(b.MaxPlayers, 1))
	}
	slices.SortStableFunc(out, func(a, b *projections.Backend) int { return cmp.Compare(load(a), load(b)) })
	return out
}
