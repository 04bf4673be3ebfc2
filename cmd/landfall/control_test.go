package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// A decision is written while the network runs and is obeyed; its undo too.
func TestOperatorsDecideOnARunningNetwork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r, stage, stop := runStage(t, dir)
	defer stop()
	view := stage.Observer().View()

	decide := func(args ...string) {
		t.Helper()
		status, out, errs := landfall(t.Context(), append(args, "--store", dir, "--who", "ada", "--why", "a test")...)
		if status != statusOK || !strings.Contains(out, "ada") {
			t.Fatalf("%v: status %d, %q, %q", args, status, out, errs)
		}
		info, err := r.conns[0].Info(t.Context(), events.Control)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.WaitFolded(t.Context(), events.Control, info.Last); err != nil {
			t.Fatal(err)
		}
	}
	decide("kill", "on")
	if !view.Controls().Killed {
		t.Error("the network does not know that transfers are off")
	}
	decide("kill", "off")
	decide("drain", "backend-2")
	if c := view.Controls(); c.Killed || !c.IsDrained("backend-2") {
		t.Errorf("after kill off and drain: %+v", c)
	}
	decide("drain", "backend-2", "--off")
	if view.Controls().IsDrained("backend-2") {
		t.Error("backend-2 is still drained")
	}
	if _, out, _ := landfall(t.Context(), "tail", "--store", dir, "--bucket", "control"); strings.Count(out, "ada") != 4 {
		t.Errorf("the log of decisions:\n%s", out)
	}
}

func TestDecisionsAreRefused(t *testing.T) {
	t.Setenv(envSecret, "")
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"neither on nor off": {[]string{"kill", "maybe"}, statusUsage, "want on or off"},
		"no host":            {[]string{"drain", "a b"}, statusUsage, `host id "a b"`},
		"no store":           {[]string{"kill", "on"}, statusFailed, "there is no store here"},
		"no secret":          {[]string{"kill", "on", "--store", "nats://127.0.0.1:1"}, statusFailed, "must be signed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, _, errs := landfall(t.Context(), c.args...)
			if status != c.status || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d, want %d; %q, want one line with %q", status, c.status, errs, c.says)
			}
		})
	}
}
