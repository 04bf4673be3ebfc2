package main

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/landfall/landfall/events"
)

// reopenEvery is how often a port is tried again that somebody else has taken meanwhile.
const reopenEvery = time.Second

// mindDoors closes the edges when an operator drains this proxy, and opens them when it is
// put back, until ctx ends. changed is that of the state the edges are in.
func (c *crew) mindDoors(ctx context.Context, changed <-chan struct{}) error {
	var again <-chan time.Time // nil: nothing is to be tried again
	for {
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return ctx.Err()
		}
		var drain *events.DrainSet
		drain, changed = c.lead().Drained()
		again = nil
		if drain != nil {
			c.shut(drain)
		} else if !c.reopen() {
			again = time.After(reopenEvery)
		}
	}
}

// shut closes the ports of all edges. Who is in stays in.
func (c *crew) shut(drain *events.DrainSet) {
	for _, e := range c.edges {
		if err := e.Pause(); err != nil {
			c.host.log.Error("a port does not close", "listen", e.Addr().String(), "error", err)
		}
	}
	c.host.log.Warn("drained: the ports are closed, and no backend is answered; players who are in are served",
		"who", drain.Who, "why", drain.Why, "players", c.front.players())
}

// reopen opens the ports of all edges. It reports whether all of them are open.
func (c *crew) reopen() bool {
	all := true
	for _, e := range c.edges {
		err := e.Resume()
		if errors.Is(err, net.ErrClosed) {
			return true // it has ended
		}
		if err != nil {
			c.host.log.Error("a port does not open, trying on", "listen", e.Addr().String(), "error", err)
			all = false
		}
	}
	if all {
		c.host.log.Info("put back: the ports are open")
	}
	return all
}
