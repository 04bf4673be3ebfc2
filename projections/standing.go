package projections

import (
	"maps"
	"time"

	"github.com/landfall/landfall/events"
)

// Standing is what Journeys holds of one player: enough to go on folding in another process,
// or later.
type Standing struct {
	Guard  uint64    `json:"guard"`
	Stored time.Time `json:"stored"` // when the message at Guard was stored
	Active *Transfer `json:"active,omitempty"`
	// Done are the newest ended transfers, oldest first.
	Done   []events.TransferID       `json:"done,omitempty"`
	Strays map[events.TransferID]int `json:"strays,omitempty"` // messages under keys that no request has opened
}

// NewPagedJourneys is the empty fold of a stream that starts at first and keeps a message for
// so long (0: for ever), for a caller who holds part of the players only: it puts a player's
// Standing in before a fact of that player, and may Drop it afterwards. It keeps no line.
func NewPagedJourneys(first uint64, keeps time.Duration) *Journeys {
	j := NewJourneys(first)
	j.keeps, j.line = keeps, nil
	return j
}

// Holds tells that facts of a player have been folded, or a Standing was put in.
func (j *Journeys) Holds(id events.PlayerID) bool { return j.players[id] != nil }

// Standing gives what is held of a player; the zero value when nothing is.
func (j *Journeys) Standing(id events.PlayerID) Standing {
	p, ok := j.players[id]
	if !ok {
		return Standing{}
	}
	s := Standing{Guard: p.last, Stored: p.stored, Strays: maps.Clone(p.strays)}
	if p.busy() {
		t := p.current
		s.Active = &t
	}
	for i := range p.done {
		s.Done = append(s.Done, p.done[i].ID)
	}
	return s
}

// Put goes on from a Standing. What ended before is known by its id alone.
func (j *Journeys) Put(id events.PlayerID, s Standing) {
	j.Drop(id)
	p := &journey{last: s.Guard, stored: s.Stored, strays: maps.Clone(s.Strays)}
	j.players[id] = p
	for _, done := range s.Done {
		p.done = append(p.done, Transfer{ID: done, Player: id})
		j.byID[done] = id
	}
	if s.Active != nil {
		p.current = *s.Active
		j.byID[p.current.ID], j.active[id] = id, p
		j.inLine(Transfer{}, p.current, p.current.Seen.Last)
	}
}

// Drop lets go of a player. The caller keeps the Standing for that player's next fact.
func (j *Journeys) Drop(id events.PlayerID) {
	p, ok := j.players[id]
	if !ok {
		return
	}
	if p.busy() {
		j.inLine(p.current, Transfer{}, p.current.Seen.Last)
		delete(j.byID, p.current.ID)
	}
	for i := range p.done {
		delete(j.byID, p.done[i].ID)
	}
	delete(j.active, id)
	delete(j.players, id)
}
