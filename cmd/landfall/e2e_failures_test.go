package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// failing is a network in which things go wrong: two edges, server A, which has a little
// room, and server B, which has much and the region "west" alone.
type failing struct {
	*testNetwork
	a, b  *gameServer
	crowd players
	edges [2]int
}

func testFailures(t *testing.T, binary string) {
	f := &failing{a: startServer(t, "A", "1.21.1"), b: startServer(t, "B", "1.21.1"), crowd: startPlayers(t, "1.21.1"), edges: [2]int{freePort(t), freePort(t)}}
	f.a.ready(t)
	f.b.ready(t)
	f.testNetwork = newTestNetwork(t, binary, carriedYAML("proxy-1", freePort(t))+fast+
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, f.edges[0])+
		"hosts:\n"+edgeYAML("proxy-1", f.edges[0])+edgeYAML("proxy-2", f.edges[1])+
		backendYAML(f.a, "A", "arena: { keep: 1 }, north: { keep: 2 }", "")+backendYAML(f.b, "B", "west: { keep: 6 }", ""))
	f.up(t, "proxy-1", "proxy-2", "A", "B")
	f.ready(t, "A")
	f.ready(t, "B")

	t.Run("expired token", f.expiredToken)
	t.Run("stolen token", f.stolenToken)
	t.Run("move without an answer, client later", f.droppedAnswer)
	t.Run("move without an answer, client at once", f.delayedAnswer)
	t.Run("edge killed between transfer and reconnect", f.deadEdge)
	t.Run("destination dies after the claim", f.deadDestination)
}

// sent brings a player to A, has it ask for a move, and gives the transfer that its client
// was told of. The client has not followed it yet.
func (f *failing) sent(t *testing.T, name, trigger string, edge int) (player, events.Token) {
	t.Helper()
	p := f.onA(t, name, edge)
	mark := p.mark()
	p.triggers(t, trigger)
	return p, f.told(t, p, mark)
}

// told waits until a client was told to go elsewhere, and has ended its connection.
func (f *failing) told(t *testing.T, p player, mark int) events.Token {
	t.Helper()
	e := p.sees(t, mark, "transfer", func(e happening) bool { return e.Ev == "transfer" })
	p.sees(t, mark, "the end of the connection", func(e happening) bool { return e.Ev == "end" })
	token, err := events.ParseToken(strings.TrimSuffix(e.Host, "."+domain))
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// onA joins through an edge. The servers are chosen by how full they are: whoever comes to
// B instead is followed by another, until one stands on A.
func (f *failing) onA(t *testing.T, name string, edge int) player {
	t.Helper()
	for i := range 5 {
		p := f.crowd.player(fmt.Sprintf("%s%d", name, i))
		p.join(t, domain, f.edges[0], "dialPort", f.edges[edge], "follow", false)
		if f.standsOn(t, p.name) == "A" {
			return p
		}
	}
	t.Fatalf("%s: nobody was sent to A", name)
	return player{}
}

func (f *failing) follow(t *testing.T, p player, edge int) {
	t.Helper()
	mark := p.mark()
	p.do(t, "follow", "followPort", f.edges[edge])
	p.sees(t, mark, "position", func(e happening) bool { return e.Ev == "position" })
}

// tells holds the replay of a player against what it must name.
func (f *failing) tells(t *testing.T, p player, words ...string) {
	t.Helper()
	text := f.replay(t, p.name)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("replay of %s does not name %s:\n%s", p.name, w, text)
		}
	}
}

func (f *failing) expiredToken(t *testing.T) {
	p, _ := f.sent(t, "Late", "rtp set 4", 0)
	end := f.ended(t, p.name)
	if end.Phase != projections.Failed || end.Code != events.NotArrived {
		t.Errorf("the transfer ended %s %s, want FAILED NOT_ARRIVED", end.Phase, end.Code)
	}
	mark := p.mark()
	f.follow(t, p, 0)
	p.reads(t, mark, "You did not arrive in time")
	f.rejected(t, events.TokenSpent)
	f.tells(t, p, "NOT_ARRIVED")
}

func (f *failing) stolenToken(t *testing.T) {
	p, token := f.sent(t, "Owner", "rtp set 4", 0)
	thief := f.crowd.player("Thief")
	mark := thief.mark()
	thief.join(t, tokenHost(token), f.edges[0], "intent", 3)
	f.standsOn(t, thief.name)
	thief.reads(t, mark, "belongs to another player")
	f.rejected(t, events.WrongPlayer)
	if at := thief.lastPosition(); at.X != 8.5 || at.Z != 8.5 {
		t.Errorf("the thief stands at %v %v, want the spawn", at.X, at.Z)
	}
	if facts := f.factsOf(thief.name); len(facts) != 0 {
		t.Errorf("the thief has %d facts", len(facts))
	}
	f.arrives(t, p, f.b, func() { f.follow(t, p, 0) })
	f.tells(t, p, "COMPLETED")
}

// arrives has a client come back and checks that it was put where the log says.
func (f *failing) arrives(t *testing.T, p player, to *gameServer, come func()) {
	t.Helper()
	mark := p.mark()
	come()
	p.reads(t, mark, "You have arrived.")
	checkArrival(t, p, f.ended(t, p.name), to, "")
}

func (f *failing) delayedAnswer(t *testing.T) {
	f.a.order(t, "fixture:delay transfer 3000")
	p, _ := f.sent(t, "Slow", "rtp set 4", 0)
	f.arrives(t, p, f.b, func() { f.follow(t, p, 1) })
	f.a.order(t, "fixture:delay transfer 0")
	f.tells(t, p, "COMPLETED")
}

func (f *failing) droppedAnswer(t *testing.T) {
	p := f.onA(t, "Lost", 0)
	f.a.order(t, "fixture:drop transfer")
	mark := p.mark()
	p.triggers(t, "rtp set 4")
	p.sees(t, mark, "the end of the connection", func(e happening) bool { return e.Ev == "end" })
	f.has(t, p.name, "a move with an unknown outcome", func(fact events.TransferFact) bool {
		moved, ok := fact.(*events.Transferred)
		return ok && moved.Result == events.MoveUnknown
	})
	f.arrives(t, p, f.b, func() { f.follow(t, p, 1) })
	f.tells(t, p, "unknown", "COMPLETED")
}

func (f *failing) deadEdge(t *testing.T) {
	p, _ := f.sent(t, "Orphan", "rtp set 4", 1)
	f.hosts["proxy-2"].kill()
	f.arrives(t, p, f.b, func() { f.follow(t, p, 0) })
	f.tells(t, p, "proxy-2", "COMPLETED")
}

// deadDestination: of two players on their way to a server that dies, the one who would go
// anywhere is reserved another place while the login is held; the other is told.
func (f *failing) deadDestination(t *testing.T) {
	anywhere, nowhere := f.onA(t, "Any", 0), f.onA(t, "West", 0)
	mark := f.crowd.mark()
	nowhere.triggers(t, "rtp set 4")
	anywhere.triggers(t, "rtp")
	f.told(t, nowhere, mark)
	f.told(t, anywhere, mark)
	f.b.kill()
	mark = f.crowd.mark()
	f.follow(t, anywhere, 0)
	f.follow(t, nowhere, 0)

	anywhere.reads(t, mark, "You have arrived.")
	end, got := f.ended(t, anywhere.name), anywhere.lastPosition()
	if end.Phase != projections.Completed || end.Destination() != "A" || !sameBlock(end.Reserved.At.X, got.X) || !sameBlock(end.Reserved.At.Z, got.Z) {
		t.Errorf("the transfer ended %s %s at %q, the client stands at %v %v", end.Phase, end.Code, end.Destination(), got.X, got.Z)
	}
	f.tells(t, anywhere, "UNREACHABLE", "COMPLETED")

	nowhere.reads(t, mark, "could not be reached")
	if end := f.ended(t, nowhere.name); end.Phase != projections.Failed || end.Code != events.Unreachable {
		t.Errorf("the transfer ended %s %s, want FAILED UNREACHABLE", end.Phase, end.Code)
	}
	f.standsAt(t, nowhere.name, "A")
	f.tells(t, nowhere, "UNREACHABLE")
}

// testOldClient is also a network in one process: proxy, sidecar and store under one id.
func testOldClient(t *testing.T, binary string) {
	s := startServer(t, "A", "1.20.4")
	crowd := startPlayers(t, "1.20.4")
	s.ready(t)
	port := freePort(t)
	n := newTestNetwork(t, binary, fmt.Sprintf("store: { maxBytes: 1073741824 }\nedge: { domain: %s, port: %d, identity: offline }\n", domain, port)+
		"hosts:\n"+backendYAML(s, "all", "north: { keep: 1 }", fmt.Sprintf(", edges: [ { listen: \"127.0.0.1:%d\" } ]", port)))
	n.up(t, "all")
	n.ready(t, "all")
	p := crowd.player("Old")
	p.join(t, domain, port)
	mark := p.mark()
	p.triggers(t, "rtp")
	p.reads(t, mark, "Your client is too old")
	end := n.ended(t, p.name)
	if end.Phase != projections.Failed || end.Code != events.ClientTooOld {
		t.Errorf("the transfer ended %s %s, want FAILED CLIENT_TOO_OLD", end.Phase, end.Code)
	}
	n.standsAt(t, p.name, "all")
	if text := n.replay(t, p.name); !strings.Contains(text, "CLIENT_TOO_OLD") {
		t.Errorf("replay does not name CLIENT_TOO_OLD:\n%s", text)
	}
}
