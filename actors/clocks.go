package actors

import (
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

const (
	clockOff  = 5 * time.Second // a clock that is off by more is worth a word
	clockSure = 3               // beats in a row that must say so: one may have been long on its way
)

// clock is what is known of a host's clock.
type clock struct {
	beat uint64 // the newest heartbeat looked at
	off  int    // how many in a row had it off
	told bool
}

// warnOfClocks says once of each host that its clock is off, and that it is right again. Order
// and deadlines do not depend on it; who compares the logs of two hosts does. Of the sweep's
// goroutine only.
func (d *Dispatcher) warnOfClocks(f *projections.Fleet) {
	known := make(map[events.Source]clock, len(d.clocks))
	for _, b := range f.Backends {
		host := events.Source{Kind: events.SourceBackend, ID: b.Server}
		known[host] = d.lookAtClock(host, d.clocks[host], b.Seq, b.Skew)
	}
	for _, p := range f.Proxies {
		host := events.Source{Kind: events.SourceEdge, ID: p.Proxy}
		known[host] = d.lookAtClock(host, d.clocks[host], p.Seq, p.Skew)
	}
	d.clocks = known
}

func (d *Dispatcher) lookAtClock(host events.Source, c clock, beat uint64, skew time.Duration) clock {
	if c.beat == beat {
		return c
	}
	c.beat = beat
	switch {
	case skew.Abs() <= clockOff:
		c.off = 0
		if c.told {
			c.told = false
			d.logger.Info("the clock of a host is right again", "host", host.ID)
		}
	case c.off+1 < clockSure:
		c.off++
	case !c.told:
		c.told = true
		d.logger.Warn("the clock of a host is off: set it by NTP; nothing here depends on it, but times in its logs do",
			"host", host.ID, "ahead", skew.Round(time.Second))
	}
	return c
}
