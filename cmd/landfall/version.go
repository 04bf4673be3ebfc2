package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// versionInfo is what a host and an operator must know of a build.
type versionInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Built   string `json:"built,omitempty"` // time of the commit
	Dirty   bool   `json:"dirty,omitempty"` // built from files that were not committed
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
	Schema  int    `json:"schema"`      // version of the wire format
	Store   int    `json:"storeFormat"` // layout of the store
}

func newVersion() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Tell which build this is, and which formats it reads",
		Example: `  landfall version --json`,
		Args:    exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			v := buildInfo()
			if asJSON {
				return json.NewEncoder(c.OutOrStdout()).Encode(v)
			}
			_, err := fmt.Fprintln(c.OutOrStdout(), v)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

// buildInfo reads what the Go tool put into the binary.
func buildInfo() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH, Schema: events.SchemaVersion, Store: streams.FormatVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if main := info.Main.Version; main != "" && main != "(devel)" {
		v.Version = main
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.time":
			v.Built = s.Value
		case "vcs.modified":
			v.Dirty = s.Value == "true"
		}
	}
	return v
}

func (v versionInfo) String() string {
	text := "landfall " + v.Version
	if v.Commit != "" {
		text += " (" + v.Commit[:min(12, len(v.Commit))]
		if v.Built != "" {
			text += " of " + v.Built
		}
		if v.Dirty {
			text += ", changed since"
		}
		text += ")"
	}
	return fmt.Sprintf("%s, wire schema %d, store format %d, %s %s/%s", text, v.Schema, v.Store, v.Go, v.OS, v.Arch)
}
