package actors

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Whoever stands in a lobby came to go on: what is in the way is said there as anywhere, and when it is gone in a
// moment the player goes on without asking again.
const (
	lobbyPatience = 15 * time.Second
	lobbyPause    = 500 * time.Millisecond
)

// passes tells that a refusal may be gone in a moment.
func passes(code events.Code) bool {
	return slices.Contains([]events.Code{events.KillSwitch, events.TransportDown, events.LineFull, events.RateLimited}, code)
}

// isLobby tells that the players of this server only leave it.
func (b *Backend) isLobby() bool { return b.cfg.Lobby || len(b.cfg.Regions) == 0 }

// errands are the players of a lobby for whom a request is tried again, each with its end.
type errands struct {
	mu sync.Mutex
	of map[events.PlayerID]*errand
}

type errand struct{ end context.CancelFunc }

// begin starts an errand in place of the player's last one.
func (e *errands) begin(ctx context.Context, p events.PlayerID) (_ context.Context, done func()) {
	ctx, cancel := context.WithTimeout(ctx, lobbyPatience)
	x := &errand{end: cancel}
	e.mu.Lock()
	defer e.mu.Unlock()
	if last := e.of[p]; last != nil {
		last.end()
	}
	if e.of == nil {
		e.of = map[events.PlayerID]*errand{}
	}
	e.of[p] = x
	return ctx, func() {
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.of[p] == x {
			delete(e.of, p)
		}
	}
}

// end takes back what is tried for a player; false: nothing is.
func (e *errands) end(p events.PlayerID) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	x := e.of[p]
	if x != nil {
		x.end()
	}
	return x != nil
}

// tryOn asks again for a player of a lobby who was told that a request is refused, until that has passed: then the
// player is told so, or of another reason. What has not passed in time was said.
func (b *Backend) tryOn(ctx context.Context, p Player, q events.RequestAsk) {
	at, here := b.here(p.ID)
	trying, done := b.errands.begin(ctx, p.ID)
	defer done()
	for here && b.stillHere(at) && sleep(trying, lobbyPause) {
		a := b.askOnce(trying, q)
		if trying.Err() != nil || passes(a.Code) {
			continue
		}
		key, args := answerText(a)
		if err := b.cfg.World.Tell(ctx, p, b.text(p, key, args)); err != nil {
			b.logger.Warn("answer not shown", "player", p.ID, "error", err)
		}
		return
	}
}

// inLobby tells that a transfer is to be looked at again before it ends: its player waits in a lobby, and
// has not for long.
func (d *Dispatcher) inLobby(s Standing) bool {
	b, q := d.view.Fleet().Backend(s.Session.Server), question{lobbies: d.routing.Load().lobbies}
	return s.HasSession && s.Session.Open && b != nil && q.isLobby(b) && d.Now().Sub(s.Active.Seen.Requested) < lobbyPatience
}

// attendLater looks at a transfer again in a while, as at a new one.
func (d *Dispatcher) attendLater(t projections.Transfer, pause time.Duration) {
	d.runs.end(t.ID)
	d.background(func(ctx context.Context) {
		if sleep(ctx, pause) {
			d.work.add(t.Player)
		}
	})
}
