package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/landfall/landfall"
	nats   = "github.com/nats-io"
)

// layers says what the packages of each top folder may depend on, directly or through others:
//
//	events <- projections <- actors <- cmd          streams -> events, NATS          only cmd imports streams
//
// A new top folder is red until it has a line here.
var layers = map[string][]string{
	"events":      {},
	"projections": {"events"},
	"actors":      {"events", "projections"},
	"streams":     {"events", nats},
	"docs":        {},
	"cmd":         {"events", "projections", "actors", "streams", "docs", nats},
}

// inTests may be imported by tests of the folder beside what its layer allows.
var inTests = map[string][]string{
	"events":      {},
	"projections": {"streams/streamtest"},
	"actors":      {"streams/streamtest"},
	"streams":     {nats},
	"docs":        {},
	"cmd":         {"streams", nats},
}

// listed is what `go list -json` tells about a package.
type listed struct {
	ImportPath                               string
	Imports, Deps, TestImports, XTestImports []string
}

func TestThePackagesPointOneWay(t *testing.T) {
	packages := goList(t)
	if len(packages) < len(layers) {
		t.Fatalf("go list tells %d packages, fewer than there are layers", len(packages))
	}
	for _, p := range packages {
		for _, arrow := range wrongArrows(p) {
			t.Error(arrow)
		}
	}
}

func goList(t *testing.T) []listed {
	t.Helper()
	var stderr bytes.Buffer
	list := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps,TestImports,XTestImports", module+"/...")
	list.Stderr = &stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var packages []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatalf("go list: %v", err)
		}
		packages = append(packages, p)
	}
}

// wrongArrows names each dependency that the direction forbids. Deps are all dependencies, so that an arrow
// cannot hide behind a third package.
func wrongArrows(p listed) []string {
	from := layerOf(p.ImportPath)
	allowed, known := layers[from]
	if !known {
		return []string{fmt.Sprintf("%s: its top folder is not in the table of layers", p.ImportPath)}
	}
	var wrong []string
	for _, to := range p.Deps {
		if !reaches(from, to, allowed) {
			wrong = append(wrong, fmt.Sprintf("%s depends on %s", p.ImportPath, to))
		}
	}
	if from == "cmd" {
		for _, to := range p.Imports {
			if strings.HasPrefix(to, nats) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: only streams knows NATS", p.ImportPath, to))
			}
		}
	}
	for _, to := range slices.Concat(p.TestImports, p.XTestImports) {
		if !reaches(from, to, slices.Concat(allowed, inTests[from])) {
			wrong = append(wrong, fmt.Sprintf("a test of %s imports %s", p.ImportPath, to))
		}
	}
	return wrong
}

// reaches tells whether a package of the folder may depend on the other: all do on foreign packages but NATS.
func reaches(from, to string, allowed []string) bool {
	inner, ours := strings.CutPrefix(to, module+"/")
	if !ours && !strings.HasPrefix(to, nats) {
		return true
	}
	if ours && layerOf(to) == from {
		return true
	}
	for _, a := range allowed {
		if a == nats && strings.HasPrefix(to, nats) || ours && (inner == a || strings.HasPrefix(inner, a+"/")) {
			return true
		}
	}
	return false
}

// layerOf is the top folder of a package.
func layerOf(path string) string {
	inner, _, _ := strings.Cut(strings.TrimPrefix(path, module+"/"), "/")
	return inner
}

// TestAWrongArrowIsSeen keeps the test above from passing because it looks at nothing.
func TestAWrongArrowIsSeen(t *testing.T) {
	for _, c := range []struct {
		name string
		p    listed
		want int
	}{
		{"down is right", listed{ImportPath: module + "/actors/edge", Deps: []string{module + "/actors", module + "/events", "net"}}, 0},
		{"up", listed{ImportPath: module + "/events", Deps: []string{module + "/projections"}}, 1},
		{"sideways", listed{ImportPath: module + "/actors", Deps: []string{module + "/streams"}}, 1},
		{"NATS through a third package", listed{ImportPath: module + "/projections", Deps: []string{nats + "/nats.go"}}, 1},
		{"NATS in a verb", listed{ImportPath: module + "/cmd/landfall", Imports: []string{nats + "/nats.go"}}, 1},
		{"the test log in a test", listed{ImportPath: module + "/actors", TestImports: []string{module + "/streams/streamtest"}}, 0},
		{"the real log in a test", listed{ImportPath: module + "/actors", XTestImports: []string{module + "/streams/embedded"}}, 1},
		{"a new folder", listed{ImportPath: module + "/util"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wrongArrows(c.p); len(got) != c.want {
				t.Errorf("got %q, want %d", got, c.want)
			}
		})
	}
}
