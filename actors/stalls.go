package actors

import (
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// A server may beat, and answer its backend, and take no login all the same. Who says so is the
// edge; one login alone proves nothing.
const (
	stallLogins = 3                // of so many players, and none that succeeded in between
	stallWindow = time.Minute      // within this
	stallRest   = 30 * time.Second // is how long nobody is sent there then, if anywhere else will do
)

// stalls are the logins that servers took and did not answer, or did not take. Safe for
// concurrent use.
type stalls struct {
	mu sync.Mutex
	of map[events.HostID]map[events.PlayerID]time.Time
}

// add takes in a login that failed. It reports whether that makes enough of them, and then
// begins to count anew.
func (s *stalls) add(server events.HostID, player events.PlayerID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[events.HostID]map[events.PlayerID]time.Time{}
	}
	logins := s.of[server]
	if logins == nil {
		logins = map[events.PlayerID]time.Time{}
		s.of[server] = logins
	}
	for p, at := range logins {
		if now.Sub(at) > stallWindow {
			delete(logins, p)
		}
	}
	logins[player] = now
	if len(logins) < stallLogins {
		return false
	}
	delete(s.of, server)
	return true
}

// joined forgets the failures of a server that somebody has joined.
func (s *stalls) joined(server events.HostID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, server)
}

// noteFailed hears of a login that found nobody at a server.
func (d *Dispatcher) noteFailed(l Login) {
	if len(l.Failed) == 0 {
		return
	}
	server := l.Failed[len(l.Failed)-1]
	if d.stalls.add(server, l.Player, d.Now()) {
		d.logger.Error("a server beats and takes no logins: nobody is sent there for a while", "server", server, "rest", stallRest)
		d.runs.coolDown(server, cooldown{until: d.Now().Add(stallRest)})
	}
}
