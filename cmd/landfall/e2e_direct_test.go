package main

import (
	"strings"
	"syscall"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// testDirect: two stock servers and two sidecars are already a network.
func testDirect(t *testing.T, binary string) {
	a, b := startServer(t, "A", "1.21.1"), startServer(t, "B", "1.21.1")
	crowd := startPlayers(t, "1.21.1")
	a.ready(t)
	b.ready(t)
	config := carriedYAML("A", freePort(t)) + "hosts:\n" + backendYAML(a, "A", "", "") + backendYAML(b, "B", "west: { keep: 3 }", "")
	n := newTestNetwork(t, binary, config)
	n.up(t, "A", "B")
	n.ready(t, "B")

	for _, name := range []string{"Dora", "Dan"} {
		p := crowd.player(name)
		p.join(t, "127.0.0.1", a.port)
		mark := p.mark()
		p.triggers(t, "rtp")
		sent := p.sees(t, mark, "transfer", func(e happening) bool { return e.Ev == "transfer" })
		if sent.Host != "127.0.0.1" || sent.Port != b.port {
			t.Errorf("%s was sent to %s:%d, want the server's own address, port %d", name, sent.Host, sent.Port, b.port)
		}
		p.reads(t, mark, "You have arrived.")
		end := n.ended(t, name)
		if end.Phase != projections.Completed || end.Destination() != "B" {
			t.Errorf("%s: %s %s at %q, want COMPLETED at B", name, end.Phase, end.Code, end.Destination())
			continue
		}
		got := p.lastPosition()
		if want := end.Reserved.At; !sameBlock(want.X, got.X) || !sameBlock(want.Y, got.Y) || !sameBlock(want.Z, got.Z) {
			t.Errorf("%s stands at %v %v %v, reserved was %+v", name, got.X, got.Y, got.Z, want)
		}
		if joins := b.joins(name); len(joins) != 1 || joins[0].Intent != 3 {
			t.Errorf("%s: joins of B: %+v, want one with intent 3", name, joins)
		}
		if s, _ := n.Session(events.OfflinePlayer(name)); s.Kind != events.KindDirect {
			t.Errorf("%s: the session is of kind %q", name, s.Kind)
		}
	}
	n.reload(t, config+"loadBalancer: { policy: leastPlayers }\n", "transfer.arrived: You made it.\n")
	p := crowd.player("Dina")
	p.join(t, "127.0.0.1", a.port)
	mark := p.mark()
	p.triggers(t, "rtp")
	p.reads(t, mark, "You made it.")
	if end := n.ended(t, "Dina"); end.Reserved == nil || !strings.HasPrefix(end.Reserved.Decision.Policy, "leastPlayers/") {
		t.Errorf("Dina: %+v, want a decision of the policy that was adopted", end)
	}
	n.consumedOnce(t, 3)
}

// reload rewrites the configuration of a network whose hosts run, and waits until all have adopted it.
func (n *testNetwork) reload(t *testing.T, config, messages string) {
	t.Helper()
	n.write(t, "network.yml", testNetworkHead+config)
	n.write(t, "messages.yml", messages)
	for _, p := range n.hosts {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range n.hosts {
		p.says(t, "configuration adopted", "loadBalancer.policy messages", "policy=leastPlayers/")
	}
}
