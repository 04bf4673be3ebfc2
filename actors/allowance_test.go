package actors

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// travels brings the player, who has asked as req says, to server b through the given
// dispatcher, and gives the transfer.
func (s *seer) travels(t *testing.T, ctx context.Context, req events.Requested) events.TransferID {
	t.Helper()
	id := streamtest.NewID[events.TransferID]()
	req.Name = "Steve"
	for _, f := range []events.TransferFact{&req, reserved(1), claimed(1, "e1"), consumed(1)} {
		putFor(t, s.mem, steve, id, f)
	}
	s.folds(t)
	if a := s.placed(ctx, id); a.Code != events.OK {
		t.Fatalf("placed: %+v", a)
	}
	return id
}

// folds waits until the dispatcher has seen the whole log.
func (s *seer) folds(t *testing.T) {
	t.Helper()
	records := s.mem.Records(events.Transfers)
	if err := s.view.WaitFolded(t.Context(), events.Transfers, records[len(records)-1].Seq); err != nil {
		t.Fatal(err)
	}
}

func (s *seer) placed(ctx context.Context, id events.TransferID) events.Answer {
	return s.answerPlaced(ctx, "b", events.PlacedAsk{Player: steve, Token: events.Token{Transfer: id, Attempt: 1}, Code: events.OK})
}

// mayAsk tells how a request of the command from server a is answered; one that is taken is cancelled.
func (s *seer) mayAsk(t *testing.T, ctx context.Context) events.RequestAnswer {
	t.Helper()
	a := s.request(ctx, nil)
	if a.Code == events.Accepted {
		if c := s.CancelFor(ctx, steve, "a"); c.Code != events.OK {
			t.Fatalf("cancelled: %+v", c)
		}
	}
	return a
}

func (s *seer) wantAnswer(t *testing.T, ctx context.Context, code events.Code, detail string) {
	t.Helper()
	if a := s.mayAsk(t, ctx); a.Code != code || a.Detail != detail {
		t.Errorf("answer %+v, want %s %s", a, code, detail)
	}
}

var byCommand = events.Requested{Trigger: events.TriggerCommand, Origin: "a"}

// limited runs a test with dispatchers that have a limit, on whose network the player stands on server a.
func limited(t *testing.T, l Limits, body func(t *testing.T, ctx context.Context, e1, e2 *seer)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		e1, e2 := newSeer(t, ctx, mem, "e1"), newSeer(t, ctx, mem, "e2")
		e1.holdsSession(t)
		synctest.Wait()
		e1.SetLimits(l)
		e2.SetLimits(l)
		body(t, ctx, e1, e2)
	})
}

// TestCooldown: it begins with the arrival, holds at every dispatcher, and ends.
func TestCooldown(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		e1.wantAnswer(t, ctx, events.Accepted, "")
		e1.wantAnswer(t, ctx, events.Accepted, "") // who was not moved does not rest
		id := e1.travels(t, ctx, byCommand)
		key := events.CooldownKey(steve, "rtp", "")
		if f := limitsOf(t, e1.mem)[key].(*events.CooldownSet); *f != (events.CooldownSet{Limit: "rtp", Seconds: 60, Transfer: id}) {
			t.Errorf("%+v", f)
		}
		for _, s := range []*seer{e1, e2} {
			s.wantAnswer(t, ctx, events.Resting, "60")
		}
		passTime(20*time.Second + time.Millisecond)
		e2.wantAnswer(t, ctx, events.Resting, "40")
		passTime(40 * time.Second)
		e2.wantAnswer(t, ctx, events.Accepted, "")
		if len(limitsOf(t, e1.mem)) != 0 {
			t.Error("the fact has not expired")
		}
	})
}

// TestTheKeyIsTheCooldown: also for who began after the arrival, and whatever its clock says.
func TestTheKeyIsTheCooldown(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.travels(t, ctx, byCommand)
		young := newSeer(t, ctx, e1.mem, "e3")
		young.SetLimits(Limits{"rtp": {Cooldown: time.Minute}})
		young.wantAnswer(t, ctx, events.Resting, "60")
		now := young.Now
		young.Now = func() time.Time { return now().Add(time.Hour) }
		young.wantAnswer(t, ctx, events.Resting, "1")
		young.Now = func() time.Time { return now().Add(-time.Hour) }
		young.wantAnswer(t, ctx, events.Resting, "60")
	})
}

// TestChargedOnce, however often the report comes, and by whom it is taken.
func TestChargedOnce(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute, PerDay: 9}}, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		id := e1.travels(t, ctx, byCommand)
		before := len(e1.mem.Records(events.Limits))
		for _, s := range []*seer{e1, e2} {
			s.folds(t)
			if a := s.placed(ctx, id); a.Code != events.OK {
				t.Errorf("placed again: %+v", a)
			}
		}
		records := e1.mem.Records(events.Limits)
		if len(records) != before || records[len(records)-1].Seq != 2 {
			t.Errorf("%d facts, the last at %d: want 2", len(records), records[len(records)-1].Seq)
		}
	})
}

// TestChargedThoughTheWriterDies: after the arrival, and before its charge. Who is told again
// charges; who is asked before that has seen the arrival.
func TestChargedThoughTheWriterDies(t *testing.T) {
	dies := func(t *testing.T, ctx context.Context, e1 *seer) events.TransferID {
		id := streamtest.NewID[events.TransferID]()
		for _, f := range []events.TransferFact{new(byCommand), reserved(1), claimed(1, "e1"), consumed(1)} {
			putFor(t, e1.mem, steve, id, f)
		}
		e1.folds(t)
		e1.log.before = func(_ int, m events.Message) {
			if m.Bucket == events.Limits {
				e1.log.Cut()
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if a := e1.placed(ctx, id); a.Code != events.TransportDown {
			t.Fatalf("placed: %+v", a)
		}
		return id
	}
	limits := Limits{"rtp": {Cooldown: time.Minute, PerDay: 1}}
	t.Run("the report comes again", func(t *testing.T) {
		limited(t, limits, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
			id := dies(t, ctx, e1)
			if a := e2.placed(ctx, id); a.Code != events.OK {
				t.Fatalf("placed: %+v", a)
			}
			if n := len(limitsOf(t, e1.mem)); n != 2 {
				t.Errorf("%d facts, want the rest and the count", n)
			}
		})
	})
	t.Run("the backend dies as well", func(t *testing.T) {
		limited(t, limits, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
			dies(t, ctx, e1)
			e2.wantAnswer(t, ctx, events.Resting, "60")
			passTime(time.Minute)
			if a := e2.mayAsk(t, ctx); a.Code != events.LimitReached {
				t.Errorf("answer %+v, want %s", a, events.LimitReached)
			}
		})
	})
}

// TestPerDay counts the arrivals until the day of UTC is over.
func TestPerDay(t *testing.T) {
	limited(t, Limits{"rtp": {PerDay: 2}}, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		passTime(22 * time.Hour) // the bubble begins at midnight
		e1.travels(t, ctx, byCommand)
		e2.wantAnswer(t, ctx, events.Accepted, "")
		last := e2.travels(t, ctx, byCommand)
		f := limitsOf(t, e1.mem)[events.UsesKey(steve, "rtp", "")].(*events.UsesCounted)
		if f.Count != 2 || f.Transfer != last || time.Unix(f.Until, 0).UTC() != time.Date(2000, 1, 2, 0, 0, 0, 0, time.UTC) {
			t.Errorf("%+v", f)
		}
		for _, s := range []*seer{e1, e2} {
			s.wantAnswer(t, ctx, events.LimitReached, "7200")
		}
		passTime(time.Hour)
		e1.wantAnswer(t, ctx, events.LimitReached, "3600")
		passTime(time.Hour + time.Second)
		e1.wantAnswer(t, ctx, events.Accepted, "")
		e1.travels(t, ctx, byCommand)
		if f := limitsOf(t, e1.mem)[events.UsesKey(steve, "rtp", "")].(*events.UsesCounted); f.Count != 1 {
			t.Errorf("the next day begins with %d", f.Count)
		}
	})
}

// TestADayBeforeIsNotCounted: the clock of the store may keep yesterday's fact a moment longer.
func TestADayBeforeIsNotCounted(t *testing.T) {
	limited(t, Limits{"rtp": {PerDay: 1}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		passTime(23*time.Hour + 59*time.Minute)
		id := e1.travels(t, ctx, byCommand)
		e1.mem.Recreate(events.Limits) // the writer died before the charge
		passTime(2 * time.Minute)
		e1.wantAnswer(t, ctx, events.Accepted, "")
		if n := len(limitsOf(t, e1.mem)); n != 0 {
			t.Errorf("%d facts of an arrival of yesterday", n)
		}
		putLimit(t, e1.mem, events.UsesKey(steve, "rtp", ""), &events.UsesCounted{Limit: "rtp", Count: 7, Until: time.Now().Unix() - 1, Transfer: id}, 0)
		e1.wantAnswer(t, ctx, events.Accepted, "")
		e1.travels(t, ctx, byCommand)
		if f := limitsOf(t, e1.mem)[events.UsesKey(steve, "rtp", "")].(*events.UsesCounted); f.Count != 1 {
			t.Errorf("counted %d over yesterday's fact", f.Count)
		}
	})
}

// TestTwoDispatchersCount at the same time: nothing is lost.
func TestTwoDispatchersCount(t *testing.T) {
	limited(t, Limits{"rtp": {PerDay: 9}}, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		var transfers []*seer
		for _, s := range []*seer{e1, e2, e1, e2} {
			s.log.DelayAppend(time.Millisecond)
			transfers = append(transfers, s)
		}
		var all sync.WaitGroup
		for i, s := range transfers {
			all.Go(func() {
				tr := journey(t)
				tr.ID, tr.Seen.Last = num[events.TransferID](byte(i+1)), time.Now()
				if err := s.charge(ctx, tr); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if f := limitsOf(t, e1.mem)[events.UsesKey(steve, "rtp", "")].(*events.UsesCounted); f.Count != len(transfers) {
			t.Errorf("counted %d of %d", f.Count, len(transfers))
		}
	})
}

// TestLimitsByName: each trigger has its own, and each server where it counts there.
func TestLimitsByName(t *testing.T) {
	limits := Limits{
		"rtp": {Cooldown: time.Minute, PerServer: true}, "join": {Cooldown: time.Minute}, "api": {PerDay: 1}, "arena-end": {Cooldown: time.Minute},
	}
	for _, row := range []struct {
		came events.Requested
		key  string // of the charge
		asks events.Requested
		code events.Code
	}{
		{byCommand, events.CooldownKey(steve, "rtp", "a"), byCommand, events.Resting},
		{events.Requested{Trigger: events.TriggerCommand, Origin: "c"}, events.CooldownKey(steve, "rtp", "c"), byCommand, events.Accepted},
		{events.Requested{Trigger: events.TriggerJoin, Origin: "a", Via: "play.example.net"}, events.CooldownKey(steve, "join", ""), byCommand, events.Accepted},
		{events.Requested{Trigger: events.TriggerEvent, Via: "arena-end"}, events.CooldownKey(steve, "arena-end", ""), events.Requested{Trigger: events.TriggerEvent, Via: "arena-end"}, events.Resting},
		{events.Requested{Trigger: events.TriggerEvent, Via: "arena-end"}, events.CooldownKey(steve, "arena-end", ""), events.Requested{Trigger: events.TriggerEvent, Via: "other"}, events.Accepted},
		{events.Requested{Trigger: events.TriggerEvent, Via: "other"}, "", byCommand, events.Accepted},
		{events.Requested{Trigger: events.TriggerAPI}, events.UsesKey(steve, "api", ""), events.Requested{Trigger: events.TriggerAPI}, events.LimitReached},
		{events.Requested{Trigger: events.TriggerEvacuate, Origin: "a"}, "", events.Requested{Trigger: events.TriggerEvacuate}, events.Accepted},
	} {
		t.Run(fmt.Sprint(row.came.Trigger, row.came.Via, row.came.Origin, " then ", row.asks.Trigger, row.asks.Via), func(t *testing.T) {
			limited(t, limits, func(t *testing.T, ctx context.Context, e1, _ *seer) {
				e1.travels(t, ctx, row.came)
				facts := limitsOf(t, e1.mem)
				if (len(facts) > 0) != (row.key != "") || row.key != "" && facts[row.key] == nil {
					t.Errorf("charged %v, want %q", facts, row.key)
				}
				a := e1.Open(ctx, events.RequestAsk{Player: steve, Name: "Steve", Transfer: second, Trigger: row.asks.Trigger, Via: row.asks.Via}, row.asks.Origin)
				if a.Code != row.code {
					t.Errorf("answer %+v, want %s", a, row.code)
				}
			})
		})
	}
}

// TestExempt: who has the permission does not rest.
func TestExempt(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute, PerDay: 1}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.travels(t, ctx, byCommand)
		e1.wantAnswer(t, ctx, events.Resting, "60")
		e1.SetPermissions(NewPermissions(PermissionsConfig{Defaults: permits(NodeNoCooldown).Nodes}))
		e1.wantAnswer(t, ctx, events.Accepted, "")
		e1.SetPermissions(nil)
		e1.SetLimits(nil)
		e1.wantAnswer(t, ctx, events.Accepted, "")
	})
}

// TestActiveGoesOn: a second request hears of the transfer under way, not of the rest.
func TestActiveGoesOn(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.travels(t, ctx, byCommand)
		if a := e1.Open(ctx, events.RequestAsk{Player: steve, Name: "Steve", Transfer: second, Trigger: events.TriggerAPI}, ""); a.Code != events.Accepted {
			t.Fatalf("answer %+v", a)
		}
		if a := e1.request(ctx, nil); a.Code != events.Active || a.Transfer != second {
			t.Errorf("answer %+v, want %s", a, events.Active)
		}
	})
}

// TestArrivedWhileAsked: the player arrives after the limits were looked at and before the
// request is decided; nobody has charged it yet.
func TestArrivedWhileAsked(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.put(t, new(byCommand), reserved(1), claimed(1, "e1"), consumed(1))
		e1.folds(t)
		asked := 0
		e1.log.beforeLast = func(b events.Bucket) {
			if asked++; b == events.Limits {
				e1.log.beforeLast = nil
				e1.put(t, &events.Completed{Attempt: 1})
			}
		}
		if a := e1.request(ctx, nil); a.Code != events.Resting {
			t.Errorf("answer %+v, want %s", a, events.Resting)
		}
	})
}

// TestNoLimitCostsNothing: neither a question nor a fact.
func TestNoLimitCostsNothing(t *testing.T) {
	limited(t, Limits{"rtp": {}, "join": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.wantAnswer(t, ctx, events.Accepted, "")
		e1.travels(t, ctx, byCommand)
		if n := e1.log.reads(events.Limits) + len(e1.mem.Records(events.Limits)); n != 0 {
			t.Errorf("%d reads and facts", n)
		}
	})
}

// TestLimitsInAnOutage: nothing is decided.
func TestLimitsInAnOutage(t *testing.T) {
	limited(t, Limits{"rtp": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		e1.log.beforeLast = func(b events.Bucket) {
			if b == events.Limits {
				e1.log.Cut()
			}
		}
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		e1.wantCode(t, ctx, events.TransportDown)
	})
}

func (s *seer) wantCode(t *testing.T, ctx context.Context, code events.Code) {
	t.Helper()
	if a := s.mayAsk(t, ctx); a.Code != code {
		t.Errorf("answer %+v, want %s", a, code)
	}
}
