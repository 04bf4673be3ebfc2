package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every verb says in its help what it does and shows a command to begin with: its own, or that
// of the verb it belongs to.
func TestEveryVerbHasHelpWithAnExample(t *testing.T) {
	var walk func(c *cobra.Command, example bool)
	walk = func(c *cobra.Command, example bool) {
		example = example || strings.Contains(c.Example, "landfall "+strings.TrimPrefix(c.CommandPath(), "landfall "))
		if c.Short == "" || c.Long == "" && !c.HasParent() {
			t.Errorf("%s says nothing of itself", c.CommandPath())
		}
		if !c.HasSubCommands() && !example {
			t.Errorf("%s has no example", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub, example)
		}
	}
	for _, c := range newRoot().Commands() {
		walk(c, false)
	}
}

// A store that is down is one line and status 1 (2 of diff, as diff(1) has it), at once, whichever
// verb meets it; nothing is printed that could be taken for an answer.
func TestEveryReadingVerbSaysThatTheStoreIsDown(t *testing.T) {
	id := "0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c"
	for _, args := range [][]string{
		{"tail"}, {"tail", "--follow"}, {"state", "fleet"}, {"state", "line", "--as-of", "10m"}, {"diff", "10m", "now"}, {"replay", "player", "steve"}, {"replay", "token", id + "-1"},
		{"explain", id}, {"verify"}, {"export", t.TempDir() + "/x"}, {"top", "--once"}, {"top", "--once", "--json"},
	} {
		o := typed(t, append(args, "--store", "nats://127.0.0.1:1")...)
		want := statusFailed
		if args[0] == "diff" {
			want = statusTrouble
		}
		if o.status != want || o.stdout != "" || o.stderr != "landfall: connect to store nats://127.0.0.1:1: nobody listens there: is whoever carries the store up?\n" {
			t.Errorf("%q: %+v", args, o)
		}
	}
}

// An empty log is an answer as good as any: no verb fails on it, but for those that look for
// something that is not there.
func TestEveryReadingVerbOnAnEmptyLog(t *testing.T) {
	log := newTape(t)
	id := "0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c"
	for _, args := range [][]string{
		{"tail"}, {"tail", "--json"}, {"state", "fleet"}, {"state", "line"}, {"state", "sessions"}, {"state", "transfers"}, {"state", "control"},
		{"state", "transfers", "--json"}, {"diff", "10m", "now"},
	} {
		if o := onTape(t, log, withKey(), args...); o.status != statusOK {
			t.Errorf("%q: %+v", args, o)
		}
	}
	for _, args := range [][]string{{"replay", "player", "steve"}, {"replay", "transfer", id}, {"explain", id}} {
		if o := onTape(t, log, withKey(), args...); o.status != statusFailed || o.stdout != "" || o.stderr == "" {
			t.Errorf("%q: %+v", args, o)
		}
	}
	if text, _, _, status := verified(t, log, withKey()); status != statusOK || !strings.Contains(text, "nothing is wrong") {
		t.Errorf("verify: status %d\n%s", status, text)
	}
}
