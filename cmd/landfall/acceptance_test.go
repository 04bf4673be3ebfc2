//go:build acceptance

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

// bots is how many players the acceptance plays with. HAProxy gives every other one to the
// same edge.
const bots = 10

// TestAcceptance is a network as an operator runs it: two proxies and two backends, real
// clients, one HAProxy in front of both edges, and the log on one of the proxies or on three
// nats-servers. Edges and stores are killed while players move.
func TestAcceptance(t *testing.T) {
	if _, err := exec.LookPath("haproxy"); err != nil {
		t.Fatal("haproxy is not on the PATH: install it (apt-get install haproxy); the acceptance plays through it")
	}
	installNode(t)
	binary := filepath.Join(t.TempDir(), "landfall")
	output(t, ".", "go", "build", "-o", binary, ".")
	t.Run("store in a proxy", func(t *testing.T) { accept(t, binary, &carried{port: freePort(t)}) })
	t.Run("store on three nats-servers", func(t *testing.T) { accept(t, binary, newCluster(t)) })
}

func accept(t *testing.T, binary string, store keeper) {
	x := newAcceptance(t, binary, store)
	t.Run("players change servers", x.crossing)
	t.Run("an edge is killed", x.edgeKilled)
	t.Run("the store is killed", x.storeKilled)
	t.Run("the log", x.log)
}

// acceptance is a network behind one HAProxy.
type acceptance struct {
	*testNetwork
	t        *testing.T // of the topology: processes live as long as it does
	store    keeper
	balancer *process
	servers  map[events.HostID]*gameServer
	players  []*traveller
	runs     []*process // every life of every host
	port     int        // where players dial
}

func newAcceptance(t *testing.T, binary string, store keeper) *acceptance {
	t.Helper()
	x := &acceptance{t: t, store: store, port: freePort(t), servers: map[events.HostID]*gameServer{}}
	for _, id := range []events.HostID{"A", "B"} {
		x.servers[id] = startServer(t, string(id), "1.21.1", "--pp2", "true")
	}
	crowd := startPlayers(t, "1.21.1")
	edges := [2]int{freePort(t), freePort(t)}
	x.balancer = balance(t, x.port, edges)
	// A wish typed as the connection dies stays on that server's scoreboard: who comes back is routed there, and it is served.
	x.testNetwork = newTestNetwork(t, binary, store.yaml()+"routing: { stickyReturn: true }\n"+exchange(t, fast, "ttlSeconds: 8", "ttlSeconds: 15")+
		fmt.Sprintf("edge: { domain: %s, port: %d, identity: offline, trustedProxies: [ \"127.0.0.0/8\" ] }\n", domain, x.port)+
		"hosts:\n"+edgeYAML("proxy-1", edges[0])+edgeYAML("proxy-2", edges[1])+
		backendYAML(x.servers["A"].ready(t), "A", "default: { keep: 12 }", ", proxyProtocol: v2")+
		backendYAML(x.servers["B"].ready(t), "B", "default: { keep: 12 }", ", proxyProtocol: v2"))
	store.start(t, x)
	x.launch(t, "proxy-1", "proxy-2", "A", "B")
	x.witness = watchStore(t, source{url: store.url(), trust: trust{secrets: [][]byte{x.key}}}, x.keys)
	x.ready(t, "A")
	x.ready(t, "B")
	for i := range bots {
		x.players = append(x.players, &traveller{player: crowd.player(fmt.Sprintf("Bot%d", i)), address: fmt.Sprintf("127.7.0.%d", i+1)})
	}
	return x
}

// balance starts HAProxy as docs/haproxy.cfg has it.
func balance(t *testing.T, port int, edges [2]int) *process {
	t.Helper()
	text, err := os.ReadFile("../../docs/haproxy.cfg")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "haproxy.cfg")
	config := exchange(t, string(text), "bind :25565", fmt.Sprintf("bind 127.0.0.1:%d", port),
		"10.0.0.11:25565", fmt.Sprintf("127.0.0.1:%d", edges[0]), "10.0.0.12:25565", fmt.Sprintf("127.0.0.1:%d", edges[1]), "inter 1s", "inter 100ms", "maxconn 20000", "maxconn 200")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return launch(t, "haproxy", ".", nil, (*process).kill, "haproxy", "-db", "-f", file)
}

// launch starts hosts, and waits until they are ready and HAProxy sees those that are edges.
func (x *acceptance) launch(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		x.balanced(t, id, false)
		x.hosts[id] = x.host(x.t, id)
		x.runs = append(x.runs, x.hosts[id])
	}
	for _, id := range ids {
		x.hosts[id].says(t, "msg=ready proxy=")
		x.balanced(t, id, true)
	}
}

// balanced waits until HAProxy has noticed that an edge is up, or is down. It takes both for
// up at first.
func (x *acceptance) balanced(t *testing.T, id string, up bool) {
	t.Helper()
	if !strings.HasPrefix(id, "proxy-") {
		return
	}
	x.balancer.wait(t, fmt.Sprintf("%s up: %v", id, up), func() bool {
		is := true
		for _, line := range x.balancer.lines {
			if strings.Contains(line, "Server edges/"+id+" is ") {
				is = strings.Contains(line, " is UP")
			}
		}
		return is == up
	})
}

// traveller is a player with an address of its own, who dials again when the connection is lost.
type traveller struct {
	player
	address string
	ended   int           // transfers of the player that had ended before the last wish
	mark    int           // what the player had seen before it
	from    events.HostID // where the player stood
}

func (w *traveller) id() events.PlayerID { return events.OfflinePlayer(w.name) }

// wish asks for a place somewhere.
func (x *acceptance) wish(t *testing.T, w *traveller) {
	t.Helper()
	w.from, w.ended, w.mark = x.standsOn(t, w.name), len(x.Player(w.id()).Done), w.process.mark()
	w.triggers(t, "rtp")
}

// crossing: everybody goes from one server to the other, through HAProxy twice.
func (x *acceptance) crossing(t *testing.T) {
	for _, w := range x.players {
		w.join(t, domain, x.port, "from", w.address, "again", 100)
	}
	joined := x.spread(t)
	for _, w := range x.players {
		x.wish(t, w)
	}
	for _, w := range x.players {
		w.reads(t, w.mark, "You have arrived.")
		x.arrived(t, w, w.from)
	}
	t.Logf("held by edge: %v after the joins, %v after the moves", joined, x.spread(t))

	end := x.ended(t, x.players[0].name)
	story := x.landfall(t, "replay", "token", end.Token.String(), "--store", x.store.url(), "--config", "network.yml")
	for _, words := range []string{"requested", "decision", "reserved", "claimed", "consumed", "completed", "end: COMPLETED on " + string(end.Destination()), "all signatures verified"} {
		if !strings.Contains(story, words) {
			t.Errorf("the replay of %s does not tell %q:\n%s", end.Token, words, story)
		}
	}
}

// spread tells how many players each edge holds; both must have some.
func (x *acceptance) spread(t *testing.T) map[events.HostID]int {
	t.Helper()
	by := map[events.HostID]int{}
	for _, w := range x.players {
		x.standsOn(t, w.name)
		s, _ := x.Session(w.id())
		by[s.Holder]++
	}
	if by["proxy-1"] == 0 || by["proxy-2"] == 0 {
		t.Errorf("HAProxy gave all players to one edge: %v", by)
	}
	return by
}

// arrived holds what the destination and the client saw of a completed transfer against the
// log: the token in the host name, the address of the real client, the place to the block.
func (x *acceptance) arrived(t *testing.T, w *traveller, from events.HostID) {
	t.Helper()
	end := x.ended(t, w.name)
	if end.Phase != projections.Completed || end.Destination() == from {
		t.Errorf("%s: the transfer from %s ended %s %s at %q", w.name, from, end.Phase, end.Code, end.Destination())
		return
	}
	want, got := end.Reserved.At, w.lastPosition()
	if !sameBlock(want.X, got.X) || !sameBlock(want.Y, got.Y) || !sameBlock(want.Z, got.Z) {
		t.Errorf("%s stands at %v %v %v, reserved was %+v", w.name, got.X, got.Y, got.Z, want)
	}
	for id, server := range x.servers {
		for _, join := range server.joins(w.name) {
			if !strings.HasPrefix(join.Addr, w.address+":") {
				t.Errorf("%s joined %s from %s, is at %s", w.name, id, join.Addr, w.address)
			}
		}
	}
	joins := x.servers[end.Destination()].joins(w.name)
	if last := joins[len(joins)-1]; last.Intent != 3 || last.Host != tokenHost(end.Token) {
		t.Errorf("%s: the destination saw intent %d and host %q, want 3 and %q", w.name, last.Intent, last.Host, tokenHost(end.Token))
	}
}

// edgeKilled: one edge dies while some of its players were told to go, some have just asked,
// and those of the other edge are under way. All come back through the edge that is left.
func (x *acceptance) edgeKilled(t *testing.T) {
	var its, others []*traveller
	for _, w := range x.players {
		if s, _ := x.Session(w.id()); s.Holder == "proxy-2" {
			its = append(its, w)
		} else {
			others = append(others, w)
		}
	}
	if len(its) < 3 {
		t.Fatalf("proxy-2 holds %d players only", len(its))
	}
	told := its[:len(its)/2]
	for _, w := range told {
		w.do(t, "set", "follow", false)
		x.wish(t, w)
		w.sees(t, w.mark, "a transfer", func(e happening) bool { return e.Ev == "transfer" })
		w.sees(t, w.mark, "the end of the connection", func(e happening) bool { return e.Ev == "end" })
	}
	for _, w := range slices.Concat(others, its[len(told):]) {
		x.wish(t, w)
	}
	x.hosts["proxy-2"].kill()
	for _, w := range told {
		w.do(t, "follow")
		w.do(t, "set", "follow", true)
	}
	for _, w := range told {
		w.reads(t, w.mark, "You have arrived.")
		x.arrived(t, w, w.from)
	}
	x.settled(t)
	x.launch(t, "proxy-2")
}

// storeKilled: the process that matters most to the log dies while everybody is under way.
// What can go on without it does; nothing is left open.
func (x *acceptance) storeKilled(t *testing.T) {
	for _, w := range x.players {
		x.wish(t, w)
	}
	x.until(t, "a transfer that is reserved", func() bool {
		return slices.ContainsFunc(x.Active(), func(a projections.Transfer) bool { return a.Reserved != nil })
	})
	x.store.kill(t, x)
	if x.store.outlives() {
		x.settled(t)
		x.everybodyMoves(t)
	}
	x.store.revive(t, x)
	x.settled(t)
	x.everybodyMoves(t)
}

// everybodyMoves: all that was killed is made up for, so every wish is fulfilled.
func (x *acceptance) everybodyMoves(t *testing.T) {
	t.Helper()
	x.ready(t, "A")
	x.ready(t, "B")
	for _, w := range x.players {
		x.wish(t, w)
	}
	for _, w := range x.players {
		w.reads(t, w.mark, "You have arrived.")
		x.arrived(t, w, w.from)
	}
}

// settled waits until every wish has come to an end that the player was told, or that the log
// shows, and every player is in the game again.
func (x *acceptance) settled(t *testing.T) {
	t.Helper()
	ends := map[string]int{}
	for _, w := range x.players {
		var end string
		settled(t, "an end of the wish of "+w.name, func() bool {
			end = x.endOf(w)
			return end != ""
		})
		ends[end]++
		settled(t, w.name+" in the game", func() bool { return w.plays() })
		x.standsOn(t, w.name)
	}
	t.Logf("ends: %v", ends)
	for _, w := range x.players {
		if end := x.endOf(w); strings.HasPrefix(end, string(projections.Failed)) {
			t.Logf("%s, %s:\n%s", w.name, end, x.landfall(t, "replay", "player", w.id().String(), "--store", x.store.url()))
		}
	}
	if open := x.Active(); len(open) > 0 {
		t.Errorf("transfers are open: %+v", open)
	}
}

// endOf is how the last wish of a player ended, "" while it has not: as the log has it, or as
// the player was told, or would have been told who was gone already.
func (x *acceptance) endOf(w *traveller) string {
	p := x.Player(w.id())
	switch {
	case p.Active != nil:
		return ""
	case len(p.Done) > w.ended:
		last := p.Done[len(p.Done)-1]
		return strings.TrimSuffix(fmt.Sprintf("%s %s", last.Phase, last.Code), " "+string(events.OK))
	case slices.ContainsFunc(w.happened()[w.mark:], func(e happening) bool { return e.Bot == w.name && e.Ev == "chat" && isRefusal(e.Text) }):
		return "refused"
	case slices.ContainsFunc(x.runs, func(h *process) bool { return len(h.saying("answer not shown", w.id().String())) > 0 }):
		return "refused, player gone"
	}
	return ""
}

// isRefusal tells a text that ends a wish before it became a transfer.
func isRefusal(text string) bool {
	for key, shipped := range actors.ShippedMessages() {
		if fixed, _, _ := strings.Cut(shipped, "{"); strings.HasPrefix(key, "refused.") && strings.HasPrefix(text, fixed) {
			return true
		}
	}
	return false
}

// plays tells that the client was put somewhere since it last lost a connection.
func (w *traveller) plays() bool {
	in := false
	for _, e := range w.happened() {
		if e.Bot == w.name && e.Ev != "chat" {
			in = e.Ev == "position"
		}
	}
	return in
}

// log: what was acknowledged is there once, and nothing happened twice.
func (x *acceptance) log(t *testing.T) {
	at, ids := map[uint64]events.Event{}, map[events.EventID]uint64{}
	count := map[string]int{} // facts by kind and token, or by kind and transfer
	for r, err := range x.witness.store.History(t.Context(), events.Transfers, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		e, refusal := events.Open(x.keys, r)
		if refusal != nil {
			t.Fatalf("fact %d: %v", r.Seq, refusal)
		}
		if first, twice := ids[e.ID]; twice {
			t.Errorf("fact %s stands at %d and at %d", e.ID, first, e.Seq)
		}
		at[e.Seq], ids[e.ID] = e, e.Seq
		switch f := e.Fact.(type) {
		case *events.Claimed:
			count[fmt.Sprintf("claimed %s-%d", e.Correlation, f.Attempt)]++
		case *events.Reopened:
			count[fmt.Sprintf("claimed %s-%d", e.Correlation, f.Attempt)]--
		case *events.Consumed:
			count[fmt.Sprintf("consumed %s", e.Correlation)]++
		case *events.Completed:
			count[fmt.Sprintf("completed %s", e.Correlation)]++
		default: // may happen again
		}
	}
	for what, n := range count {
		if n != 1 {
			t.Errorf("%s: %d times", what, n)
		}
	}
	x.acknowledged(t, at)
}

// acknowledged holds what the hosts logged as written, and what was seen of the log while it
// grew, against what it holds now.
func (x *acceptance) acknowledged(t *testing.T, at map[uint64]events.Event) {
	t.Helper()
	written := regexp.MustCompile(`msg=transfer .*fact=(\S+) seq=(\d+)`)
	n := 0
	for _, h := range x.runs {
		for _, line := range h.saying("msg=transfer ", " fact=") {
			m := written.FindStringSubmatch(line)
			seq, err := strconv.ParseUint(m[2], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			n++
			if got := events.TypeName(at[seq].Fact); got != m[1] {
				t.Errorf("%s wrote %s at %d, the log has %s there", h.name, m[1], seq, got)
			}
		}
	}
	for _, seen := range x.seen() {
		if at[seen.Seq].ID != seen.ID {
			t.Errorf("%d was seen as %s %T, the log has %s there", seen.Seq, seen.ID, seen.Fact, at[seen.Seq].ID)
		}
	}
	t.Logf("%d facts, %d of them acknowledged in the logs of the hosts, %d seen as they came", len(at), n, len(x.seen()))
	if n == 0 || len(x.seen()) < len(at) {
		t.Error("too few to tell")
	}
}
