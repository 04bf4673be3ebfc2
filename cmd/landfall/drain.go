package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

func newDrain() *cobra.Command {
	var o namedOrder
	c := &cobra.Command{
		Use:   "drain HOST",
		Short: "Take one host out, so that it can be stopped; or put it back with --off",
		Long: `A drained backend is not chosen any more: players stay there, and tokens that are out are
honoured. A drained proxy closes its ports, so that a balancer in front sends new connections
elsewhere, and answers no backend any more; its own players are served until they leave. It
holds across restarts until --off.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Example: `  landfall drain survival-2 --why "new disk"
  landfall drain survival-2 --off`,
		Args: exactly(1, "the id of a host"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := events.ParseHostID(args[0])
			if err != nil {
				return usageError("drain: %w", err)
			}
			return o.decide(c, func(n *census) (string, events.Fact, error) {
				if !o.off && n.lastOpen(id) {
					fmt.Fprintf(c.ErrOrStderr(), "warning: %s is the last proxy that lets players in: from now on nobody can join, and nobody is moved\n", id)
				}
				return events.DrainKey(id), &events.DrainSet{Host: id, On: !o.off, Who: o.who, Why: o.why}, n.has("host", string(id), n.hosts())
			})
		},
	}
	o.add(c)
	return c
}

// deadAfter is how old the last heartbeat of a host may be that counts as alive.
const deadAfter = 10 * time.Second

// lastOpen tells that a host is a proxy that lets players in, and that no other one does.
func (n *census) lastOpen(id events.HostID) bool {
	open := map[events.HostID]bool{}
	for _, p := range n.fleet.Proxies {
		if lets := slices.Contains(p.Kinds, events.KindEdge); lets && p.State == events.Ready && n.now.Sub(p.Seen) <= deadAfter && n.controls.Drained[p.Proxy] == nil {
			open[p.Proxy] = true
		}
	}
	return open[id] && len(open) == 1
}
