package rcon

import (
	"context"
	"fmt"
	"math"
	"strings"
	"sync"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// hazards are blocks nobody should be put on. The game's own search only
// leaves out liquids and fire.
func hazards() []string {
	return []string{
		"air", "cave_air", "void_air", "water", "lava", "fire", "soul_fire",
		"magma_block", "cactus", "campfire", "soul_campfire", "wither_rose",
		"sweet_berry_bush", "powder_snow", "pointed_dripstone", "bubble_column",
	}
}

// ground rules, narrowed when the server is too old to know a block.
type groundRules struct {
	mu    sync.Mutex
	avoid []string
}

func (g *groundRules) list() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.avoid
}

// without drops a block type this server does not have; false when it is not
// one of ours.
func (g *groundRules) without(block string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	kept := make([]string, 0, len(g.avoid))
	for _, b := range g.avoid {
		if b != block {
			kept = append(kept, b)
		}
	}
	dropped := len(kept) < len(g.avoid)
	g.avoid = kept
	return dropped
}

// Check looks again whether a player can stand there: two blocks of air, and
// under them a block that holds and does not hurt. actors.ErrUnsafe when not,
// also when the chunk is not loaded any more.
func (s *Sidecar) Check(ctx context.Context, at events.Position) error {
	act := fmt.Sprintf("check %.0f %.0f %.0f in %s", at.X, at.Y, at.Z, at.World)
	if err := checkPosition(act, at); err != nil {
		return err
	}
	for _, air := range []string{"air", "cave_air"} { // the air of caves is another block
		safe, err := s.stands(ctx, act, at, air)
		if safe || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w", act, actors.ErrUnsafe)
}

// stands asks for all conditions in one command: only when every one holds does
// the last say "Test passed".
func (s *Sidecar) stands(ctx context.Context, act string, at events.Position, air string) (bool, error) {
	for {
		reply, err := s.console.run(ctx, Work, s.console.own(standCommand(at, air, s.footing.list())))
		if err != nil {
			return false, err
		}
		if block, ok := unknownBlock(reply); ok && s.footing.without(block) {
			continue
		}
		passed, _ := parseTest(reply)
		if !passed && unknownCommand(reply) {
			return false, refused(act, reply)
		}
		return passed, nil
	}
}

func standCommand(at events.Position, air string, avoid []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "execute in %s positioned %d %d %d if block ~ ~ ~ %s if block ~ ~1 ~ %s",
		at.World, block(at.X), block(at.Y), block(at.Z), air, air)
	for _, name := range avoid {
		b.WriteString(" unless block ~ ~-1 ~ " + name)
	}
	return b.String()
}

func block(v float64) int { return int(math.Floor(v)) }
