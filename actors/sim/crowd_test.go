package sim_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/streams/streamtest"
)

var (
	crowdPlayers = flag.Int("crowd.players", 200, "players of the crowds")
	crowdSteps   = flag.Int("crowd.steps", 0, "steps of the crowds; 0: as many as everyday tests take")
	crowdSeed    = flag.Uint64("crowd.seed", 7, "what makes the schedule of the crowds")
)

// crowdPauses lie between the steps of a crowd.
var crowdPauses = []string{"0s", "0s", "0s", "1ms", "20ms", "50ms", "200ms", "500ms", "2s"}

// crowdOps are mostly wishes.
var crowdOps = slices.Concat(ops, slices.Repeat([]string{"ask"}, 400), slices.Repeat([]string{"start", "boot"}, 8))

// crowdLatency is that of each way to or from the store.
const crowdLatency = 2 * time.Millisecond

// runCrowd is the chaos with many players, whose schedule is the same each time.
func runCrowd(t *testing.T, everyday int, open opener) {
	t.Helper()
	steps := *crowdSteps
	if steps == 0 {
		steps = everyday
	}
	rnd := rand.New(rand.NewPCG(*crowdSeed, 11)) //nolint:gosec // a schedule that can be repeated
	script := make([]string, 0, steps)
	for range steps {
		script = append(script, throw(rnd.IntN, *crowdPlayers, crowdOps, crowdPauses))
	}
	v := runChaos(t, chaosNet{players: *crowdPlayers, store: open, pace: 1, quiet: true, restless: true}, script)
	t.Logf("seed %d, %d players, %d steps: %v", *crowdSeed, *crowdPlayers, steps, v.seen)
	if len(v.bad) > 0 {
		t.Fatalf("%s\n%s", strings.Join(v.bad, "\n"), v.story)
	}
}

func TestCrowdInMemory(t *testing.T) {
	runCrowd(t, 2000, inMemory(streamtest.WithLatency(crowdLatency)))
}

func TestCrowdOnR1(t *testing.T) { runCrowd(t, 500, onR1(t, crowdLatency)) }
