//go:build crowd

package sim_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// crowdPauses lie between the steps of a crowd.
var crowdPauses = []string{"0s", "0s", "0s", "1ms", "20ms", "50ms", "200ms", "500ms", "2s"}

// crowdOps are mostly wishes.
var crowdOps = slices.Concat(ops, slices.Repeat([]string{"ask"}, 400), slices.Repeat([]string{"start", "boot"}, 8))

// The chaos with a crowd, not part of the everyday tests: go test -tags crowd -run Crowd ./actors/sim.
// 4,000 steps, or as many as 10,000 when many checks are asked for.
// The schedule is the same each time, or that of -rapid.seed.
func TestChaosOfACrowd(t *testing.T) {
	const players = 200
	steps, seed := 4000, uint64(7)
	if n, err := strconv.Atoi(flag.Lookup("rapid.checks").Value.String()); err == nil && isGiven("rapid.checks") {
		steps = min(100*n, 10000)
	}
	if isGiven("rapid.seed") {
		seed, _ = strconv.ParseUint(flag.Lookup("rapid.seed").Value.String(), 10, 64)
	}
	rnd := rand.New(rand.NewPCG(seed, 11)) //nolint:gosec // a schedule that can be repeated
	script := make([]string, 0, steps)
	for range steps {
		script = append(script, throw(rnd.IntN, players, crowdOps, crowdPauses))
	}
	v := runChaos(t, chaosNet{players: players, latency: 2 * time.Millisecond, quiet: true, restless: true}, script)
	if len(v.bad) > 0 {
		t.Fatalf("seed %d: %s\n%s", seed, strings.Join(v.bad, "\n"), v.story)
	}
	t.Log(v.seen)
}
