package projections

import (
	"fmt"
	"time"

	"github.com/landfall/landfall/events"
)

// Journeys folds the bucket transfers: what every player's transfer is, and where each
// player's guard stands.
type Journeys struct {
	first   uint64        // first sequence of the stream: what lies below is gone
	keeps   time.Duration // how long the stream keeps a message, 0: for ever
	players map[events.PlayerID]*journey
	byID    map[events.TransferID]events.PlayerID
	active  map[events.PlayerID]*journey
	line    *Line // nil: nobody asks for positions
	forgot  bool  // Forget has dropped somebody

	settled   map[events.PlayerID]uint64 // guards of players of whom nothing else is held
	settledAt time.Time
}

type journey struct {
	last    uint64    // the guard: last sequence of any message under the player
	stored  time.Time // and when it was stored, zero when that is not known
	current Transfer
	done    []Transfer                // the newest ended ones, oldest first
	strays  map[events.TransferID]int // messages under keys that no request has opened; nil when there are none
}

// keptDone is how many ended transfers of a player stay readable in memory.
const keptDone = 4

// NewJourneys is the empty fold of a stream that starts at first.
func NewJourneys(first uint64) *Journeys {
	return &Journeys{
		first:   first,
		players: map[events.PlayerID]*journey{},
		byID:    map[events.TransferID]events.PlayerID{},
		active:  map[events.PlayerID]*journey{},
		line:    NewLine(),
		settled: map[events.PlayerID]uint64{},
	}
}

// Apply folds one fact. A refusal means: state unchanged, and this is why.
func (j *Journeys) Apply(e events.Event, seen time.Time) *events.Refusal {
	player, transfer, err := events.ParseTransferKey(e.Key)
	if err != nil {
		return events.Refuse(events.Malformed, err.Error())
	}
	p := j.player(player)
	prev, age := p.last, e.Stored.Sub(p.stored)
	p.last, p.stored = e.Seq, e.Stored
	if !j.follows(e.Prev, prev, age) {
		j.stray(p, transfer, e.Seq)
		return events.Refuse(events.WrongPrev, fmt.Sprintf("written on top of sequence %d, but %d came before", e.Prev, prev))
	}
	fact, ok := e.Fact.(events.TransferFact)
	if !ok || e.Correlation != transfer {
		j.stray(p, transfer, e.Seq)
		return events.Refuse(events.Malformed, "not a fact of transfer "+transfer.String())
	}
	return j.fold(p, player, transfer, e, fact, seen)
}

// follows tells that a fact's guard fits what this fold holds of the player. Retention may
// have taken the previous message, on the store (then the guard is 0 again, and the fact is
// younger by an age that the stream does not keep), or before this fold began; and what Forget
// dropped cannot be checked.
func (j *Journeys) follows(prev, held uint64, age time.Duration) bool {
	if held != 0 {
		return prev == held || prev == 0 && (held < j.first || j.keeps > 0 && age >= j.keeps)
	}
	return prev < j.first || prev == 0 || j.forgot
}

func (j *Journeys) fold(p *journey, player events.PlayerID, transfer events.TransferID, e events.Event, fact events.TransferFact, seen time.Time) *events.Refusal {
	if req, ok := fact.(*events.Requested); ok {
		if p.busy() || p.ended(transfer) {
			j.stray(p, transfer, e.Seq)
			return events.Refuse(events.Impossible, "a transfer is active or this one has ended")
		}
		p.current = Begin(e, player, req, seen)
		j.byID[transfer] = player
		j.active[player] = p
		j.inLine(Transfer{}, p.current, seen)
		for range p.takeStrays(transfer) {
			j.stray(p, transfer, e.Seq)
		}
		return nil
	}
	if p.current.ID != transfer || !p.busy() {
		j.stray(p, transfer, e.Seq)
		return events.Refuse(events.Impossible, events.TypeName(fact)+" without an active transfer")
	}
	before := p.current
	next, refusal := p.current.Apply(e.Seq, fact, seen)
	j.set(p, next)
	j.inLine(before, next, seen)
	return refusal
}

// stray counts a message that changed nothing: it takes a place under its key all the same.
func (j *Journeys) stray(p *journey, transfer events.TransferID, seq uint64) {
	switch {
	case p.current.ID == transfer && p.busy():
		before := p.current
		next := before.counted(seq)
		j.set(p, next)
		j.inLine(before, next, before.Seen.Last)
	case p.ended(transfer):
	default:
		if p.strays == nil {
			p.strays = map[events.TransferID]int{}
		}
		p.strays[transfer]++
	}
}

func (j *Journeys) inLine(before, after Transfer, seen time.Time) {
	if j.line != nil {
		j.line.follow(before, after, seen)
	}
}

func (j *Journeys) set(p *journey, t Transfer) {
	p.current = t
	if t.Phase.Terminal() {
		j.retire(p)
	}
}

func (j *Journeys) retire(p *journey) {
	delete(j.active, p.current.Player)
	p.done = append(p.done, p.current)
	if len(p.done) > keptDone {
		delete(j.byID, p.done[0].ID)
		p.done = append([]Transfer(nil), p.done[1:]...)
	}
	p.current = Transfer{}
}

// Settle says where the guard of a player stands with whom nothing is under way, and of
// whom nothing else is known.
func (j *Journeys) Settle(key string, seq uint64, now time.Time) {
	if player, _, err := events.ParseTransferKey(key); err == nil {
		j.settled[player], j.settledAt = seq, now
	}
}

// Skip moves a player's guard over a message that is no fact.
func (j *Journeys) Skip(key string, seq uint64) {
	if player, transfer, err := events.ParseTransferKey(key); err == nil {
		p := j.player(player)
		p.last = seq
		j.stray(p, transfer, seq)
	}
}

func (j *Journeys) player(id events.PlayerID) *journey {
	p, ok := j.players[id]
	if !ok {
		p = &journey{last: j.settled[id]}
		j.players[id] = p
		delete(j.settled, id)
	}
	return p
}

func (p *journey) busy() bool { return p.current.Phase != "" }

func (p *journey) takeStrays(id events.TransferID) int {
	n := p.strays[id]
	delete(p.strays, id)
	return n
}

func (p *journey) ended(id events.TransferID) bool {
	for i := range p.done {
		if p.done[i].ID == id {
			return true
		}
	}
	return false
}

// Forget drops players who have no active transfer and whose last fact was seen, or who
// were settled, before t.
// Their guard is then unknown: the store names it on the first conflict.
func (j *Journeys) Forget(t time.Time) {
	for id, p := range j.players {
		if p.busy() || len(p.done) > 0 && !p.done[len(p.done)-1].Seen.Last.Before(t) {
			continue
		}
		for i := range p.done {
			delete(j.byID, p.done[i].ID)
		}
		delete(j.players, id)
		j.forgot = true
	}
	if len(j.settled) > 0 && j.settledAt.Before(t) {
		j.settled, j.forgot = map[events.PlayerID]uint64{}, true
	}
}

// Player is one player's state at one moment.
type Player struct {
	Guard  uint64    // last sequence under the player, 0 when none is held
	Active *Transfer // nil when none
	Done   []Transfer
}

// Find gives an ended or active transfer by its id, nil when it is not held.
func (p Player) Find(id events.TransferID) *Transfer {
	if p.Active != nil && p.Active.ID == id {
		return p.Active
	}
	for i := range p.Done {
		if p.Done[i].ID == id {
			return &p.Done[i]
		}
	}
	return nil
}

// Last is the newest transfer that has ended, nil when none is held.
func (p Player) Last() *Transfer {
	if len(p.Done) == 0 {
		return nil
	}
	return &p.Done[len(p.Done)-1]
}

// Player gives the state of one player. What it points to is never changed.
func (j *Journeys) Player(id events.PlayerID) Player {
	p, ok := j.players[id]
	if !ok {
		return Player{Guard: j.settled[id]}
	}
	out := Player{Guard: p.last, Done: p.done}
	if p.busy() {
		t := p.current
		out.Active = &t
	}
	return out
}

// Owner tells whose transfer an id is.
func (j *Journeys) Owner(id events.TransferID) (events.PlayerID, bool) {
	p, ok := j.byID[id]
	return p, ok
}

// Active lists the transfers under way, in no order.
func (j *Journeys) Active() []Transfer {
	out := make([]Transfer, 0, len(j.active))
	for _, p := range j.active {
		out = append(out, p.current)
	}
	return out
}
