package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestAnEventMovesAPlayer: an operator says that something happened; the player reads it and
// stands where the event leads. The same request again is the same transfer.
func TestAnEventMovesAPlayer(t *testing.T) {
	simulate(t, events.KindEdge, func(r *rig) {
		for _, id := range []events.HostID{"e1", "e2"} {
			r.dispatcher(id).SetEvents(actors.EventTriggers{Enabled: true, Regions: map[string]string{"arena-end": "default"}})
		}
		r.backend("a", 0)
		r.backend("b", 8)
		r.settle()
		p := r.player("Steve", "e1", "a")
		id := streamtest.NewID[events.TransferID]()
		happens := func() events.RequestAnswer {
			a, err := actors.TriggerEvent(r.ctx, r.identity(events.SourceOperator, "cli"), r.mem.Client("cli"), "arena-end", events.TriggerAsk{Player: p.ID, Transfer: id})
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		if a := happens(); a.Code != events.Accepted || a.Transfer != id {
			t.Fatalf("answer %+v", a)
		}
		got := r.outcome(p, 20*time.Second)
		r.completed(p, got, "b")
		r.until("word that it is accepted", 5*time.Second, func() bool { return hasMessage(p, "transfer.accepted") }) // asked for at a, read where the player is
		if got.Request.Trigger != events.TriggerEvent || got.Request.Via != "arena-end" {
			t.Errorf("requested %+v, the player read %q", got.Request, p.Look().Texts)
		}
		if a := happens(); a.Code != events.Active || a.State != "COMPLETED" {
			t.Errorf("the same request again: %+v", a)
		}
		p.Quit()
		r.pass(2 * time.Second)
		id = streamtest.NewID[events.TransferID]()
		if a := happens(); a.Code != events.NotHere {
			t.Errorf("for somebody who is gone: %+v", a)
		}
	})
}
