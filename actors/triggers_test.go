package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

var arena = EventTriggers{Enabled: true, Regions: map[string]string{"arena-end": "wild", "reset": ""}}

// TestEvents: which of them move a player, and where to.
func TestEvents(t *testing.T) {
	for _, row := range []struct {
		name   string
		rules  EventTriggers
		event  string
		player events.PlayerID
		code   events.Code
		detail string
		wish   events.Wish
	}{
		{"a region", arena, "arena-end", steve, events.Accepted, "", events.Wish{Region: "wild"}},
		{"any place", arena, "reset", steve, events.Accepted, "", events.Wish{}},
		{"unheard of", arena, "arena", steve, events.BadRequest, `no event is called "arena": there are arena-end, reset`, events.Wish{}},
		{"none", EventTriggers{Enabled: true}, "arena", steve, events.BadRequest, `no event is called "arena": there are none`, events.Wish{}},
		{"switched off", EventTriggers{Regions: arena.Regions}, "arena-end", steve, events.Disabled, "triggers.event.enabled is false", events.Wish{}},
		{"somebody who is not there", arena, "arena-end", events.OfflinePlayer("Alex"), events.NotHere, "the player is not on the network", events.Wish{}},
		{"nobody", arena, "arena-end", events.PlayerID{}, events.NotHere, "the player is not on the network", events.Wish{}},
	} {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
				s.holdsSession(t)
				s.SetEvents(row.rules)
				a := s.Happened(ctx, row.event, events.TriggerAsk{Player: row.player, Transfer: second})
				if a.Code != row.code || a.Detail != row.detail {
					t.Fatalf("answer %+v, want %s %s", a, row.code, row.detail)
				}
				active := s.view.Player(row.player).Active
				if (active != nil) != (row.code == events.Accepted) {
					t.Fatalf("active is %+v", active)
				}
				want := events.Requested{Trigger: events.TriggerEvent, Via: row.event, Wish: row.wish, Origin: "a", Name: "Steve"}
				if active != nil && (*active.Request != want || active.ID != second) {
					t.Errorf("requested %+v as %s, want %+v", *active.Request, active.ID, want)
				}
			})
		})
	}
}

// TestEventsObeyPermissionsAndLimits as requests do.
func TestEventsObeyPermissionsAndLimits(t *testing.T) {
	limited(t, Limits{"arena-end": {Cooldown: time.Minute}}, func(t *testing.T, ctx context.Context, e1, e2 *seer) {
		happens := func(s *seer, code events.Code, detail string) {
			t.Helper()
			s.SetEvents(arena)
			a := s.Happened(ctx, "arena-end", events.TriggerAsk{Player: steve, Transfer: streamtest.NewID[events.TransferID]()})
			if a.Code != code || a.Detail != detail {
				t.Errorf("answer %+v, want %s %s", a, code, detail)
			}
		}
		e1.travels(t, ctx, events.Requested{Trigger: events.TriggerEvent, Via: "arena-end"})
		happens(e2, events.Resting, "60")
		passTime(time.Minute)
		e2.SetPermissions(NewPermissions(PermissionsConfig{Defaults: permits("-rtp.regions.wild").Nodes}))
		happens(e2, events.NoPermission, "rtp.regions.wild")
		e2.SetPermissions(nil)
		happens(e2, events.Accepted, "")
	})
}

// TestWhoMaySayThatSomethingHappened: operators and dispatchers over the event's own subject;
// a backend asks for its players, and gets where the event leads.
func TestWhoMaySayThatSomethingHappened(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.SetEvents(arena)
		go func() {
			_ = s.bus.Serve(ctx, events.TriggerOf("*"), dispatcherQueue, func() {}, s.answerEvent)
		}()
		synctest.Wait()
		for kind, want := range map[events.SourceKind]events.Code{
			events.SourceBackend: events.AuthFailed, events.SourceOperator: events.Accepted, events.SourceEdge: events.Accepted, events.SourceAPI: events.Accepted,
		} {
			client := s.mem.Client("caller")
			a, err := TriggerEvent(ctx, identity(kind, "caller"), client, "arena-end", events.TriggerAsk{Player: steve, Transfer: streamtest.NewID[events.TransferID]()})
			if err != nil || a.Code != want {
				t.Errorf("%s: %+v, %v; want %s", kind, a, err, want)
			}
			s.CancelFor(ctx, steve, "a")
		}
		if _, err := TriggerEvent(ctx, identity(events.SourceOperator, "op"), s.mem.Client("op"), "arena.end", events.TriggerAsk{}); err == nil {
			t.Error("two tokens were taken for a name")
		}
		byBackend := func(via string) events.RequestAnswer {
			return s.request(ctx, func(q *events.RequestAsk) {
				q.Trigger, q.Via, q.Wish = events.TriggerEvent, via, events.Wish{Pin: "b"}
			})
		}
		if a := byBackend("arena"); a.Code != events.BadRequest {
			t.Errorf("a backend's unheard-of event: %+v", a)
		}
		if a := byBackend("arena-end"); a.Code != events.Accepted || s.view.Player(steve).Active.Request.Wish != (events.Wish{Region: "wild"}) {
			t.Errorf("a backend's event: %+v", a)
		}
	})
}

// TestIdsAreMandatory: without one of them nothing is opened.
func TestIdsAreMandatory(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		for _, q := range []events.RequestAsk{{Player: steve, Trigger: events.TriggerAPI}, {Transfer: second, Trigger: events.TriggerAPI}} {
			if a := s.Open(ctx, q, ""); a.Code != events.BadRequest {
				t.Errorf("answer %+v", a)
			}
		}
	})
}
