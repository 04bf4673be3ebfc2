package doctor

import (
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// beating are the hosts whose silence is no reason to look away.
func (f *Facts) beating() (out []Host) {
	if f.open() == nil {
		return nil
	}
	for _, h := range f.Hosts {
		if !f.silent(h) && h.State != events.ShuttingDown {
			out = append(out, h)
		}
	}
	return out
}

// shipped is loadBalancer.staleAfterMs when no file says otherwise.
const shipped = 3 * time.Second

func (f *Facts) silent(h Host) bool {
	stale := shipped
	if f.Config != nil && f.Config.Stale > 0 {
		stale = f.Config.Stale
	}
	return h.Age > stale
}

const (
	behind  = 5 * time.Second
	stalled = 30 * time.Second
)

// projectors: whether dispatchers fold what the log has.
func projectors(f *Facts) (out []Finding) {
	for _, h := range f.beating() {
		switch {
		case !h.Dispatcher || h.Behind == 0:
		case h.BehindFor >= stalled:
			out = append(out, found(ProjectorStalled, string(h.ID), "has not folded %d facts, the oldest is %s old", h.Behind, h.BehindFor.Round(time.Second)))
		case h.BehindFor >= behind:
			out = append(out, found(ProjectorBehind, string(h.ID), "has not folded %d facts, the oldest is %s old", h.Behind, h.BehindFor.Round(time.Second)))
		}
	}
	return out
}

// followed are the buckets that every dispatcher reads all the time.
var followed = []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Fleet}

// watchers: whether each dispatcher that is ready reads every part of the log it decides by.
func watchers(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil || f.Config == nil {
		return nil
	}
	for _, h := range f.beating() {
		i := slices.IndexFunc(f.Config.Hosts, func(l Listed) bool { return l.ID == h.ID })
		if !h.Dispatcher || h.State != events.Ready || i < 0 || len(f.Config.Hosts[i].Readers) == 0 {
			continue
		}
		var without []string
		for _, b := range followed {
			if !s.readBy(b, f.Config.Hosts[i].Readers) {
				without = append(without, string(b))
			}
		}
		if len(without) > 0 {
			out = append(out, found(WatcherMissing, string(h.ID), "does not read %s", strings.Join(without, ", ")))
		}
	}
	return out
}

// readBy tells that one of the names reads a bucket, or that it cannot be seen.
func (s *Store) readBy(b events.Bucket, names []string) bool {
	for _, x := range s.Streams {
		if x.Bucket != b {
			continue
		}
		return x.Hidden || x.Missing || slices.ContainsFunc(x.Consumers, func(c Consumer) bool {
			return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.Name, name) })
		})
	}
	return true
}

// beats: who is there, and how.
func beats(f *Facts) (out []Finding) {
	if f.open() == nil {
		return nil
	}
	for _, h := range f.Hosts {
		switch {
		case h.State == events.ShuttingDown:
		case f.silent(h):
			out = append(out, found(HostSilent, string(h.ID), "was last heard %s ago", h.Age.Round(time.Second)))
		case h.State == events.Degraded:
			out = append(out, found(HostDegraded, string(h.ID), "says %s", h.State))
		}
	}
	if f.Config == nil || len(f.Config.Faults) > 0 {
		return out
	}
	for _, l := range f.Config.Hosts {
		if (l.Backend || l.Dispatcher) && !slices.ContainsFunc(f.Hosts, func(h Host) bool { return h.ID == l.ID }) {
			out = append(out, found(HostUnseen, string(l.ID), "no heartbeat is held of it"))
		}
	}
	for _, h := range f.beating() {
		if len(f.Config.Hosts) > 0 && !slices.ContainsFunc(f.Config.Hosts, func(l Listed) bool { return l.ID == h.ID }) {
			out = append(out, found(HostUnlisted, string(h.ID), "beats, and %s does not list it", f.Config.File))
		}
	}
	return out
}

// clockSlack is how far clocks may be apart, with what a beat takes.
const clockSlack = 2 * time.Second

// clocks: shown, since people compare times that different hosts wrote.
func clocks(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	if s.ClockSeen && s.ClockOff.Abs() > clockSlack {
		out = append(out, found(ClockOff, "this machine", "its clock is %s", off(s.ClockOff)))
	}
	for _, h := range f.beating() {
		if h.Skew.Abs() > clockSlack {
			out = append(out, found(ClockOff, string(h.ID), "its clock is %s", off(h.Skew)))
		}
	}
	return out
}

func off(d time.Duration) string {
	if d < 0 {
		return d.Abs().Round(100*time.Millisecond).String() + " behind the store's"
	}
	return d.Round(100*time.Millisecond).String() + " ahead of the store's"
}

// manyLives within what is looked back on are no update.
const manyLives = 3

// duplicates: two who take themselves for one, or are taken for one.
func duplicates(f *Facts) (out []Finding) {
	if f.open() == nil {
		return nil
	}
	at := map[string]events.HostID{}
	for _, h := range f.Hosts {
		if h.Lives >= manyLives {
			out = append(out, found(DuplicateID, string(h.ID), "began anew %d times within %s", h.Lives, h.Within))
		}
	}
	for _, h := range f.beating() {
		if h.Advertise == "" {
			continue
		}
		if other, twice := at[h.Advertise]; twice {
			out = append(out, found(DuplicateAddress, string(h.ID), "names %s, as %s does", h.Advertise, other))
			continue
		}
		at[h.Advertise] = h.ID
	}
	return out
}

// configs: who goes by another file.
func configs(f *Facts) (out []Finding) {
	for _, h := range f.beating() {
		if len(h.Differs) > 0 {
			out = append(out, found(ConfigDiffers, string(h.ID), "differs in %s", strings.Join(h.Differs, ", ")))
		}
	}
	return out
}

// wires: who must be updated before anybody writes the newer format.
func wires(f *Facts) (out []Finding) {
	for _, h := range f.beating() {
		if h.Schema < events.SchemaVersion {
			out = append(out, found(HostBehind, string(h.ID), "is %s and writes format %d, this program %d", h.Version, h.Schema, events.SchemaVersion))
		}
	}
	return out
}
