package api_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// Every command of docs/api.md does, on a running network, what the page says: one shell runs them
// all, in order, and ends at the first that fails.
func TestTheCommandsOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	script.WriteString("set -euo pipefail\n")
	blocks := shellBlock.FindAllStringSubmatch(string(page), -1)
	for _, b := range blocks {
		script.WriteString(b[1])
	}
	n := open(t)
	n.stage.Observer().SetEvents(actors.EventTriggers{Enabled: true, Regions: map[string]string{"arena-end": ""}})
	n.instance("zone-1", 10, actors.Zone{Name: "harbor", MaxPlayers: 10})
	n.service.SetAllocating(api.Allocating{Scenes: api.Scenes{"harbor/main": {Zone: "harbor", Points: map[string]events.Position{"gate": {World: "harbor/main"}}}}})
	ada, bob := n.join("Ada"), n.join("Bob")
	shell := exec.CommandContext(t.Context(), "bash", "-c", script.String())
	shell.Env = append(os.Environ(), "LANDFALL_URL="+n.server.URL, "LANDFALL_TOKEN="+n.token(events.Scopes...))
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{
		"ready", `"phase":"COMPLETED"`, `"phase":"CANCELLED"`, `"trigger":"event"`, `"who":"tester: ada"`, `"key":"drain.backend-2"`, "event: fact", `"killed":false`, `"placement":"zone-1"`, `"entryPoint":"gate"`,
	} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands print no %s", want)
		}
	}
	if t.Failed() {
		t.Logf("%s", out)
	}
	if len(blocks) < 7 || strings.Count(script.String(), "curl ") < 15 {
		t.Errorf("the page has %d blocks of commands", len(blocks))
	}
	if !ada.Until(t.Context(), func(v sim.View) bool { return v.Server != "" }) || bob.Look().Server == "" {
		t.Error("somebody is gone")
	}
}

// Every operation that can be called by name stands in the reference of subjects, with its scope.
func TestTheSubjectsOfTheDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	ops := newService(t).Operations()
	for _, op := range ops {
		if row := "| `landfall.api." + op.Name + "` | `" + string(op.Scope) + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/api.md has no row %s", row)
		}
	}
	if n := strings.Count(string(page), "| `landfall.api."); n != len(ops) {
		t.Errorf("docs/api.md has %d rows of subjects, there are %d", n, len(ops))
	}
}
