package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTestsSleepOnlyInABubble: in a testing/synctest bubble time.Sleep costs nothing and races with nothing;
// elsewhere it makes a test slow, flaky or both. The linter cannot tell the two apart.
func TestTestsSleepOnlyInABubble(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") || d.Name() == "house_test.go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		seen++
		if strings.Contains(string(text), "time.Sleep(") && !strings.Contains(string(text), `"testing/synctest"`) {
			t.Errorf("%s sleeps outside a testing/synctest bubble: wait for the event", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen == 0 {
		t.Error("no test files found")
	}
}
