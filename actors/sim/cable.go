package sim

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Conn is a host's connection to the network: its log and its bus.
type Conn interface {
	actors.Log
	actors.Bus
}

// cable is a connection that can be cut: from then on nothing leaves its host, so that the
// host can be ended as kill -9 would, without a goodbye.
type cable struct {
	Conn
	isCut atomic.Bool
}

var errCut = errors.New("the process is dead")

func (c *cable) cut() { c.isCut.Store(true) }

// Append implements actors.Log.
func (c *cable) Append(ctx context.Context, m events.Message) (uint64, error) {
	if c.isCut.Load() {
		return 0, &events.AppendError{Reason: events.Unavailable, Key: m.Key, Err: errCut}
	}
	return c.Conn.Append(ctx, m)
}

// Ask implements actors.Bus.
func (c *cable) Ask(ctx context.Context, subject string, w events.Wire) (events.Wire, error) {
	if c.isCut.Load() {
		return events.Wire{}, events.ErrNobody
	}
	return c.Conn.Ask(ctx, subject, w)
}

// Announce implements actors.Bus.
func (c *cable) Announce(ctx context.Context, subject string, w events.Wire) error {
	if c.isCut.Load() {
		return errCut
	}
	return c.Conn.Announce(ctx, subject, w)
}
