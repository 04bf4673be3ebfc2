package main

import (
	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// pushable lets operators push to this host.
func (h *host) pushable() actors.Settings {
	return actors.Settings{Adopt: h.obey, Beat: h.configBeat}
}

// obey puts a version that operators pushed over the file's own keys, as one, or takes it
// away again. A version that does not fit here is refused as a whole, and what holds goes on.
func (h *host) obey(p actors.Pushed) {
	h.live.change(func(was *changeable) *changeable {
		if p == was.newest() {
			return was
		}
		next, err := was.obeying(h.net, p)
		if err != nil {
			h.log.Error("the pushed configuration is refused as a whole, this host goes on with what it has",
				"host", h.name(), "version", p.Seq, "by", p.Who, "error", oneLine(err), "inForce", was.pushed.Seq)
			return was.refusing(p, err)
		}
		h.sayObeyed(was, next)
		return next
	})
}

func (h *host) sayObeyed(was, next *changeable) {
	what := "pushed configuration adopted"
	if next.pushed.Text == "" {
		what = "the pushed configuration was taken back: this host's own file holds again"
	}
	h.log.Info(what, "version", next.pushed.Seq, "by", next.pushed.Who, "why", next.pushed.Why,
		"keys", adoptable(was, next), "policy", next.policy.Name())
}

// still gives what was just read from the files with the version that was in force, or with
// the newer one that could not be obeyed until now.
func (h *host) still(own, was *changeable) (*changeable, error) {
	next, err := own.obeying(h.net, was.newest())
	if err == nil || was.refused.Seq == 0 {
		return next, err
	}
	next, old := own.obeying(h.net, was.pushed)
	if old != nil {
		return nil, old
	}
	return next.refusing(was.refused, err), nil
}

// newest is the version that this host was told of last, obeyed or not.
func (c *changeable) newest() actors.Pushed {
	if c.refused.Seq > 0 {
		return c.refused
	}
	return c.pushed
}

// maxFault bounds what a heartbeat says of a version that was refused.
const maxFault = 200

// configBeat says in the heartbeat what this host goes by.
func (h *host) configBeat() events.ConfigBeat {
	c := h.live.now()
	fault := []rune(printable(c.fault))
	return events.ConfigBeat{
		Fixed: h.fixed, Live: c.sections, Pushed: c.pushed.Seq, Refused: c.refused.Seq, Fault: string(fault[:min(len(fault), maxFault)]),
	}
}

func sectionsOf(sections []network.Section) []events.SectionBeat {
	out := make([]events.SectionBeat, len(sections))
	for i, s := range sections {
		out[i] = events.SectionBeat(s)
	}
	return out
}
