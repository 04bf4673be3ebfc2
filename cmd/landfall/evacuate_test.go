package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// settled waits until a condition on what a reader has folded holds.
func settled(t *testing.T, what string, cond func() bool) {
	t.Helper()
	look, late := time.NewTicker(5*time.Millisecond), time.NewTimer(patience)
	defer look.Stop()
	defer late.Stop()
	for !cond() {
		select {
		case <-look.C:
		case <-late.C:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

// visitors are players of a stage, and where its log says they are.
type visitors struct {
	t    *testing.T
	dir  string
	net  *sim.Network
	view *projections.View
	all  []*sim.Client
}

// decide runs a verb that must do what it says.
func (v *visitors) decide(args ...string) {
	v.t.Helper()
	if status, _, errs := landfall(v.t.Context(), append(args, "--store", v.dir)...); status != statusOK {
		v.t.Fatalf("%v: status %d, %s", args, status, errs)
	}
}

// come lets so many players join on a backend, while the other one is drained.
func (v *visitors) come(n int, server, other events.HostID, protocol int) {
	v.t.Helper()
	v.decide("drain", string(other))
	settled(v.t, "one is drained", func() bool { return v.view.Controls().IsDrained(other) })
	for i := range n {
		p := v.net.AddClient(fmt.Sprintf("Guest%d", len(v.all)), protocol)
		if err := p.Join(v.t.Context(), demoProxies[0], events.Token{}); err != nil {
			v.t.Fatal(i, err)
		}
		v.all = append(v.all, p)
		settled(v.t, p.Name+" has a session", func() bool { s, ok := v.view.Session(p.ID); return ok && s.Open && s.Server == server })
	}
	v.decide("drain", string(other), "--off")
}

func (v *visitors) on(server events.HostID) (out []*sim.Client) {
	for _, p := range v.all {
		if s, ok := v.view.Session(p.ID); ok && s.Open && s.Server == server {
			out = append(out, p)
		}
	}
	return out
}

// evacuable is a stage with players on its first backend.
func evacuable(t *testing.T, players int) (dir string, v *visitors) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "demo")
	_, stage, stop := runStage(t, dir)
	t.Cleanup(stop)
	v = &visitors{t: t, dir: dir, net: stage.Net(), view: stage.Observer().View()}
	awaitProxies(t, v.view)
	v.come(players, "backend-1", "backend-2", 767)
	return dir, v
}

// The verb follows an evacuation until the server is empty, and says how it went.
func TestEvacuateEmptiesAServer(t *testing.T) {
	dir, v := evacuable(t, 3)
	there := v.on("backend-1")
	status, out, errs := landfall(t.Context(), "evacuate", "backend-1", "--per-second", "20", "--store", dir, "--who", "ada", "--why", "a test")
	want := fmt.Sprintf("backend-1 is empty: %d moved, 0 left", len(there))
	if status != statusOK || lastLine(out) != want || errs != "" {
		t.Fatalf("status %d, want 0; %q, want %q; %q", status, out, want, errs)
	}
	if first := strings.SplitN(out, "\n", 2)[0]; first != "evacuation of backend-1 is on, 20 a second, by ada: a test (sequence 3 of control)" {
		t.Errorf("the decision: %q", first)
	}
	for _, p := range there {
		if server := p.Look().Server; server != "backend-2" {
			t.Errorf("%s is on %q", p.Name, server)
		}
	}
	status, out, _ = landfall(t.Context(), "evacuate", "backend-1", "--store", dir, "--json")
	rows := jsonLines(t, out)
	if status != statusOK || len(rows) != 2 || rows[1]["kind"] != "end" || rows[1]["total"] != 0.0 {
		t.Errorf("again, with nobody there: status %d, %s", status, out)
	}
}

// Who cannot be moved is named with code and text, and the status tells.
func TestEvacuateNamesWhoStays(t *testing.T) {
	dir, v := evacuable(t, 1)
	v.come(1, "backend-1", "backend-2", 765)
	status, out, errs := landfall(t.Context(), "evacuate", "backend-1", "--per-second", "20", "--store", dir, "--json")
	rows := jsonLines(t, out)
	end := rows[len(rows)-1]
	if status != statusStayed || end["kind"] != "end" || end["refused"] != 1.0 || end["moved"] != 1.0 || errs != "" {
		t.Fatalf("status %d, want %d; %s; %s", status, statusStayed, out, errs)
	}
	named := 0
	for _, r := range rows {
		if r["kind"] == "refused" {
			named++
			if r["code"] != string(events.ClientTooOld) || !strings.Contains(fmt.Sprint(r["text"]), "1.20.5") || r["name"] == "" {
				t.Errorf("refused: %v", r)
			}
		}
	}
	if named != 1 {
		t.Errorf("%d were named, want one:\n%s", named, out)
	}
	status, out, _ = landfall(t.Context(), "evacuate", "backend-1", "--store", dir) // another order asks again
	if want := "backend-1 is not empty: 1 of 1 player could not be moved: Guest1 (CLIENT_TOO_OLD); the evacuation is on until `landfall evacuate backend-1 --off`"; status != statusStayed || lastLine(out) != want ||
		!strings.Contains(out, "refused: Guest1 ("+v.all[1].ID.String()+") CLIENT_TOO_OLD: Your client is too old") {
		t.Errorf("again: status %d, %s", status, out)
	}
}

// Who has nowhere to go waits, and the verb says so until there is room.
func TestEvacuateWaits(t *testing.T) {
	dir, v := evacuable(t, 1)
	v.decide("pause", "line")
	p := &process{name: "evacuate", grown: make(chan struct{}), exited: make(chan struct{})}
	status := 0
	go func() {
		defer close(p.exited)
		status = run(t.Context(), []string{"evacuate", "backend-1", "--per-second", "20", "--store", dir}, p, p)
	}()
	p.says(t, "0 moved, 0 left, 1 waiting, 0 refused, 0 to go")
	ctx, cancel := context.WithCancel(t.Context())
	impatient := &process{name: "another", grown: make(chan struct{}), exited: make(chan struct{})}
	interrupted := make(chan int, 1)
	go func() {
		interrupted <- run(ctx, []string{"evacuate", "backend-1", "--store", dir}, impatient, impatient)
	}()
	impatient.says(t, "1 waiting")
	cancel()
	if status := <-interrupted; status != statusInterrupted {
		t.Errorf("status %d after an interruption", status)
	}
	impatient.says(t, "interrupted: the evacuation of backend-1 goes on until `landfall evacuate backend-1 --off`")
	if len(v.on("backend-1")) != 1 {
		t.Error("who waits is not on the server any more")
	}
	v.decide("pause", "line", "--off")
	p.says(t, "backend-1 is empty: 1 moved, 0 left")
	if <-p.exited; status != statusOK {
		t.Errorf("status %d", status)
	}
}

// What the verb refuses, and what it says when there is nothing to do.
func TestEvacuateTranscript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	_, stage, stop := runStage(t, dir)
	awaitProxies(t, stage.Observer().View())
	var got transcript
	step := func(command string) {
		t.Helper()
		o := typed(t, append(strings.Fields(command), "--store", dir, "--who", "ada", "--why", "reboot")...)
		got.add(command+" --who ada --why reboot", o.stdout, o.stderr, o.status)
	}
	help := typed(t, "evacuate", "--help")
	got.add("evacuate --help", help.stdout, help.stderr, help.status)
	for _, command := range []string{
		"evacuate backend-1", "evacuate backend-1 --no-wait --json", "evacuate backend-1 --off", "evacuate proxy-1", "evacuate backend3",
		"evacuate backend-1 --per-second 0", "evacuate backend-1 backend-2", "evacuate later --force --no-wait", "evacuate later --off",
	} {
		step(command)
	}
	stop()
	step("evacuate backend-2 --per-second 0.5")
	got.matches(t, "evacuate")
}
