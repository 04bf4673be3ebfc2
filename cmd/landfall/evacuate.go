package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// statusStayed is the exit status of evacuate when somebody could not be moved.
const statusStayed = 3

// evacuateOrder is the command line of evacuate.
type evacuateOrder struct {
	namedOrder
	perSecond float64
	noWait    bool
}

func newEvacuate() *cobra.Command {
	var o evacuateOrder
	c := &cobra.Command{
		Use:   "evacuate SERVER",
		Short: "Move the players of a backend away, at a pace, and take it out of selection; or put it back with --off",
		Long: `Asks the players of a backend to go, one after the other, lowest session first, and takes it out
of selection until --off: hosts obey it across restarts, whoever comes meanwhile is moved too.
Players are taken to any other place that the network chooses. Who cannot go anywhere plays on,
waits in line, and is told. Who could not be moved is asked again every 30 s, a client that is
too old to be moved once.

The verb then follows the log until nobody is left who may still be moved, and names everybody
who could not be with the reason; interrupting it does not end the evacuation. With --json it
prints the decision, and then one object a line with a kind: progress, refused, end.

Exit status: 0 nobody is left, 1 it does not stand in the log, 3 somebody could not be moved,
64 wrong command line, 130 interrupted.`,
		Example: `  landfall evacuate survival-2 --per-second 5 --why "disk is full"
  landfall evacuate survival-2 --off`,
		Args: exactly(1, "the id of a backend"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := events.ParseHostID(args[0])
			if err != nil {
				return usageError("evacuate: %w", err)
			}
			if o.perSecond < actors.MinEvacuationRate || o.perSecond > actors.MaxEvacuationRate {
				return usageError("--per-second %g: want %g to %g players", o.perSecond, actors.MinEvacuationRate, actors.MaxEvacuationRate)
			}
			return o.run(c, id)
		},
	}
	o.add(c)
	c.Flags().Float64Var(&o.perSecond, "per-second", actors.EvacuationRate, "how many players are asked in a second")
	c.Flags().BoolVar(&o.noWait, "no-wait", false, "do not follow it")
	return c
}

func (o *evacuateOrder) run(c *cobra.Command, id events.HostID) error {
	d, err := o.openToDecide(c.Context())
	if err != nil {
		return err
	}
	e := newEmptying(id, printer{w: c.OutOrStdout(), json: o.json}, c.ErrOrStderr())
	if err := o.decideOn(c, d, e); err != nil {
		return errors.Join(err, d.Close())
	}
	if !d.shared {
		e.note("the network is not running: it is obeyed when it starts")
	}
	if o.off || o.noWait || !d.shared {
		return d.Close()
	}
	return e.follow(c.Context(), d.source, d.reader)
}

// decideOn writes the decision, after a look at who is there: before anybody can have gone.
func (o *evacuateOrder) decideOn(c *cobra.Command, d deciding, e *emptying) error {
	n, err := o.census(c.Context(), d)
	if err != nil {
		return err
	}
	if err := n.evacuable(e.host, o.force); err != nil {
		return err
	}
	if err := e.begin(c.Context(), d, n); err != nil {
		return err
	}
	return o.write(c, d, events.EvacuateKey(e.host), &events.EvacuateSet{Host: e.host, On: !o.off, PerSecond: o.perSecond, Who: o.who, Why: o.why})
}

// evacuable refuses who is no backend, unless nobody of that name is known and that is meant.
func (n *census) evacuable(id events.HostID, force bool) error {
	unknown := n.has("server", string(id), n.names(events.PauseServer))
	if unknown == nil {
		return nil
	}
	if n.has("host", string(id), n.hosts()) == nil {
		return fmt.Errorf("%s is no backend: players of a proxy go with their connections; `landfall drain %s` lets nobody in", id, id)
	}
	if force {
		return nil
	}
	return unknown
}

// follow shows how a server is emptied until nobody is left who may still be moved. It closes
// store.
func (e *emptying) follow(ctx context.Context, src source, store *reader) error {
	err := src.stay(ctx, src.holder(), store, e.note, e.attend)
	switch {
	case ctx.Err() != nil:
		e.note(fmt.Sprintf("interrupted: the evacuation of %s goes on until `landfall evacuate %s --off`", e.host, e.host))
		return ctx.Err()
	case !errors.Is(err, errEmptied):
		return err
	}
	if err := e.out.print(e.end()); err != nil {
		return err
	}
	if e.counts().Refused > 0 {
		return exitWith(statusStayed, nil)
	}
	return nil
}
