package actors

import (
	"fmt"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
)

// strange is a host that goes by another configuration than this one.
type strange struct {
	how   string
	since time.Time // seen so
	told  bool
}

// warnOfDifferences says once of each host that beats in what its configuration differs, when
// it is still so after the time that a change needs to reach everybody.
func (d *Dispatcher) warnOfDifferences(w watch, newest uint64) {
	own := d.cfg.Settings.beat()
	if own == nil {
		return
	}
	for id, theirs := range configs(w) {
		how := differences(own, theirs, newest)
		x := d.strange[id]
		if x == nil || x.how != how {
			x = &strange{how: how, since: w.now}
			d.strange[id] = x
		}
		if how == "" || x.told || w.now.Sub(x.since) < w.timing.Stale {
			continue
		}
		x.told = true
		d.logger.Warn("a host goes by another configuration: is its network.yml the same as here?", "host", id, "difference", how)
	}
}

// configs are those of the other hosts that beat now.
func configs(w watch) map[events.HostID]*events.ConfigBeat {
	out := map[events.HostID]*events.ConfigBeat{}
	for _, b := range w.fleet.Backends {
		if b.Config != nil && b.Server != w.self.ID && w.now.Sub(b.Seen) <= w.timing.Stale {
			out[b.Server] = b.Config
		}
	}
	for _, p := range w.fleet.Proxies {
		if p.Config != nil && p.Proxy != w.self.ID && w.now.Sub(p.Seen) <= w.timing.Stale {
			out[p.Proxy] = p.Config
		}
	}
	return out
}

// differences says in words how another host's configuration differs, "" when it does not.
// Live keys are compared between hosts that obey the same pushed version; newest is that of the log.
func differences(own, theirs *events.ConfigBeat, newest uint64) string {
	var out []string
	if names := events.Unlike(own.Fixed, theirs.Fixed); len(names) > 0 {
		out = append(out, "keys that need a restart, in "+strings.Join(names, ", "))
	}
	switch {
	case newest > 0 && theirs.Refused == newest:
		out = append(out, fmt.Sprintf("it cannot obey version %d that was pushed: %s", newest, theirs.Fault))
	case theirs.Pushed != newest:
		out = append(out, fmt.Sprintf("it obeys version %d that was pushed, not %d", theirs.Pushed, newest))
	case own.Pushed == newest:
		if names := events.Unlike(own.Live, theirs.Live); len(names) > 0 {
			out = append(out, "keys that can be reloaded, in "+strings.Join(names, ", "))
		}
	}
	return strings.Join(out, "; ")
}
