package rcon

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
)

// A destination dies, and the edge that holds the login brings the player straight back to
// where it came from, with a promise: too quick for any look.
func TestSentAwayAndPromisedAPlaceHere(t *testing.T) {
	for _, c := range []struct {
		name     string
		absence  bool // a look saw that the player had gone
		lookedAt bool // closely, a while later
	}{
		{"too quick to be seen", false, false},
		{"seen to leave", true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, bob, here := newGuests(), actors.Player{Name: "Bob"}, true
				isHere := func(string) bool { return here }
				g.leaving(bob)
				g.expect(bob, time.Minute)
				if c.absence {
					g.left(bob.Name)
					here = false
				}
				<-time.After(comeback)
				_, overdue := g.sought(time.Now(), isHere)
				if (len(overdue) == 1) != !c.absence {
					t.Errorf("after %s overdue: %v", comeback, overdue)
				}
				<-time.After(departure)
				if names, _ := g.sought(time.Now(), isHere); (len(names) == 1) != c.lookedAt {
					t.Errorf("after %s sought: %v", departure, names)
				}
			})
		})
	}
}
