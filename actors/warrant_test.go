package actors

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// trusting are rules that believe server a.
func trusting(groups ...PermissionGroup) *Permissions {
	return NewPermissions(PermissionsConfig{Trusted: []events.HostID{"a"}, Groups: groups})
}

// putLimit lets somebody else append to limits, and gives the sequence.
func putLimit(t *testing.T, mem *streamtest.Memory, key string, f events.Fact, ttl time.Duration) uint64 {
	t.Helper()
	c := mem.Client("somebody else")
	last, _, err := c.Last(t.Context(), events.Limits, key)
	if err != nil {
		t.Fatal(err)
	}
	m := streamtest.Fact(t, key, last.Seq, f)
	m.TTL = ttl
	seq, err := c.Append(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

func permits(nodes ...string) events.Permits {
	p := events.Permits{Nodes: []events.Permit{}}
	for _, node := range nodes {
		node, denied := strings.CutPrefix(node, "-")
		p.Nodes = append(p.Nodes, events.Permit{Node: node, Granted: !denied})
	}
	return p
}

// limitsOf are the facts that stand in limits, by key.
func limitsOf(t *testing.T, mem *streamtest.Memory) map[string]events.Fact {
	t.Helper()
	out := map[string]events.Fact{}
	for _, r := range mem.Records(events.Limits) {
		if e, refusal := events.Open(streamtest.Keyring(), r); refusal == nil {
			out[r.Key] = e.Fact
		}
	}
	return out
}

// request asks for the player on server a.
func (s *seer) request(ctx context.Context, change func(q *events.RequestAsk)) events.RequestAnswer {
	q := events.RequestAsk{Player: steve, Name: "Steve", Transfer: streamtest.NewID[events.TransferID](), Trigger: events.TriggerCommand}
	if change != nil {
		change(&q)
	}
	return s.answerRequest(ctx, "a", q)
}

// TestWhoAnswers: the server that asks, then the trusted one that said so last, then the rules.
func TestWhoAnswers(t *testing.T) {
	staff := PermissionGroup{Grant: []string{NodeUnqueued}, Names: []string{"Steve"}}
	said := permits("-" + NodeUnqueued)
	for _, row := range []struct {
		name  string
		rules *Permissions
		kept  *events.PermitsKept
		said  *events.Permits
		want  bool
	}{
		{name: "nobody", want: false},
		{name: "the rules", rules: trusting(staff), want: true},
		{name: "a trusted server", rules: trusting(staff), kept: &events.PermitsKept{Server: "a", Permits: said}, want: false},
		{name: "a trusted server, by pattern", rules: trusting(), kept: &events.PermitsKept{Server: "a", Permits: permits("rtp.*")}, want: true},
		{name: "a trusted server that says nothing of it", rules: trusting(staff), kept: &events.PermitsKept{Server: "a", Permits: permits("-rtp.use")}, want: true},
		{name: "another server", rules: trusting(staff), kept: &events.PermitsKept{Server: "b", Permits: said}, want: true},
		{name: "nobody is trusted", kept: &events.PermitsKept{Server: "a", Permits: permits("*")}, want: false},
		{name: "the server that asks", rules: trusting(staff), kept: &events.PermitsKept{Server: "a", Permits: permits("*")}, said: &said, want: false},
		{name: "the server that asks says nothing of it", rules: trusting(), kept: &events.PermitsKept{Server: "a", Permits: permits("*")}, said: &events.Permits{}, want: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
				s.SetPermissions(row.rules)
				if row.kept != nil {
					putLimit(t, s.mem, events.PermitsKey(steve), row.kept, 0)
				}
				if got := s.warrantOf(steve, "Steve", row.said).permits(ctx, NodeUnqueued); got != row.want {
					t.Errorf("may pass the line: %v", got)
				}
				if row.said == nil && s.permitted(ctx, steve, "Steve", NodeUnqueued) != row.want {
					t.Error("the dispatcher's own answer is another one")
				}
			})
		})
	}
}

// TestRulesHoldAloneInAnOutage, and nobody waits for the log.
func TestRulesHoldAloneInAnOutage(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.SetPermissions(trusting(PermissionGroup{Grant: []string{NodeUnqueued}, Names: []string{"Steve"}}))
		putLimit(t, s.mem, events.PermitsKey(steve), &events.PermitsKept{Server: "a", Permits: permits("-rtp.unqueued")}, 0)
		s.log.Cut()
		if !s.permitted(ctx, steve, "Steve", NodeUnqueued) || !s.seenBefore(ctx, steve) {
			t.Error("without the log the rules do not hold, or everybody is new")
		}
	})
}

// TestRequestsAreAdmitted: by the nodes of the wish, and with or without a place in line.
func TestRequestsAreAdmitted(t *testing.T) {
	pin := func(q *events.RequestAsk) { q.Wish = events.Wish{Pin: "b", Region: "wild"} }
	for _, row := range []struct {
		name   string
		rules  []string
		ask    func(q *events.RequestAsk)
		code   events.Code
		detail string
		bypass bool
	}{
		{"any place", nil, nil, events.Accepted, "", false},
		{"a region", nil, func(q *events.RequestAsk) { q.Wish.Region = "wild" }, events.Accepted, "", false},
		{"a region that is denied", []string{"-rtp.regions.wild"}, func(q *events.RequestAsk) { q.Wish.Region = "wild" }, events.NoPermission, "rtp.regions.wild", false},
		{"a server", nil, pin, events.NoPermission, "rtp.servers.b", false},
		{"a server that is granted", []string{"rtp.servers.b"}, pin, events.Accepted, "", false},
		{"a server that is granted, in a region that is denied", []string{"rtp.servers.*", "-rtp.regions.*"}, pin, events.NoPermission, "rtp.regions.wild", false},
		{"a server that the game server grants", nil, func(q *events.RequestAsk) {
			pin(q)
			said := permits("rtp.servers.b", "rtp.regions.wild")
			q.Permits = &said
		}, events.Accepted, "", false},
		{"nothing at all", []string{"-rtp.use"}, nil, events.NoPermission, "rtp.use", false},
		{"past the line", []string{NodeUnqueued}, nil, events.Accepted, "", true},
		{"past the line, as the server asks", nil, func(q *events.RequestAsk) { q.Bypass = true }, events.Accepted, "", true},
		{"an operator's trigger", []string{"*"}, func(q *events.RequestAsk) { q.Trigger = events.TriggerAPI }, events.BadRequest, `trigger "api": a backend asks with command or event`, false},
		{"too much said", nil, func(q *events.RequestAsk) {
			q.Permits = &events.Permits{Nodes: make([]events.Permit, maxPermits+1)}
		}, events.BadRequest, "permits: want at most 256", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
				s.holdsSession(t)
				s.SetPermissions(NewPermissions(PermissionsConfig{Defaults: permits(row.rules...).Nodes}))
				a := s.request(ctx, row.ask)
				if a.Code != row.code || a.Detail != row.detail {
					t.Fatalf("answer %+v, want %s %s", a, row.code, row.detail)
				}
				active := s.view.Player(steve).Active
				if (active != nil) != (row.code == events.Accepted) || active != nil && active.Request.Bypass != row.bypass {
					t.Errorf("active is %+v", active)
				}
			})
		})
	}
}

// TestOperatorsAreNotAsked: what they ask for is theirs.
func TestOperatorsAreNotAsked(t *testing.T) {
	for _, trigger := range []events.Trigger{events.TriggerAPI, events.TriggerEvacuate} {
		mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
			s.SetPermissions(NewPermissions(PermissionsConfig{Defaults: permits("-*").Nodes}))
			a := s.Open(ctx, events.RequestAsk{Player: steve, Name: "Steve", Transfer: second, Trigger: trigger, Wish: events.Wish{Pin: "b"}}, "")
			if a.Code != events.Accepted || s.view.Player(steve).Active.Request.Bypass {
				t.Errorf("%s: %+v", trigger, a)
			}
		})
	}
}

// TestNothingIsReadWithoutNeed: where no rule trusts anybody, a request costs the log what it
// always did.
func TestNothingIsReadWithoutNeed(t *testing.T) {
	for _, rules := range []*Permissions{nil, NewPermissions(PermissionsConfig{Defaults: permits("rtp.*").Nodes}), trusting()} {
		mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
			s.holdsSession(t)
			s.tasks.begin(ctx)
			s.SetPermissions(rules)
			if a := s.request(ctx, func(q *events.RequestAsk) { q.Wish.Region = "wild" }); a.Code != events.Accepted {
				t.Fatalf("answer %+v", a)
			}
			synctest.Wait()
			want := 0
			if rules.trustsAny() {
				want = 1 // whatever the number of nodes
			}
			if n := s.log.reads(events.Limits); n != want || len(s.mem.Records(events.Limits)) != 0 {
				t.Errorf("limits was read %d times, want %d", n, want)
			}
		})
	}
}

// TestPermitsAreKept: of a trusted server, sorted, and only when they are others than before.
func TestPermitsAreKept(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		s.tasks.begin(ctx)
		say := func(nodes ...string) int {
			said := permits(nodes...)
			s.request(ctx, func(q *events.RequestAsk) { q.Permits = &said })
			synctest.Wait()
			return len(s.log.tries())
		}
		if say("rtp.use"); len(limitsOf(t, s.mem)) != 0 {
			t.Error("kept what nobody trusts")
		}
		s.SetPermissions(trusting())
		once := say("rtp.use", "-rtp.unqueued")
		kept, ok := limitsOf(t, s.mem)[events.PermitsKey(steve)].(*events.PermitsKept)
		if !ok || kept.Server != "a" || len(kept.Permits.Nodes) != 2 || kept.Permits.Nodes[0].Node != "rtp.unqueued" {
			t.Fatalf("kept %+v", kept)
		}
		if again := say("-rtp.unqueued", "rtp.use"); again != once {
			t.Errorf("%d appends for what is known", again-once)
		}
		if say("rtp.use", "rtp.unqueued"); !s.permitted(ctx, steve, "", NodeUnqueued) {
			t.Error("what the server says now is not kept")
		}
	})
}

// TestSeenBefore: by the log of sessions, or by a key that outlives it.
func TestSeenBefore(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		if s.seenBefore(ctx, steve) {
			t.Error("a new player was here before")
		}
		putLimit(t, s.mem, events.SeenKey(steve), &events.PlayerSeen{Name: "Steve", Server: "a"}, 0)
		if !s.seenBefore(ctx, steve) {
			t.Error("the key says nothing")
		}
	})
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		if !s.seenBefore(ctx, steve) || s.log.reads(events.Limits) != 0 {
			t.Error("the session says nothing")
		}
	})
}

// TestFirstSessionIsNoted: once for each player, whoever else does so, and never in the way.
func TestFirstSessionIsNoted(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.tasks.begin(ctx)
		join := func(id uint64, name string) {
			s.Opened(Connection{ID: id, Name: name, Player: events.OfflinePlayer(name), Server: "a"})
			s.conns.joined(s.Dispatcher, "a", events.Joined{Player: events.OfflinePlayer(name), Name: name, Join: streamtest.NewID[events.JoinID]()})
			synctest.Wait()
		}
		join(1, "Steve")
		seen, ok := limitsOf(t, s.mem)[events.SeenKey(steve)].(*events.PlayerSeen)
		if !ok || seen.Name != "Steve" || seen.Server != "a" {
			t.Fatalf("noted %+v", seen)
		}
		s.Closed(1, "quit")
		synctest.Wait()
		join(2, "Steve")
		alex := events.OfflinePlayer("Alex")
		putLimit(t, s.mem, events.SeenKey(alex), &events.PlayerSeen{Name: "Alex", Server: "b"}, 0)
		join(3, "Alex")
		if n := len(s.mem.Records(events.Limits)); n != 2 || s.log.reads(events.Limits) != 2 {
			t.Errorf("%d facts after %d reads, want 2 after 2", n, s.log.reads(events.Limits))
		}
		s.log.before = func(_ int, m events.Message) {
			if m.Bucket == events.Limits {
				s.log.before = nil
				s.log.Cut()
			}
		}
		join(4, "Pat")
		if x, _ := s.view.Session(events.OfflinePlayer("Pat")); !x.Open {
			t.Error("the session waits for the note")
		}
		s.log.Heal()
		passTime(time.Minute)
		if limitsOf(t, s.mem)[events.SeenKey(events.OfflinePlayer("Pat"))] == nil {
			t.Error("what an outage came between is not noted after it")
		}
	})
}

// TestAmendLosesNothing: many write one key, and each takes the others' into account.
func TestAmendLosesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		key := events.UsesKey(steve, "rtp", "")
		var all sync.WaitGroup
		for _, id := range []events.HostID{"e1", "e2", "e3"} {
			s := newSeer(t, ctx, mem, id)
			s.log.DelayAppend(time.Millisecond)
			for range 3 {
				all.Go(func() {
					_, err := s.amend(ctx, events.Limits, key, func(now events.Fact) (events.Fact, time.Duration) {
						next := events.UsesCounted{Limit: "rtp", Count: 1}
						if f, ok := now.(*events.UsesCounted); ok {
							next.Count += f.Count
						}
						return &next, time.Hour
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
		all.Wait()
		if f := limitsOf(t, mem)[key].(*events.UsesCounted); f.Count != 9 {
			t.Errorf("counted %d of 9", f.Count)
		}
	})
}

// TestAmendOnTopOfWhatIsNothing: a marker and a forged fact are no facts, and guard all the same.
func TestAmendOnTopOfWhatIsNothing(t *testing.T) {
	mutating(t, nil, func(t *testing.T, ctx context.Context, s *seer) {
		s.tasks.begin(ctx)
		seen := func() (n int) {
			_, err := s.amend(ctx, events.Limits, events.SeenKey(steve), func(now events.Fact) (events.Fact, time.Duration) {
				if now != nil {
					return nil, 0
				}
				n++
				return &events.PlayerSeen{Name: "Steve"}, 2 * time.Second
			})
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
		if seen()+seen() != 1 {
			t.Error("written over what stands")
		}
		passTime(3 * time.Second)
		if seen() != 1 {
			t.Error("not written over a marker")
		}
		passTime(3 * time.Second)
		s.mem.Inject(events.Limits, events.SeenKey(steve), events.Header{events.HeaderType: "landfall.limit.seen.v1"}, []byte("x"))
		if seen() != 1 {
			t.Error("not written over a forged fact")
		}
		synctest.Wait()
		if audit := stored(t, s.mem, events.Audit); len(audit) != 1 {
			t.Errorf("%d audit entries, want one", len(audit))
		}
	})
}
