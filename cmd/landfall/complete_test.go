package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// completed is what the shell would offer, as its script asks for it.
func completed(t *testing.T, words ...string) []string {
	t.Helper()
	o := typed(t, append([]string{"__complete"}, words...)...)
	if o.status != statusOK {
		t.Fatalf("%q: %+v", words, o)
	}
	lines := strings.Split(strings.TrimSpace(o.stdout), "\n")
	return lines[:len(lines)-1] // the last tells the shell whether files come into question
}

func TestCompletion(t *testing.T) {
	dir := t.TempDir()
	if o := typed(t, "init", dir); o.status != statusOK {
		t.Fatalf("%+v", o)
	}
	file := filepath.Join(dir, defaultConfig)
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"up", "--config", file, "--id", ""}, "proxy-1 survival-1 survival-2"},
		{[]string{"up", "--config", filepath.Join(dir, "none.yml"), "--id", ""}, ""},
		{[]string{"config", "check", file, "--id", "s"}, "survival-1 survival-2"},
		{[]string{"drain", "--config", file, "p"}, "proxy-1"},
		{[]string{"drain", "--config", file, "proxy-1", ""}, ""},
		{[]string{"evacuate", "--config", file, ""}, "survival-1 survival-2"},
		{[]string{"pause", "server", "--config", file, ""}, "survival-1 survival-2"},
		{[]string{"tail", "--outcome", ""}, "completed failed cancelled superseded"},
		{[]string{"tail", "--bucket", "tr"}, "transfers"},
		{[]string{"tail", "--type", "secu"}, "security"},
	} {
		if got := strings.Join(completed(t, c.words...), " "); got != c.want {
			t.Errorf("%q: got %q, want %q", c.words, got, c.want)
		}
	}
	if parts := completed(t, "state", ""); !slices.ContainsFunc(parts, func(s string) bool { return strings.HasPrefix(s, "line\t") }) {
		t.Errorf("state: %q", parts)
	}
}

// A hint that names a verb or a flag which is not there would be lost without a word.
func TestHintsFitTheVerbs(t *testing.T) {
	if err := addHints(newRoot(), []hint{{"up", "no-such-flag", hostsOfFile}}); err == nil {
		t.Error("a flag that is not there has a completion")
	}
	for _, h := range hints() {
		if c, rest, err := newRoot().Find(strings.Fields(h.verb)); err != nil || len(rest) > 0 || c.CommandPath() != "landfall "+h.verb {
			t.Errorf("no verb %q: %v", h.verb, err)
		}
	}
}
