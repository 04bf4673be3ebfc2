package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestAFrontKnowsItsJoins, also after their connections have ended: a backend that has not seen
// the player go repeats the join, and the dispatcher beside it must not take it for one of its own
// players.
func TestAFrontKnowsItsJoins(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.tasks.begin(ctx)
		holds := func(join byte) events.Code {
			a := s.answerHolds(ctx, "a", events.HoldsAsk{Server: "a", Player: steve, Name: "Steve", Join: num[events.JoinID](join)})
			synctest.Wait()
			return a.Code
		}
		want := func(when string, join byte, code events.Code) {
			t.Helper()
			if got := holds(join); got != code {
				t.Errorf("%s: join %d is %s, want %s", when, join, got, code)
			}
		}
		want("before anybody came", 1, events.NotHere)
		s.Opened(Connection{ID: 1, Name: "Steve", Player: steve, Server: "a", Protocol: 767})
		want("connected", 1, events.OK)
		s.holdsJoin(t, 1, true)
		s.Closed(1, "client left")
		synctest.Wait()
		want("gone", 1, events.OK)
		want("gone", 2, events.NotHere)
		s.holdsJoin(t, 1, false)
		time.Sleep(overFor + time.Second)
		want("long gone", 1, events.NotHere)
	})
}
