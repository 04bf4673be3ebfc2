package main

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// TestE2E plays real Minecraft connections through real processes: `landfall up` for each
// host of one network.yml, servers and clients that are true in protocol.
func TestE2E(t *testing.T) {
	installNode(t)
	binary := filepath.Join(t.TempDir(), "landfall")
	output(t, ".", "go", "build", "-o", binary, ".")

	t.Run("20 players of 1.21.1 over two edges", func(t *testing.T) { crossing{version: "1.21.1", players: 20, keep: 8, proxyV2: true}.run(t, binary) })
	t.Run("at once", func(t *testing.T) {
		t.Run("1.20.6, then 1.21.11", func(t *testing.T) {
			t.Parallel()
			for _, version := range []string{"1.20.6", "1.21.11"} {
				t.Run(version, func(t *testing.T) { crossing{version: version, players: 4, keep: 2}.run(t, binary) })
			}
		})
		t.Run("direct", func(t *testing.T) { t.Parallel(); testDirect(t, binary) })
		t.Run("mixed", func(t *testing.T) { t.Parallel(); testMixed(t, binary) })
		t.Run("failures", func(t *testing.T) { t.Parallel(); testFailures(t, binary) })
		t.Run("init", func(t *testing.T) { t.Parallel(); testInit(t, binary) })
		t.Run("joins", func(t *testing.T) { t.Parallel(); testJoins(t, binary) })
		t.Run("stops", func(t *testing.T) { t.Parallel(); testStops(t, binary) })
		t.Run("limits", func(t *testing.T) { t.Parallel(); testLimits(t, binary) })
		t.Run("client too old", func(t *testing.T) { t.Parallel(); testOldClient(t, binary) })
	})
}

// crossing is players who change places between two servers behind two edges.
type crossing struct {
	version string
	players int
	keep    int  // places that each server holds ready
	proxyV2 bool // the second server wants PROXY v2
}

func (c crossing) run(t *testing.T, binary string) {
	a, b := startServer(t, "A", c.version), startServer(t, "B", c.version, "--pp2", fmt.Sprint(c.proxyV2))
	crowd := startPlayers(t, c.version)
	a.ready(t)
	b.ready(t)
	edges := [2]int{freePort(t), freePort(t)}
	n := newTestNetwork(t, binary, c.config(t, a, b, edges))
	n.up(t, "proxy-1", "proxy-2", "A", "B")
	n.ready(t, "A")
	n.ready(t, "B")

	type traveller struct {
		player
		from events.HostID
		mark int
	}
	var all []*traveller
	for i := range c.players {
		p := &traveller{player: crowd.player(fmt.Sprintf("Bot%d", i))}
		all = append(all, p)
		// Half of them come back through the other edge.
		p.do(t, "connect", "host", domain, "port", edges[0], "dial", "127.0.0.1", "dialPort", edges[i%2], "followPort", edges[i/2%2])
	}
	for _, p := range all {
		p.from, p.mark = n.standsOn(t, p.name), p.process.mark()
		p.triggers(t, map[events.HostID]string{"A": "rtp set 4", "B": "rtp set 3"}[p.from])
	}
	for _, p := range all {
		p.reads(t, p.mark, "You have arrived.")
		end := n.ended(t, p.name)
		to := map[events.HostID]*gameServer{"A": b, "B": a}[p.from]
		checkArrival(t, p.player, end, to, p.from)
	}
	n.consumedOnce(t, c.players)
}

func (c crossing) config(t *testing.T, a, b *gameServer, edges [2]int) string {
	proxyV2 := ""
	if c.proxyV2 {
		proxyV2 = ", proxyProtocol: v2"
	}
	return carriedYAML("proxy-1", freePort(t)) +
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, edges[0]) +
		"routing: { crossServerBurst: 50 }\n" + // all ask in the same moment
		"hosts:\n" + edgeYAML("proxy-1", edges[0]) + edgeYAML("proxy-2", edges[1]) +
		backendYAML(a, "A", fmt.Sprintf("arena: { keep: 1 }, north: { keep: %d }", c.keep), "") +
		backendYAML(b, "B", fmt.Sprintf("west: { keep: %d, world: \"minecraft:the_nether\" }", c.keep), proxyV2)
}

// checkArrival holds what client and server saw against what the log says.
func checkArrival(t *testing.T, p player, end projections.Transfer, to *gameServer, from events.HostID) {
	t.Helper()
	if end.Phase != projections.Completed {
		t.Errorf("%s: the transfer ended %s %s, want COMPLETED", p.name, end.Phase, end.Code)
		return
	}
	want, got := end.Reserved.At, p.lastPosition()
	if !sameBlock(want.X, got.X) || !sameBlock(want.Y, got.Y) || !sameBlock(want.Z, got.Z) {
		t.Errorf("%s stands at %v %v %v, reserved was %+v", p.name, got.X, got.Y, got.Z, want)
	}
	if string(end.Destination()) == string(from) {
		t.Errorf("%s was sent from %s to %s", p.name, from, end.Destination())
	}
	joins := to.joins(p.name)
	if len(joins) != 1 {
		t.Errorf("%s joined %s %d times, want once", p.name, to.name, len(joins))
		return
	}
	if joins[0].Intent != 3 || joins[0].Host != tokenHost(end.Token) {
		t.Errorf("%s: the destination saw intent %d and host %q, want 3 and %q", p.name, joins[0].Intent, joins[0].Host, tokenHost(end.Token))
	}
}

func sameBlock(a, b float64) bool { return math.Floor(a) == math.Floor(b) }

// consumedOnce reads the whole log: so many transfers, each with one arrival.
func (n *testNetwork) consumedOnce(t *testing.T, transfers int) {
	t.Helper()
	counts := consumedByTransfer(t, n.witness, n.keys)
	if len(counts) != transfers {
		t.Errorf("the log holds %d transfers, want %d", len(counts), transfers)
	}
	for id, count := range counts {
		if count != 1 {
			t.Errorf("transfer %s was consumed %d times", id, count)
		}
	}
}
