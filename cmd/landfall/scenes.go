package main

import (
	"fmt"
	"os"

	"github.com/goccy/go-yaml"

	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// sceneText is one scene of the table: its zone, and x, y, z of the points where players enter it.
type sceneText struct {
	Zone        string               `yaml:"zone"`
	EntryPoints map[string][]float64 `yaml:"entryPoints"`
}

// readScenes reads the table of scenes; nil when network.yml names none.
func readScenes(n *network.Network) (api.Scenes, error) {
	if n.Allocation.Scenes == "" {
		return nil, nil //nolint:nilnil // there is none, and that is well
	}
	file := n.File(n.Allocation.Scenes)
	raw, err := os.ReadFile(file) //nolint:gosec // the operator names it
	if err != nil {
		return nil, n.At(network.CodeMissing, "allocation.scenes", "%v; allowed: a table of scenes, see docs/allocation.md", err)
	}
	var texts map[string]sceneText
	if err := yaml.UnmarshalWithOptions(raw, &texts, yaml.Strict()); err != nil {
		return nil, n.At(network.CodeSyntax, "allocation.scenes", "%s: %s", file, oneLine(err))
	}
	scenes := api.Scenes{}
	for path, text := range texts {
		scene, err := sceneOf(path, text)
		if err != nil {
			return nil, n.At(network.CodeContradiction, "allocation.scenes", "%s: %v", file, err)
		}
		scenes[path] = scene
	}
	return scenes, nil
}

func sceneOf(path string, text sceneText) (api.Scene, error) {
	if !api.IsCanonical(path) {
		return api.Scene{}, fmt.Errorf("scene %q is not canonical; allowed: parts of a-z 0-9 _ - separated by single slashes", path)
	}
	if _, err := events.ParseHostID(text.Zone); err != nil {
		return api.Scene{}, fmt.Errorf("scene %s: zone %q; allowed: 1 to 63 of A-Z a-z 0-9 _ -", path, text.Zone)
	}
	scene := api.Scene{Zone: text.Zone, Points: map[string]events.Position{api.DefaultPoint: {World: path}}}
	for name, at := range text.EntryPoints {
		if len(at) != 3 {
			return api.Scene{}, fmt.Errorf("scene %s: entry point %s has %d numbers; allowed: [x, y, z]", path, name, len(at))
		}
		scene.Points[name] = events.Position{World: path, X: at[0], Y: at[1], Z: at[2]}
	}
	return scene, nil
}
