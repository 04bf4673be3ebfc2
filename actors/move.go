package actors

import (
	"context"
	"encoding/hex"
	"errors"
	"time"

	"github.com/landfall/landfall/events"
)

// move is what this origin knows of the moves of one player: a claim that is older than the
// newest one seen is never acted on, and the same claim always gets the same answer.
type move struct {
	claim  uint64
	began  time.Time
	done   chan struct{} // closed when answer stands
	answer events.Answer
}

// stateFresh is how old the leader's word on a claim may be when it is acted on.
const stateFresh = 250 * time.Millisecond

// statePatience is how long one dispatcher may take to say whether a claim stands.
const statePatience = time.Second

// sure waits until this process knows that it was not replaced: somebody who slept finds
// out by the next heartbeat.
func (b *Backend) sure(ctx context.Context, l *life) bool {
	for !l.standsSure(b.timing.Load().Stale) {
		b.beatNow()
		if !sleep(ctx, surePause) {
			return false
		}
	}
	return ctx.Err() == nil
}

// surePause is how often a process that slept looks whether its heartbeat has landed.
const surePause = 50 * time.Millisecond

// answerMove sends a player away for a claim, or says what became of that claim.
// It is silent about a claim that another life was asked to act for, and while it does not
// know whether it was replaced: the one who asked takes the first answer.
func (b *Backend) answerMove(ctx context.Context, l *life, q events.MoveAsk) events.Answer {
	if q.FromIncarnation != nil && *q.FromIncarnation != l.Source.Incarnation || !b.sure(ctx, l) {
		return events.Answer{}
	}
	m, mine, refusal := b.beginMove(q)
	switch {
	case refusal != nil:
		return refusePlain(refusal)
	case mine && q.Query:
		return b.endMove(m, events.Answer{Code: events.NotSent})
	case mine:
		return b.endMove(m, b.carryOut(ctx, l, q))
	}
	select {
	case <-m.done:
		return m.answer
	case <-ctx.Done():
		return events.Answer{Code: events.NotKnown, Detail: "the move is under way"}
	}
}

// beginMove gives the record of this claim; mine tells that the caller is to carry it out.
// A query for a claim not seen before is carried out by refusing that claim from now on.
func (b *Backend) beginMove(q events.MoveAsk) (m *move, mine bool, refusal *events.Refusal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.moves[q.Player]
	switch {
	case old != nil && q.Claim == old.claim:
		return old, false, nil
	case old != nil && q.Claim < old.claim:
		return nil, false, events.Refuse(events.TooOld, "a newer claim was seen")
	}
	m = &move{claim: q.Claim, began: b.cfg.Now(), done: make(chan struct{})}
	b.moves[q.Player] = m
	return m, true, nil
}

func (b *Backend) endMove(m *move, a events.Answer) events.Answer {
	m.answer = a
	close(m.done)
	return a
}

// forgetMoves drops the records of moves so old that their claims can no longer stand.
func (b *Backend) forgetMoves() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, m := range b.moves {
		if b.cfg.Now().Sub(m.began) > b.timing.Load().TTL+keepIdle {
			delete(b.moves, id)
		}
	}
}

// carryOut moves the player if the claim is still the latest.
func (b *Backend) carryOut(ctx context.Context, l *life, q events.MoveAsk) events.Answer {
	p, ok := b.here(q.Player)
	if !ok {
		return events.Answer{Code: events.NotHere}
	}
	if q.How != events.HowLocal && q.How != events.HowRedirect && !b.cfg.Allowed(q.Address) {
		return events.Answer{Code: events.Refused, Detail: "the address " + q.Address + " is not one of this network"}
	}
	if refusal := b.stillLatest(ctx, l, q); refusal != nil {
		return refusePlain(refusal)
	}
	if q.How == events.HowRedirect {
		return events.Answer{Code: events.Sent} // the front that asks does it: no other claim will be let through
	}
	if q.How == events.HowLocal {
		b.background(func(ctx context.Context) { b.arrive(ctx, p) })
		return events.Answer{Code: events.Sent}
	}
	return sendAnswer(b.send(ctx, p.Player, q))
}

func (b *Backend) send(ctx context.Context, p Player, q events.MoveAsk) error {
	w, marks := b.cfg.World.(Marker)
	id, err := hex.DecodeString(q.Marker)
	if !marks || err != nil || len(id) != 16 {
		return b.cfg.World.Send(ctx, p, q.Address)
	}
	return w.SendMarked(ctx, p, q.Address, [16]byte(id))
}

func sendAnswer(err error) events.Answer {
	switch {
	case err == nil:
		return events.Answer{Code: events.Sent}
	case errors.Is(err, ErrNotHere):
		return events.Answer{Code: events.NotHere, Detail: err.Error()}
	case errors.Is(err, ErrNotSent):
		return events.Answer{Code: events.Refused, Detail: err.Error()}
	}
	return events.Answer{Code: events.NotKnown, Detail: err.Error()}
}

// stillLatest asks the dispatchers whether the claim stands, as the log's leader knows it.
// An answer that this process slept over is asked for again, and a process that was replaced
// while it slept asks for nothing.
func (b *Backend) stillLatest(ctx context.Context, l *life, q events.MoveAsk) *events.Refusal {
	for ctx.Err() == nil {
		if !b.sure(ctx, l) {
			break
		}
		asked := l.Now()
		once, cancel := context.WithTimeout(ctx, statePatience)
		state, err := ask[events.StateAnswer](once, l.Identity, b.cfg.Bus, events.AskOf(l.Source.ID, events.VerbState), events.StateAsk{Player: q.Player})
		cancel()
		answered := l.Now()
		if errors.Is(err, context.DeadlineExceeded) {
			continue // that dispatcher hangs: another one may answer
		}
		if err != nil || state.Code != events.OK {
			return events.Refuse(events.Refused, "the claim cannot be checked now")
		}
		if state.Claim != q.Claim || state.Token != q.Token {
			return events.Refuse(events.TooOld, "the claim is no longer the latest")
		}
		if now := l.Now(); now.Sub(answered) < stateFresh && now.Sub(asked) <= statePatience {
			return nil
		}
	}
	return events.Refuse(events.Refused, "no time left")
}

func (b *Backend) here(id events.PlayerID) (presence, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p, ok := b.present[id]
	if !ok {
		return presence{}, false
	}
	return *p, true
}
