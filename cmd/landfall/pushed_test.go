package main

import (
	"strings"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
)

// obeys lets a version be pushed to the host and returns what the log says of it, without times.
func (r *reloaded) obeys(p actors.Pushed) []string {
	return r.logOf(func() { r.obey(p) })
}

// pushOf is a version as it is pushed of a file with more keys.
func pushOf(t *testing.T, seq uint64, more string) actors.Pushed {
	t.Helper()
	return actors.Pushed{Seq: seq, Text: parsed(t, oneHost("127.0.0.1:1")+more).Pushable(), Who: "ada", Why: "weekend"}
}

func parsed(t *testing.T, config string) *network.Network {
	t.Helper()
	n, err := network.Parse("network.yml", []byte(config))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func sayOnce(t *testing.T, got []string, want ...string) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %d lines, want %d:\n%s", len(got), len(want), strings.Join(got, "\n"))
	}
	for i := range got {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("got  %s\nwant %s", got[i], want[i])
		}
	}
}

// TestAPushedVersionGoesBeforeTheFile, through reloads, until it is taken back.
func TestAPushedVersionGoesBeforeTheFile(t *testing.T) {
	r := newReloaded(t)
	var heard []*changeable
	r.live.follow(func(c *changeable) { heard = append(heard, c) })
	v3 := pushOf(t, 3, "line: { maxSize: 64 }\n")
	sayOnce(t, r.obeys(v3), `level=INFO msg="pushed configuration adopted" version=3 by=ada why=weekend keys=[line.maxSize] policy=weighted/`)
	sayOnce(t, r.obeys(v3))
	if now := r.live.now(); now.net.Line.MaxSize != 64 || len(heard) != 2 || heard[1] != now {
		t.Errorf("maxSize %d, %d changes", now.net.Line.MaxSize, len(heard))
	}

	r.rewrite(t, "line: { maxSize: 7, maxBypass: 1 }\nheartbeat: { intervalMs: 900 }\n")
	sayOnce(t, r.says(t), `level=WARN msg="this key needs a restart" key=heartbeat.intervalMs`,
		`level=INFO msg="configuration read again, there is nothing to adopt"`,
		`level=INFO msg="a pushed version goes before the file until: landfall config push --off" version=3 by=ada over="[line.maxBypass line.maxSize]"`)
	if now := r.live.now().net; now.Line.MaxSize != 64 || now.Line.MaxBypass != 3 || now.Heartbeat.IntervalMs != 1000 {
		t.Errorf("after a reload: %+v, heartbeats each %d ms", now.Line, now.Heartbeat.IntervalMs)
	}

	sayOnce(t, r.obeys(actors.Pushed{Seq: 5, Who: "ada"}),
		`level=INFO msg="the pushed configuration was taken back: this host's own file holds again" version=5 by=ada why="" keys="[line.maxBypass line.maxSize]"`)
	if now := r.live.now().net; now.Line.MaxSize != 7 || now.Line.MaxBypass != 1 {
		t.Errorf("after it was taken back: %+v", now.Line)
	}
	if b := r.configBeat(); b.Pushed != 5 || len(b.Live) != 1 || b.Live[0].Name != "line" || b.Refused != 0 {
		t.Errorf("heartbeat %+v", b)
	}
}

// TestAVersionThatDoesNotFitIsRefusedWhole: what held goes on, whoever reloads, until one comes that fits.
func TestAVersionThatDoesNotFitIsRefusedWhole(t *testing.T) {
	r := newReloaded(t)
	v3 := pushOf(t, 3, "line: { maxSize: 64 }\n")
	r.obeys(v3)
	newer := actors.Pushed{Seq: 4, Text: "line: { maxSize: 5, hurry: true }\n", Who: "bob"}
	sayOnce(t, r.obeys(newer), `level=ERROR msg="the pushed configuration is refused as a whole, this host goes on with what it has" host=all version=4 by=bob error="line.hurry: unknown key; allowed: `)
	sayOnce(t, r.obeys(newer))
	if b := r.configBeat(); r.live.now().net.Line.MaxSize != 64 || b.Pushed != 3 || b.Refused != 4 || !strings.HasPrefix(b.Fault, "line.hurry: unknown key") {
		t.Errorf("maxSize %d, heartbeat %+v", r.live.now().net.Line.MaxSize, b)
	}
	r.rewrite(t, "triggers: { command: { enabled: false } }\n")
	sayOnce(t, r.says(t), `level=INFO msg="configuration read again, there is nothing to adopt"`,
		`level=INFO msg="a pushed version goes before the file until: landfall config push --off" version=3 by=ada over="[line.maxSize triggers.command.enabled]"`)
	if b := r.configBeat(); b.Pushed != 3 || b.Refused != 4 {
		t.Errorf("after a reload: %+v", b)
	}
	sayOnce(t, r.obeys(pushOf(t, 6, "")), `level=INFO msg="pushed configuration adopted" version=6 by=ada why=weekend keys=[line.maxSize]`)
	if b := r.configBeat(); b.Pushed != 6 || b.Refused != 0 || b.Fault != "" {
		t.Errorf("after one that fits: %+v", b)
	}
}

// TestWhatRunsDecidesWhatFits: not what the file says of keys that need a restart.
func TestWhatRunsDecidesWhatFits(t *testing.T) {
	r := newReloaded(t)
	fast := actors.Pushed{Seq: 2, Text: "loadBalancer: { staleAfterMs: 500 }\n"}
	sayOnce(t, r.obeys(fast), `level=ERROR msg="the pushed configuration is refused as a whole, this host goes on with what it has" host=all version=2 by="" error="loadBalancer.staleAfterMs: 500 is less than two heartbeats`)
	r.rewrite(t, "heartbeat: { intervalMs: 100 }\n")
	r.says(t)
	if b := r.configBeat(); b.Refused != 2 {
		t.Errorf("a key that needs a restart was taken on: %+v", b)
	}
}
