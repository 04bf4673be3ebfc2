package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/embedded"
)

// busyFrame is a network at work, with more of everything than a small screen has room for.
func busyFrame() topFrame {
	now := time.Date(2026, 1, 31, 15, 4, 5, 0, time.UTC)
	f := topFrame{
		Kind: "top", Store: "nats://127.0.0.1:4222", Time: now, Last: 81234,
		Rates:   topRates{Facts: 123.4, Requests: 20.1, Arrivals: 19.8, Failures: 0.3, OverMs: 10_000},
		Control: []controlRow{{Key: events.KillKey}, {Key: "drain.survival-2"}},
	}
	for i := range 9 {
		id := events.HostID(fmt.Sprintf("survival-%d", i+1))
		f.Fleet = append(f.Fleet, fleetRow{Kind: "backend", ID: id, AgeMs: int64(i) * 900, Backend: &events.BackendBeat{
			Server: id, State: events.Ready, Players: 10 * i, MaxPlayers: 100, Outstanding: i, Regions: []events.RegionBeat{{Name: "default", Kept: 16 - i}},
		}})
	}
	f.Fleet[1].Control = []string{"drained"}
	f.Fleet = append(f.Fleet, fleetRow{Kind: "proxy", ID: "proxy-1", AgeMs: 400, Proxy: &events.ProxyBeat{Proxy: "proxy-1", State: events.Ready, Players: 77, InFlight: 3}})
	for i := range 6 {
		id := events.TransferID{15: byte(i)}
		f.Line = append(f.Line, lineRow{Position: i + 1, Name: fmt.Sprintf("Waiting%d", i+1), Wish: events.Wish{Region: "spawn"}, WaitedMs: int64(60_000 - 9000*i), Server: "lobby-1", Online: i != 2})
		f.Transfers = append(f.Transfers, transferRow{Transfer: id, Name: fmt.Sprintf("Moving%d", i+1), Phase: projections.Claimed, Attempt: 1, Destination: "survival-3", AgeMs: int64(300 + 100*i)})
		f.Failures = append(f.Failures, topFailure{Transfer: id, Name: "Failed\x1b[2J", Code: events.NotArrived, At: now.Add(-time.Duration(i) * time.Minute), Detail: "origin says: NO_ANSWER"})
	}
	f.Line[0].EtaMs = new(int64(4000))
	return f
}

func TestTopOnAScreen(t *testing.T) {
	lost := busyFrame()
	lost.Lost, lost.LostMs = "the store does not answer", 12_000
	stopped := topFrame{Store: "./landfall-data", Stopped: true}
	var got transcript
	for _, c := range []struct {
		name   string
		frame  topFrame
		screen topScreen
	}{
		{"80x24", busyFrame(), topScreen{width: 80, height: 24}},
		{"80x24, the store is lost", lost, topScreen{width: 80, height: 24}},
		{"an empty log of a store that is stopped", stopped, topScreen{width: 80, height: 24}},
		{"40x10", busyFrame(), topScreen{width: 40, height: 10}},
		{"120 wide, all of it", busyFrame(), topScreen{width: 120}},
	} {
		text := topView(c.frame, c.screen)
		fmt.Fprintf(&got, "--- %s\n%s\n\n", c.name, text)
		c.screen.colour = true
		for _, shown := range []string{text, topView(c.frame, c.screen)} {
			lines := strings.Split(shown, "\n")
			if c.screen.height > 0 && len(lines) > c.screen.height {
				t.Errorf("%s: %d lines", c.name, len(lines))
			}
			for _, line := range lines {
				if n := utf8.RuneCountInString(uncoloured(line)); n > c.screen.width {
					t.Errorf("%s: %d columns: %q", c.name, n, line)
				}
			}
			if uncoloured(shown) != text {
				t.Errorf("%s: colour changes what is said:\n%s", c.name, shown)
			}
		}
	}
	got.matches(t, "top")
}

func uncoloured(text string) string {
	for _, how := range []string{ansiReset, ansiBold, ansiRed, ansiYellow} {
		text = strings.ReplaceAll(text, how, "")
	}
	return text
}

func TestTopOnceAndItsRefusals(t *testing.T) {
	dir, s := filled(t, "3000")
	o := typed(t, "top", "--once", "--json", "--store", dir)
	var frame topFrame
	if err := json.Unmarshal([]byte(o.stdout), &frame); err != nil {
		t.Fatalf("%v: %+v", err, o)
	}
	if o.status != statusOK || frame.Last != s.Facts || len(frame.Fleet) != 11 || uint64(len(frame.Line)+len(frame.Transfers)) != s.Open || len(frame.Failures) == 0 || !frame.Stopped {
		t.Errorf("status %d; of %+v: %+v", o.status, s, frame)
	}
	if o = typed(t, "top", "--once", "--store", dir); o.status != statusOK || !strings.Contains(o.stdout, "not running: as it was left") || !strings.Contains(o.stdout, "backend-8") {
		t.Errorf("%+v", o)
	}
	for _, c := range []struct {
		args   []string
		status int
		says   string
	}{
		{[]string{"--store", dir}, statusUsage, "stdout is no terminal: for one screen give --once"},
		{[]string{"--store", dir, "--json"}, statusUsage, "give --once too"},
		{[]string{"--store", dir, "--once", "--every", "1ms"}, statusUsage, "want 100ms to 1h"},
		{[]string{"--store", dir + ".none", "--once"}, statusFailed, "file does not exist"},
	} {
		if o := typed(t, append([]string{"top"}, c.args...)...); o.status != c.status || !strings.Contains(o.stderr, c.says) || o.stdout != "" {
			t.Errorf("%q: %+v", c.args, o)
		}
	}
}

// A store that ends shows as lost, with what was seen last; one that begins again is followed.
func TestTopLosesAStoreAndFindsItAgain(t *testing.T) {
	dir, s := filled(t, "1000")
	open := func() *embedded.Server {
		t.Helper()
		server, err := embedded.Open(t.Context(), embedded.Config{Dir: dir, Network: "demo", Creator: createdByDemo})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server := open()
	f := topFlags{storeFlags: storeFlags{store: dir}}
	w, store, err := f.watcher(t.Context(), environment(nil))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	out := newScreen()
	go func() { ended <- w.follow(ctx, store) }()
	go func() { ended <- w.scroll(ctx, out, 20*time.Millisecond) }()
	out.waitFor(t, fmt.Sprintf("top  live  transfers %d", s.Facts), 1)
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	out.waitFor(t, "top  LOST for ", 1)
	live := strings.Count(out.String(), "top  live")
	server = open()
	out.waitFor(t, "top  live", live+1)
	stop()
	for range 2 {
		if err := <-ended; ctx.Err() == nil {
			t.Errorf("ended with %v", err)
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRatesAreOfTheLastSeconds(t *testing.T) {
	var p pulses
	now := time.Date(2026, 1, 31, 15, 0, 0, 0, time.UTC)
	if r := p.rates(now); r != (topRates{}) {
		t.Errorf("of nothing: %+v", r)
	}
	p.since = now
	player := events.PlayerID{1}
	for i, fact := range []events.Fact{&events.Requested{}, &events.Consumed{}, &events.Completed{}, &events.Failed{Code: events.NotArrived}, &events.Cancelled{Code: events.GraceOver}} {
		p.take(events.Event{Seq: uint64(i + 1), Fact: fact}, player, now.Add(time.Duration(i)*time.Second))
	}
	if r := p.rates(now.Add(5 * time.Second)); r != (topRates{Facts: 1, Requests: 0.2, Arrivals: 0.2, Failures: 0.2, OverMs: 5000}) {
		t.Errorf("after 5 s: %+v", r)
	}
	if r := p.rates(now.Add(11500 * time.Millisecond)); r != (topRates{Facts: 0.3, Failures: 0.1, OverMs: 10_000}) {
		t.Errorf("after 11.5 s: %+v", r)
	}
	name := func(events.PlayerID) string { return "Steve" }
	if got := p.failures(name); len(got) != 2 || got[0].Seq != 5 || got[0].Code != events.GraceOver || got[1].Name != "Steve" {
		t.Errorf("failures %+v", got)
	}
	for i := range 2 * keptFailures {
		p.take(events.Event{Seq: uint64(100 + i), Fact: &events.Failed{Code: events.NotArrived}}, player, now)
	}
	if got := p.failures(name); len(got) != keptFailures || got[0].Seq != uint64(99+2*keptFailures) {
		t.Errorf("%d failures are kept, the newest is %d", len(got), got[0].Seq)
	}
}
