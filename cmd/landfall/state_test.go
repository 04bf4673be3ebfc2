package main

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// busyTape is a network at work: players in line, a token out, a host drained, beats.
func busyTape(tb testing.TB) *tape {
	t := newTape(tb)
	for _, s := range stories[:3] {
		s.tell(t)
	}
	backend := streamtest.Source(events.SourceBackend, "survival-2")
	beat := &events.BackendBeat{
		Server: "survival-2", Incarnation: backend.Incarnation, State: events.Ready, Accepting: true, Adapter: "sim", Game: "minecraft 1.21.1", Schema: 1,
		Players: 3, MaxPlayers: 20, Promise: 2, Regions: []events.RegionBeat{{Name: "spawn", World: "overworld", Kept: 4, Size: 16}},
	}
	t.putBy(backend, events.BackendKey("survival-2"), beat)
	e1 := streamtest.Source(events.SourceEdge, "e1")
	t.put(events.ProxyKey("e1"), &events.ProxyBeat{Proxy: "e1", Incarnation: e1.Incarnation, State: events.Ready, Schema: 1, Kinds: []events.SessionKind{events.KindEdge}, Players: 2})
	waiting := t.begin("Wanda", 40, events.Wish{Region: "spawn"})
	waiting.joined("lobby-1")
	waiting.fact(&events.Waitlisted{Decision: choice()})
	t.after(1500 * time.Millisecond)
	behind := t.begin("Willi", 41, events.Wish{Region: "spawn"})
	behind.fact(&events.Waitlisted{Decision: choice()})
	steve := events.OfflinePlayer("Steve").String()
	session := events.Session{Number: 2, Holder: "e1", HolderIncarnation: e1.Incarnation, Kind: events.KindEdge, Server: "survival-3", Name: "Steve", Protocol: 767}
	t.put(steve, &events.SessionRefreshed{Session: session})
	moving := t.begin("Mo", 42, events.Wish{})
	moving.joined("lobby-1")
	moving.reserved()
	t.after(time.Second)
	moving.claimed("e1")
	op := streamtest.Source(events.SourceOperator, "op")
	t.putBy(op, "drain.survival-2", &events.DrainSet{Host: "survival-2", On: true, Who: "op", Why: "new disk"})
	t.putBy(op, "pause.line", &events.PauseSet{What: events.PauseLine, On: true, Who: "op"})
	later := *beat
	later.Players = 4
	t.putBy(backend, events.BackendKey("survival-2"), &later)
	return t
}

func TestStateShowsTheNetwork(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"fleet", []string{"fleet"}},
		{"line", []string{"line"}},
		{"sessions", []string{"sessions"}},
		{"transfers", []string{"transfers"}},
		{"control", []string{"control"}},
		{"line-json", []string{"line", "--json"}},
		{"transfers-json", []string{"transfers", "--json"}},
		{"fleet-before", []string{"fleet", "--as-of", "2"}},
		{"transfers-before", []string{"transfers", "--as-of", "22"}},
		{"line-at", []string{"line", "--as-of", "2026-01-31T12:00:07.5Z"}},
		{"not-held", []string{"transfers", "--as-of", "99"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"state"}, c.args...)
			o := onTape(t, busyTape(t), withKey(), args...)
			var got transcript
			got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
			got.matches(t, "state-"+c.name)
		})
	}
}

// TestStateWithoutAKey shows the same: what cannot be verified is only not verified.
func TestStateWithoutAKey(t *testing.T) {
	with, without := onTape(t, busyTape(t), withKey(), "state", "transfers"), onTape(t, busyTape(t), nil, "state", "transfers")
	if with != without {
		t.Errorf("without a key %+v, with it %+v", without, with)
	}
}

func TestStateOfAnEmptyLog(t *testing.T) {
	for _, topic := range topics() {
		if o := onTape(t, newTape(t), withKey(), "state", topic.name); o.status != statusOK || o.stdout != topic.header+"\n" {
			t.Errorf("%s: %+v", topic.name, o)
		}
	}
}

func TestDiffThatCannotBeMade(t *testing.T) {
	for want, args := range map[int][]string{
		statusTrouble: {"diff", "1", "2", "--store", t.TempDir() + "/none"},
		statusUsage:   {"diff", "1"},
	} {
		if o := typed(t, args...); o.status != want || o.stderr == "" {
			t.Errorf("%q: want status %d, got %+v", args, want, o)
		}
	}
}

func TestDiffOfTwoMoments(t *testing.T) {
	for _, c := range []struct {
		name string
		args []string
	}{
		{"times", []string{"2026-01-31T12:00:07.5Z", "now"}},
		{"sequences", []string{"22", "23", "--of", "transfers"}},
		{"json", []string{"21", "now", "--json", "--of", "transfers,fleet"}},
		{"same", []string{"now", "now"}},
		{"unknown", []string{"1", "now", "--of", "hosts"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"diff"}, c.args...)
			o := onTape(t, busyTape(t), withKey(), args...)
			var got transcript
			got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
			got.matches(t, "diff-"+c.name)
		})
	}
}

// TestFleetNamesAnotherWireVersion: who reads the fleet sees why nobody is sent to a host.
func TestFleetNamesAnotherWireVersion(t *testing.T) {
	for _, c := range []struct {
		row  fleetRow
		want bool
	}{
		{fleetRow{Kind: "backend", ID: "b", Backend: &events.BackendBeat{Schema: events.SchemaVersion}}, false},
		{fleetRow{Kind: "backend", ID: "b", Backend: &events.BackendBeat{Schema: events.SchemaVersion + 1}}, true},
		{fleetRow{Kind: "proxy", ID: "p", Proxy: &events.ProxyBeat{Schema: events.SchemaVersion}}, false},
		{fleetRow{Kind: "proxy", ID: "p", Proxy: &events.ProxyBeat{Schema: events.SchemaOldest - 1}}, true},
	} {
		if text := c.row.String(); strings.Contains(text, ", SCHEMA_RANGE: it writes wire version ") != c.want {
			t.Errorf("%+v is shown as %q", c.row, text)
		}
	}
}
