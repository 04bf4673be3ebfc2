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

func TestControlsPauseAndEvacuate(t *testing.T) {
	l := newTape().
		add("pause.line", &events.PauseSet{What: events.PauseLine, On: true}).
		add("pause.server.a", &events.PauseSet{What: events.PauseServer, Name: "a", On: true}).
		add("pause.region.a", &events.PauseSet{What: events.PauseRegion, Name: "a", On: true}).
		add("evacuate.b", &events.EvacuateSet{Host: "b", On: true, PerSecond: 2}).
		add("config", &events.ConfigSet{Text: "line: {}"}).
		add("pause.line", &events.PauseSet{What: events.PauseLine}).
		add("pause.server.a", &events.PauseSet{What: events.PauseServer, Name: "a"}).
		add("evacuate.b", &events.EvacuateSet{Host: "b"})
	var c, during Controls
	for i, e := range l.out {
		var refusal *events.Refusal
		c, refusal = c.Apply(e)
		wantRefusal(t, "", refusal, events.OK)
		if i == 4 {
			during = c
		}
	}
	if !during.LinePaused() || !during.IsPaused("a", "x") || !during.IsPaused("b", "a") || during.IsPaused("b", "b") || !during.IsDrained("b") {
		t.Errorf("while all is on: %+v", during)
	}
	if c.LinePaused() || c.IsPaused("a", "x") || !c.IsPaused("b", "a") || c.IsDrained("b") {
		t.Errorf("after most is off: %+v", c)
	}
	if c.ConfigSeq != l.out[4].Seq || c.Config.Text != "line: {}" {
		t.Errorf("configuration %d %+v", c.ConfigSeq, c.Config)
	}
}

func TestControlsTokens(t *testing.T) {
	l := newTape().
		add("token.a", &events.TokenSet{ID: "a", Name: "matchmaker", Hash: "1"}).
		add("token.b", &events.TokenSet{ID: "b", Name: "console", Hash: "2"}).
		add("token.a", &events.TokenSet{ID: "a", Revoked: true})
	var c Controls
	for _, e := range l.out {
		var refusal *events.Refusal
		c, refusal = c.Apply(e)
		wantRefusal(t, "", refusal, events.OK)
	}
	if len(c.Tokens) != 1 || c.Tokens["b"].Name != "console" {
		t.Errorf("%+v", c.Tokens)
	}
}

func TestControlsRefuse(t *testing.T) {
	on := Controls{Killed: true, Kill: &events.KillSet{On: true}}
	for name, c := range map[string]struct {
		key  string
		fact events.Fact
	}{
		"pause under another key":  {"pause.line", &events.PauseSet{What: events.PauseServer, Name: "a", On: true}},
		"another's evacuation":     {"evacuate.a", &events.EvacuateSet{Host: "b", On: true}},
		"config under another key": {"kill", &events.ConfigSet{Text: "line: {}"}},
		"another's archive":        {"rebuild.archive.a", &events.RebuildSet{View: "archive.b"}},
		"another's token":          {"token.a", &events.TokenSet{ID: "b"}},
		"kill under another key":   {"drain.a", &events.KillSet{}},
		"drain of another host":    {"drain.a", &events.DrainSet{Host: "b", On: true}},
		"drain under kill":         {"kill", &events.DrainSet{Host: "a", On: true}},
		"a fact of another bucket": {"kill", requested()},
	} {
		e := events.Event{Seq: 1, Fact: c.fact}
		e.Key = c.key
		after, refusal := on.Apply(e)
		wantRefusal(t, name, refusal, events.Malformed)
		if !after.Killed || len(after.Drained)+len(after.Paused)+len(after.Evacuated) != 0 || after.Config != nil {
			t.Errorf("%s: %+v", name, after)
		}
	}
}
