package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections/archive"
	"github.com/landfall/landfall/streams/embedded"
)

const (
	// stopBudget is for the whole of an orderly end.
	stopBudget = 10 * time.Second
	// settleBudget is the part of it in which closed connections are written down.
	settleBudget = 3 * time.Second
	// holdDoors is how long players wait for a log that does not answer at the start, before
	// they are let in without it.
	holdDoors = 5 * time.Second
)

// gang is a number of loops that end together, in their own time: not with the context they
// were started under, but when stop is called or one of them fails.
type gang struct {
	group  *errgroup.Group
	ctx    context.Context //nolint:containedctx // it is the gang's own life
	cancel context.CancelFunc
}

func newGang(ctx context.Context) *gang {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	group, own := errgroup.WithContext(own)
	return &gang{group: group, ctx: own, cancel: cancel}
}

func (g *gang) start(run func(context.Context) error) {
	g.group.Go(func() error { return run(g.ctx) })
}

// ended is closed when one of them has failed.
func (g *gang) ended() <-chan struct{} { return g.ctx.Done() }

// stop ends all and waits for them. It returns why they ended, if stop was not the reason.
func (g *gang) stop() error {
	g.cancel()
	if err := g.group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// crew is everything that works in a host: the edges, and behind them what needs the store.
type crew struct {
	host  *host
	front *front
	edges []*edge.Server
	store *hostStore
	api   *programs // nil: none here

	dispatcher *actors.Dispatcher // nil: none here
	router     *actors.Router     // leads the edges in place of a dispatcher; nil: none here
	sealer     *actors.Sealer     // beside a dispatcher
	backend    *actors.Backend    // nil: none here
	keepers    []*archive.Keeper
}

// run serves until ctx ends or a part fails, and then ends all in order. It closes the store.
func (c *crew) run(ctx context.Context) error {
	fronts, core := newGang(ctx), newGang(ctx)
	c.open(fronts)
	if c.api != nil {
		fronts.start(c.api.run)
	}
	err := c.man(ctx, fronts, core)
	if ctx.Err() != nil {
		err = nil // asked to stop while it was starting
	}
	if err == nil {
		select {
		case <-ctx.Done():
			c.host.log.Info("stopping")
		case <-fronts.ended():
		case <-core.ended():
		}
	}
	stopped := make(chan error, 1)
	go func() { stopped <- c.stop(fronts, core) }()
	budget := time.NewTimer(stopBudget)
	defer budget.Stop()
	select {
	case late := <-stopped:
		return errors.Join(err, late)
	case <-budget.C:
		return errors.Join(err, fmt.Errorf("host %s did not end within %s: left as it is", c.host.name(), stopBudget))
	}
}

// open starts the edges: as soon as the dispatcher sees the log, or when it takes too long.
func (c *crew) open(fronts *gang) {
	seen := make(chan struct{})
	c.front.ready = func() { close(seen) }
	for _, e := range c.edges {
		fronts.start(func(ctx context.Context) error {
			patience := time.NewTimer(holdDoors)
			defer patience.Stop()
			select {
			case <-seen:
			case <-patience.C:
				c.host.log.Warn("the log is not in sight yet: players are let in to the advertised servers in turn")
			case <-ctx.Done():
			}
			return e.Run(ctx)
		})
	}
}

// man connects to the store and starts what needs it.
func (c *crew) man(ctx context.Context, fronts, core *gang) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(fronts.ctx, cancel)() // an edge that fails ends the start
	if c.store.keeper != nil {
		core.start(c.store.keeper.run)
	}
	if err := c.makeDispatcher(ctx); err != nil {
		return err
	}
	if err := c.makeRouter(ctx); err != nil {
		return err
	}
	if err := c.joinPrograms(ctx, fronts); err != nil {
		return err
	}
	if err := c.makeBackend(ctx); err != nil {
		return err
	}
	if err := c.makeKeepers(ctx); err != nil {
		return err
	}
	for _, k := range c.keepers {
		core.start(k.Run)
	}
	if c.backend != nil {
		core.start(c.backend.Run)
	}
	if c.dispatcher != nil {
		core.start(c.dispatcher.Run)
		core.start(c.sealer.Run)
	}
	if c.router != nil {
		core.start(c.router.Run)
	}
	if c.lead() == nil {
		c.sayReady()
		return nil
	}
	core.start(c.announce)
	return nil
}

// lead is who leads the edges of this process, if it has any; nil: nobody sees the log here.
func (c *crew) lead() lead {
	switch {
	case c.router != nil:
		return c.router
	case c.dispatcher != nil:
		return c.dispatcher
	}
	return nil
}

func (c *crew) makeRouter(ctx context.Context) error {
	self := c.host.self
	if !self.Proxy.IsRouter() {
		return nil
	}
	st, err := c.store.as(ctx, events.HostID(self.ProxyID), self.Proxy)
	if err != nil {
		return err
	}
	c.router, err = actors.NewRouter(actors.RouterConfig{
		ID: events.HostID(self.ProxyID), Log: st, Keys: c.host.keysOf(events.HostID(self.ProxyID)), Now: time.Now, Logger: c.host.log, Timing: timingOf(c.host.net),
	})
	return err
}

func (c *crew) makeDispatcher(ctx context.Context) error {
	id, kind := c.host.dispatcherID()
	if id == "" {
		return nil
	}
	st, err := c.store.as(ctx, id, c.hostOf(kind))
	if err != nil {
		return err
	}
	if c.dispatcher, err = c.host.dispatcher(st, id, kind, c.front); err != nil {
		return err
	}
	denied := func(x embedded.Denial) { c.dispatcher.Denied(x.Login, x.Act, x.Subject) }
	c.store.denied.Store(&denied)
	c.sealer, err = c.host.sealer(st, id, kind, c.dispatcher.Report)
	return err
}

func (c *crew) hostOf(kind events.SessionKind) network.Host {
	if kind == events.KindEdge {
		return c.host.self.Proxy
	}
	return c.host.self.Server
}

func (c *crew) makeBackend(ctx context.Context) error {
	self := c.host.self
	if !self.IsBackend() {
		return nil
	}
	st, err := c.store.as(ctx, events.HostID(self.ServerID), self.Server)
	if err != nil {
		return err
	}
	c.backend, err = c.host.sidecar(st)
	return err
}

// announce hands the edges over once their lead sees the log.
func (c *crew) announce(ctx context.Context) error {
	lead := c.lead()
	if err := lead.View().WaitLive(ctx); err != nil {
		return err
	}
	drain, changed := lead.Drained()
	if drain != nil {
		c.shut(drain)
	}
	c.front.attach(lead)
	c.sayReady()
	return c.mindDoors(ctx, changed)
}

func (c *crew) sayReady() {
	state := []any{"proxy", c.host.self.ProxyID, "server", c.host.self.ServerID, "carrier", c.host.self.Carrier}
	if lead := c.lead(); lead != nil {
		if drain, _ := lead.Drained(); drain != nil {
			state = append(state, "drained", true)
		}
	}
	c.host.log.Info("ready", state...)
}

// stop ends all in order: nobody is let in any more and those who are in are cut, so that
// their sessions can be closed in the log; then who decides and who moves; then the
// connections, and the store they lead to last.
func (c *crew) stop(fronts, core *gang) error {
	if c.dispatcher != nil {
		c.dispatcher.Leave()
	}
	if c.backend != nil {
		c.backend.Leave()
	}
	err := fronts.stop()
	c.settle(core.ctx)
	err = errors.Join(err, core.stop())
	return errors.Join(err, c.store.Close())
}

// settle waits until the log says of every player who was connected here that this is over.
func (c *crew) settle(ctx context.Context) {
	if c.dispatcher == nil || len(c.edges) == 0 || !c.dispatcher.Ready() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleBudget)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for c.openSessions() > 0 {
		select {
		case <-look.C:
		case <-ctx.Done():
			c.host.log.Warn("sessions still open in the log: the other dispatchers see them end", "count", c.openSessions())
			return
		}
	}
}

func (c *crew) openSessions() int {
	n := 0
	for _, s := range c.dispatcher.View().OpenSessions(c.dispatcher.Source.ID) {
		if s.HolderIncarnation == c.dispatcher.Source.Incarnation {
			n++
		}
	}
	return n
}
