package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestSessionOfAQuickReturn: a client that is back on its server before the backend has seen
// it go. The edge knows better than the backend, whose word comes late and in any order.
func TestSessionOfAQuickReturn(t *testing.T) {
	const old, again = 1, 2
	joined := func(s *seer, n byte) {
		s.conns.joined(s.Dispatcher, "a", events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](n)})
		synctest.Wait()
	}
	left := func(s *seer, n byte) {
		s.conns.left(s.Dispatcher, "a", events.Left{Player: steve, Name: "Steve", Join: num[events.JoinID](n), Reason: "gone"})
		synctest.Wait()
	}
	opened := func(s *seer, id uint64) {
		s.Opened(Connection{ID: id, Name: "Steve", Player: steve, Server: "a", Protocol: 767})
	}
	closed := func(s *seer, id uint64) {
		s.Closed(id, "client left")
		synctest.Wait()
	}
	for _, row := range []struct {
		name   string
		before func(s *seer) // the first join stands; conn 1 holds it
		conn   uint64        // holds the player afterwards
	}{
		{"seen to leave and to come", func(s *seer) { closed(s, 1); opened(s, 2); left(s, old); joined(s, again) }, 2},
		{"the old join is repeated", func(s *seer) { closed(s, 1); opened(s, 2); joined(s, old); left(s, old); joined(s, again) }, 2},
		{"the old join is repeated before its connection ends", func(s *seer) { opened(s, 2); joined(s, old); closed(s, 1); left(s, old); joined(s, again) }, 2},
		{"the new join comes first", func(s *seer) { opened(s, 2); joined(s, again); left(s, old); closed(s, 1) }, 2},
		{"the backend alone saw a change", func(s *seer) { left(s, old); joined(s, again) }, 1},
	} {
		t.Run(row.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
				s := newSeer(t, ctx, mem, "e1")
				s.tasks.begin(ctx)
				opened(s, 1)
				joined(s, old)
				s.holdsJoin(t, old, true)
				row.before(s)
				s.holdsJoin(t, again, true)
				closed(s, row.conn)
				s.holdsJoin(t, again, false)
			})
		})
	}
}

// holdsJoin checks the newest session of the player.
func (s *seer) holdsJoin(t *testing.T, n byte, open bool) {
	t.Helper()
	var now projections.Session
	eventually(t, "the session", func() bool {
		now, _ = s.view.Session(steve)
		return now.Join == num[events.JoinID](n) && now.Open == open
	})
	if now.Holder != "e1" || now.Server != "a" || now.Protocol != 767 {
		t.Errorf("session %+v", now)
	}
}

// TestSessionClosedInError: a leave that was none (a backend that slept announced what it
// saw long ago) is mended once the backend repeats that the player is there.
func TestSessionClosedInError(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.tasks.begin(ctx)
		there := events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](1)}
		s.Opened(Connection{ID: 1, Name: "Steve", Player: steve, Server: "a", Protocol: 767})
		s.conns.joined(s.Dispatcher, "a", there)
		s.holdsJoin(t, 1, true)
		s.conns.left(s.Dispatcher, "a", events.Left{Player: steve, Name: "Steve", Join: there.Join, Reason: "long ago"})
		s.holdsJoin(t, 1, false)
		s.conns.joined(s.Dispatcher, "a", there) // a repetition that was under way
		time.Sleep(announceEvery)
		synctest.Wait()
		s.holdsJoin(t, 1, false)
		s.conns.joined(s.Dispatcher, "a", there)
		s.holdsJoin(t, 1, true)
		s.Closed(1, "quit")
		s.holdsJoin(t, 1, false)
	})
}
