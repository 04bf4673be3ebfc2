package edge

import (
	"net/netip"
	"testing"
	"time"
)

// TestGateBoundsTheRateOfASource: four seconds' worth at once, then as fast as the rate gives
// back; what another source does changes nothing; whoever is quiet is forgotten.
func TestGateBoundsTheRateOfASource(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGate(1000, 1000, 5)
	g.now = func() time.Time { return now }
	one, other, neighbour := netip.MustParseAddr("203.0.113.9"), netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	let := func(addr netip.Addr, tries int) (n int) {
		for range tries {
			if leave, ok := g.enter(addr); ok {
				leave()
				leave() // twice does nothing
				n++
			}
		}
		return n
	}
	for _, step := range []struct {
		after time.Duration
		addr  netip.Addr
		tries int
		want  int
	}{
		{0, one, 30, 20},
		{0, one, 5, 0},
		{0, other, 3, 3},
		{time.Second, one, 30, 5},
		{-time.Minute, one, 30, 0}, // a clock that goes back gives nothing
		{time.Minute, other, 30, 20},
		{0, neighbour, 3, 0}, // the same /64
		{time.Hour, one, 1, 1},
	} {
		now = now.Add(step.after)
		if got := let(step.addr, step.tries); got != step.want {
			t.Errorf("%s after %s: let in %d of %d, want %d", step.addr, step.after, got, step.tries, step.want)
		}
	}
	if g.pending() != 0 {
		t.Errorf("%d are still counted", g.pending())
	}
	if len(g.sources) != 1 {
		t.Errorf("remembers %d sources, want the one that just came", len(g.sources))
	}
}

// TestGateForgetsNoOpenConnection: a source with something open is counted however long it is quiet.
func TestGateForgetsNoOpenConnection(t *testing.T) {
	now := time.Unix(1000, 0)
	g := newGate(1, 10, 5)
	g.now = func() time.Time { return now }
	addr := netip.MustParseAddr("203.0.113.9")
	leave, ok := g.enter(addr)
	now = now.Add(time.Hour)
	if _, again := g.enter(addr); !ok || again {
		t.Errorf("let in %v, and again %v", ok, again)
	}
	leave()
	if _, again := g.enter(addr); !again {
		t.Error("not let in after the other left")
	}
}
