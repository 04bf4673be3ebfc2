package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// namedOrder is a decision about something with a name, and its undo.
type namedOrder struct {
	order
	off, force bool
}

func (o *namedOrder) add(c *cobra.Command) {
	o.order.add(c)
	c.Flags().BoolVar(&o.off, "off", false, "undo it")
	c.Flags().BoolVar(&o.force, "force", false, "decide it although nobody of that name is known: it may not have started yet")
}

// decide takes a decision after a look at the network. An error of what about nobody of that
// name is passed over with --force.
func (o *namedOrder) decide(c *cobra.Command, what func(n *census) (key string, f events.Fact, unknown error)) error {
	return o.within(c.Context(), func(d deciding) error {
		n, err := o.census(c.Context(), d)
		if err != nil {
			return err
		}
		key, f, unknown := what(n)
		if unknown != nil && !o.force {
			return unknown
		}
		return o.write(c, d, key, f)
	})
}

// census is who and what is known on a network: what beats or has beaten, as long as the
// store keeps heartbeats, what network.yml lists if it was given, and what was decided about.
type census struct {
	fleet    *projections.Fleet
	controls projections.Controls
	pushedAt time.Time        // when controls.Config was stored
	net      *network.Network // nil: not given
	now      time.Time        // by the clock of the heartbeats
}

func (o *order) census(ctx context.Context, d deciding) (*census, error) {
	var conf *network.Network
	if o.config != "" {
		var err error
		if conf, err = network.Load(o.config); err != nil {
			return nil, err
		}
	}
	opener, err := d.opener(ctx)
	if err != nil {
		return nil, err
	}
	return takeCensus(ctx, d, opener, conf)
}

// takeCensus reads what the log has; conf may be nil. What cannot be verified is not known.
func takeCensus(ctx context.Context, log history, opener *opener, conf *network.Network) (*census, error) {
	n := &census{fleet: &projections.Fleet{}, net: conf}
	state, err := log.Info(ctx, events.Fleet)
	if err != nil {
		return nil, err
	}
	n.now = clockOf(state)
	for _, b := range []events.Bucket{events.Fleet, events.Control} {
		for rec, err := range log.History(ctx, b, streams.Range{Newest: true}) {
			if err != nil {
				return nil, err
			}
			if got := opener.open(rec); got.verified == genuine && got.refusal == nil {
				n.take(got)
			}
		}
	}
	return n, nil
}

// take folds one record. What its fold refuses is not known.
func (n *census) take(r reading) {
	if r.Bucket == events.Fleet {
		n.fleet, _ = n.fleet.Apply(r.event, r.Stored)
		return
	}
	n.controls, _ = n.controls.Apply(r.event)
	if n.controls.ConfigSeq == r.Seq {
		n.pushedAt = r.Stored
	}
}

// names are the servers or the regions that are known.
func (n *census) names(what events.PauseWhat) []string {
	known := map[string]bool{}
	for _, p := range n.controls.Paused {
		known[p.Name] = known[p.Name] || p.What == what
	}
	for _, b := range n.fleet.Backends {
		known[string(b.Server)] = known[string(b.Server)] || what == events.PauseServer
		for i := range b.Regions {
			known[b.Regions[i].Name] = known[b.Regions[i].Name] || what == events.PauseRegion
		}
	}
	if n.net != nil {
		for id, x := range n.net.Hosts {
			known[id] = known[id] || what == events.PauseServer && x.IsBackend()
			for region := range x.Regions {
				known[region] = known[region] || what == events.PauseRegion
			}
		}
	}
	if what == events.PauseServer {
		for id := range n.controls.Evacuated {
			known[string(id)] = true
		}
	}
	maps.DeleteFunc(known, func(_ string, is bool) bool { return !is })
	return slices.Sorted(maps.Keys(known))
}

// hosts are the servers and proxies that are known.
func (n *census) hosts() []string {
	known := n.names(events.PauseServer)
	for id := range n.controls.Drained {
		known = append(known, string(id))
	}
	for _, p := range n.fleet.Proxies {
		known = append(known, string(p.Proxy))
	}
	if n.net != nil {
		known = append(known, slices.Collect(maps.Keys(n.net.Hosts))...)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// has refuses a name that nobody bears, with the one that was meant.
func (n *census) has(what, name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	who := "nobody is known yet"
	if len(known) > 0 {
		who = "known: " + strings.Join(known, ", ")
	}
	return fmt.Errorf("no %s %q is known%s (%s); with --force it is decided all the same, for one that has not started yet", what, name, network.Meant(network.Nearest(name, known)), who)
}
