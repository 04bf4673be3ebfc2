package archive

import (
	"context"
	"database/sql"
	"errors"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// keptIdle is how many players without an active transfer are held in memory at most; the
// others are taken out of the file when their next fact comes.
const keptIdle = 4096

// pages are the players that the folds hold in memory.
type pages struct {
	journeys *projections.Journeys
	held     map[events.PlayerID]*page
	idle     []events.PlayerID // whose states are written, oldest first; some may have become busy again
	lookup   *sql.Stmt
	// emptied: what the file holds of players is of before a gap, and about to be removed.
	emptied bool
}

type page struct {
	attempt *Attempt // the last one of the active transfer
	written bool     // the file has what is held
	queued  bool     // in idle
}

// take gives a player's page, out of the file if need be.
func (p *pages) take(ctx context.Context, id events.PlayerID) (*page, error) {
	if got, ok := p.held[id]; ok {
		return got, nil
	}
	var s state
	ok := false
	if !p.emptied {
		var err error
		if s, ok, err = readState(ctx, p.lookup, id); err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, err
		}
	}
	got := &page{}
	if ok {
		p.journeys.Put(id, s.Standing)
		got.attempt = s.Attempt
	}
	p.held[id] = got
	return got, nil
}

// state is what is to be written of a player.
func (p *pages) state(id events.PlayerID) state {
	s := state{Standing: p.journeys.Standing(id)}
	if s.Active != nil {
		s.Attempt = p.held[id].attempt
	}
	return s
}

// wrote notes that the states of a batch are in the file, and lets go of the players who
// have been idle for longest.
func (p *pages) wrote(b *batch) {
	p.emptied = p.emptied && !b.lost
	for id, s := range b.standing {
		got, ok := p.held[id]
		if !ok || !got.written {
			continue // another fact came meanwhile
		}
		if s.Active == nil && !got.queued {
			got.queued = true
			p.idle = append(p.idle, id)
		}
	}
	for len(p.idle) > keptIdle {
		id := p.idle[0]
		p.idle = p.idle[1:]
		got, ok := p.held[id]
		if !ok {
			continue
		}
		got.queued = false
		if got.written && p.journeys.Player(id).Active == nil {
			p.journeys.Drop(id)
			delete(p.held, id)
		}
	}
}
