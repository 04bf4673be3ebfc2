package actors

import (
	"context"
	"errors"
	"fmt"

	"github.com/landfall/landfall/events"
)

// Operator writes what operators decide. Its source is an operator's, its log may write control.
type Operator struct {
	Identity
	Log Log
}

// Decree appends a fact of control behind the newest one of its key, and gives its sequence.
func (o Operator) Decree(ctx context.Context, key string, f events.Fact) (uint64, error) {
	for range 5 {
		last, _, err := o.Log.Last(ctx, events.Control, key)
		if err != nil {
			return 0, err
		}
		seq, err := o.DecreeAfter(ctx, key, last.Seq, f)
		if !Overtaken(err) {
			return seq, err
		}
	}
	return 0, fmt.Errorf("write %s: others keep deciding the same thing, try again", key)
}

// DecreeAfter appends a fact of control if the newest one of its key is still the one at prev.
func (o Operator) DecreeAfter(ctx context.Context, key string, prev uint64, f events.Fact) (uint64, error) {
	m, err := o.seal(o.NewID(), key, events.TransferID{}, prev, f)
	if err != nil {
		return 0, err
	}
	return o.Log.Append(ctx, m)
}

// Overtaken tells that another operator was faster.
func Overtaken(err error) bool {
	var failed *events.AppendError
	return errors.As(err, &failed) && (failed.Reason == events.Conflict || failed.Reason == events.InFlight)
}
