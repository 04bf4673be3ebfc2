package network

import (
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/docs"
)

// changed is a value of its own for every live key.
const changed = `
reservation: { ttlSeconds: 40, claimReanimateMs: 4000, sweepIntervalMs: 500, arrivalWindowMs: 1000 }
loadBalancer:
  policy: leastPlayers
  staleAfterMs: 4000
  maxRetries: 5
  attemptTimeoutMs: 1000
  moveTimeoutMs: 4000
  cooldownMs: 0
  onNoCandidate: disconnect
  terms:
    mspt: { weight: 2, normalize: { min: -1, max: 1.5 }, curve: { type: power, p: 3 } }
    late: { input: tps, weight: 0.25 }
    recentPicks: { shared: true, halfLifeSeconds: 3 }
  backends: { survival-1: { weight: 0.5 } }
line: { enabled: false, maxSize: 7, graceSeconds: 0, notifySeconds: 6, drainPerSecond: 0.5, maxBypass: 0, maxAgeSeconds: 60 }
triggers: { command: { enabled: false }, join: { enabled: true, map: { play.a: { region: default } } }, event: { enabled: true, map: { arena-end: { region: default } } } }
routing: { prefer: local, regionCollision: refuse, crossServerPerSecond: 50, crossServerBurst: 1, stickyReturn: true }
permissions: may.yml
allocation: { scenes: scenes.yml, fallback: spare-1 }
api: { tokenPerSecond: 0.5, tokenBurst: 2, addressPerSecond: 3, addressBurst: 4, streams: 5 }
limits: { rtp: { cooldownSeconds: 60, perDay: 5, scope: server } }
messages: "of our own.yml"
`

// TestTakeOn: of another file all live keys and nothing else.
func TestTakeOn(t *testing.T) {
	for name, c := range map[string][2]string{
		"all of it": {small, small + changed}, "back to the defaults": {small + changed, small}, "the example": {small, string(docs.ExampleNetwork)},
	} {
		t.Run(name, func(t *testing.T) {
			started, next := parse(t, c[0]), parse(t, c[1])
			got, faults := started.TakeOn(next)
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			for _, x := range Diff(got, next) {
				if x.Live {
					t.Errorf("not taken on: %+v", x)
				}
			}
			for _, x := range Diff(started, got) {
				if !x.Live {
					t.Errorf("taken on: %+v", x)
				}
			}
		})
	}
}

// TestEveryLiveKeyIsTried: a key that becomes live is in the test above.
func TestEveryLiveKeyIsTried(t *testing.T) {
	tried := map[string]bool{}
	for _, x := range Diff(parse(t, small), parse(t, small+changed)) {
		tried[x.Key] = true
	}
	for _, k := range keys {
		found := !k.Live || k.Kind == Map
		entry, _, inMap := strings.Cut(k.Path, ">") // one that is added is told as a whole
		for key := range tried {
			found = found || pathPattern(k.Path).MatchString(key) || inMap && pathPattern(entry+">").MatchString(key)
		}
		if !found && !strings.Contains(k.Path, ".curve.") && !strings.Contains(k.Path, ".normalize.") && !strings.HasSuffix(k.Path, ".input") {
			t.Errorf("%s is live and not in the test", k.Path)
		}
	}
}

// TestTakeOnRefuses what contradicts the file that the process was started with.
func TestTakeOnRefuses(t *testing.T) {
	next := parse(t, strings.Replace(small, "survival-1", "survival-2", 1)+"loadBalancer: { policy: \"fixed:survival-2\" }\n")
	got, faults := parse(t, small).TakeOn(next)
	if len(faults) != 1 || faults[0].Error() != `loadBalancer.policy: "survival-2" is not under hosts, did you mean "survival-1"?; allowed: survival-1` {
		t.Errorf("%v, %v", got, faults)
	}
}

// TestPushed: what one file pushes holds on every host, over its own file, and reads back the same.
func TestPushed(t *testing.T) {
	pushes := parse(t, small+changed)
	got, faults := parse(t, small).WithPushed(pushes.Pushable())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for _, x := range Diff(got, pushes) {
		if keyOf(x.Key).Kind != Path { // each host's own file
			t.Errorf("differs after the push: %+v", x)
		}
	}
	if again, _ := got.WithPushed(pushes.Pushable()); again.Pushable() != pushes.Pushable() {
		t.Errorf("pushed again it is\n%s", again.Pushable())
	}
	if other := parse(t, strings.Replace(small+changed, "drainPerSecond: 0.5", "drainPerSecond: 0.50", 1)); other.Pushable() != pushes.Pushable() {
		t.Error("the same values have two forms")
	}
	same, _ := parse(t, small+changed).WithPushed(parse(t, small).Pushable())
	for _, x := range Diff(same, parse(t, small)) {
		if keyOf(x.Key).Kind != Path {
			t.Errorf("a map of the file outlived the push: %+v", x)
		}
	}
	older, faults := parse(t, small+"line: { maxBypass: 9 }\n").WithPushed("line: { maxSize: 5 }\n")
	if len(faults) > 0 || older.Line.MaxSize != 5 || older.Line.MaxBypass != 9 {
		t.Errorf("what an older version did not know is the file's: %v, %v", older, faults)
	}
}

func TestPushedIsRefusedWhole(t *testing.T) {
	n := parse(t, small)
	for name, c := range map[string]struct{ text, code, want string }{
		"a newer key":         {"line: { maxSize: 5, hurry: true }", CodeUnknownKey, "line.hurry: unknown key; allowed: enabled, maxSize, "},
		"a newer section":     {"weather: { rain: true }", CodeUnknownKey, "weather: unknown key; allowed: network, "},
		"a key of each start": {"heartbeat: { intervalMs: 500 }", CodeNotPushable, "heartbeat.intervalMs: cannot be replaced while hosts run"},
		"a path":              {"messages: theirs.yml", CodeNotPushable, "messages: cannot be replaced while hosts run"},
		"out of bounds":       {"line: { maxSize: 0 }", CodeOutOfBounds, "line.maxSize: 0 is not allowed"},
		"a contradiction":     {"loadBalancer: { policy: \"fixed:hub\" }", CodeUnknownHost, `loadBalancer.policy: "hub" is not under hosts`},
		"with what runs":      {"loadBalancer: { staleAfterMs: 500 }", CodeContradiction, "loadBalancer.staleAfterMs: 500 is less than two heartbeats"},
		"no YAML":             {"line: [", CodeSyntax, "not YAML: "},
		"no map":              {"- line", CodeSyntax, "the file is not a map of keys"},
		"an alias":            {"line: &a { maxSize: 5 }", CodeSyntax, "line: anchors, aliases and tags"},
	} {
		got, faults := n.WithPushed(c.text)
		if got != nil && len(faults) == 0 || len(faults) == 0 {
			t.Errorf("%s: taken", name)
			continue
		}
		if text := faults[0].Error(); !strings.HasPrefix(text, c.want) || faults[0].Code != c.code {
			t.Errorf("%s: %s %s", name, faults[0].Code, text)
		}
	}
}

// TestSections: where two files differ, whatever they look like, and that a host's own id is no difference.
func TestSections(t *testing.T) {
	names := func(a, b []Section) string {
		var out []string
		for _, x := range a {
			if !slices.Contains(b, x) {
				out = append(out, x.Name)
			}
		}
		return strings.Join(out, " ")
	}
	for name, c := range map[string]struct{ more, fixed, live string }{
		"nothing":        {"", "", ""},
		"a default":      {"line: { maxSize: 1024 }\nheartbeat: { intervalMs: 1000 }\n", "", ""},
		"live":           {"line: { maxSize: 5 }\nrouting: { prefer: local }\n", "", "line routing"},
		"fixed":          {"heartbeat: { intervalMs: 500 }\nrouting: { dispatchMode: proxy }\n", "heartbeat routing", ""},
		"another region": {"  hub: { advertise: \"10.0.0.9:1\", regions: { r: { exclude: [ { min: [0, 0], max: [1, 1] } ] } } }\n", "hosts", ""},
		"a path":         {"messages: other.yml\n", "messages", ""},
	} {
		from, to := parse(t, small), parse(t, small+c.more)
		if fixed, live := names(to.Fixed(), from.Fixed()), names(to.Pushables(), from.Pushables()); fixed != c.fixed || live != c.live {
			t.Errorf("%s: fixed %q, live %q", name, fixed, live)
		}
	}
	if other := parse(t, strings.Replace(small, "{ name: test,", "{ name: test, serverId: survival-1, proxyId: proxy-1,", 1)); names(other.Fixed(), parse(t, small).Fixed()) != "" {
		t.Error("who a host is makes a difference")
	}
	if listen := parse(t, strings.Replace(small, ":25565\" }", ":25566\" }", 1)); names(listen.Fixed(), parse(t, small).Fixed()) != "hosts" {
		t.Error("another edge makes no difference")
	}
}
