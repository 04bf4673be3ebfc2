package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// A token is shown once, obeyed by the hosts, listed without its secret, and gone when it is revoked.
func TestTokensComeAndGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	r, stage, stop := runStage(t, dir)
	defer stop()
	view := stage.Observer().View()
	verb := func(want int, args ...string) (string, string) {
		t.Helper()
		status, out, errs := landfall(t.Context(), append(args, "--store", dir)...)
		if status != want {
			t.Fatalf("%v: status %d, want %d; %q %q", args, status, want, out, errs)
		}
		info, err := r.conns[0].Info(t.Context(), events.Control)
		if err != nil {
			t.Fatal(err)
		}
		if err := view.WaitFolded(t.Context(), events.Control, info.Last); err != nil {
			t.Fatal(err)
		}
		return out, errs
	}
	text, notes := verb(statusOK, "token", "add", "matchmaker", "--scope", "read,allocate", "--scope", "read", "--who", "ada")
	b, err := events.ParseBearer(strings.TrimSpace(text))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(notes, b.Text()) || !strings.Contains(notes, "may allocate, read until") {
		t.Errorf("said of it: %s", notes)
	}
	f := view.Controls().Tokens[b.ID]
	if f == nil || f.Hash != b.Hash() || f.Name != "matchmaker" || f.Who != "ada" || len(f.Scopes) != 2 {
		t.Fatalf("the log has %+v", f)
	}
	var shown shownToken
	second, _ := verb(statusOK, "token", "add", "console", "--scope", "control", "--expires", "1h", "--json")
	if err := json.Unmarshal([]byte(second), &shown); err != nil || shown.Name != "console" || time.Until(shown.Expires) > time.Hour {
		t.Errorf("%v, %+v", err, shown)
	}
	list, _ := verb(statusOK, "token", "list")
	if lines := strings.Split(strings.TrimSpace(list), "\n"); len(lines) != 2 || !strings.Contains(lines[1], string(b.ID)+"  matchmaker        allocate,read") ||
		strings.Contains(list, shown.Token) {
		t.Errorf("listed:\n%s", list)
	}
	verb(statusOK, "token", "revoke", string(b.ID), "--why", "a test")
	if view.Controls().Tokens[b.ID] != nil {
		t.Error("it is still good")
	}
	if _, errs := verb(statusFailed, "token", "revoke", string(b.ID)); !strings.Contains(errs, "no token "+string(b.ID)) {
		t.Errorf("revoked again: %s", errs)
	}
	if everything, _ := verb(statusOK, "tail", "--bucket", "control", "--json"); strings.Contains(everything, b.Text()) || !strings.Contains(everything, b.Hash()) {
		t.Errorf("the log: %s", everything)
	}
}

func TestTokensAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no scope":      {[]string{"add", "x"}, "--scope is missing: want one or more of read, transfer, allocate, control"},
		"unknown scope": {[]string{"add", "x", "--scope", "all"}, `--scope: scope "all"`},
		"name":          {[]string{"add", "a b", "--scope", "read"}, `token name "a b"`},
		"for ever":      {[]string{"add", "x", "--scope", "read", "--expires", "200000h"}, "--expires"},
		"for nothing":   {[]string{"add", "x", "--scope", "read", "--expires", "1s"}, "--expires"},
		"no such id":    {[]string{"revoke", "matchmaker"}, `token id "matchmaker"`},
		"no name":       {[]string{"add", "--scope", "read"}, "want whose it is"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, _, errs := landfall(t.Context(), append([]string{"token"}, c.args...)...)
			if status != statusUsage || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 {
				t.Errorf("status %d, %q, want one line with %q", status, errs, c.says)
			}
		})
	}
}
