package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long an end-to-end test waits for anything: far longer than it takes.
const patience = 40 * time.Second

// process is a child of a test, and every line it has printed.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.WriteCloser

	mu     sync.Mutex
	rest   []byte
	lines  []string
	events []happening
	grown  chan struct{} // closed, and replaced, with each line
	exited chan struct{}
}

// happening is one line of testdata/e2e's programs.
type happening struct {
	Ev      string  `json:"ev"`
	Server  string  `json:"server"`
	Bot     string  `json:"bot"`
	Name    string  `json:"name"`
	Text    string  `json:"text"`
	Host    string  `json:"host"`
	Port    int     `json:"port"`
	RCON    int     `json:"rcon"`
	Via     int     `json:"via"`
	Intent  int     `json:"intent"`
	UUID    string  `json:"uuid"`
	Addr    string  `json:"addr"`
	Reason  string  `json:"reason"`
	Message string  `json:"message"`
	X       float64 `json:"x"`
	Y       float64 `json:"y"`
	Z       float64 `json:"z"`
}

// launch starts a program whose end is the test's business: end is called when the test is over.
func launch(t *testing.T, name, dir string, env []string, end func(*process), program string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(program, args...), grown: make(chan struct{}), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env = dir, append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	dieWithTheTest(p.cmd)
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		defer close(p.exited)
		_ = p.cmd.Wait() // the status is read from ProcessState
	}()
	t.Cleanup(func() {
		end(p)
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", name, p.tail(40))
		}
	})
	return p
}

// Write takes what the process prints.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rest = append(p.rest, b...)
	for {
		line, rest, found := bytes.Cut(p.rest, []byte("\n"))
		if !found {
			return len(b), nil
		}
		p.rest = rest
		p.take(string(line))
	}
}

func (p *process) take(line string) {
	p.lines = append(p.lines, line)
	var e happening
	if strings.HasPrefix(line, "{") && json.Unmarshal([]byte(line), &e) == nil {
		p.events = append(p.events, e)
	}
	close(p.grown)
	p.grown = make(chan struct{})
}

func (p *process) tail(n int) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines[max(0, len(p.lines)-n):], "\n")
}

// happened gives all events so far.
func (p *process) happened() []happening {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.events[:len(p.events):len(p.events)]
}

// mark is a point in what a process has printed.
func (p *process) mark() int { return len(p.happened()) }

// until waits for the first event behind a mark that fits, and fails the test without one.
func (p *process) until(t *testing.T, mark int, what string, fits func(happening) bool) happening {
	t.Helper()
	var found happening
	p.wait(t, what, func() bool {
		for _, e := range p.events[mark:] {
			if fits(e) {
				found = e
				return true
			}
		}
		return false
	})
	return found
}

// says waits for a line that holds all words.
func (p *process) says(t *testing.T, words ...string) {
	t.Helper()
	p.wait(t, strings.Join(words, " "), func() bool {
		for _, line := range p.lines {
			if containsAll(line, words) {
				return true
			}
		}
		return false
	})
}

// saying are the lines so far that hold all words.
func (p *process) saying(words ...string) (found []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if containsAll(line, words) {
			found = append(found, line)
		}
	}
	return found
}

func containsAll(line string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(line, w) {
			return false
		}
	}
	return true
}

// wait looks after each line, under p.mu, whether what is waited for has come.
func (p *process) wait(t *testing.T, what string, come func() bool) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		p.mu.Lock()
		done, grown := come(), p.grown
		p.mu.Unlock()
		if done {
			return
		}
		select {
		case <-grown:
		case <-p.exited:
			p.mu.Lock()
			done = come() // the last line came before the end
			p.mu.Unlock()
			if !done {
				t.Fatalf("%s ended before: %s\n%s", p.name, what, p.tail(20))
			}
		case <-late.C:
			t.Fatalf("%s: %s did not come within %s", p.name, what, patience)
		}
	}
}

// order writes one line to the process.
func (p *process) order(t *testing.T, line string) {
	t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		t.Fatalf("order %s: %v", p.name, err)
	}
}

// kill ends the process at once, as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // fails when it has ended
	<-p.exited
}

// closeInput is the end of testdata/e2e's programs.
func closeInput(p *process) {
	_ = p.stdin.Close() // fails when it has ended
	p.endWithin(5 * time.Second)
}

// terminate is the orderly end of a host. A host that was not killed must end by itself.
func terminate(t *testing.T) func(*process) {
	return func(p *process) {
		killed := p.over()
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails when it has ended
		if !p.endWithin(15 * time.Second) {
			t.Errorf("%s did not end after SIGTERM", p.name)
		}
		if status := p.cmd.ProcessState.ExitCode(); !killed && status != statusOK {
			t.Errorf("%s ended with status %d after SIGTERM, want 0", p.name, status)
		}
	}
}

func (p *process) over() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// endWithin kills a process that takes longer to end, and tells that it did not.
func (p *process) endWithin(d time.Duration) bool {
	late := time.NewTimer(d)
	defer late.Stop()
	select {
	case <-p.exited:
		return true
	case <-late.C:
		p.kill()
		return false
	}
}

// output runs a program to its end.
func output(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var status *exec.ExitError
	if err != nil && !errors.As(err, &status) {
		t.Fatalf("run %s: %v", program, err)
	}
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}
