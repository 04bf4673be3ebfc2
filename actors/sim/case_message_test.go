package sim_test

import (
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// Cases of messages: what a player reads when it does not go as wished.

// readings are the moments at which a player read a message.
func readings(p *sim.Client, key string) (out []time.Time) {
	for _, m := range p.History() {
		if m.Text != "" && matches(m.Text, expand(key)) {
			out = append(out, m.At)
		}
	}
	return out
}

// failure is one way in which a wish does not go as meant.
type failure struct {
	try   func(s *scene) // ends with what the player does last
	key   string         // of the text
	after time.Duration  // the deadline that must pass first
}

// failures are the ways that one player with a lobby "a" and the destinations "b" and "c" can meet.
var failures = map[string]failure{
	"switched off": {key: "refused.KILL_SWITCH", try: func(s *scene) {
		s.operator(events.KillKey, 0, &events.KillSet{On: true, Who: "ann"})
		s.player.Ask("")
	}},
	"no such region":                         {key: "failed.REGION_MISSING", try: func(s *scene) { s.player.Ask("atlantis") }},
	"not a name":                             {key: "refused.REGION_MISSING", try: func(s *scene) { s.player.Ask("not a place") }},
	"the store is away":                      {key: "transfer.slow", try: asksInVain},
	"the store is away, and does not return": {key: "refused.TRANSPORT_DOWN", after: 8 * time.Second, try: asksInVain},
	"the named server is paused": {key: "failed.PAUSED", try: func(s *scene) {
		s.operator(events.PauseKey(events.PauseServer, "c"), 0, &events.PauseSet{What: events.PauseServer, Name: "c", On: true, Who: "ann"})
		s.player.Ask("c:default")
	}},
	"the named server is down": {key: "failed.NO_CANDIDATE", try: func(s *scene) {
		s.c.Kill()
		s.pass(5 * time.Second)
		s.player.Ask("c:default")
	}},
	"the named server is silent": {key: "failed.NO_CANDIDATE", after: 1500 * time.Millisecond, try: func(s *scene) {
		s.mem.DropRequest(toReserve("c"), 99)
		s.player.Ask("c:default")
	}},
	"nobody has a place": {key: "transfer.waiting", try: func(s *scene) {
		s.b.Kill()
		s.c.Kill()
		s.pass(5 * time.Second)
		s.player.Ask("")
	}},
	"the origin cannot send": {key: "failed.MOVE_REFUSED", try: func(s *scene) {
		s.a.Set(func(f *sim.Faults) {
			f.Send = func(actors.Player, string) (bool, error) { return false, actors.ErrNotSent }
		})
		s.player.Ask("")
	}},
	"nobody knows what became of the move": {key: "failed.NOT_ARRIVED", after: 30 * time.Second, try: movesUnheard},
	"the place is not confirmed":           {key: "failed.PLACEMENT_UNCONFIRMED", after: 30 * time.Second, try: (*scene).consumedUnplaced},
	"the way back is unknown": {key: "token.TOKEN_UNKNOWN", try: func(s *scene) {
		s.player.Quit()
		s.comesWith(events.Token{Transfer: events.TransferID{9}, Attempt: 1}, "e2")
	}},
	"the choice takes long": {key: "transfer.slow", after: slowAfter, try: func(s *scene) { s.askAndHold("reserved") }},
	"the move takes long":   {key: "transfer.slow", after: slowAfter, try: movesUnheard},
	"the place takes long":  {key: "transfer.slow", after: slowAfter, try: (*scene).consumedUnplaced},
}

func movesUnheard(s *scene) {
	s.mem.DropRequest(func(subject string) bool { return subject == events.ToBackend("a", events.VerbMove) }, 2)
	s.player.Ask("")
}

func asksInVain(s *scene) {
	s.mem.Outage()
	s.pass(5 * time.Second)
	s.player.Ask("")
}

const slowAfter = 5 * time.Second // without a word to the player

// TestCase017_NothingFailsInSilence: a command failed and its player read nothing. Here each way
// in which a wish can fail, or take long, has a text of its own, which the player reads within two
// seconds of the moment, once; and what ends a transfer stands in the log with the same code.
// (That no code is without a text is held by the table of all codes in package actors.)
func TestCase017_NothingFailsInSilence(t *testing.T) {
	const soon = 2 * time.Second
	for name, row := range failures {
		t.Run(name, func(t *testing.T) {
			play(t, func(s *scene) {
				row.try(s)
				began := time.Now()
				s.until("word of it", row.after+2*soon, func() bool { return len(readings(s.player, row.key)) > 0 })
				at := readings(s.player, row.key)[0]
				if took := at.Sub(began); took > row.after+soon {
					t.Errorf("read after %s, want %s", took, row.after+soon)
				}
				_, code, _ := strings.Cut(row.key, ".")
				ended := 0
				for _, e := range s.facts(events.Transfers) {
					if f, is := e.Fact.(*events.Failed); is && string(f.Code) == code {
						ended++
						if late := at.Sub(e.Stored); late > soon {
							t.Errorf("read %s after the fact", late)
						}
					}
				}
				if want := strings.HasPrefix(row.key, "failed."); (ended == 1) != want {
					t.Errorf("%d ends with %s in the log\n%s", ended, code, s.story())
				}
				s.pass(10 * time.Second)
				if n := len(readings(s.player, row.key)); n != 1 {
					t.Errorf("read %d times", n)
				}
			})
		})
	}
	t.Run("a usual transfer is not called slow", func(t *testing.T) {
		play(t, func(s *scene) {
			s.player.Ask("")
			s.completed(s.player, s.outcome(s.player, 10*time.Second), "b")
			s.pass(20 * time.Second)
			if n := len(readings(s.player, "transfer.slow")); n != 0 {
				t.Errorf("called slow %d times", n)
			}
		})
	})
}
