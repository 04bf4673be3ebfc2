package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

func newPause() *cobra.Command {
	c := &cobra.Command{
		Use:   "pause",
		Short: "Give out no more places in line, on a server or in a region, or go on with --off",
		Long: `While something is paused nobody is promised a place there (PAUSED). Tokens that are out are
honoured, players in line keep their places and are told that the line stands still, and new
requests go to the end of it. The pause of the line does not hold back those who need not wait
(bypass); that of a server or a region holds back everybody. Nobody is kept from joining. It
holds across restarts until --off.`,
		Example: `  landfall pause line --why "boss fight"
  landfall pause server survival-2
  landfall pause region nether --off`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(
		pauseVerb(events.PauseLine, "line", "Serve nobody who waits", 0, ""),
		pauseVerb(events.PauseServer, "server ID", "Promise nobody a place on a server", 1, "the id of a server"),
		pauseVerb(events.PauseRegion, "region NAME", "Promise nobody a place in a region, on any server", 1, "the name of a region"),
	)
	return c
}

func pauseVerb(what events.PauseWhat, use, short string, args int, wanted string) *cobra.Command {
	var o namedOrder
	c := &cobra.Command{
		Use: use, Short: short, Args: exactly(args, wanted),
		Long: short + ", or go on with --off.\n\nExit status: 0 it stands in the log, 1 otherwise.",
		RunE: func(c *cobra.Command, args []string) error {
			f := &events.PauseSet{What: what, On: !o.off, Who: o.who, Why: o.why}
			key := events.PauseKey(what, "")
			if what == events.PauseLine {
				return o.give(c, key, f)
			}
			id, err := events.ParseHostID(args[0]) // regions are named by the same rules
			if err != nil {
				return usageError("pause %s: %w", what, err)
			}
			f.Name = string(id)
			return o.decide(c, func(n *census) (string, events.Fact, error) {
				return events.PauseKey(what, f.Name), f, n.pausable(what, f.Name)
			})
		},
	}
	if what == events.PauseLine {
		o.order.add(c)
		c.Flags().BoolVar(&o.off, "off", false, "go on")
	} else {
		o.add(c)
	}
	return c
}

// pausable refuses a name that nobody bears, and a proxy, where nobody is promised a place.
func (n *census) pausable(what events.PauseWhat, name string) error {
	unknown := n.has(string(what), name, n.names(what))
	if unknown != nil && what == events.PauseServer && n.has("host", name, n.hosts()) == nil {
		return fmt.Errorf("%s is no backend: nobody is promised a place on a proxy; `landfall drain %s` lets nobody in", name, name)
	}
	return unknown
}
