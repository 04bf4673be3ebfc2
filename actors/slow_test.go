package actors

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

func TestSlow(t *testing.T) {
	now := time.Now()
	of := func(phase projections.Phase, age time.Duration) projections.Transfer {
		return projections.Transfer{Phase: phase, Seen: projections.Seen{Requested: now.Add(-age), Last: now}}
	}
	with := func(x projections.Transfer, change func(*projections.Transfer)) projections.Transfer {
		change(&x)
		return x
	}
	for name, c := range map[string]struct {
		t    projections.Transfer
		want bool
	}{
		"a moment ago":          {of(projections.Requested, slowAfter-1), false},
		"looked for":            {of(projections.Requested, slowAfter), true},
		"reserved":              {of(projections.Pending, slowAfter), true},
		"claimed":               {of(projections.Claimed, slowAfter), true},
		"in line":               {of(projections.Waiting, time.Hour), false},
		"out of the line":       {with(of(projections.Pending, time.Hour), func(x *projections.Transfer) { x.Waitlisted = true }), false},
		"on the way":            {with(of(projections.Claimed, slowAfter), func(x *projections.Transfer) { x.Move = events.MoveSent }), false},
		"perhaps on the way":    {with(of(projections.Claimed, slowAfter), func(x *projections.Transfer) { x.Move = events.MoveUnknown }), true},
		"has just arrived":      {of(projections.Consumed, time.Hour), false},
		"arrived, not in place": {with(of(projections.Consumed, time.Hour), func(x *projections.Transfer) { x.Seen.Last = now.Add(-slowAfter) }), true},
		"ended":                 {of(projections.Failed, time.Hour), false},
		"completed":             {of(projections.Completed, time.Hour), false},
	} {
		if got := slow(c.t, now); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
