package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

// The unit starts and checks a host by command lines that there are, and leaves a host down whose id another one has.
func TestTheSystemdUnitKnowsTheProgram(t *testing.T) {
	text, err := os.ReadFile("../../docs/systemd/landfall@.service")
	if err != nil {
		t.Fatal(err)
	}
	commands := 0
	for line := range strings.Lines(string(text)) {
		_, command, ours := strings.Cut(strings.TrimSpace(line), "=/usr/bin/landfall ")
		if !ours {
			continue
		}
		commands++
		c, rest, err := newRoot().Find(strings.Fields(command))
		if err == nil {
			err = c.ParseFlags(rest)
		}
		if err == nil {
			err = c.ValidateArgs(c.Flags().Args())
		}
		if err != nil || !c.HasParent() {
			t.Errorf("%s: %v", line, err)
		}
	}
	if commands != 2 {
		t.Errorf("%d command lines, want up and config check", commands)
	}
	down := "\nRestartPreventExitStatus=" + strconv.Itoa(statusUsage) + " " + strconv.Itoa(statusDuplicateID) + "\n"
	if !strings.Contains(string(text), down) {
		t.Errorf("no line %q", down)
	}
}
