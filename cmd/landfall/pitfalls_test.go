package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePitfallsAreTested: every test, benchmark and case that docs/pitfalls.md names is there,
// in the package it names.
func TestThePitfallsAreTested(t *testing.T) {
	page, err := os.ReadFile("../../docs/pitfalls.md")
	if err != nil {
		t.Fatal(err)
	}
	suite := sourceOf(t, "streams/streamtest", ".go")
	rows := 0
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) != 6 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "P") {
			continue
		}
		rows++
		for part := range strings.SplitSeq(cells[4], ";") {
			folder, names := regexp.MustCompile("`([a-z/]+)`: ").FindStringSubmatch(part), regexp.MustCompile(`\b(?:Test|Benchmark)\w+`).FindAllString(part, -1)
			if len(names) > 0 && folder == nil {
				t.Errorf("%s: %q names no package", cells[1], part)
				continue
			}
			for _, name := range names {
				if !strings.Contains(sourceOf(t, folder[1], "_test.go"), "func "+name+"(") {
					t.Errorf("%s: there is no %s in %s", cells[1], name, folder[1])
				}
			}
			for _, c := range regexp.MustCompile(`"[^"]+"`).FindAllString(part, -1) {
				if !strings.Contains(suite, "{"+c+", ") {
					t.Errorf("%s: the conformance suite has no case %s", cells[1], c)
				}
			}
		}
	}
	if rows == 0 {
		t.Error("docs/pitfalls.md has no table")
	}
}

// sourceOf joins the files of a package.
func sourceOf(t *testing.T, folder, ending string) string {
	t.Helper()
	var all strings.Builder
	root := os.DirFS(filepath.Join("..", ".."))
	files, err := fs.Glob(root, folder+"/*"+ending)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: no files, %v", folder, err)
	}
	for _, f := range files {
		text, err := fs.ReadFile(root, f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}
