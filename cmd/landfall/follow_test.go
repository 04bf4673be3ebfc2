package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// inVain is how long a test waits for what must come.
const inVain = 30 * time.Second

// screen is where a running command writes, and a test can wait for a text.
type screen struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func newScreen() *screen { return &screen{changed: make(chan struct{})} }

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	close(s.changed)
	s.changed = make(chan struct{})
	return len(p), nil
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// waitFor waits until a text has been written n times.
func (s *screen) waitFor(t *testing.T, text string, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), inVain)
	defer cancel()
	for {
		s.mu.Lock()
		now, changed := s.text.String(), s.changed
		s.mu.Unlock()
		if strings.Count(now, text) >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waited in vain for %q (%d times) in:\n%s", text, n, now)
		}
	}
}

// following is a tail --follow under way.
type following struct {
	out, err *screen
	stop     context.CancelFunc
	ended    chan int
}

func startFollowing(t *testing.T, args ...string) *following {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &following{out: newScreen(), err: newScreen(), stop: cancel, ended: make(chan int, 1)}
	go func() { f.ended <- run(ctx, append([]string{"tail", "--follow", "--json"}, args...), f.out, f.err) }()
	return f
}

// end interrupts, and gives the exit status.
func (f *following) end(t *testing.T) int {
	t.Helper()
	f.stop()
	return f.wait(t)
}

func (f *following) wait(t *testing.T) int {
	t.Helper()
	select {
	case status := <-f.ended:
		return status
	case <-time.After(inVain):
		t.Fatalf("did not end; stderr:\n%s", f.err)
		return 0
	}
}

func (f *following) sequences(t *testing.T) (out []uint64) {
	t.Helper()
	for _, row := range jsonLines(t, f.out.String()) {
		out = append(out, uint64(row["seq"].(float64)))
	}
	return out
}

// TestFollowGoesOnThroughARestart: by directory, where each life of the store has another
// address and login, and by URL.
func TestFollowGoesOnThroughARestart(t *testing.T) {
	for _, by := range []string{"directory", "URL"} {
		t.Run(by, func(t *testing.T) {
			t.Setenv(envSecret, encoded(realSecret))
			c := newCarrier(t, unused(t))
			where := c.cfg.Dir
			if by == "URL" {
				where = c.server.URL()
			}
			story, _ := tapeOf(t, "completed")
			facts := story.records[events.Transfers]
			c.append(t, facts[0])
			f := startFollowing(t, "--store", where)
			f.err.waitFor(t, "transfers: following", 1)
			c.append(t, facts[1])
			f.out.waitFor(t, `"seq":2,`, 1)
			for i, fact := range facts[2:] {
				c.stop(t)
				c.start(t)
				c.append(t, fact)
				f.out.waitFor(t, fmt.Sprintf(`"seq":%d,`, i+3), 1)
			}
			if status := f.end(t); status != statusOK {
				t.Errorf("status %d", status)
			}
			if got := fmt.Sprint(f.sequences(t)); got != "[1 2 3 4 5 6]" {
				t.Errorf("sequences %s", got)
			}
			if !strings.Contains(f.err.String(), "last sequence 6; continue with --after 6") {
				t.Errorf("stderr: %s", f.err)
			}
		})
	}
}

// TestFollowSaysThatItIsAlive: silence is no sign of a dead watcher.
func TestFollowSaysThatItIsAlive(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, unused(t))
	story, _ := tapeOf(t, "completed")
	c.append(t, story.records[events.Transfers][0])
	f := startFollowing(t, "--store", c.cfg.Dir, "--pulse", "20ms")
	f.err.waitFor(t, "transfers: alive, at sequence 1 of 1", 3)
	if status := f.end(t); status != statusOK {
		t.Errorf("status %d", status)
	}
}

// stalled is an output that nobody reads until it is released.
type stalled struct {
	*screen

	released chan struct{}
}

func (s stalled) Write(p []byte) (int, error) {
	<-s.released
	return s.screen.Write(p)
}

// TestFollowSaysThatNobodyReads: who watches stderr learns why no line comes, and nothing is lost.
func TestFollowSaysThatNobodyReads(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, unused(t))
	story, _ := tapeOf(t, "completed")
	facts := story.records[events.Transfers]
	ctx, cancel := context.WithCancel(t.Context())
	out, f := stalled{newScreen(), make(chan struct{})}, &following{err: newScreen(), stop: cancel, ended: make(chan int, 1)}
	f.out = out.screen
	go func() {
		f.ended <- run(ctx, []string{"tail", "--follow", "--json", "--store", c.cfg.Dir, "--pulse", "20ms"}, out, f.err)
	}()
	f.err.waitFor(t, "transfers: following", 1)
	c.append(t, facts[0])
	c.append(t, facts[1])
	f.err.waitFor(t, "transfers: the store is at sequence 2, and nobody has taken anything off this output for 20ms", 1)
	close(out.released)
	out.waitFor(t, `"seq":2,`, 1)
	if status := f.end(t); status != statusOK {
		t.Errorf("status %d", status)
	}
}

// TestPulseSaysThatItFallsBack: being behind is usual, being more so each time is not.
func TestPulseSaysThatItFallsBack(t *testing.T) {
	p := &position{last: 10}
	for _, c := range []struct {
		last, read uint64
		slow       bool
	}{{20, 0, false}, {40, 5, true}, {41, 10, false}, {31, 6, false}, {50, 0, false}, {80, 1, true}} {
		p.last += c.read
		got := p.pulse(events.Transfers, events.StreamState{Last: c.last}, nil)
		if strings.Contains(got, fmt.Sprintf("%d behind and falling back", c.last-p.last)) != c.slow {
			t.Errorf("at %d: %s", p.last, got)
		}
	}
}

// TestFollowWaitsForAStoppedStore, and never keeps its carrier out.
func TestFollowWaitsForAStoppedStore(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, "")
	story, _ := tapeOf(t, "completed")
	facts := story.records[events.Transfers]
	c.append(t, facts[0])
	c.stop(t)
	f := startFollowing(t, "--store", c.cfg.Dir, "--bucket", "all", "--limit", "3")
	f.err.waitFor(t, "is not running: waiting for it", 1)
	c.start(t)
	c.append(t, facts[1])
	c.append(t, facts[2])
	if status := f.wait(t); status != statusOK {
		t.Errorf("status %d: %s", status, f.err)
	}
	if got := fmt.Sprint(f.sequences(t)); got != "[1 2 3]" {
		t.Errorf("sequences %s", got)
	}
	if !strings.Contains(f.err.String(), "stopped at the limit") {
		t.Errorf("stderr: %s", f.err)
	}
}

// TestFollowOfHeartbeatsShowsEachOnce: a tail of fleet begins with the newest of each key
// whenever it begins.
func TestFollowOfHeartbeatsShowsEachOnce(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, "")
	whole := wholeTape(t)
	beat := whole.records[events.Fleet][0]
	c.append(t, beat)
	f := startFollowing(t, "--store", c.cfg.Dir, "--bucket", "fleet")
	f.err.waitFor(t, "fleet: following", 1)
	c.stop(t)
	c.start(t)
	f.err.waitFor(t, "fleet: following", 2)
	next := whole.seal(beatSource(t, beat), beat.Key, 1, beatFact(t, beat))
	c.append(t, events.Record{Bucket: next.Bucket, Key: next.Key, Header: next.Header, Body: next.Body})
	f.out.waitFor(t, `"seq":2,`, 1)
	f.end(t)
	if got := fmt.Sprint(f.sequences(t)); got != "[1 2]" {
		t.Errorf("sequences %s", got)
	}
}

func beatSource(t *testing.T, r events.Record) events.Source {
	t.Helper()
	s, err := events.ParseSource(r.Header[events.HeaderSource])
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func beatFact(t *testing.T, r events.Record) events.Fact {
	t.Helper()
	var b events.ProxyBeat
	if err := events.Unmarshal(r.Body, &b); err != nil {
		t.Fatal(err)
	}
	return &b
}

// TestAnInterruptedTailSaysSo: one that has an end was not done.
func TestAnInterruptedTailSaysSo(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	c := newCarrier(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if status := run(ctx, []string{"tail", "--store", c.cfg.Dir}, io.Discard, io.Discard); status == statusOK {
		t.Error("an interrupted tail ended well")
	}
}
