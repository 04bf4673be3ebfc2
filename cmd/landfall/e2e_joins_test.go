package main

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// testJoins: the first join lands at the place that was reserved for it, a later one does not; and whoever finds
// the one seat taken waits for it, or is turned away, in words.
func testJoins(t *testing.T, binary string) {
	a := startServer(t, "A", "1.21.1", "--max", "2")
	crowd := startPlayers(t, "1.21.1")
	a.ready(t)
	edges := [2]int{freePort(t), freePort(t)}
	config := carriedYAML("proxy-1", freePort(t)) + fast +
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, edges[0]) +
		fmt.Sprintf("triggers: { join: { enabled: true, map: { %s: { region: arena } } } }\n", domain) +
		"hosts:\n" + edgeYAML("proxy-1", edges[0]) + edgeYAML("proxy-2", edges[1]) + backendYAML(a, "A", "arena: { keep: 2 }", "")
	n := newTestNetwork(t, binary, config)
	n.up(t, "proxy-1", "proxy-2", "A")
	n.ready(t, "A")

	stays := crowd.player("Stays")
	stays.join(t, domain, edges[0])
	ada := crowd.player("Ada")
	n.landsAtAPlace(t, ada, a, func() { ada.do(t, "connect", "host", domain, "port", edges[0], "dial", "127.0.0.1") })
	n.leaves(t, ada)
	ada.join(t, domain, edges[1])
	n.standsOn(t, ada.name)
	if at := ada.lastPosition(); at.X != 8.5 || at.Z != 8.5 || len(n.factsOf(ada.name)) != 5 {
		t.Errorf("after the second join the player stands at %v %v with %d facts, want the spawn and those of the first", at.X, at.Z, len(n.factsOf(ada.name)))
	}

	n.until(t, "two players on A", func() bool { return n.Fleet().Backend("A").Players == 2 })
	bob := crowd.player("Bob")
	n.landsAtAPlace(t, bob, a, func() {
		bob.do(t, "connect", "host", domain, "port", edges[0], "dial", "127.0.0.1", "again", 500) // on a slow machine he may be turned away meanwhile
		n.has(t, bob.name, "a place in line", func(f events.TransferFact) bool { _, in := f.(*events.Waitlisted); return in })
		n.leaves(t, ada)
	})

	carl := crowd.player("Carl")
	mark := carl.mark()
	carl.do(t, "connect", "host", domain, "port", edges[0], "dial", "127.0.0.1")
	carl.isRefused(t, mark, "You are number 1 in line: come back within 60 s")
	n.write(t, "network.yml", testNetworkHead+strings.Replace(config, "loadBalancer: {", "loadBalancer: { onNoCandidate: disconnect,", 1))
	for _, id := range []string{"proxy-1", "proxy-2"} {
		if err := n.hosts[id].cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		n.hosts[id].says(t, "configuration adopted", "loadBalancer.onNoCandidate")
	}
	dora := crowd.player("Dora")
	mark = dora.mark()
	dora.do(t, "connect", "host", domain, "port", edges[1], "dial", "127.0.0.1")
	dora.isRefused(t, mark, "No server can take you right now.")
	if end := n.ended(t, dora.name); end.Phase != projections.Failed || end.Code != events.NoCandidate {
		t.Errorf("the transfer of who was turned away ended %s %s", end.Phase, end.Code)
	}
}

// landsAtAPlace demands that a player who comes is let in once, at the place that was reserved for it.
func (n *testNetwork) landsAtAPlace(t *testing.T, p player, to *gameServer, come func()) {
	t.Helper()
	mark := p.mark()
	come()
	p.reads(t, mark, "You have arrived.")
	end := n.ended(t, p.name)
	if end.Phase != projections.Completed || end.Request.Trigger != events.TriggerJoin || end.Request.Via != domain || end.Reserved.Region != "arena" {
		t.Fatalf("%s: %s %s, asked for by %+v", p.name, end.Phase, end.Code, end.Request)
	}
	want, got := end.Reserved.At, p.lastPosition()
	if !sameBlock(want.X, got.X) || !sameBlock(want.Y, got.Y) || !sameBlock(want.Z, got.Z) {
		t.Errorf("%s stands at %v %v %v, reserved was %+v", p.name, got.X, got.Y, got.Z, want)
	}
	joins := to.joins(p.name)
	if len(joins) != 1 || joins[0].Intent != 2 || joins[0].Host != domain {
		t.Errorf("%s: the server saw %+v, want one plain login", p.name, joins)
	}
}

// leaves ends a player's connection, and waits until the player knows and the log says so.
func (n *testNetwork) leaves(t *testing.T, p player) {
	t.Helper()
	mark := p.mark()
	p.do(t, "quit")
	p.sees(t, mark, "the end of the connection", func(e happening) bool { return e.Ev == "end" })
	n.until(t, "the end of the session of "+p.name, func() bool {
		s, known := n.Session(events.OfflinePlayer(p.name))
		return known && !s.Open
	})
}

// isRefused waits for the words on the login screen.
func (p player) isRefused(t *testing.T, mark int, text string) {
	t.Helper()
	e := p.sees(t, mark, "a refusal", func(e happening) bool { return e.Ev == "disconnect" })
	if !strings.Contains(e.Reason, text) {
		t.Errorf("%s reads %q, want %q", p.name, e.Reason, text)
	}
}
