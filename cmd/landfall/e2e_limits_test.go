package main

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// testLimits: what a player reads who may not, and who has just been moved; that the rest ends,
// on whichever edge; and that an event moves the player.
func testLimits(t *testing.T, binary string) {
	a, b := startServer(t, "A", "1.21.1"), startServer(t, "B", "1.21.1")
	crowd := startPlayers(t, "1.21.1")
	a.ready(t)
	b.ready(t)
	edges := [2]int{freePort(t), freePort(t)}
	n := newTestNetwork(t, binary, carriedYAML("proxy-1", freePort(t))+fast+
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline }\n", domain, edges[0])+
		"limits: { rtp: { cooldownSeconds: 6 } }\n"+
		"triggers: { command: { aliases: [rtp, wild] }, event: { enabled: true, map: { arena-end: { region: west } } } }\n"+
		"hosts:\n"+edgeYAML("proxy-1", edges[0])+edgeYAML("proxy-2", edges[1])+
		backendYAML(a, "A", "arena: { keep: 1 }, north: { keep: 2 }", "")+backendYAML(b, "B", "west: { keep: 3 }", ""))
	n.write(t, "permissions.yml", "groups: { grounded: { deny: [rtp.regions.north], players: [LEA] } }\n")
	n.up(t, "proxy-1", "proxy-2", "A", "B")
	n.ready(t, "A")
	n.ready(t, "B")

	lea := crowd.player("Lea")
	lea.join(t, domain, edges[0], "dialPort", edges[0], "followPort", edges[1])
	n.standsOn(t, lea.name)
	mark := lea.mark()
	lea.triggers(t, "rtp")
	lea.reads(t, mark, "You have arrived.")
	first := n.ended(t, lea.name)
	if first.Phase != projections.Completed {
		t.Fatalf("the first transfer ended %s %s", first.Phase, first.Code)
	}
	mark = lea.mark()
	lea.triggers(t, "wild set 3")
	lea.reads(t, mark, "You may not do that here (you lack rtp.regions.north).")
	mark = lea.mark()
	lea.triggers(t, "wild")
	lea.reads(t, mark, "You have only just been moved. Please try again in ")
	for rested := false; !rested; {
		mark = lea.mark()
		lea.triggers(t, "wild")
		lea.sees(t, mark, "an answer", func(e happening) bool {
			rested = strings.Contains(e.Text, "Looking for a place")
			return e.Ev == "chat" && (rested || strings.Contains(e.Text, "You have only just been moved."))
		})
	}
	lea.reads(t, mark, "You have arrived.")
	n.until(t, "the second transfer", func() bool { return len(n.Player(events.OfflinePlayer(lea.name)).Done) == 2 })
	if holder, _ := n.Session(events.OfflinePlayer(lea.name)); holder.Holder != "proxy-2" {
		t.Errorf("the session is held by %s, want the other edge", holder.Holder)
	}

	mark = lea.mark()
	cmd := exec.CommandContext(t.Context(), binary, "trigger", "arena-end", "--player", "lea", "--config", "network.yml")
	cmd.Dir, cmd.Env = n.dir, append(os.Environ(), "RTP_NET_SECRET="+n.secret)
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "ACCEPTED") {
		t.Fatalf("trigger: %v\n%s", err, out)
	}
	lea.reads(t, mark, "You have arrived.")
	n.until(t, "the third transfer", func() bool { return len(n.Player(events.OfflinePlayer(lea.name)).Done) == 3 })
	last := n.Player(events.OfflinePlayer(lea.name)).Done[2]
	if last.Phase != projections.Completed || last.Destination() != "B" || last.Request.Via != "arena-end" {
		t.Errorf("the event's transfer ended %s %s at %q, asked for by %+v", last.Phase, last.Code, last.Destination(), last.Request)
	}
	n.consumedOnce(t, 3)
}
