package sim_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases of races: what others did wrong when several asked, wrote or gave at once.

// mostTaken is how many seats of a server were promised or taken at the worst moment, by the log,
// and how many are taken now. Nobody leaves the server in between.
func (c *crowd) mostTaken(server events.HostID) (most, now int) {
	open := map[events.TransferID]bool{}
	for _, e := range c.facts(events.Transfers) {
		switch f := e.Fact.(type) {
		case *events.Reserved:
			if f.Server == server {
				open[e.Correlation] = true
				now++
			}
		case *events.Released, *events.Expired, *events.Failed, *events.Cancelled, *events.Superseded:
			if open[e.Correlation] {
				delete(open, e.Correlation)
				now--
			}
		default:
		}
		most = max(most, now)
	}
	return most, now
}

// TestCase007_LastSeat: two joiners were sent to the last seat. Here at no sequence of the log
// are more seats promised and taken than there are, whoever asks through whichever proxy.
func TestCase007_LastSeat(t *testing.T) {
	atOnce := func(c *crowd, ask func(i int, p *sim.Client)) {
		for i, p := range c.players {
			ask(i, p)
		}
		c.pass(time.Minute)
	}
	plain := func(_ int, p *sim.Client) { p.Ask("") }
	for name, row := range map[string]struct {
		seats, keep int
	}{
		"one seat, one place":        {1, 1},
		"one seat, many places":      {1, 8},
		"some seats, one place":      {5, 1},
		"some seats, as many places": {5, 5},
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 50, nil, func(c *crowd) {
				c.server("b", row.seats, row.keep)
				c.pass(2 * time.Second)
				atOnce(c, plain)
				if most, now := c.mostTaken("b"); most != row.seats || now != row.seats {
					t.Errorf("%d seats were given at once and %d in the end, want %d\n%s", most, now, row.seats, c.story())
				}
				if n := c.net.World("b").Players(); n != row.seats {
					t.Errorf("%d players are there", n)
				}
			})
		})
	}
	t.Run("half of them do not wait", func(t *testing.T) {
		gather(t, 20, nil, func(c *crowd) {
			c.server("b", 3, 1)
			c.pass(2 * time.Second)
			atOnce(c, func(i int, p *sim.Client) {
				if i%2 == 0 {
					p.Ask("")
					return
				}
				c.wg.Go(func() { c.open(p, events.RequestAsk{Bypass: true}) })
			})
			if most, now := c.mostTaken("b"); most != 3 || now != 3 {
				t.Errorf("%d seats were given at once and %d in the end, want 3", most, now)
			}
		})
	})
	t.Run("answers are lost", func(t *testing.T) {
		gather(t, 20, nil, func(c *crowd) {
			c.server("b", 2, 4)
			c.pass(2 * time.Second)
			c.mem.LoseAnswer(func(subject string) bool { return subject == events.ToBackend("b", events.VerbReserve) }, 2)
			atOnce(c, plain)
			if most, now := c.mostTaken("b"); most != 2 || now != 2 {
				t.Errorf("%d seats were given at once and %d in the end, want 2\n%s", most, now, c.story())
			}
		})
	})
	t.Run("a seat that is left goes to one of them", func(t *testing.T) {
		gather(t, 10, nil, func(c *crowd) {
			w := c.server("b", 1, 1)
			c.pass(2 * time.Second)
			atOnce(c, plain)
			for range 9 {
				at := slices.IndexFunc(c.players, func(p *sim.Client) bool { return p.Look().Server == "b" })
				if at < 0 || w.Players() != 1 {
					t.Fatalf("%d players on b", w.Players())
				}
				c.players[at].Quit()
				c.players = slices.Delete(c.players, at, at+1)
				c.pass(10 * time.Second)
			}
		})
	})
}

// TestCase008_ConflictIsNotFull: replicas that decided on what they remembered collided, and
// told many callers that there was no room. Here a lost race is decided again within the attempt:
// with room for all, everybody who asks is served, and nobody is sent to wait.
func TestCase008_ConflictIsNotFull(t *testing.T) {
	const players = 200
	prepare := func(r *rig) { r.line.DrainPerSecond = 0 }
	gather(t, players, prepare, func(c *crowd) {
		c.dispatcher("e4") // holds nobody, and answers requests all the same
		for _, id := range []events.HostID{"b", "c", "d"} {
			c.server(id, players, players)
		}
		c.settle()
		for _, p := range c.players {
			p.Ask("")
			c.pass(time.Second / players)
		}
		for _, p := range c.players {
			got := c.outcome(p, time.Minute)
			c.completed(p, got, got.Destination())
			if got.Waitlisted {
				t.Errorf("%s had to wait", p.Name)
			}
		}
	}, streamtest.WithLatency(2*time.Millisecond))
	t.Run("all ask for the same player", func(t *testing.T) {
		gather(t, 1, nil, func(c *crowd) {
			c.server("b", 10, 4)
			c.pass(2 * time.Second)
			codes := c.openEverywhere(c.players[0], 8)
			if n := codes[events.Accepted]; n != 1 || codes[events.Active] != 3*8-1 {
				t.Errorf("answers %v, want one ACCEPTED and the rest ACTIVE", codes)
			}
			c.completed(c.players[0], c.outcome(c.players[0], forever), "b")
		}, streamtest.WithLatency(2*time.Millisecond))
	})
}

// openEverywhere asks so many times through each proxy at once, each time with another id, and
// counts the answers. Who is told of an active transfer is told which.
func (c *crowd) openEverywhere(p *sim.Client, each int) map[events.Code]int {
	var mu sync.Mutex
	codes, ids := map[events.Code]int{}, map[events.TransferID]bool{}
	var wg sync.WaitGroup
	for _, id := range crowdEdges {
		d := c.dispatchers[id].actor
		for range each {
			wg.Go(func() {
				q := events.RequestAsk{Player: p.ID, Name: p.Name, Trigger: events.TriggerAPI, Transfer: streamtest.NewID[events.TransferID]()}
				a := d.Open(c.ctx, q, "")
				mu.Lock()
				defer mu.Unlock()
				codes[a.Code]++
				ids[a.Transfer] = true
			})
		}
	}
	wg.Wait()
	if len(ids) != 1 {
		c.t.Errorf("%d transfers were named, want the one that won: %v", len(ids), codes)
	}
	return codes
}

// TestCase011_OneBeginsAgain: when the lock of a player was gone, several believed that they had
// made the new one, or read an error of the store. Here one request wins, and every other is told
// which one did, also when nothing is known of the player any more.
func TestCase011_OneBeginsAgain(t *testing.T) {
	for name, before := range map[string]func(c *crowd){
		"the first ever": func(*crowd) {},
		"after an end": func(c *crowd) {
			c.ask(c.players[0])
			c.players[0].Cancel()
			c.outcome(c.players[0], 5*time.Second)
		},
		"after retention took the end": func(c *crowd) {
			c.ask(c.players[0])
			c.players[0].Cancel()
			c.outcome(c.players[0], 5*time.Second)
			c.pass(shortRetention)
			records := c.mem.Records(events.Transfers)
			c.mem.Expire(events.Transfers, records[len(records)-1].Seq)
		},
		"after everybody has forgotten": func(c *crowd) {
			c.ask(c.players[0])
			c.players[0].Cancel()
			c.outcome(c.players[0], 5*time.Second)
			c.pass(20 * time.Minute)
		},
	} {
		t.Run(name, func(t *testing.T) {
			gather(t, 1, func(r *rig) { r.retention = shortRetention }, func(c *crowd) {
				c.down("b", 10, 4)
				before(c)
				for range 20 {
					codes := c.openEverywhere(c.players[0], 2)
					if codes[events.Accepted] != 1 || codes[events.Active] != 5 {
						t.Fatalf("answers %v, want one ACCEPTED and five ACTIVE\n%s", codes, c.story())
					}
					c.players[0].Cancel()
					c.outcome(c.players[0], 5*time.Second)
				}
			}, streamtest.WithLatency(time.Millisecond))
		})
	}
}

// shortRetention is over before a dispatcher forgets an idle player.
const shortRetention = 5 * time.Minute

// TestCase014_StoredWithoutAnAnswer: a publish timed out although it was stored, and was taken
// for failed. Here a fact whose acknowledgement does not come is looked for before anything else
// is done: no second token, no false end, whichever fact it is.
func TestCase014_StoredWithoutAnAnswer(t *testing.T) {
	// Whose acknowledgement is lost: the fact's number on the way, and how many tries are lost.
	for _, lost := range []int{1, 3} {
		for _, fact := range []string{"requested", "reserved", "claimed", "transferred", "consumed", "completed"} {
			t.Run(fact, func(t *testing.T) {
				play(t, func(s *scene) {
					holds := map[events.HostID]*hold{}
					for _, id := range []events.HostID{"e1", "e2"} {
						holds[id] = s.dispatchers[id].client.hold("transfer." + fact)
					}
					s.player.Follow(fact != "transferred") // else the arrival makes it needless
					s.player.Ask("")
					s.until("about to write "+fact, 10*time.Second, func() bool { return holds["e1"].isReached() || holds["e2"].isReached() })
					for id, h := range holds {
						s.dispatchers[id].client.LoseNextAck(lost)
						h.release()
					}
					if fact == "transferred" {
						s.pass(2 * time.Second)
						s.comesWith(s.observer().View().Player(s.player.ID).Active.Token, "e2")
					}
					got := s.outcome(s.player, forever)
					s.completed(s.player, got, "b")
					if n := s.count(isReserved); n != 1 {
						t.Errorf("%d tokens\n%s", n, s.story())
					}
					if n := s.count(isRequested); n != 1 {
						t.Errorf("%d requests\n%s", n, s.story())
					}
					s.consumedOnce(got)
				})
			})
		}
	}
	t.Run("the store stands still for six seconds", func(t *testing.T) {
		for row, step := range steps {
			t.Run(row, func(t *testing.T) {
				play(t, func(s *scene) {
					h := s.askAndHold(step)
					s.mem.Outage()
					h.release()
					s.pass(6 * time.Second)
					s.mem.Restore()
					got := s.outcome(s.player, forever)
					s.completed(s.player, got, got.Destination())
					s.consumedOnce(got)
				})
			})
		}
	})
}

// TestCase118_LetGoTwice: a lock was made anew while two others let the old one go, and the maker
// read "wrong sequence". Here, however often a player asks and takes it back through several
// proxies at once, each answer is one that was foreseen, and a transfer ends once.
func TestCase118_LetGoTwice(t *testing.T) {
	const rounds = 500
	gather(t, 1, func(r *rig) { r.timing.Sweep = 50 * time.Millisecond }, func(c *crowd) {
		c.down("b", 10, 4)
		p := c.players[0]
		foreseen := []events.Code{events.Accepted, events.Active, events.OK, events.NotKnown}
		var mu sync.Mutex
		unforeseen := map[events.Code]int{}
		note := func(code events.Code) {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(foreseen, code) {
				unforeseen[code]++
			}
		}
		for range rounds {
			for i, id := range crowdEdges {
				d := c.dispatchers[id].actor
				c.wg.Go(func() {
					if i != 1 {
						note(d.CancelFor(c.ctx, p.ID, "").Code)
					}
					q := events.RequestAsk{Player: p.ID, Name: p.Name, Trigger: events.TriggerAPI, Transfer: streamtest.NewID[events.TransferID]()}
					note(d.Open(c.ctx, q, "").Code)
					if i != 2 {
						note(d.CancelFor(c.ctx, p.ID, "").Code)
					}
				})
			}
			synctest.Wait()
			c.pass(10 * time.Millisecond)
		}
		if len(unforeseen) > 0 {
			t.Errorf("answers %v", unforeseen)
		}
		j := projections.NewJourneys(0)
		for _, e := range c.facts(events.Transfers) {
			if refusal := j.Apply(e, e.Stored); refusal != nil {
				t.Fatalf("sequence %d: %v", e.Seq, refusal)
			}
		}
		t.Logf("%d facts", len(c.facts(events.Transfers)))
	}, streamtest.WithLatency(time.Millisecond))
}
