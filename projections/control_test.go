package projections

import (
	"testing"

	"github.com/landfall/landfall/events"
)

func TestControls(t *testing.T) {
	drain := func(host events.HostID, on bool) *events.DrainSet {
		return &events.DrainSet{Host: host, On: on, Who: "ada"}
	}
	l := newTape().
		add("kill", &events.KillSet{On: true, Who: "ada", Why: "fire"}).
		add("drain.a", drain("a", true)).
		add("drain.b", drain("b", true)).
		add("drain.a", drain("a", false)).
		add("drain.c", drain("c", false)).
		add("kill", &events.KillSet{On: false, Who: "ada"})
	var c Controls
	before := c
	for i, e := range l.out {
		after, refusal := c.Apply(e)
		wantRefusal(t, "", refusal, events.OK)
		if i == 2 {
			before = after
		}
		c = after
	}
	if !before.Killed || before.Kill.Why != "fire" || !before.IsDrained("a") || !before.IsDrained("b") {
		t.Errorf("what was handed out has changed: %+v", before)
	}
	if c.Killed || c.IsDrained("a") || !c.IsDrained("b") || c.IsDrained("c") || len(c.Drained) != 1 {
		t.Errorf("%+v", c)
	}
}

func TestControlsRefuse(t *testing.T) {
	on := Controls{Killed: true, Kill: &events.KillSet{On: true}}
	for name, c := range map[string]struct {
		key  string
		fact events.Fact
	}{
		"kill under another key":   {"drain.a", &events.KillSet{}},
		"drain of another host":    {"drain.a", &events.DrainSet{Host: "b", On: true}},
		"drain under kill":         {"kill", &events.DrainSet{Host: "a", On: true}},
		"a fact of another bucket": {"kill", requested()},
	} {
		e := events.Event{Seq: 1, Fact: c.fact}
		e.Key = c.key
		after, refusal := on.Apply(e)
		wantRefusal(t, name, refusal, events.Malformed)
		if !after.Killed || len(after.Drained) != 0 {
			t.Errorf("%s: %+v", name, after)
		}
	}
}
