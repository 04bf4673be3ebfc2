package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// Scripts that once led to a violation, as they were left after shrinking.

// Two logins at once: the session of the first was written over that of the second, and closed.
func TestReplaySessionWrittenOver(t *testing.T) {
	replay(t, 0, "24s join P13 e3", "0s join P13 e1", "15s pass")
}

// A backend that slept took its id back when its game server was restarted.
func TestReplaySleeperIsRebornWithItsServer(t *testing.T) {
	replay(t, 0, "5s zombie d 6s", "500ms boot d", "300ms ask P3")
}

// A backend that slept, and the one that replaced it, both sent a player away.
func TestReplaySleeperMovesToo(t *testing.T) {
	replay(t, 0, "2s stop e2 40s", "50ms ask P7 wild", "2s zombie a 40s")
}

// A backend that slept refused a move that the one in its place had carried out.
func TestReplaySleeperAnswersFirst(t *testing.T) {
	replay(t, 0, "1s zombie a 3s", "2950ms ask P0", "50ms ask P1", "0s ask P2", "0s ask P3", "1ms ask P4", "1s ask P5")
}

// A place that nobody has was waited for.
func TestReplayUnknownPlace(t *testing.T) {
	replay(t, 0, "15s crash d", "1s ask P7 atlantis", "50ms ask P0")
}

// A fact that landed after its writer had given up was told by nobody.
func TestReplayEndOfAnUnansweredAppend(t *testing.T) {
	replay(t, 0, "17s place c refused 3", "14s slow e1 3s 40s", "700ms drain b 40s", "0s drain d 40s", "15s ask P5 default", "0s kill e2", "0s kill e3")
}

// A dispatcher that slept opened a session as it woke, and nobody took it back: the backend,
// begun anew, named other joins.
func TestReplaySessionOfASleeper(t *testing.T) {
	replay(t, 5*time.Millisecond, "59s ask P13 d:wild", "46s zombie e3 40s", "15s boot d", "15s join P13 e3", "700ms kill d", "5s ask P2")
}

// A reservation that the store took only after an outage led to a place that was gone.
func TestReplayReservedBeforeAnOutage(t *testing.T) {
	replay(t, 5*time.Millisecond, "2305ms ask P3", "45ms outage 40s", "50s pass")
}

// A promise of a server's earlier life was given back, and the new life took that for the
// promise that it had given to the same attempt.
func TestReplayReleaseForAnEarlierLife(t *testing.T) {
	play(t, func(s *scene) {
		first := s.askAndHold("reserved")
		s.b.Restart()
		s.until("the new life of b", 10*time.Second, func() bool {
			b := s.observer().View().Fleet().Backend("b")
			return b != nil && b.Incarnation == s.backends["b"].actor.Incarnation() && b.State == events.Ready && b.Kept() > 2
		})
		second := s.dispatchers["e2"].client.hold(".move")
		s.returns()
		s.until("claimed by e2", 10*time.Second, second.isReached)
		first.release()
		s.pass(time.Second)
		second.release()
		s.completed(s.player, s.outcome(s.player, forever), "b")
		s.conserved("b")
	})
}
