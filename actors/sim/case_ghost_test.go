package sim_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases of ghosts, players who are where they are not, and of players who are two.

// TestCase068_NobodyIsLockedOut: a proxy was killed, and its players counted as online for most of
// a day. Here a session is no lock: who comes back through another proxy holds the newest one at
// once, and asks and moves with it.
func TestCase068_NobodyIsLockedOut(t *testing.T) {
	const players = 102 // a third of them on each proxy
	gather(t, players, nil, func(c *crowd) {
		c.server("b", players, players)
		c.pass(3 * time.Second)
		c.killDispatcher("e1")
		for i, p := range c.players {
			if i%3 != 0 {
				continue
			}
			old, _ := c.dispatchers["e2"].actor.View().Session(p.ID)
			if err := p.Join(c.ctx, crowdEdges[1+i%2], events.Token{}); err != nil {
				t.Fatal(err)
			}
			c.until(p.Name+" is known again", time.Second, func() bool {
				s, _ := c.dispatchers["e2"].actor.View().Session(p.ID)
				return s.Open && s.Number > old.Number && s.Holder != "e1"
			})
		}
		for i, p := range c.players {
			if i%3 == 0 {
				p.Ask("")
			}
		}
		for i, p := range c.players {
			if i%3 == 0 {
				c.completed(p, c.outcome(p, 20*time.Second), "b")
			}
		}
	})
}

// TestCase070_NoCopyIsLeft: after a transfer a copy of the player stayed on the source, which had
// died before it could say goodbye. Here the arrival opens the newest session, and whatever the
// source says later is of an older one.
func TestCase070_NoCopyIsLeft(t *testing.T) {
	deaf := func(s *scene) {
		s.mem.DropRequest(func(subject string) bool { return subject == events.NewsOf("a", events.VerbLeft) }, 1000)
	}
	for name, crash := range map[string]func(s *scene){
		"the goodbye is lost": func(*scene) {},
		"the server dies":     func(s *scene) { s.a.Kill() },
		"its backend dies":    func(s *scene) { s.killBackend("a") },
		"it begins anew":      func(s *scene) { s.a.Restart() },
	} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, direct %v", name, direct), func(t *testing.T) {
				stage := play
				if direct {
					stage = village
				}
				stage(t, func(s *scene) {
					deaf(s)
					token := s.sentAway()
					crash(s)
					old, _ := s.observer().View().Session(s.player.ID)
					if direct {
						s.joinsDirectly("b")
					} else {
						s.comesWith(token, "e2")
					}
					got := s.outcome(s.player, forever)
					s.completed(s.player, got, "b")
					now, _ := s.observer().View().Session(s.player.ID)
					if !now.Open || now.Server != "b" || now.Number <= old.Number {
						t.Fatalf("session %+v became %+v", old, now)
					}
					s.announces("a", events.VerbLeft, events.Left{Player: s.player.ID, Name: "Steve", Join: old.Join, Reason: "at last"})
					s.announces("a", events.VerbLeft, events.Left{Player: s.player.ID, Name: "Steve", Join: now.Join, Reason: "of a join that is another server's"})
					s.pass(30 * time.Second)
					if then, _ := s.observer().View().Session(s.player.ID); !then.Open || then.Number != now.Number {
						t.Errorf("session %+v became %+v", now, then)
					}
				})
			})
		}
	}
}

// TestCase071_TwoJoinsAtOnce: two joins of one player within a moment, and the player was "already
// connected" until somebody cleared it by hand. Here one of them is the newest, and nothing is
// left of the other.
func TestCase071_TwoJoinsAtOnce(t *testing.T) {
	for _, apart := range []time.Duration{0, time.Millisecond, 50 * time.Millisecond} {
		t.Run(apart.String(), func(t *testing.T) {
			simulate(t, events.KindEdge, func(r *rig) {
				r.dispatcher("e1")
				r.dispatcher("e2")
				r.backend("a", 0)
				r.backend("b", 8)
				r.backend("c", 2)
				r.settle()
				for round := range 10 {
					one := r.net.AddClient("Steve", 767)
					two := r.net.AddClient("Steve", 767) // the same account, another client
					if round == 0 {
						r.pinned(one, "a")
					}
					var logins sync.WaitGroup
					logins.Go(func() { _ = one.Join(r.ctx, "e1", events.Token{}) })
					r.pass(apart)
					logins.Go(func() { _ = two.Join(r.ctx, "e2", events.Token{}) })
					logins.Wait()
					r.pass(15 * time.Second)
					x, _ := r.observer().View().Session(one.ID)
					if !x.Open {
						t.Fatalf("round %d: session %+v\n%s", round, x, r.story())
					}
					player := two
					if x.Holder == "e1" {
						player = one
					}
					player.Ask("")
					r.outcome(player, forever)
					one.Quit()
					two.Quit()
					r.pass(15 * time.Second)
					if x, _ := r.observer().View().Session(one.ID); x.Open {
						t.Fatalf("round %d: nobody is there, and the session stands: %+v\n%s", round, x, r.story())
					}
				}
			})
		})
	}
}

// account is an id of version 4, as a checked account has.
func account(name string) events.PlayerID {
	id := events.OfflinePlayer("account of " + name)
	id[6] = id[6]&0x0f | 0x40
	return id
}

// offMode is a network of one mode on which server c runs in the other.
func offMode(t *testing.T, accounts actors.Accounts, body func(s *scene)) {
	simulate(t, events.KindEdge, func(r *rig) {
		s := &scene{rig: r}
		r.accounts = accounts
		r.dispatcher("e1")
		r.dispatcher("e2")
		s.a, s.b, s.c = r.backend("a", 0), r.backend("b", 8), r.backend("c", 8)
		r.settle()
		body(s)
	})
}

// login connects a client that the servers know by an id.
func (s *scene) login(name string, id events.PlayerID, server events.HostID) *sim.Client {
	s.t.Helper()
	c := s.net.AddClient(name, 767)
	c.ID = id
	s.pinned(c, server)
	if err := c.Join(s.ctx, "e1", events.Token{}); err != nil {
		s.t.Fatal(err)
	}
	s.pass(time.Second)
	return c
}

func (s *scene) refusedFor(p *sim.Client, server events.HostID) {
	s.t.Helper()
	p.Ask("")
	s.until("refused", 5*time.Second, func() bool { return heard(p, "refused.WRONG_ACCOUNTS") == 1 })
	if x := s.observer().View().Player(p.ID); x.Active != nil || len(x.Done) > 0 {
		s.t.Errorf("a transfer was opened\n%s", s.story())
	}
	if n := s.audited(events.WrongAccounts); n != 2 { // each proxy heard of it
		s.t.Errorf("%d audit entries, want one of each proxy", n)
	}
	for _, e := range s.facts(events.Audit) {
		if f, ok := e.Fact.(*events.Rejected); ok && !strings.Contains(f.Source, "/"+string(server)+"/") {
			s.t.Errorf("the entry names %s, want %s", f.Source, server)
		}
	}
}

// TestCase065_OnePlayerTwoIDs: the same person had two ids, by account on one server and by name
// on another, and stood in two places. Here the file says which kind is right; a server that gives
// the other kind is named to the operator, and the player it names asks for nothing.
func TestCase065_OnePlayerTwoIDs(t *testing.T) {
	for accounts, ids := range map[actors.Accounts][2]events.PlayerID{
		actors.OnlineAccounts:  {account("Steve"), events.OfflinePlayer("Steve")},
		actors.OfflineAccounts: {events.OfflinePlayer("Steve"), account("Steve")},
	} {
		t.Run(string(accounts), func(t *testing.T) {
			offMode(t, accounts, func(s *scene) {
				s.b.Kill()
				s.c.Kill()
				s.pass(2 * time.Second)
				right := s.login("Steve", ids[0], "a")
				right.Ask("")
				(&crowd{rig: s.rig}).waiting(right)
				wrong := s.login("Steve", ids[1], "a") // the same name, another id
				s.refusedFor(wrong, "a")
				if n := s.observer().View().Ahead(1 << 62); n != 1 {
					t.Errorf("%d places in line", n)
				}
				s.pass(time.Minute) // the server repeats who is there
				if n := s.audited(events.WrongAccounts); n != 2 {
					t.Errorf("%d audit entries after a minute", n)
				}
			})
		})
	}
	t.Run("ids of another kind are taken", func(t *testing.T) {
		offMode(t, actors.OnlineAccounts, func(s *scene) {
			p := s.login("*Bedrock", events.PlayerID{15: 9}, "a")
			p.Ask("")
			got := s.outcome(p, forever)
			s.completed(p, got, got.Destination())
		})
	})
}

// TestCase067_TheModeDisagrees: a proxy said that it checked accounts, and passed on an id that no
// account has. Here no front says such a thing: who a player is comes from the game server alone,
// and is held against the one mode of the network.
func TestCase067_TheModeDisagrees(t *testing.T) {
	offMode(t, actors.OnlineAccounts, func(s *scene) {
		p := s.login("Alex", events.OfflinePlayer("Alex"), "b")
		s.refusedFor(p, "b")
		if _, known := s.observer().View().Session(p.ID); known {
			x, _ := s.observer().View().Session(p.ID)
			if x.Open {
				t.Errorf("session %+v", x)
			}
		}
		other := s.login("Steve", account("Steve"), "a")
		other.Ask("c:default")
		got := s.outcome(other, forever)
		s.completed(other, got, "c")
	})
	t.Run("a call that says so by itself", func(t *testing.T) {
		offMode(t, actors.OnlineAccounts, func(s *scene) {
			q := events.RequestAsk{Player: events.OfflinePlayer("Alex"), Name: "Alex", Transfer: streamtest.NewID[events.TransferID](), Trigger: events.TriggerCommand}
			if a := askAs[events.RequestAnswer](s, "a", events.VerbRequest, q); a.Code != events.WrongAccounts || !strings.Contains(a.Detail, "a knows Alex") {
				t.Errorf("%+v", a)
			}
		})
	})
}
