package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// A decision is written while the network runs and is obeyed; its undo too. Who is not known
// is refused, with the name that was meant.
func TestOperatorsDecideOnARunningNetwork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r, stage, stop := runStage(t, dir)
	defer stop()
	view := stage.Observer().View()
	awaitProxies(t, view)

	var got transcript
	for _, step := range []struct {
		command string
		obeyed  func(c projections.Controls) bool
	}{
		{"kill on", func(c projections.Controls) bool { return c.Killed }},
		{"kill off", func(c projections.Controls) bool { return !c.Killed }},
		{"drain backend-2", func(c projections.Controls) bool { return c.IsDrained("backend-2") }},
		{"drain backend-2 --off", func(c projections.Controls) bool { return !c.IsDrained("backend-2") }},
		{"drain backend2", nil},
		{"drain proxy-1 --json", func(c projections.Controls) bool { return c.IsDrained("proxy-1") }},
		{"drain proxy-2", func(c projections.Controls) bool { return c.IsDrained("proxy-2") }},
		{"drain proxy-1 --off", func(c projections.Controls) bool { return !c.IsDrained("proxy-1") }},
		{"drain proxy-2 --off", func(c projections.Controls) bool { return !c.IsDrained("proxy-2") }},
		{"pause line", projections.Controls.LinePaused},
		{"pause line --off", func(c projections.Controls) bool { return !c.LinePaused() }},
		{"pause server backend-1", func(c projections.Controls) bool { return c.IsPaused("backend-1", "x") }},
		{"pause server backend-1 --off", func(c projections.Controls) bool { return len(c.Paused) == 0 }},
		{"pause server proxy-1", nil},
		{"pause region region-of-backend-2", func(c projections.Controls) bool { return c.IsPaused("x", "region-of-backend-2") }},
		{"pause region region-of-backend-3", nil},
		{"pause region nether --force", func(c projections.Controls) bool { return c.IsPaused("x", "nether") }},
		{"pause region nether --off", func(c projections.Controls) bool { return !c.IsPaused("x", "nether") }},
		{"pause region nether --off", nil},
	} {
		args := append(strings.Fields(step.command), "--store", dir, "--who", "ada", "--why", "a test")
		status, out, errs := landfall(t.Context(), args...)
		got.add(step.command+" --who ada --why \"a test\"", out, errs, status)
		if (status == statusOK) != (step.obeyed != nil) {
			t.Errorf("%s: status %d, %q, %q", step.command, status, out, errs)
		}
		info, err := r.conns[0].Info(t.Context(), events.Control)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.WaitFolded(t.Context(), events.Control, info.Last); err != nil {
			t.Fatal(err)
		}
		if step.obeyed != nil && !step.obeyed(view.Controls()) {
			t.Errorf("after %s the network holds %+v", step.command, view.Controls())
		}
	}
	got.matches(t, "control")
	if _, out, _ := landfall(t.Context(), "tail", "--store", dir, "--bucket", "control"); strings.Count(out, "ada") != 15 {
		t.Errorf("the log of decisions:\n%s", out)
	}
}

// awaitProxies waits until a reader has seen every proxy of the demo.
func awaitProxies(t *testing.T, v *projections.View) {
	t.Helper()
	settled(t, "every proxy beats", func() bool { return len(v.Fleet().Proxies) == len(demoProxies) })
}

func TestDecisionsAreRefused(t *testing.T) {
	t.Setenv(envSecret, "")
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"neither on nor off": {[]string{"kill", "maybe"}, statusUsage, "want on or off"},
		"paused nothing":     {[]string{"pause"}, statusUsage, ""},
		"paused the network": {[]string{"pause", "network"}, statusUsage, `there is no verb "network"`},
		"no name":            {[]string{"pause", "region", "a.b"}, statusUsage, `host id "a.b"`},
		"no server named":    {[]string{"pause", "server"}, statusUsage, "want the id of a server"},
		"no host":            {[]string{"drain", "a b"}, statusUsage, `host id "a b"`},
		"no store":           {[]string{"kill", "on"}, statusFailed, "there is no store here"},
		"no secret":          {[]string{"kill", "on", "--store", "nats://127.0.0.1:1"}, statusFailed, "must be signed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, _, errs := landfall(t.Context(), c.args...)
			if status != c.status || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != min(len(c.says), 1) {
				t.Errorf("status %d, want %d; %q, want one line with %q", status, c.status, errs, c.says)
			}
		})
	}
}
