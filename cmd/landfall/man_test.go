package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every verb that the help shows has a page, which every one of its options is on.
func TestManPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man1")
	if o := typed(t, "man", dir); o.status != statusOK || o.stdout+o.stderr != "" {
		t.Fatalf("%+v", o)
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		pages++
		text, err := os.ReadFile(filepath.Join(dir, manName(c)+".1"))
		if err != nil {
			t.Error(err)
		}
		for _, section := range []string{".TH \"LANDFALL", ".SH NAME\n", ".SH SYNOPSIS\n", ".SH DESCRIPTION\n", ".SH OPTIONS\n", ".SH SEE ALSO\n"} {
			if !strings.Contains(string(text), section) {
				t.Errorf("%s.1 has no %q", manName(c), section)
			}
		}
		for _, sub := range shownVerbs(c) {
			walk(sub)
		}
	}
	walk(newRoot())
	up, err := os.ReadFile(filepath.Join(dir, "landfall-up.1"))
	if err != nil {
		t.Fatal(err)
	}
	if !containsAll(string(up), []string{"hosts.<id>", `\-\-config string`, "(default network.yml)", "78 another process has this id", `landfall up \-\-id survival\-1`}) {
		t.Errorf("landfall-up.1:\n%s", up)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != pages || pages < len(verbs()) {
		t.Errorf("%d files for %d pages: %v", len(files), pages, err)
	}
}

func TestManSaysWhyItCannotWrite(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := typed(t, "man", file); o.status != statusFailed || !strings.HasPrefix(o.stderr, "landfall: man: ") {
		t.Errorf("%+v", o)
	}
}

func TestRoffTakesNoTextForARequest(t *testing.T) {
	for text, want := range map[string]string{
		".SH x":         `\&.SH x`,
		"a\n'b\n.c":     "a\n\\&'b\n\\&.c",
		`C:\n --x`:      `C:\en \-\-x`,
		"hosts.<id>, _": "hosts.<id>, _",
	} {
		if got := roff(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
