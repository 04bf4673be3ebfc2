package main

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// stopped is a network whose operator stops things: two edges, server A with the region north, and
// server B with the region west.
type stopped struct {
	*testNetwork
	a, b  *gameServer
	crowd players
	edges [2]int
}

func testStops(t *testing.T, binary string) {
	s := &stopped{a: startServer(t, "A", "1.21.1"), b: startServer(t, "B", "1.21.1"), crowd: startPlayers(t, "1.21.1"), edges: [2]int{freePort(t), freePort(t)}}
	s.a.ready(t)
	s.b.ready(t)
	s.testNetwork = newTestNetwork(t, binary, carriedYAML("proxy-1", freePort(t))+fast+
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, s.edges[0])+
		"hosts:\n"+edgeYAML("proxy-1", s.edges[0])+edgeYAML("proxy-2", s.edges[1])+
		backendYAML(s.a, "A", "north: { keep: 4 }", "")+backendYAML(s.b, "B", "west: { keep: 4 }", ""))
	s.up(t, "proxy-1", "proxy-2", "A", "B")
	s.ready(t, "A")
	s.ready(t, "B")

	t.Run("drain of a server, and its end", s.drainServer)
	t.Run("drain of a proxy, and its end", s.drainProxy)
	t.Run("pause of the line, and its end", s.pauseLine)
	t.Run("pause of a region, and its end", s.pauseRegion)
	t.Run("evacuation, and its end", s.evacuate)
	t.Run("edge killed between claim and move", s.edgeKilledBeforeTheMove)
}

// operator gives an order as a person would, and waits until the log has it.
func (s *stopped) operator(t *testing.T, obeyed func(projections.Controls) bool, args ...string) string {
	t.Helper()
	out := s.landfall(t, append(args, "--config", "network.yml", "--why", "a test")...)
	s.until(t, strings.Join(args, " "), func() bool { return obeyed(s.Controls()) })
	return out
}

// comes lets a player join through an edge, and gives the server that took the player.
func (s *stopped) comes(t *testing.T, name string, edge int) (player, events.HostID) {
	t.Helper()
	p := s.crowd.player(name)
	p.join(t, domain, s.edges[0], "dialPort", s.edges[edge], "followPort", s.edges[edge])
	return p, s.standsOn(t, name)
}

// drainServer: nobody is sent to A, by joining or by command, until the drain ends.
func (s *stopped) drainServer(t *testing.T) {
	s.operator(t, func(c projections.Controls) bool { return c.IsDrained("A") }, "drain", "A")
	for i := range 4 {
		name := fmt.Sprintf("Drained%d", i)
		p, at := s.comes(t, name, i%2)
		if at != "B" {
			t.Errorf("%s was let in to %s", name, at)
		}
		if i > 0 {
			s.leaves(t, p)
			continue
		}
		mark := p.mark()
		p.triggers(t, "rtp")
		p.reads(t, mark, "You have arrived.")
		if end := s.ended(t, name); end.Destination() != "B" {
			t.Errorf("%s was taken to %s", name, end.Destination())
		}
		s.operator(t, func(c projections.Controls) bool { return !c.IsDrained("A") }, "drain", "A", "--off")
		mark = p.mark()
		p.triggers(t, "rtp set 2")
		p.reads(t, mark, "You have arrived.")
		if end := s.ended(t, name); end.Destination() != "A" {
			t.Errorf("%s was taken to %s when the drain had ended", name, end.Destination())
		}
		s.leaves(t, p)
		s.operator(t, func(c projections.Controls) bool { return c.IsDrained("A") }, "drain", "A")
	}
	s.operator(t, func(c projections.Controls) bool { return !c.IsDrained("A") }, "drain", "A", "--off")
}

// drainProxy: the port is shut, who is in plays on and is moved, and the port opens again.
func (s *stopped) drainProxy(t *testing.T) {
	p, at := s.comes(t, "Inside", 1)
	s.operator(t, func(c projections.Controls) bool { return c.IsDrained("proxy-2") }, "drain", "proxy-2")
	s.hosts["proxy-2"].says(t, "drained: the ports are closed")
	if c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", s.edges[1])); err == nil {
		_ = c.Close()
		t.Error("the port of a drained proxy is open")
	}
	p.do(t, "set", "followPort", s.edges[0])
	mark := p.mark()
	p.triggers(t, map[events.HostID]string{"A": "rtp set 3", "B": "rtp set 2"}[at])
	p.reads(t, mark, "You have arrived.")
	end := s.ended(t, p.name)
	if end.Phase != projections.Completed || end.Claim.Dispatcher != "proxy-2" {
		t.Errorf("%s %s, moved by %s, want the drained proxy", end.Phase, end.Code, end.Claim.Dispatcher)
	}
	s.operator(t, func(c projections.Controls) bool { return !c.IsDrained("proxy-2") }, "drain", "proxy-2", "--off")
	s.hosts["proxy-2"].says(t, "put back: the ports are open")
	q, _ := s.comes(t, "Later", 1)
	s.leaves(t, q)
	s.leaves(t, p)
}

// pauseLine: who asks meanwhile waits and reads so, and is served when it ends.
func (s *stopped) pauseLine(t *testing.T) {
	p, at := s.comes(t, "Patient", 0)
	s.operator(t, projections.Controls.LinePaused, "pause", "line")
	mark := p.mark()
	p.triggers(t, "rtp")
	p.reads(t, mark, "The line stands still at the moment.")
	if countFacts[*events.Reserved](s.factsOf(p.name)) > 0 {
		t.Error("a place was given while the line stood still")
	}
	s.operator(t, func(c projections.Controls) bool { return !c.LinePaused() }, "pause", "line", "--off")
	p.reads(t, mark, "You have arrived.")
	if end := s.ended(t, p.name); end.Phase != projections.Completed || end.Destination() == at {
		t.Errorf("%s %s from %s to %s", end.Phase, end.Code, at, end.Destination())
	}
	s.leaves(t, p)
}

// pauseRegion: who wants to go there waits, and everybody else does not.
func (s *stopped) pauseRegion(t *testing.T) {
	paused := func(c projections.Controls) bool { return c.IsPaused("B", "west") }
	s.operator(t, paused, "pause", "region", "west")
	p, _ := s.comes(t, "West", 0)
	mark := p.mark()
	p.triggers(t, "rtp set 3")
	p.reads(t, mark, "The line stands still at the moment.")
	q, _ := s.comes(t, "North", 1)
	passing := q.mark()
	q.triggers(t, "rtp set 2")
	q.reads(t, passing, "You have arrived.")
	s.operator(t, func(c projections.Controls) bool { return !paused(c) }, "pause", "region", "west", "--off")
	p.reads(t, mark, "You have arrived.")
	if end := s.ended(t, p.name); end.Phase != projections.Completed || end.Reserved.Region != "west" {
		t.Errorf("%s %s", end.Phase, end.Code)
	}
	s.leaves(t, p)
	s.leaves(t, q)
}

// evacuate: everybody on B is taken to A, whoever comes meanwhile is not sent there, and afterwards people are again.
func (s *stopped) evacuate(t *testing.T) {
	s.operator(t, func(c projections.Controls) bool { return c.IsDrained("A") }, "drain", "A")
	var all []player
	for i := range 3 {
		p, at := s.comes(t, fmt.Sprintf("Evacuee%d", i), i%2)
		if at != "B" {
			t.Fatalf("%s was let in to %s", p.name, at)
		}
		all = append(all, p)
	}
	s.operator(t, func(c projections.Controls) bool { return !c.IsDrained("A") }, "drain", "A", "--off")
	mark := s.crowd.mark()
	out := s.operator(t, func(c projections.Controls) bool { return c.Evacuated["B"] != nil }, "evacuate", "B", "--per-second", "5")
	if !strings.Contains(out, "3 players: 3 moved, 0 left, 0 waiting, 0 refused, 0 to go") {
		t.Errorf("evacuate says\n%s", out)
	}
	for _, p := range all {
		p.reads(t, mark, "This server is being cleared.")
		p.reads(t, mark, "You have arrived.")
		checkArrival(t, p, s.ended(t, p.name), s.a, "B")
	}
	late, at := s.comes(t, "Latecomer", 0)
	if at != "A" {
		t.Errorf("%s was let in to %s", late.name, at)
	}
	s.operator(t, func(c projections.Controls) bool { return c.Evacuated["B"] == nil }, "evacuate", "B", "--off")
	mark = late.mark()
	late.triggers(t, "rtp set 3")
	late.reads(t, mark, "You have arrived.")
	for _, p := range append(all, late) {
		s.leaves(t, p)
	}
}

// edgeKilledBeforeTheMove: the sidecars are stopped in turn, so that the claim stands and the player was not sent.
// The client, which lost its connection, comes back over the other edge, and is let in at the place that was kept.
func (s *stopped) edgeKilledBeforeTheMove(t *testing.T) {
	p, at := s.comes(t, "Claimed", 1)
	origin, to, wish := "A", "B", "rtp set 3"
	if at == "B" {
		origin, to, wish = "B", "A", "rtp set 2"
	}
	s.hosts[to].signal(t, syscall.SIGSTOP)
	p.triggers(t, wish)
	s.has(t, p.name, "a request", func(f events.TransferFact) bool { _, is := f.(*events.Requested); return is })
	s.hosts[origin].signal(t, syscall.SIGSTOP)
	s.hosts[to].signal(t, syscall.SIGCONT)
	s.has(t, p.name, "a claim", func(f events.TransferFact) bool {
		c, is := f.(*events.Claimed)
		return is && c.Dispatcher == "proxy-2"
	})
	mark := p.mark()
	s.hosts["proxy-2"].kill()
	p.sees(t, mark, "the end of the connection", func(e happening) bool { return e.Ev == "end" })
	s.hosts[origin].signal(t, syscall.SIGCONT)
	p.do(t, "connect", "host", domain, "port", s.edges[0], "dial", "127.0.0.1")
	p.reads(t, mark, "You have arrived.")
	end := s.ended(t, p.name)
	want, got := end.Reserved.At, p.lastPosition()
	if end.Phase != projections.Completed || string(end.Destination()) != to || !sameBlock(want.X, got.X) || !sameBlock(want.Z, got.Z) {
		t.Errorf("%s %s at %s, stands at %v %v, reserved was %+v", end.Phase, end.Code, end.Destination(), got.X, got.Z, want)
	}
	facts := s.factsOf(p.name)
	if n := countFacts[*events.Consumed](facts); n != 1 {
		t.Errorf("consumed %d times", n)
	}
	if countFacts[*events.Transferred](facts) > 0 {
		t.Error("the player was sent: the edge was not killed before the move")
	}
}

// countFacts counts the facts of one type.
func countFacts[F events.TransferFact](facts []events.TransferFact) (n int) {
	for _, f := range facts {
		if _, is := f.(F); is {
			n++
		}
	}
	return n
}
