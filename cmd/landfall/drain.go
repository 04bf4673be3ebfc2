package main

import (
	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

func newDrain() *cobra.Command {
	var o namedOrder
	c := &cobra.Command{
		Use:   "drain HOST",
		Short: "Take one backend out of selection, or put it back with --off",
		Long: `A drained backend is not chosen any more: players stay there, and tokens that are out are
honoured. It holds across restarts until --off.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Args: exactly(1, "the id of a host"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := events.ParseHostID(args[0])
			if err != nil {
				return usageError("drain: %w", err)
			}
			return o.decide(c, func(n *census) (string, events.Fact, error) {
				return events.DrainKey(id), &events.DrainSet{Host: id, On: !o.off, Who: o.who, Why: o.why}, n.has("host", string(id), n.hosts())
			})
		},
	}
	o.add(c)
	return c
}
