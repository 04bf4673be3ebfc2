package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Cases of upgrades: hosts of several versions on one network.

// TestCase097_AHostOfAnotherVersion: hosts of mixed versions did not see one another, and nobody
// said so. Here one that writes a wire version which others do not read is no destination for
// them, which stands in every decision; each names it once, with both versions, and once more when
// it has been upgraded. The others go on.
func TestCase097_AHostOfAnotherVersion(t *testing.T) {
	const other, again = "another wire version", "a wire version again"
	simulate(t, events.KindEdge, func(r *rig) {
		r.ear = &ear{text: "wire version"}
		r.dispatcher("e1")
		r.dispatcher("e2")
		s := &scene{rig: r}
		s.a, s.b, s.c = r.backend("a", 0), r.backend("b", 8), r.backend("c", 2)
		r.settle()
		s.player = r.player("Steve", "e1", "a")

		s.says("b", 1<<30, func(b *events.BackendBeat) { b.Schema = events.SchemaVersion + 1 })
		s.pass(time.Minute)
		if n := r.ear.count(other); n != 2 {
			t.Errorf("named %d times, want once by each proxy: %q", n, r.ear.lines)
		}
		for _, line := range r.ear.lines {
			if !strings.Contains(line, "host=b") || !strings.Contains(line, "SCHEMA_RANGE") || !strings.Contains(line, "it writes wire version 2, this build reads 1") {
				t.Errorf("a host is named as %s", line)
			}
		}
		s.player.Ask("")
		got := s.outcome(s.player, 10*time.Second)
		s.completed(s.player, got, "c")
		if n := filteredBy(got, events.SchemaRange); n != 1 {
			t.Errorf("the decision names %d hosts of another version: %+v", n, got.Reserved.Decision)
		}
		p := r.player("Alex", "e2", "a")
		p.Ask("b:default")
		s.ended(p, s.outcome(p, 10*time.Second), projections.Failed, events.NoCandidate, messages["failed.NO_CANDIDATE"])

		s.backends["b"].client.forge.Store(nil) // upgraded
		s.pass(10 * time.Second)
		p.Ask("b:default")
		s.completed(p, s.outcome(p, 10*time.Second), "b")
		if n := r.ear.count(again); n != 2 || r.ear.count(other) != 2 {
			t.Errorf("said %d times that it is right again: %q", n, r.ear.lines)
		}
	})
	t.Run("a proxy", func(t *testing.T) {
		simulate(t, events.KindEdge, func(r *rig) {
			r.ear = &ear{text: "wire version"}
			r.dispatcher("e1")
			r.dispatcher("e2")
			r.backend("a", 0)
			r.backend("b", 8)
			r.settle()
			s := &scene{rig: r}
			s.proxySays("e2", func(p *events.ProxyBeat) { p.Schema = 0 })
			s.pass(time.Minute)
			if n := r.ear.count(other); n != 2 { // e2 reads its own heartbeat too
				t.Errorf("named %d times: %q", n, r.ear.lines)
			}
			p := r.player("Steve", "e1", "a")
			p.Ask("")
			s.completed(p, s.outcome(p, 10*time.Second), "b")
		})
	})
}

// filteredBy counts the hosts that the decision of a token left out for a reason.
func filteredBy(t projections.Transfer, code events.Code) (n int) {
	for _, x := range t.Reserved.Decision.Filtered {
		if x.Code == code {
			n += x.Count
		}
	}
	return n
}
