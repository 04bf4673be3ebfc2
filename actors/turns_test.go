package actors

import (
	"context"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// queueing is e1, which looks at servers that beat and at players who wait.
func queueing(t *testing.T, servers map[events.HostID][]events.RegionBeat, body func(t *testing.T, q *queueTest)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		q := &queueTest{seer: newSeer(t, ctx, mem, "e1")}
		for id, regions := range servers {
			q.beat(t, id, 0, regions...)
		}
		for range 2 { // seen for long enough, and never without a beat for too long
			passTime(2500 * time.Millisecond)
			for id, regions := range servers {
				q.beat(t, id, q.view.Fleet().Backend(id).Seq, regions...)
			}
		}
		body(t, q)
	})
}

type queueTest struct{ *seer }

func (q *queueTest) beat(t *testing.T, id events.HostID, prev uint64, regions ...events.RegionBeat) {
	t.Helper()
	m := streamtest.Fact(t, events.BackendKey(id), prev, &events.BackendBeat{
		Server: id, Incarnation: lifeOf(id), State: events.Ready, Accepting: true, Schema: events.SchemaVersion, Regions: regions,
		MaxPlayers: 100, ProtocolMin: 760, ProtocolMax: 770,
	})
	seq, err := q.mem.Client(string(id)).Append(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "beat of "+string(id), func() bool { b := q.view.Fleet().Backend(id); return b != nil && b.Seq == seq })
}

// waiter is somebody in line on a server of e1 or e2.
func waiter(n byte, wish events.Wish, holder events.HostID, protocol int) projections.Queued {
	s := sessionOn("a", holder)
	s.Protocol = protocol
	return projections.Queued{
		InLine:  projections.InLine{Transfer: num[events.TransferID](n), Player: num[events.PlayerID](n), Place: uint64(n), Wish: wish},
		Session: s, HasSession: true,
	}
}

// walk takes the waiters in order and tells of each whether it is the player's turn.
func (q *queueTest) walk(list ...projections.Queued) (open []bool) {
	turns := q.newTurns(events.Wish{}, q.watch())
	for _, x := range list {
		open = append(open, turns.open(x))
		if turns.counts(x) {
			turns.take(x)
		}
	}
	return open
}

func (q *queueTest) wants(t *testing.T, what string, got []bool, want ...bool) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: %v, want %v", what, got, want)
			return
		}
	}
}

func region(name string, kept int) events.RegionBeat {
	return events.RegionBeat{Name: name, World: "w", Kept: kept, Size: 8}
}

// The first k eligible may ask; lanes are merged by place.
func TestTurnsMergeLanes(t *testing.T) {
	queueing(t, map[events.HostID][]events.RegionBeat{"b": {region("east", 2)}, "c": {region("west", 1)}}, func(t *testing.T, q *queueTest) {
		east, west, pin, nowhere := events.Wish{Region: "east"}, events.Wish{Region: "west"}, events.Wish{Pin: "c"}, events.Wish{Region: "north"}
		q.wants(t, "two lanes", q.walk(waiter(1, east, "e1", 0), waiter(2, west, "e1", 0), waiter(3, east, "e1", 0), waiter(4, east, "e1", 0), waiter(5, west, "e1", 0)),
			true, true, true, false, false)
		q.wants(t, "any takes from both", q.walk(waiter(1, events.Wish{}, "e1", 0), waiter(2, west, "e1", 0), waiter(3, east, "e1", 0), waiter(4, east, "e1", 0)),
			true, false, true, false)
		q.wants(t, "a pin is a lane", q.walk(waiter(1, pin, "e1", 0), waiter(2, west, "e1", 0), waiter(3, events.Wish{}, "e1", 0)), true, false, true)
		q.wants(t, "a lane that nobody serves", q.walk(waiter(1, nowhere, "e1", 0), waiter(2, nowhere, "e1", 0), waiter(3, west, "e1", 0)), false, false, true)
		q.wants(t, "another world", q.walk(waiter(1, events.Wish{World: "nether"}, "e1", 0), waiter(2, west, "e1", 0)), false, true)
	})
}

// Who cannot be served there, or is not there to be served, keeps nobody back.
func TestTurnsPassOver(t *testing.T) {
	queueing(t, map[events.HostID][]events.RegionBeat{"b": {region("east", 1)}}, func(t *testing.T, q *queueTest) {
		any := events.Wish{}
		q.wants(t, "a client of another version", q.walk(waiter(1, any, "e1", 750), waiter(2, any, "e1", 765), waiter(3, any, "e1", 0)), false, true, false)
		gone := waiter(1, any, "e1", 0)
		gone.Session.Open = false
		never := waiter(2, any, "e1", 0)
		never.HasSession = false
		dead := waiter(3, any, "e2", 0) // e2 has not been heard of
		q.wants(t, "absent", q.walk(gone, never, dead, waiter(4, any, "e1", 0)), true, true, true, true)
		silent := waiter(5, any, "e1", 0)
		q.line.noteHeads(q.Now().Add(-q.timing.Load().silentAfter()-1), map[events.TransferID]bool{silent.Transfer: true})
		q.wants(t, "a head that does not act", q.walk(silent, waiter(6, any, "e1", 0)), true, true)
		q.line.noteHeads(q.Now(), map[events.TransferID]bool{})
		q.wants(t, "a head no more", q.walk(silent, waiter(6, any, "e1", 0)), true, false)
	})
}

// What a destination answers corrects its heartbeat until the next one; a fault cools it
// down for this dispatcher; a pace bounds how many ask at once.
func TestTurnsFollowAnswers(t *testing.T) {
	queueing(t, map[events.HostID][]events.RegionBeat{"b": {region("east", 2), region("west", 2)}}, func(t *testing.T, q *queueTest) {
		east, west := waiter(1, events.Wish{Region: "east"}, "e1", 0), waiter(2, events.Wish{Region: "west"}, "e1", 0)
		refused := func(code events.Code, kept int) {
			c := choice{backend: q.view.Fleet().Backend("b"), region: "east"}
			q.noteRefusal(q.runs.get(first, *q.timing.Load(), q.view.Fleet(), q.Now()), c, events.ReserveAnswer{Kept: kept}, code)
			q.runs.end(first)
		}
		again := func() { q.beat(t, "b", q.view.Fleet().Backend("b").Seq, region("east", 2), region("west", 2)) }
		refused(events.Paced, 2)
		q.wants(t, "paced", q.walk(east, west), true, true)
		refused(events.NoCoordinate, 0)
		q.wants(t, "no coordinate", q.walk(east, west), false, true)
		again()
		q.wants(t, "a newer heartbeat", q.walk(east, west), true, true)
		refused(events.Full, 2)
		q.wants(t, "full", q.walk(east, west), false, false)
		again()
		old := q.view.Fleet().Backend("b")
		again()
		q.noteRefusal(q.runs.get(first, *q.timing.Load(), q.view.Fleet(), q.Now()), choice{backend: old, region: "east"}, events.ReserveAnswer{}, events.WrongIncarnation)
		q.runs.end(first)
		q.wants(t, "an answer about an older heartbeat", q.walk(east, west), true, true)
		refused(events.NotReady, 2)
		q.wants(t, "a fault", q.walk(east, west), false, false)
		passTime(q.timing.Load().Cooldown)
		again()
		q.wants(t, "cooled down", q.walk(east, west), true, true)

		q.SetLine(LineRules{Enabled: true, MaxSize: 9, Notify: time.Second, DrainPerSecond: 0.01})
		far := waiter(3, events.Wish{Region: "east"}, "e1", 0)
		q.wants(t, "a slow pace", q.walk(east, far), true, true)
		last := waiter(4, events.Wish{Region: "east"}, "e1", 0)
		q.beat(t, "b", q.view.Fleet().Backend("b").Seq, region("east", 8))
		q.wants(t, "a slow pace, many kept", q.walk(east, far, last), true, true, false)
		q.kill(t)
		q.wants(t, "switched off", q.walk(east), false)
	})
}

// What has been promised since the heartbeat is not kept any more.
func TestTurnsCountPledges(t *testing.T) {
	queueing(t, map[events.HostID][]events.RegionBeat{"b": {region("wild", 2)}}, func(t *testing.T, q *queueTest) {
		r := reserved(1)
		r.Region = "wild"
		q.put(t, requested(), r)
		eventually(t, "promise", func() bool { return q.view.Pledged(q.view.Fleet().Backend("b"), "wild") == 1 })
		q.wants(t, "one of two is promised", q.walk(waiter(1, events.Wish{}, "e1", 0), waiter(2, events.Wish{}, "e1", 0)), true, false)
	})
}
