package main

import (
	"fmt"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// tale is what the log holds of one transfer, folded as every dispatcher folds it.
type tale struct {
	id      events.TransferID
	player  events.PlayerID
	first   uint64 // first sequence that the stream holds: what lies below is gone
	entries []entry
}

// entry is one record of a transfer: what it says, and what the fold made of it.
type entry struct {
	reading
	before, after projections.Transfer
	refusal       *events.Refusal // the fold refused it: the state stayed
}

// tell folds all records of one player, in order, and gives the transfers in the order of
// their first records. It runs the fold of the dispatchers, on facts opened as they open them.
func tell(player events.PlayerID, first uint64, records []reading) []*tale {
	journeys := projections.NewJourneys(first)
	byID := map[events.TransferID]*tale{}
	var out []*tale
	for _, r := range records {
		id := r.transfer()
		t := byID[id]
		if t == nil {
			t = &tale{id: id, player: player, first: first}
			byID[id], out = t, append(out, t)
		}
		e := entry{reading: r, before: t.state(), refusal: r.refusal}
		if e.refusal == nil {
			e.refusal = journeys.Apply(r.event, r.Stored)
		} else {
			journeys.Skip(r.Key, r.Seq)
		}
		e.after = e.before
		if now := journeys.Player(player).Find(id); now != nil {
			e.after = *now
		}
		t.entries = append(t.entries, e)
	}
	return out
}

// state is where the transfer stands after its last record; Phase is empty when its
// beginning is gone.
func (t *tale) state() projections.Transfer {
	if len(t.entries) == 0 {
		return projections.Transfer{ID: t.id, Player: t.player}
	}
	return t.entries[len(t.entries)-1].after
}

// missing says which part retention has taken, "" when the whole is there.
func (t *tale) missing() string {
	head := t.entries[0]
	if _, begins := head.event.Fact.(*events.Requested); begins || head.prev() == 0 || head.prev() >= t.first {
		return ""
	}
	return fmt.Sprintf("retention has taken the beginning: the first fact held, %d, was written on top of %d, and the log begins at %d", head.Seq, head.prev(), t.first)
}

// problems are the records that the fold refused. Without its beginning no fact of a
// transfer can be possible, so that is no problem of theirs.
func (t *tale) problems() (out []entry) {
	headless := t.missing() != ""
	for _, e := range t.entries {
		if e.refusal != nil && !e.excused(headless) {
			out = append(out, e)
		}
	}
	return out
}

// excused tells a refusal that only says that the beginning is gone.
func (e entry) excused(headless bool) bool {
	return headless && e.refusal != nil && e.refusal.Code == events.Impossible && e.after.Phase == ""
}

// status is the exit status that the tale deserves.
func (t *tale) status() int {
	switch {
	case len(t.problems()) > 0:
		return statusInconsistent
	case t.missing() != "":
		return statusIncomplete
	}
	return statusOK
}

// ending is the phase and code of the end; of a headless tale as its last fact says.
func (t *tale) ending() (projections.Phase, events.Code) {
	if s := t.state(); s.Phase != "" {
		return s.Phase, s.Code
	}
	if f, ok := t.entries[len(t.entries)-1].event.Fact.(events.TransferFact); ok {
		return projections.Ending(f)
	}
	return "", ""
}

// name is the player's name as the request gives it.
func (t *tale) name() string {
	for _, e := range t.entries {
		if name := nameIn(e.event.Fact); name != "" && e.verified != forged {
			return name
		}
	}
	return ""
}

// checked says how far the signatures were verified.
func (t *tale) checked() string {
	counts := map[verdict]int{}
	for _, e := range t.entries {
		counts[e.verified]++
	}
	switch all := len(t.entries); {
	case counts[noKey] == all:
		return "signatures not checked: no key (set $" + envSecret + ", or name network.yml with --config)"
	case counts[genuine] == all:
		return fmt.Sprintf("all signatures verified (%s)", plural(all, "fact"))
	default:
		return fmt.Sprintf("signatures: %d verified, %d wrong, %d without a key", counts[genuine], counts[forged], counts[noKey])
	}
}
