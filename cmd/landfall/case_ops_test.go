package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever a start fails at, the true reason is the one line on stderr, with what helps, and the
// exit status is a documented one: no stack trace covers it.
func TestCase106_AFailedStartSaysWhy(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	busy := taken(t).Addr().String()
	all := oneHost("127.0.0.1:1")
	for _, c := range []struct {
		name, config string
		status       int
		says         []string
	}{
		{"a port that is taken", strings.Replace(all, "127.0.0.1:0", busy, 1), statusFailed, []string{busy, "address already in use"}},
		{"a file that is wrong", strings.Replace(all, "edges:", "edgse:", 1), statusFailed, []string{"network.yml:6", "edges"}},
		{"a store that is a file", all, statusFailed, []string{"landfall-data"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.config)
			if strings.Contains(c.name, "is a file") {
				write(t, filepath.Join(s.dir, defaultDataDir), "not a directory")
			}
			p := exec.CommandContext(t.Context(), program, "up", "--id", "all")
			p.Dir, p.Env = s.dir, append(os.Environ(), asProgram+"=1", "RTP_NET_SECRET="+encoded(realSecret))
			var errs strings.Builder
			p.Stderr = &errs
			_ = p.Run() // its status is looked at
			var last []string
			for line := range strings.Lines(errs.String()) {
				if strings.HasPrefix(line, "landfall: ") {
					last = append(last, line)
				}
			}
			if p.ProcessState.ExitCode() != c.status || len(last) != 1 || !containsAll(last[0], c.says) || strings.Contains(errs.String(), "goroutine ") {
				t.Errorf("status %d, want %d and one line with %q:\n%s", p.ProcessState.ExitCode(), c.status, c.says, errs.String())
			}
		})
	}
}

// What a flag means does not depend on where it stands, and a flag that nobody knows is an error
// of the command line, never another one's value.
func TestCase107_FlagsInAnyOrder(t *testing.T) {
	dir, s := filled(t, "300")
	id := s.Example.Transfer.String()
	var first outcome
	for i, args := range [][]string{
		{"replay", "transfer", id, "--store", dir, "--json"},
		{"replay", "transfer", "--json", "--store=" + dir, id},
		{"replay", "--", "transfer"},
		{"replay", "transfer", "--json", "--store", dir, "--", id},
	} {
		o := typed(t, args...)
		switch {
		case i == 2:
			if o.status != statusUsage && o.status != statusFailed {
				t.Errorf("%q: %+v", args, o)
			}
		case i == 0:
			first = o
			if o.status != statusOK || !json.Valid([]byte(lastLine(o.stdout))) {
				t.Fatalf("%q: %+v", args, o)
			}
		case o.stdout != first.stdout || o.status != first.status:
			t.Errorf("%q: %+v\nwant %+v", args, o, first)
		}
	}
	for _, args := range [][]string{
		{"replay", "transfer", id, "--store", dir, "--jsom"}, {"--json", "version"}, {"tail", "--limit", "--json", "--store", dir}, {"replay", "transfer", "--", "--json"},
	} {
		o := typed(t, args...)
		if o.status != statusUsage || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%q: %+v; want status %d and one line", args, o, statusUsage)
		}
	}
}
