package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/streams/embedded"
)

// asProgram makes the test binary be the program itself: a process of its own that a test
// can kill.
const asProgram = "LANDFALL_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		main()
	}
	os.Exit(m.Run())
}

// landfall runs a verb in this process.
func landfall(ctx context.Context, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	status = run(ctx, args, &out, &errs)
	return status, out.String(), errs.String()
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func demoSummary(t *testing.T, stdout string) summary {
	t.Helper()
	var s summary
	if err := json.Unmarshal([]byte(lastLine(stdout)), &s); err != nil {
		t.Fatalf("the last line is no summary: %v\n%s", err, lastLine(stdout))
	}
	return s
}

func TestDemoMovesPlayersAndCanBeReplayed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	status, out, errs := landfall(t.Context(), "demo", "--dir", dir, "--players", "6", "--rate", "20", "--duration", "1s", "--json")
	s := demoSummary(t, out)
	if status != statusOK || s.Completed < 10 || s.Completed != s.Transfers || s.Open+s.Lost+s.Doubled+s.Failed != 0 || s.Dir != dir {
		t.Fatalf("status %d, %+v\n%s", status, s, errs)
	}
	if info, err := os.Stat(filepath.Join(dir, demoSecretFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("secret: %v, %v; want mode 0600", info, err)
	}
	status, out, errs = landfall(t.Context(), "replay", "transfer", s.Example, "--store", dir)
	if status != statusOK || !strings.Contains(out, "completed") {
		t.Errorf("replay: status %d\n%s%s", status, out, errs)
	}
}

func TestDemoOutlivesAProxy(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	status, out, errs := landfall(t.Context(), "demo", "--dir", dir, "--players", "30", "--rate", "100", "--duration", "2s", "--kill-proxy", "--durability", "grouped", "--json")
	s := demoSummary(t, out)
	if status != statusOK || s.Open+s.Lost+s.Doubled != 0 || s.Completed < 50 {
		t.Fatalf("status %d, %+v\n%s", status, s, errs)
	}
}

// The process that carries the store is killed in the middle of a run: every fact that was
// seen is still there, and the next run ends what was open.
func TestDemoIsKilledAndResumed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, "demo", t.TempDir(), []string{asProgram + "=1"}, func(p *process) { p.kill() }, program,
		"demo", "--dir", dir, "--players", "20", "--rate", "100", "--duration", "1m", "--json")
	p.wait(t, "60 facts", func() bool { return len(p.lines) >= 60 })
	p.kill()

	seen := demoFacts(t, p.lines)
	status, out, errs := landfall(t.Context(), "tail", "--store", dir, "--json")
	if status != statusOK {
		t.Fatalf("tail: status %d: %s", status, errs)
	}
	kept := map[uint64]string{}
	for line := range strings.Lines(out) {
		var row struct {
			Seq         uint64
			Type        string
			Correlation string
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		kept[row.Seq] = shortType(row.Type) + " " + row.Correlation
	}
	for seq, fact := range seen {
		if kept[seq] != fact {
			t.Errorf("sequence %d was %q, the log holds %q", seq, fact, kept[seq])
		}
	}

	status, out, errs = landfall(t.Context(), "demo", "--dir", dir, "--players", "20", "--rate", "50", "--duration", "1s", "--json")
	if s := demoSummary(t, out); status != statusOK || s.Open+s.Lost+s.Doubled != 0 || s.Facts <= len(seen) {
		t.Fatalf("resumed: status %d, %+v\n%s", status, s, errs)
	}
}

// demoFacts reads what a demo printed: sequence to phase and transfer.
func demoFacts(t *testing.T, lines []string) map[uint64]string {
	t.Helper()
	out := map[uint64]string{}
	for _, line := range lines {
		var l demoLine
		if json.Unmarshal([]byte(line), &l) == nil && l.Seq > 0 { // the last line may be half a line
			out[l.Seq] = l.Phase + " " + l.ID.String()
		}
	}
	return out
}

func TestDemoStopsCleanly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	ctx, interrupt := context.WithCancel(t.Context())
	out := &interrupter{after: 20, interrupt: interrupt}
	var errs bytes.Buffer
	status := run(ctx, []string{"demo", "--dir", dir, "--players", "10", "--rate", "50", "--duration", "1m", "--json"}, out, &errs)
	if s := demoSummary(t, out.String()); status != statusOK || s.Lost+s.Doubled != 0 {
		t.Errorf("status %d, %+v\n%s", status, s, errs.String())
	}
}

// interrupter is a screen whose watcher presses Ctrl-C after some lines.
type interrupter struct {
	bytes.Buffer
	after     int
	interrupt func()
}

func (i *interrupter) Write(b []byte) (int, error) {
	if i.after--; i.after == 0 {
		i.interrupt()
	}
	return i.Buffer.Write(b)
}

func TestDemoRefuses(t *testing.T) {
	made := t.TempDir()
	srv, err := embedded.Open(t.Context(), embedded.Config{Dir: made, Network: "other", Creator: createdByUp})
	if err != nil {
		t.Fatal(err)
	}
	if err := srv.Close(); err != nil {
		t.Fatal(err)
	}
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, demoSecretFile), []byte("c2hvcnQ="), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"a directory made by up": {[]string{"--dir", made}, statusFailed, "give the demo another --dir"},
		"a broken secret":        {[]string{"--dir", broken}, statusFailed, "is not Base64 of 32 bytes"},
		"no players":             {[]string{"--players", "0"}, statusUsage, "want 1 to 2000"},
		"no rate":                {[]string{"--rate", "0"}, statusUsage, "requests a second"},
		"no time":                {[]string{"--duration", "0s"}, statusUsage, "want 100ms"},
		"one proxy":              {[]string{"--proxies", "1"}, statusUsage, "want 2 to 20"},
		"too many backends":      {[]string{"--backends", "1001"}, statusUsage, "want 2 to 1000"},
		"a short measure":        {[]string{"--measure", "10ms"}, statusUsage, "want 1s to 10m"},
		"room for all":           {[]string{"--capacity", "12", "--players", "12"}, statusUsage, "--capacity 12: want 1 to 11"},
		"two stories":            {[]string{"--capacity", "3", "--kill-proxy"}, statusUsage, "leave out --fill"},
		"no pace":                {[]string{"--capacity", "3", "--pace", "0"}, statusUsage, "want 1 to 1000 places"},
		"no durability":          {[]string{"--durability", "soon"}, statusUsage, "want always, grouped or lazy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			status, out, errs := landfall(t.Context(), append([]string{"demo"}, c.args...)...)
			if status != c.status || !strings.Contains(errs, c.says) || strings.Count(errs, "\n") != 1 || out != "" {
				t.Errorf("status %d, want %d; %q, want one line with %q; printed %q", status, c.status, errs, c.says, out)
			}
		})
	}
}

// TestDemoOfTheLine: all ask at once, few have room, and a server returns.
func TestDemoOfTheLine(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	status, out, errs := landfall(t.Context(), "demo", "--dir", dir, "--players", "24", "--capacity", "4", "--pace", "20", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var s rushSummary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &s); err != nil {
		t.Fatalf("status %d, %v: %q, %q", status, err, out, errs)
	}
	if status != statusOK || s.First != 4 || s.Waited != 20 || s.Arrived != 24 || s.Told != 20 || s.Lost+s.Doubled != 0 || s.Overtaken > 2*20 {
		t.Errorf("status %d, %+v, %q", status, s, errs)
	}
	if text := s.String(); !strings.Contains(text, "24 players asked at once, with room for 4: 4 arrived, 20 waited in line, 20 of them read their position") {
		t.Errorf("it says %s", text)
	}
}

// TestDemoMeasuresItsRoles: what each costs, and that its hosts had the time to beat.
func TestDemoMeasuresItsRoles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	status, out, errs := landfall(t.Context(), "demo", "--dir", dir, "--backends", "5", "--proxies", "3", "--measure", "1s", "--players", "4", "--duration", "200ms", "--json")
	s := demoSummary(t, out)
	if status != statusOK || s.Lost+s.Doubled != 0 || len(s.Roles) != 3 {
		t.Fatalf("status %d, %+v, %q", status, s, errs)
	}
	for i, want := range []struct {
		role  string
		hosts int
	}{{"store", 1}, {"backends", 5}, {"proxies", 3}} {
		if r := s.Roles[i]; r.Role != want.role || r.Hosts != want.hosts || !r.Measured || i > 0 && r.Beats <= 0 {
			t.Errorf("role %d: %+v, want %+v", i, r, want)
		}
	}
}
