package actors

import (
	"context"
	"strings"
)

// What a player in line is told by this backend alone: while the network is out of reach no
// dispatcher can tell the player anything.

// noteWait remembers who is in line, by what the dispatchers tell.
func (b *Backend) noteWait(p presence, message string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now, here := b.present[p.ID]
	switch {
	case !here || now.join != p.join:
	case message == "transfer.waiting" || message == "transfer.position":
		now.waits = true
	case strings.HasPrefix(message, "failed."):
		now.waits = false
	}
}

// tellOutages tells those in line, once in an outage, that it is one. An outage is when this
// backend's heartbeats have not been taken for twice as long as it takes to count as silent.
func (b *Backend) tellOutages(ctx context.Context, l *life) error {
	told := false
	late := 0 // looks in a row; one alone is also what a process sees that has slept
	for sleep(ctx, b.timing.Load().Stale) {
		if !l.outOfReach(b.timing.Load().Stale) {
			late, told = 0, false
			continue
		}
		if late++; late < 2 || told {
			continue
		}
		told = true
		for _, p := range b.everybody() {
			if p.waits {
				_ = b.cfg.World.Tell(ctx, p.Player, b.text(p.Player, "transfer.interrupted", nil))
			}
		}
	}
	return ctx.Err()
}
