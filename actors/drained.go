package actors

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
)

// openness says whether this proxy takes in anything new: connections, and questions of
// backends. An operator drains it; whoever is here is served all the same.
type openness struct {
	mu      sync.Mutex
	drain   *events.DrainSet // nil: open
	changed chan struct{}    // closed, and replaced, with each change
}

func (o *openness) init() { o.changed = make(chan struct{}) }

// set takes in what the log says.
func (o *openness) set(drain *events.DrainSet) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if (o.drain == nil) == (drain == nil) {
		return
	}
	o.drain = drain
	close(o.changed)
	o.changed = make(chan struct{})
}

func (o *openness) now() (drain *events.DrainSet, changed <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.drain, o.changed
}

// Drained gives the decision of the operator who has drained this proxy, nil when it is
// open, and a channel that is closed when that changes. Who has no front of its own is never
// drained: the server beside it is.
func (d *Dispatcher) Drained() (drain *events.DrainSet, changed <-chan struct{}) {
	return d.open.now()
}

// noteDrain hears every fold of control.
func (d *Dispatcher) noteDrain() {
	if d.cfg.Kind == events.KindEdge {
		d.open.set(d.view.Controls().Drained[d.Source.ID])
	}
}

// errDrained ends what runs while this proxy is open.
var errDrained = errors.New("drained by an operator")

// whileOpen runs serve whenever this proxy is open, until ctx ends or serve fails. The
// context of serve ends when the proxy is drained.
func (d *Dispatcher) whileOpen(ctx context.Context, serve func(context.Context) error) error {
	for {
		drain, changed := d.Drained()
		g, open := errgroup.WithContext(ctx)
		g.Go(func() error {
			select {
			case <-changed:
				return errDrained
			case <-open.Done():
				return open.Err()
			}
		})
		if drain == nil {
			g.Go(func() error { return serve(open) })
		}
		if err := g.Wait(); !errors.Is(err, errDrained) {
			return err
		}
	}
}
