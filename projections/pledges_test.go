package projections

import (
	"testing"

	"github.com/landfall/landfall/events"
)

func promised(life events.Incarnation, number uint64, region string) *events.Reserved {
	return &events.Reserved{Server: "b", Incarnation: life, Promise: number, Region: region}
}

func TestPledges(t *testing.T) {
	p := NewPledges()
	for n := uint64(1); n <= 4; n++ {
		p.Reserved(promised(lifeB, n, "wild"))
	}
	p.Reserved(promised(lifeB, 5, "mesa"))
	count := func(life events.Incarnation, promise uint64, region string) int {
		return p.Count(beat("b", life, promise), region)
	}
	for name, c := range map[string]struct{ got, want int }{
		"beat before all":      {count(lifeB, 0, "wild"), 4},
		"beat between":         {count(lifeB, 3, "wild"), 1},
		"beat after all":       {count(lifeB, 5, "wild"), 0},
		"other region":         {count(lifeB, 0, "mesa"), 1},
		"unknown region":       {count(lifeB, 0, "sea"), 0},
		"other life":           {count(lifeB2, 0, "wild"), 0},
		"other server":         {p.Count(beat("c", lifeB, 0), "wild"), 0},
		"same promise, repeat": {func() int { p.Reserved(promised(lifeB, 4, "wild")); return count(lifeB, 0, "wild") }(), 4},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
	p.Beat(beat("b", lifeB, 3))
	if n := count(lifeB, 0, "wild"); n != 1 {
		t.Errorf("after the beat of promise 3: %d, want 1", n)
	}
	p.Beat(beat("nobody", lifeB, 3))
	p.Beat(beat("b", lifeB, 9))
	if len(p.servers) != 0 {
		t.Errorf("%v is held for nothing", p.servers)
	}
}

// The promises of one life say nothing about another's, in whatever order the log tells them.
func TestPledgesOfTwoLives(t *testing.T) {
	p := NewPledges()
	p.Reserved(promised(lifeB2, 1, "wild"))
	p.Reserved(promised(lifeB, 70, "wild")) // answered before the restart, landed after it
	p.Reserved(promised(lifeB2, 2, "wild"))
	if n := p.Count(beat("b", lifeB2, 0), "wild"); n != 2 {
		t.Errorf("%d, want 2", n)
	}
	p.Beat(beat("b", lifeB2, 1))
	if n, old := p.Count(beat("b", lifeB2, 0), "wild"), p.Count(beat("b", lifeB, 0), "wild"); n != 1 || old != 0 {
		t.Errorf("%d and %d of the old life, want 1 and 0", n, old)
	}
}

func TestPledgesKeep(t *testing.T) {
	p := NewPledges()
	p.Reserved(promised(lifeB, 1, "wild"))
	p.Keep(func(id events.HostID) bool { return id == "b" })
	if p.Count(beat("b", lifeB, 0), "wild") != 1 {
		t.Error("a known server's promise was dropped")
	}
	p.Keep(func(events.HostID) bool { return false })
	if len(p.servers) != 0 {
		t.Error("an unknown server's promise is held")
	}
}
