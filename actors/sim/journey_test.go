package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

func TestHappyPathThroughEdges(t *testing.T) {
	simulate(t, events.KindEdge, func(r *rig) {
		r.dispatcher("e1")
		r.dispatcher("e2")
		r.backend("a", 0)
		r.backend("b", 4)
		r.settle()
		c := r.player("Steve", "e1", "a")
		c.Ask("")
		got := r.outcome(c, 10*time.Second)
		r.completed(c, got, "b")
		if n := len(r.facts(events.Transfers)); n != 5 {
			t.Errorf("%d facts, want 5\n%s", n, r.story())
		}
	})
}

func TestHappyPathDirect(t *testing.T) {
	simulate(t, events.KindDirect, func(r *rig) {
		r.direct("d-a", "a")
		r.direct("d-b", "b")
		r.backend("a", 2)
		r.backend("b", 4)
		r.settle()
		c := r.net.AddClient("Alex", 767)
		if err := c.JoinDirect("a"); err != nil {
			t.Fatal(err)
		}
		r.until("session", 5*time.Second, func() bool {
			s, ok := r.observer().View().Session(c.ID)
			return ok && s.Open && s.Kind == events.KindDirect && s.Holder == "d-a"
		})
		c.Ask("default")
		r.completed(c, r.outcome(c, 10*time.Second), "b")
	})
}
