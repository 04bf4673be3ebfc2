package sim_test

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// dice gives a number from 0 to below n.
type dice func(n int) int

func pick[T any](d dice, from []T) T { return from[d(len(from))] }

var (
	// pauses before each act, of a few players and of a crowd.
	pauses = []string{"0s", "0s", "1ms", "50ms", "200ms", "300ms", "700ms", "1s", "2s", "5s", "15s"}

	spells = []string{"500ms", "1s", "3s", "6s", "12s", "25s", "40s"}
	wishes = []string{"", "", "", "", "default", "wild", "c:default", "b:default", "d:wild", "atlantis", "not a place"}
	verbs  = []string{"reserve", "release", "move", "tell", "request", "arrived", "placed", "state", "joined", "left"}
	faults = []string{"happened", "lost", "refused"}
)

// ops are what may happen, each as often as it stands here.
var ops = slices.Concat(
	[]string{"pass"}, slices.Repeat([]string{"ask"}, 16), slices.Repeat([]string{"join"}, 6), slices.Repeat([]string{"start", "boot"}, 4),
	slices.Repeat([]string{"quit", "leave", "token", "kill", "crash", "stop", "cut"}, 2),
	[]string{"deaf", "zombie", "noack", "slow", "refuse", "barren", "spoil", "closed", "send", "place", "outage", "drop", "lose", "switch", "drain", "pause"},
)

// throw makes one line of a script.
func throw(d dice, players int, ops, pauses []string) string {
	player := func() string { return fmt.Sprintf("P%d", d(players)) }
	edge := func() events.HostID { return pick(d, chaosEdges) }
	server := func() events.HostID { return pick(d, chaosServers) }
	host := func() events.HostID { return pick(d, slices.Concat(chaosEdges, chaosServers)) }
	few := func() int { return 1 + d(3) }
	var out string
	switch op := pick(d, ops); op {
	case "ask":
		out = fmt.Sprint("ask ", player(), " ", pick(d, wishes))
	case "quit", "leave":
		out = fmt.Sprint(op, " ", player())
	case "join":
		out = fmt.Sprint("join ", player(), " ", edge())
	case "token":
		p := player()
		whose := pick(d, []string{p, p, p, player()})
		out = fmt.Sprint("token ", p, " ", edge(), " ", whose)
	case "deaf":
		out = fmt.Sprint("deaf ", player(), " ", pick(d, spells))
	case "kill", "start":
		out = fmt.Sprint(op, " ", host())
	case "zombie", "stop", "cut":
		out = fmt.Sprint(op, " ", host(), " ", pick(d, spells))
	case "noack", "refuse":
		out = fmt.Sprint(op, " ", host(), " ", few())
	case "slow":
		out = fmt.Sprint("slow ", host(), " ", pick(d, spells[:3]), " ", pick(d, spells))
	case "crash", "boot", "spoil":
		out = fmt.Sprint(op, " ", server())
	case "barren", "closed":
		out = fmt.Sprint(op, " ", server(), " ", pick(d, spells))
	case "send", "place":
		out = fmt.Sprint(op, " ", server(), " ", pick(d, faults), " ", few())
	case "outage", "switch":
		out = fmt.Sprint(op, " ", pick(d, spells))
	case "drop", "lose":
		out = fmt.Sprint(op, " ", pick(d, verbs), " ", few())
	case "pause":
		what := pick(d, pausable)
		out = fmt.Sprint("pause ", strings.TrimSuffix(what[0]+":"+what[1], ":"), " ", pick(d, spells))
	case "drain":
		out = fmt.Sprint("drain ", host(), " ", pick(d, spells))
	default:
		out = op
	}
	return pick(d, pauses) + " " + strings.TrimSpace(out)
}

// inChecks runs a property n times, on scripts that are the same each time; the command line
// may ask for more of them, or for others (-rapid.checks, -rapid.seed).
func inChecks(t *testing.T, n int, prop func(*rapid.T)) {
	t.Helper()
	for name, value := range map[string]int{"rapid.checks": n, "rapid.seed": 7} {
		if isGiven(name) {
			continue
		}
		f := flag.Lookup(name).Value
		before := f.String()
		if err := f.Set(strconv.Itoa(value)); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Set(before) }()
	}
	rapid.Check(t, prop)
}

// The promises of the whole network, whatever happens in whatever order.
func TestChaos(t *testing.T) {
	seen := map[string]int{}
	inChecks(t, 20, func(rt *rapid.T) {
		script := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) string {
			return throw(func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "") }, chaosPlayers, ops, pauses)
		}), 40, 100).Draw(rt, "script")
		script = slices.DeleteFunc(script, func(s string) bool { return s == "0s pass" }) // what shrinking leaves of a line
		latency := rapid.SampledFrom([]time.Duration{0, 5 * time.Millisecond, 40 * time.Millisecond}).Draw(rt, "latency")
		v := runChaos(t, chaosNet{players: chaosPlayers, store: inMemory(streamtest.WithLatency(latency)), quiet: true}, script)
		if len(v.bad) > 0 {
			rt.Fatalf("%s\n\tlatency %s, %q\n%s", strings.Join(v.bad, "\n"), latency, script, v.story)
		}
		for name, n := range v.seen {
			seen[name] += n
		}
	})
	t.Log(seen)
}

// isGiven tells that a flag stands on the command line.
func isGiven(name string) bool {
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == name })
	return given
}
