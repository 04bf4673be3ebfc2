package marker

import "time"

// Keep is how long a client remembers an announcement.
const Keep = time.Minute

// Purpose is what a client opens a connection for.
type Purpose uint8

// Purposes of a connection.
const (
	Join  Purpose = iota // to play
	Query                // to show a server in a list: one question, one answer
)

// Memory is the client's half: at most one id, with where and when it was announced. It must
// outlive the session that hears the announcement, until the connection that follows. The zero value
// remembers nothing. It is not safe for concurrent use.
type Memory struct {
	id     ID
	remote string
	at     time.Time
	held   bool
}

// Redirected hears the display name of a redirect that came over a connection to remote, and
// gives the name to show. An announcement replaces the one before; a redirect without one
// clears it. remote is what was dialled, as "host:port" and always spelt alike, not the address
// it was resolved to: there may be several proxies behind one name, which share what they
// have announced.
func (m *Memory) Redirected(display, remote string, now time.Time) (name string) {
	name, id, announced := Split(display)
	*m = Memory{id: id, remote: remote, at: now, held: announced}
	return name
}

// First gives what goes out before anything else on a new connection to remote: a marker, or
// nothing. It is to be sent at once with the first bytes of the game. An id is given once, even if the
// connection then fails, and never to another remote, which may be a plain server. A Query
// neither gets it nor ends it.
func (m *Memory) First(why Purpose, remote string, now time.Time) []byte {
	if why == Query || !m.held {
		return nil
	}
	kept := *m
	m.Forget()
	if age := now.Sub(kept.at); remote != kept.remote || age < 0 || age > Keep {
		return nil
	}
	return Append(nil, kept.id)
}

// Forget drops what is remembered: the player returned to the main menu, or the game ends.
func (m *Memory) Forget() { *m = Memory{} }
