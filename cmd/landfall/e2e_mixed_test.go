package main

import (
	"fmt"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// testMixed: players who come over an edge and players who connect straight to a server, in one
// network. Each is held by the outermost host of ours, and moved its way.
func testMixed(t *testing.T, binary string) {
	a, b := startServer(t, "A", "1.21.1"), startServer(t, "B", "1.21.1")
	crowd := startPlayers(t, "1.21.1")
	a.ready(t)
	b.ready(t)
	edge := freePort(t)
	n := newTestNetwork(t, binary, carriedYAML("proxy-1", freePort(t))+
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, edge)+
		"routing: { dispatchMode: direct }\n"+
		"hosts:\n"+edgeYAML("proxy-1", edge)+backendYAML(a, "A", "east: { keep: 3 }", "")+backendYAML(b, "B", "west: { keep: 3 }", ""))
	n.up(t, "proxy-1", "A", "B")
	n.ready(t, "A")
	n.ready(t, "B")

	straight, fronted := crowd.player("Dora"), crowd.player("Frank")
	straight.join(t, "127.0.0.1", a.port)
	fronted.do(t, "connect", "host", domain, "port", edge, "dial", "127.0.0.1", "dialPort", edge, "followPort", edge)
	for _, p := range []player{straight, fronted} {
		n.standsOn(t, p.name)
		mark := p.mark()
		p.triggers(t, "rtp")
		p.reads(t, mark, "You have arrived.")
		if end := n.ended(t, p.name); end.Phase != projections.Completed {
			t.Errorf("%s: %s %s", p.name, end.Phase, end.Code)
		}
	}
	for name, want := range map[string]events.Session{
		"Dora":  {Holder: "B", Kind: events.KindDirect, Server: "B"},
		"Frank": {Holder: "proxy-1", Kind: events.KindEdge},
	} {
		s, _ := n.Session(events.OfflinePlayer(name))
		if s.Holder != want.Holder || s.Kind != want.Kind || want.Server != "" && s.Server != want.Server {
			t.Errorf("%s is held by %s (%s) on %s", name, s.Holder, s.Kind, s.Server)
		}
	}
	n.heldOnceEach(t)
}

// heldOnceEach reads the whole log: no join was held twice.
func (n *testNetwork) heldOnceEach(t *testing.T) {
	t.Helper()
	holders := map[string][]events.HostID{}
	for r, err := range n.store.History(t.Context(), events.Sessions, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, refusal := events.Open(n.keys, r)
		if refusal != nil {
			t.Fatalf("fact %d: %v", r.Seq, refusal)
		}
		if f, ok := e.Fact.(*events.SessionOpened); ok {
			key := e.Key + " " + f.Session.Join.String()
			holders[key] = append(holders[key], f.Session.Holder)
		}
	}
	if len(holders) < 4 {
		t.Errorf("only %d joins were held", len(holders))
	}
	for join, by := range holders {
		if len(by) != 1 {
			t.Errorf("join %s was held by %v", join, by)
		}
	}
}
