package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThePagesNameTests: every test, benchmark and case that these pages name is there, in the
// package they name.
func TestThePagesNameTests(t *testing.T) {
	for page, row := range map[string]*regexp.Regexp{
		"pitfalls.md":   regexp.MustCompile(`^\| P\d+ \|`),
		"guarantees.md": regexp.MustCompile(`^\| [TSDO]\d+ \|`),
		"operations.md": regexp.MustCompile(`^\| F\d+ \|`),
	} {
		t.Run(page, func(t *testing.T) { namesTests(t, page, row) })
	}
}

// namesTests looks at the last cell of each row.
func namesTests(t *testing.T, page string, row *regexp.Regexp) {
	text, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	suite := sourceOf(t, "streams/streamtest", ".go")
	rows := 0
	for line := range strings.Lines(string(text)) {
		if !row.MatchString(line) {
			continue
		}
		rows++
		cells := strings.Split(line, "|")
		id, shown := cells[1], cells[len(cells)-2]
		named := 0
		for part := range strings.SplitSeq(shown, ";") {
			folder, names := regexp.MustCompile("`([a-z/]+)`: ").FindStringSubmatch(part), regexp.MustCompile(`\b(?:Test|Benchmark)\w+`).FindAllString(part, -1)
			if len(names) > 0 && folder == nil {
				t.Errorf("%s: %q names no package", id, part)
				continue
			}
			for _, name := range names {
				if !strings.Contains(sourceOf(t, folder[1], "_test.go"), "func "+name+"(") {
					t.Errorf("%s: there is no %s in %s", id, name, folder[1])
				}
			}
			cases := regexp.MustCompile(`"[^"]+"`).FindAllString(part, -1)
			for _, c := range cases {
				if !strings.Contains(suite, "{"+c+", ") {
					t.Errorf("%s: the conformance suite has no case %s", id, c)
				}
			}
			named += len(names) + len(cases)
		}
		if named == 0 {
			t.Errorf("%s: names no test", id)
		}
	}
	if rows == 0 {
		t.Errorf("docs/%s has no table", page)
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
