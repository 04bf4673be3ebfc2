package actors

import (
	"context"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// ending is how a transfer ended that this process does not hold: it began after the end, or
// has forgotten it. It costs one read of the transfer's own key at the log's leader.
func (d *Dispatcher) ending(ctx context.Context, player events.PlayerID, transfer events.TransferID) (events.TransferFact, bool, error) {
	r, found, err := d.log.LastOf(ctx, events.Transfers, events.TransferKey(player, transfer))
	if err != nil || !found {
		return nil, false, err
	}
	fact, over := projections.Over(d.Keys, r)
	return fact, over, nil
}

// outcome answers a request whose id is known to the log as one that has ended, so that it
// does not begin again under the same key. An id that is held is decide's affair, and so is
// one that another dispatcher brings to its end from now on: that is folded here.
func (d *Dispatcher) outcome(ctx context.Context, q events.RequestAsk) (events.RequestAnswer, bool) {
	if !d.view.Ready() || d.view.Player(q.Player).Find(q.Transfer) != nil {
		return events.RequestAnswer{}, false
	}
	end, over, err := d.ending(ctx, q.Player, q.Transfer)
	if err != nil {
		return refuseRequest(transportDown(err)), true
	}
	phase, code := projections.Ending(end)
	return events.RequestAnswer{Code: events.Active, Transfer: q.Transfer, State: string(phase), Detail: string(code)}, over
}

// Ended gives how a transfer ended that is not held any more; found is false when the log does not
// show its end.
func (d *Dispatcher) Ended(ctx context.Context, player events.PlayerID, transfer events.TransferID) (phase projections.Phase, code events.Code, found bool, err error) {
	end, over, err := d.ending(ctx, player, transfer)
	if err != nil || !over {
		return "", "", false, err
	}
	phase, code = projections.Ending(end)
	return phase, code, true, nil
}

// completedBefore tells that a placement was recorded before this process began.
func (d *Dispatcher) completedBefore(ctx context.Context, player events.PlayerID, token events.Token) bool {
	end, over, err := d.ending(ctx, player, token.Transfer)
	done, ok := end.(*events.Completed)
	return err == nil && over && ok && done.Attempt == token.Attempt
}
