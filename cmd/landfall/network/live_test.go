package network

import (
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
  terms:
    mspt: { weight: 2, normalize: { min: -1, max: 1.5 }, curve: { type: power, p: 3 } }
    late: { input: tps, weight: 0.25 }
    recentPicks: { shared: true, halfLifeSeconds: 3 }
  backends: { survival-1: { weight: 0.5 } }
line: { enabled: false, maxSize: 7, graceSeconds: 0, notifySeconds: 6, drainPerSecond: 0.5, maxBypass: 0, maxAgeSeconds: 60 }
triggers: { command: { enabled: false } }
routing: { prefer: local, regionCollision: refuse, crossServerPerSecond: 50, crossServerBurst: 1 }
permissions: may.yml
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
		for key := range tried {
			found = found || pathPattern(k.Path).MatchString(key) || strings.HasPrefix(k.Path, "loadBalancer.backends.") && key == "loadBalancer.backends.survival-1"
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
	if len(faults) != 1 || faults[0].Error() != `loadBalancer.policy: "survival-2" is not under hosts; allowed: proxy-1, survival-1` {
		t.Errorf("%v, %v", got, faults)
	}
}
