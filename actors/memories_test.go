package actors

import (
	"math"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

const halfLife = 10 * time.Second

// TestPicksFade: a pick loses half its weight in each half-life; picks add up.
func TestPicksFade(t *testing.T) {
	var m memories
	m.init()
	m.picked("b", t0, halfLife)
	for after, want := range map[time.Duration]float64{0: 1, time.Second: 0.933033, 5 * time.Second: 0.707107, halfLife: 0.5, 20 * time.Second: 0.25} {
		if got := m.look("b", t0.Add(after), halfLife).picks; math.Abs(got-want) > 1e-6 {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
	if got := m.look("b", t0.Add(-time.Hour), halfLife).picks; got != 1 {
		t.Errorf("before it happened: %v, want 1: a clock that steps back makes nothing of it", got)
	}
	m.picked("b", t0.Add(halfLife), halfLife)
	if got := m.look("b", t0.Add(halfLife), halfLife).picks; math.Abs(got-1.5) > 1e-9 {
		t.Errorf("half a pick and one: %v", got)
	}
	m.pickedElsewhere("b", t0.Add(2*halfLife), halfLife)
	x := m.look("b", t0.Add(2*halfLife), halfLife)
	if math.Abs(x.picks-0.75) > 1e-9 || x.others != 1 || x.turn != 2 {
		t.Errorf("own and others': %+v", x)
	}
	if got := m.look("c", t0, halfLife); got.picks != 0 || got.turn != 0 || !math.IsNaN(got.rtt) {
		t.Errorf("of a stranger: %+v", got)
	}
	var none *memories
	if got := none.look("c", t0, halfLife); got.picks != 0 || !math.IsNaN(got.rtt) {
		t.Errorf("without a memory: %+v", got)
	}
}

// TestRTT: the first measure counts whole, later ones a quarter; nonsense is no measure.
func TestRTT(t *testing.T) {
	var m memories
	m.init()
	m.measured("b", -time.Second)
	if got := m.look("b", t0, halfLife).rtt; !math.IsNaN(got) {
		t.Errorf("negative: %v", got)
	}
	m.measured("b", 40*time.Millisecond)
	m.measured("b", 80*time.Millisecond)
	if got := m.look("b", t0, halfLife).rtt; got != 50 {
		t.Errorf("40 and 80 ms: %v, want 50", got)
	}
	m.keep(func(id events.HostID) bool { return id != "b" })
	if got := m.look("b", t0, halfLife).rtt; !math.IsNaN(got) {
		t.Errorf("of a host that is gone: %v", got)
	}
}
