package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/landfall/landfall/events"
)

// expires are the buckets that grow with the players and are emptied by retention.
var expires = map[events.Bucket]bool{events.Transfers: true, events.Sessions: true}

// reach: whether the store is there at all.
func reach(f *Facts) []Finding {
	s := f.Store
	switch {
	case s == nil:
		return nil
	case s.Refused:
		return []Finding{found(StoreRefuses, s.Where, "%s", s.Down)}
	case s.Down != "":
		return []Finding{found(StoreDown, s.Where, "%s", s.Down)}
	case s.Stopped:
		return []Finding{found(StoreDown, s.Where, "no process has it open: it was opened to look at it")}
	}
	return nil
}

// open gives the store when it was reached.
func (f *Facts) open() *Store {
	if f.Store == nil || f.Store.Down != "" {
		return nil
	}
	return f.Store
}

// guard: whether the store wants to know who connects.
func guard(f *Facts) []Finding {
	s := f.open()
	switch {
	case s == nil || s.Guarded:
		return nil
	case f.Config != nil && f.Config.OnMachine:
		return []Finding{found(StoreOpenHere, s.Where, "whoever is on this machine may empty the log")}
	}
	return []Finding{found(StoreOpen, s.Where, "whoever reaches it may empty the log")}
}

// version is what counts of a nats-server's.
type version struct{ major, minor, patch int }

func parseVersion(text string) (v version, ok bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "-")
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return v, false
	}
	for i, into := range []*int{&v.major, &v.minor, &v.patch} {
		n, err := strconv.Atoi(parts[i])
		if err != nil || n < 0 {
			return v, false
		}
		*into = n
	}
	return v, true
}

func (v version) before(major, minor, patch int) bool {
	return slices.Compare([]int{v.major, v.minor, v.patch}, []int{major, minor, patch}) < 0
}

// bad are the versions that are known not to do, with the reason; the first that holds counts.
var bad = []struct {
	code Code
	is   func(version) bool
	why  string
}{
	{ServerOld, func(v version) bool { return v.before(2, 12, 0) }, "it lacks what the log is built on: per-key limits that refuse, streams that persist lazily"},
	{ServerOld, func(v version) bool { return v.before(2, 12, 15) }, "logins and denials can be passed by, and a stream restored into another (before 2.12.15)"},
	{ServerOld, func(v version) bool { return !v.before(2, 13, 0) && v.before(2, 14, 5) }, "logins of certificates and denials of queues can be passed by (2.14 before 2.14.5)"},
	{ServerRisky, func(v version) bool { return v.before(2, 15, 0) }, "compaction has holes in sync_interval: always (before 2.15)"},
}

// versions: known bad ones.
func versions(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, x := range s.all() {
		v, ok := parseVersion(x.Version)
		if !ok {
			continue
		}
		for _, b := range bad {
			if b.is(v) {
				out = append(out, found(b.code, "server "+x.Name, "is %s: %s", x.Version, b.why))
				break
			}
		}
	}
	return out
}

// all are the servers that are known, the one we are connected to if no more.
func (s *Store) all() []Server {
	if len(s.Servers) > 0 {
		return s.Servers
	}
	return []Server{s.Server}
}

// syncs: whether what servers of the operator's own acknowledge is on their disks.
func syncs(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil || f.Config == nil || f.Config.Mode != "external" || f.Config.Storage == "memory" {
		return nil
	}
	if len(s.Servers) == 0 {
		return []Finding{found(ServersSilent, s.Where, "whether they sync before they acknowledge was not seen")}
	}
	for _, x := range s.Servers {
		if !x.Synced && f.Config.Durability != "lazy" {
			out = append(out, found(ServerLazy, "server "+x.Name, "writes to its disk every %s; store.durability is %s", x.Every, f.Config.Durability))
		}
	}
	return out
}

// identity: whose the streams are.
func identity(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, x := range s.Streams {
		switch {
		case x.Missing:
			out = append(out, found(StreamMissing, string(x.Bucket), "there is no such stream"))
		case x.Foreign != "":
			out = append(out, found(StreamForeign, string(x.Bucket), "%s", x.Foreign))
		}
	}
	return out
}

// drift: whether they are still as they were made.
func drift(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, x := range s.Streams {
		if x.Missing || x.Foreign != "" {
			continue
		}
		if x.DedupeShort > 0 {
			out = append(out, found(DedupeShort, string(x.Bucket), "it knows an id again for %s", x.DedupeShort))
		}
		for _, d := range x.Drift {
			out = append(out, found(StreamDrift, string(x.Bucket), "%s", d))
		}
	}
	return out
}

// lagging is how many operations a copy may be behind its leader.
const lagging = 1000

// copies: whether all of them are there, in step, and apart from each other.
func copies(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, x := range s.Streams {
		if x.Missing || x.Want < 2 {
			continue
		}
		out = append(out, x.copies()...)
	}
	byHost := map[string][]string{}
	for _, x := range s.Servers {
		if x.Host != "" && x.Host != "0.0.0.0" && x.Host != "::" {
			byHost[x.Host] = append(byHost[x.Host], x.Name)
		}
	}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		if names := byHost[host]; len(names) > 1 {
			slices.Sort(names)
			out = append(out, found(CopiesTogether, host, "%s are there", strings.Join(names, ", ")))
		}
	}
	return out
}

func (x Stream) copies() (out []Finding) {
	where, current := string(x.Bucket), 0
	if x.Leader != "" {
		current++
	}
	var gone []string
	for _, c := range x.Copies {
		switch {
		case c.Offline:
			gone = append(gone, c.Server+" is away")
		case !c.Current:
			gone = append(gone, fmt.Sprintf("%s is not in step", c.Server))
		default:
			current++
			if c.Lag > lagging {
				out = append(out, found(CopyLags, where, "%s is %d operations behind %s", c.Server, c.Lag, x.Leader))
			}
		}
	}
	if current < x.Want {
		text := fmt.Sprintf("%d of %d copies are in step", current, x.Want)
		if len(gone) > 0 {
			text += ": " + strings.Join(gone, ", ")
		}
		out = append([]Finding{found(CopiesMissing, where, "%s", text)}, out...)
	}
	return out
}

// logins: what each may do, tried.
func logins(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, l := range s.Logins {
		if l.Refused != "" {
			out = append(out, found(LoginRefused, l.Name, "%s", l.Refused))
		}
		if len(l.Wide) > 0 {
			out = append(out, found(RightsWide, l.Name, "may %s", strings.Join(l.Wide, ", ")))
		}
		if len(l.Narrow) > 0 {
			out = append(out, found(RightsNarrow, l.Name, "may not %s", strings.Join(l.Narrow, ", ")))
		}
	}
	return out
}

// unread is how many records a reader may have before it.
const unread = 10_000

// readers: who reads the log, and how far.
func readers(f *Facts) (out []Finding) {
	s := f.open()
	if s == nil {
		return nil
	}
	for _, x := range s.Streams {
		for _, c := range x.Consumers {
			if !strings.HasPrefix(c.Name, "landfall-") {
				out = append(out, found(ReaderUnknown, string(x.Bucket), "consumer %s", c.Name))
			}
			if c.Pending > unread {
				out = append(out, found(ReaderLags, string(x.Bucket), "consumer %s has %d records before it", c.Name, c.Pending))
			}
			if c.Redelivered > 0 {
				out = append(out, found(ReaderRepeats, string(x.Bucket), "consumer %s was given %d records again", c.Name, c.Redelivered))
			}
		}
	}
	return out
}
