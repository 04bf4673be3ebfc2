package projections

import (
	"time"

	"github.com/landfall/landfall/events"
)

// Sessions folds the bucket sessions: who holds each player's connection, and where the
// player is, or was last.
type Sessions struct {
	players map[events.PlayerID]Session
}

// Session is a player's newest session.
type Session struct {
	events.Session
	Open     bool
	Last     uint64    // revision of the key: the guard of the next fact
	OpenedAt time.Time // stored time of the opening fact, zero when it is not held
	ClosedAt time.Time // stored time of the close; comparable with OpenedAt only
	// Away is how long the player was gone before this session opened, by the stored times of
	// the close and of the open; 0 when the close is not held.
	Away     time.Duration
	OpenSeen time.Time // when this reader saw the opening fact, zero when it is not held
	Before   time.Time // and that of the session before
	Seen     time.Time // when this reader saw the last fact
}

// NewSessions is the empty fold.
func NewSessions() *Sessions { return &Sessions{players: map[events.PlayerID]Session{}} }

// Apply folds one fact.
func (s *Sessions) Apply(e events.Event, seen time.Time) *events.Refusal {
	player, err := events.ParsePlayerKey(e.Key)
	if err != nil {
		return events.Refuse(events.Malformed, err.Error())
	}
	old := s.players[player]
	held := old.Number != 0 // a message that was no fact may have left its revision alone
	next := old
	refusal := next.step(e, seen, held)
	next.Last, next.Seen = e.Seq, seen
	if refusal != nil {
		next = old
		next.Last = e.Seq
	}
	s.players[player] = next
	return refusal
}

func (s *Session) step(e events.Event, seen time.Time, held bool) *events.Refusal {
	switch f := e.Fact.(type) {
	case *events.SessionOpened:
		s.Away = 0
		if held && !s.Open {
			s.Away = away(e.Stored.Sub(s.ClosedAt), seen.Sub(s.Seen))
		}
		s.Session, s.Open = f.Session, true
		s.Number = e.Seq
		s.OpenedAt, s.ClosedAt, s.OpenSeen, s.Before = e.Stored, time.Time{}, seen, s.OpenSeen
		return nil
	case *events.SessionRefreshed:
		if f.Session.Number == 0 || held && (!s.Open || s.Number != f.Session.Number) {
			return events.Refuse(events.Impossible, "refresh of a session that is not open")
		}
		s.Session, s.Open = f.Session, true
		return nil
	case *events.SessionClosed:
		if f.Session.Number == 0 || held && (!s.Open || s.Number != f.Session.Number) {
			return events.Refuse(events.Impossible, "close of a session that is not open")
		}
		s.Session, s.Open, s.ClosedAt = f.Session, false, e.Stored
		return nil
	default: // the facts of other buckets are none of this fold's
		return events.Refuse(events.Malformed, "not a session fact")
	}
}

// away is how long a player was gone, by the stored times of the close and of the open. Where
// they say much more than the reader saw pass, the store's clock was set in between.
func away(stored, seen time.Duration) time.Duration {
	if stored-seen > clockStep {
		stored = seen
	}
	return max(stored, 0)
}

// clockStep is more than a store and its reader differ by for any other reason.
const clockStep = 5 * time.Second

// Skip moves a player's guard over a message that is no fact.
func (s *Sessions) Skip(key string, seq uint64) {
	if player, err := events.ParsePlayerKey(key); err == nil {
		old := s.players[player]
		old.Last = seq
		s.players[player] = old
	}
}

// Player gives the newest session of a player; ok is false when none was ever seen. Last
// is right in either case.
func (s *Sessions) Player(id events.PlayerID) (Session, bool) {
	x := s.players[id]
	return x, x.Number != 0
}

// All lists every player's newest session.
func (s *Sessions) All() map[events.PlayerID]Session { return s.players }
