package main

import (
	"context"
	"errors"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// endedLog is a log that does not grow, an exported file for one, as a projector follows it.
type endedLog struct{ history }

// Tail implements projections.Tailer: what is held behind the cursor, and then nothing more.
func (h endedLog) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	state, err := h.Info(ctx, b)
	if errors.Is(err, errNotExported) {
		state, err = events.StreamState{}, nil
	}
	if err != nil {
		return err
	}
	c := from.Cursor
	f.Begin(state, c.Incarnation != "" && (c.Incarnation != state.Incarnation || c.Seq > state.Last))
	if state.Last > c.Seq {
		for rec, err := range h.History(ctx, b, streams.Range{After: c.Seq, UpTo: state.Last}) {
			if err != nil {
				return err
			}
			if err := f.Record(rec); err != nil {
				return err
			}
		}
	}
	f.Live(state.Last)
	<-ctx.Done()
	return ctx.Err()
}
