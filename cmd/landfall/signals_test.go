package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Processes that are stopped, killed and started twice: the test binary plays the program.

// launchProgram starts the program itself. What is left of it at the test's end is killed.
func launchProgram(t *testing.T, name, dir string, args ...string) *process {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := []string{asProgram + "=1", envSecret + "=" + strings.TrimSpace(encoded(realSecret))}
	return launch(t, name, dir, env, func(p *process) { p.kill() }, program, args...)
}

func (p *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatalf("signal %s: %v", p.name, err)
	}
}

// TestStoppedUnderLoad (P17): a process that carries the store and moves 100 players a second
// is asked to stop. It ends in order, within its budget, and every fact that anybody was told
// of is in the log.
func TestStoppedUnderLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	p := launchProgram(t, "demo", t.TempDir(), "demo", "--dir", dir, "--players", "40", "--rate", "100", "--duration", "1m", "--json")
	p.wait(t, "300 facts", func() bool { return len(p.lines) >= 300 })
	began := time.Now()
	p.signal(t, syscall.SIGTERM)
	if !p.endWithin(stopBudget) {
		t.Fatalf("it did not end within %s", stopBudget)
	}
	t.Logf("ended after %s", time.Since(began))
	if status := p.cmd.ProcessState.ExitCode(); status != statusOK {
		t.Errorf("status %d, want 0", status)
	}
	if s := demoSummary(t, p.tail(1)); s.Lost+s.Doubled != 0 || s.Facts < 300 {
		t.Errorf("%+v", s)
	}
	wantKept(t, dir, demoFacts(t, p.lines))
}

// wantKept holds the log in dir against the facts that were seen, by sequence.
func wantKept(t *testing.T, dir string, seen map[uint64]string) {
	t.Helper()
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
	if len(seen) == 0 {
		t.Error("no fact was seen")
	}
	for seq, fact := range seen {
		if kept[seq] != fact {
			t.Errorf("sequence %d was %q, the log holds %q", seq, fact, kept[seq])
		}
	}
}

// TestSecondSignalEndsAtOnce (P17): a host whose orderly end is held up, because the store
// hangs, ends with the second signal.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	s := newSite(t, twoHosts(freePort(t)))
	carrier := launchProgram(t, "proxy-1", s.dir, "up", "--id", "proxy-1")
	host := launchProgram(t, "proxy-2", s.dir, "up", "--id", "proxy-2")
	host.says(t, "msg=ready proxy=proxy-2")
	carrier.signal(t, syscall.SIGSTOP)
	host.signal(t, syscall.SIGTERM)
	host.says(t, "msg=stopping")
	began := time.Now()
	again := time.NewTicker(20 * time.Millisecond) // the first of them may come before the first signal is dealt with
	defer again.Stop()
	for !host.over() {
		select {
		case <-again.C:
			_ = host.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
		case <-host.exited:
		}
	}
	status, ok := host.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if took := time.Since(began); !ok || !status.Signaled() || status.Signal() != syscall.SIGTERM || took > 2*time.Second {
		t.Errorf("ended after %s with %v, want at once by the signal", took, host.cmd.ProcessState)
	}
}

// TestUpStartedTwice (P18): two processes, one directory. The second says what to do and
// ends; the first goes on. Once the first is killed, the next start takes the directory over.
func TestUpStartedTwice(t *testing.T) {
	s := newSite(t, oneHost("127.0.0.1:1"))
	first := launchProgram(t, "first", s.dir, "up", "--id", "all")
	first.says(t, "msg=ready proxy=all")
	second := launchProgram(t, "second", s.dir, "up", "--id", "all")
	if !second.endWithin(patience) || second.cmd.ProcessState.ExitCode() != statusFailed {
		t.Errorf("the second ended with %v, want status %d", second.cmd.ProcessState, statusFailed)
	}
	want := []string{"landfall: store.dir landfall-data", "another process has it open", "stop that one", "a store.dir of its own"}
	if last := second.tail(1); !containsAll(last, want) {
		t.Errorf("the second said %q, want %q", last, want)
	}
	if first.over() {
		t.Errorf("the first ended: %s", first.tail(5))
	}
	first.kill()
	third := launchProgram(t, "third", s.dir, "up", "--id", "all")
	third.says(t, "msg=ready proxy=all")
	third.signal(t, syscall.SIGTERM)
	if !third.endWithin(stopBudget) || third.cmd.ProcessState.ExitCode() != statusOK {
		t.Errorf("the third ended with %v, want status 0", third.cmd.ProcessState)
	}
}
