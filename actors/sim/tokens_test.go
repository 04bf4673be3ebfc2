package sim_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// What must never go wrong with a token, apart from who dies: see docs/guarantees.md.

// TestTwoServersReportOneArrival: a token is consumed once, by the server that promised, whoever
// says at the same moment that the player has come.
func TestTwoServersReportOneArrival(t *testing.T) {
	play(t, func(s *scene) {
		token := s.sentAway()
		answers := make(chan events.ArrivedAnswer, 2)
		for _, id := range []events.HostID{"b", "c"} {
			s.wg.Go(func() {
				answers <- askAs[events.ArrivedAnswer](s, id, events.VerbArrived, events.ArrivedAsk{
					Player: s.player.ID, Name: s.player.Name, Join: events.JoinID{7}, Incarnation: s.backends[id].actor.Incarnation(), Held: []events.Token{token},
				})
			})
		}
		s.pass(time.Second)
		placed := 0
		for range 2 {
			if a := <-answers; a.Code == events.Place {
				placed++
			}
		}
		if n := s.count(isConsumed); n != 1 || placed != 1 {
			t.Errorf("consumed %d times, %d were told to place the player\n%s", n, placed, s.story())
		}
	})
}

// TestASpentTokenLeadsNowhere: who was placed cannot come with the same token again, and the next
// wish gets a token of its own.
func TestASpentTokenLeadsNowhere(t *testing.T) {
	play(t, func(s *scene) {
		s.player.Ask("")
		first := s.outcome(s.player, 10*time.Second)
		s.completed(s.player, first, "b")
		s.player.Quit()
		s.pass(time.Second)
		s.comesWith(first.Token, "e2")
		s.until("audit entry", time.Second, func() bool { return s.audited(events.TokenSpent) == 1 })
		if v := s.player.Look(); v.Position == first.Reserved.At {
			t.Error("the player was put on the same place again")
		}
		s.pass(time.Second)
		s.player.Ask("")
		s.until("another transfer", 10*time.Second, func() bool {
			last := s.observer().View().Player(s.player.ID).Last()
			return last != nil && last.ID != first.ID
		})
		second := s.outcome(s.player, 10*time.Second)
		if second.Phase != projections.Completed || second.Token == first.Token || second.ID == first.ID {
			t.Errorf("%s with %s after %s", second.Phase, second.Token, first.Token)
		}
	})
}

// TestTheSweepEndsOnce: a token whose time is over ends once, however often everybody looks; what
// has ended is left alone, and a network on which nobody asks writes nothing.
func TestTheSweepEndsOnce(t *testing.T) {
	play(t, func(s *scene) {
		s.pass(time.Minute)
		if n := len(s.facts(events.Transfers)); n != 0 {
			t.Errorf("%d facts, and nobody has asked", n)
		}
		s.sentAway()
		s.outcome(s.player, forever)
		facts := len(s.facts(events.Transfers))
		s.pass(5 * time.Minute)
		if n := len(s.facts(events.Transfers)); n != facts {
			t.Errorf("%d facts about what had ended\n%s", n-facts, s.story())
		}
		for token, n := range s.ends() {
			if n != 1 {
				t.Errorf("%s ended %d times", token, n)
			}
		}
	})
}

// TestSixteenCancelAtOnce: none meets an error, and the transfer ends once.
func TestSixteenCancelAtOnce(t *testing.T) {
	gather(t, 1, nil, func(c *crowd) {
		c.down("b", 10, 4)
		p := c.players[0]
		c.ask(p)
		c.waiting(p)
		codes := map[events.Code]int{}
		var mu sync.Mutex
		for i := range 16 {
			d := c.dispatchers[crowdEdges[i%len(crowdEdges)]].actor
			c.wg.Go(func() {
				a := d.CancelFor(c.ctx, p.ID, "")
				mu.Lock()
				defer mu.Unlock()
				codes[a.Code]++
			})
		}
		synctest.Wait()
		c.pass(time.Second)
		n := 0
		for _, e := range c.facts(events.Transfers) {
			if isCancelled(e.Fact) {
				n++
			}
		}
		if n != 1 || codes[events.OK] < 1 || codes[events.OK]+codes[events.NotKnown] != 16 {
			t.Errorf("cancelled %d times, answers %v", n, codes)
		}
	})
}

// TestTheAbsentAreNotLookedUp: a wish for somebody who is not on the server that asks is refused,
// and nothing is written.
func TestTheAbsentAreNotLookedUp(t *testing.T) {
	play(t, func(s *scene) {
		a := askAs[events.RequestAnswer](s, "b", events.VerbRequest, events.RequestAsk{
			Player: s.player.ID, Name: s.player.Name, Transfer: events.TransferID{9}, Trigger: events.TriggerCommand,
		})
		s.pass(10 * time.Second)
		if n := len(s.facts(events.Transfers)); a.Code != events.NotHere || n != 0 {
			t.Errorf("%+v, and %d facts", a, n)
		}
	})
}
