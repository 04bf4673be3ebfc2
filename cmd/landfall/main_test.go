package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestErrorsAreOneLine(t *testing.T) {
	for _, c := range []struct {
		err    error
		text   string
		status int
	}{
		{nil, "", statusOK},
		{errors.New("open store: gone"), "open store: gone", statusFailed},
		{errors.Join(errors.New("one"), errors.New("two")), "one; two", statusFailed},
		{exitWith(statusIncomplete, nil), "", statusIncomplete},
		{fmt.Errorf("tail: %w", usageError("--limit %d", -1)), "tail: --limit -1", statusUsage},
		{errors.Join(exitWith(statusInconsistent, nil), nil), "", statusInconsistent},
		{fmt.Errorf("read: %w", context.Canceled), "", statusInterrupted},
	} {
		if got := oneLine(c.err); got != c.text {
			t.Errorf("%v: got %q, want %q", c.err, got, c.text)
		}
		if got := statusOf(c.err); got != c.status {
			t.Errorf("%v: got status %d, want %d", c.err, got, c.status)
		}
	}
}

func TestAWrongCommandLine(t *testing.T) {
	var got transcript
	for _, args := range [][]string{
		{"tial"}, {"tail", "now"}, {"tail", "--loud"}, {"tail", "--limit", "many"},
		{"replay", "tokens", "x"}, {"replay", "token"}, {"replay", "player", "a", "b"}, {"replay", "transfer", "42"},
		{"version", "1"},
	} {
		o := typed(t, args...)
		if o.status != statusUsage {
			t.Errorf("%q: status %d", args, o.status)
		}
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "usage")
}

func TestHelp(t *testing.T) {
	var got transcript
	for _, args := range [][]string{{"tail", "--help"}, {"replay", "--help"}, {"replay", "token", "--help"}, {"replay"}, {"version", "--help"}} {
		o := typed(t, args...)
		got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
	}
	got.matches(t, "help")
}

func TestVersion(t *testing.T) {
	v := versionInfo{Version: "v1.2.3", Commit: "0123456789abcdef", Built: "2026-01-31T15:04:05Z", Dirty: true, Go: "go1.26", OS: "linux", Arch: "amd64", Schema: 1, Store: 1}
	if got := v.String(); got != "landfall v1.2.3 (0123456789ab of 2026-01-31T15:04:05Z, changed since), wire schema 1, store format 1, go1.26 linux/amd64" {
		t.Error(got)
	}
	if o := typed(t, "version"); o.status != statusOK || !strings.HasPrefix(o.stdout, "landfall ") || !strings.Contains(o.stdout, "wire schema 1, store format 1") {
		t.Errorf("%+v", o)
	}
	rows := jsonLines(t, typed(t, "version", "--json").stdout)
	for _, field := range []string{"version", "go", "os", "arch", "schema", "storeFormat"} {
		if len(rows) != 1 || rows[0][field] == nil {
			t.Errorf("no %s in %v", field, rows)
		}
	}
}
