package actors

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Connection is one player connection that this dispatcher's edge holds.
type Connection struct {
	ID       uint64 // unique in this process
	Name     string // as the client gave it
	Player   events.PlayerID
	Server   events.HostID
	Protocol int
	// Redirects tells that the edge can send this client away by itself, see Redirector.
	Redirects bool
	Remote    netip.AddrPort // the client's address, where clients are led by it
	// Redial is where a client is told to dial again whose edge reads nothing: its server tells it. Such a
	// connection has no name of its own.
	Redial string
}

// connections matches what an edge holds with what backends announce. A connection is only
// a routing attempt until its backend says that the player joined; then it is a session.
type connections struct {
	mu   sync.Mutex
	byID map[uint64]*held
	next uint64                      // ids of the connections that a direct dispatcher makes up
	over map[events.JoinID]time.Time // joins whose connections have ended, and when: a backend that has not noticed repeats them
}

// overFor is how long a join is known whose connection has ended.
const overFor = 6 * announceEvery

// held is one connection and the session it became.
type held struct {
	Connection
	player  events.PlayerID // as the backend decided it
	join    events.JoinID
	matched bool
	closed  bool
	opening bool               // openSession is at work
	number  uint64             // of the session, 0 until it stands in the log
	direct  bool               // made up for a player of the backend beside this dispatcher
	life    events.Incarnation // of the server that announced the join
}

func (c *connections) init() {
	c.byID = map[uint64]*held{}
	c.over = map[events.JoinID]time.Time{}
	c.next = 1 << 63
}

// Opened says that an edge has connected a client to a server.
func (d *Dispatcher) Opened(c Connection) {
	d.conns.mu.Lock()
	defer d.conns.mu.Unlock()
	d.conns.byID[c.ID] = &held{Connection: c}
}

// Closed says that a connection has ended.
func (d *Dispatcher) Closed(id uint64, reason string) {
	d.conns.mu.Lock()
	h, ok := d.conns.byID[id]
	if ok {
		delete(d.conns.byID, id)
		h.closed = true
		d.conns.end(h, d.Now())
	}
	d.conns.mu.Unlock()
	d.sightings.end(id)
	if ok && h.matched {
		d.background(func(ctx context.Context) { d.closeSession(ctx, h, reason) })
	}
}

// end notes the join of a connection that has ended. It wants c.mu held.
func (c *connections) end(h *held, now time.Time) {
	maps.DeleteFunc(c.over, func(_ events.JoinID, at time.Time) bool { return now.Sub(at) > overFor })
	if h.matched {
		c.over[h.join] = now
	}
}

// hadJoin tells that a join came over a connection that has ended.
func (c *connections) hadJoin(join events.JoinID, now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.over[join]
	return ok && now.Sub(at) <= overFor
}

// joined matches an announcement with the newest unmatched connection of that name to that
// server; the dispatcher beside a backend holds those of its players who came over none. What is
// announced again is held against the log: the session of a connection that has ended may have
// been written over this one. It reports whether there is such a connection.
func (c *connections) joined(d *Dispatcher, server events.HostID, news events.Joined) bool {
	h, again := c.match(d, server, news)
	switch {
	case h == nil:
		return false
	case c.begins(h):
		d.background(func(ctx context.Context) {
			defer c.begun(h)
			d.openSession(ctx, h)
		})
	case again:
		d.background(func(ctx context.Context) { d.keepSession(ctx, h) })
	}
	return true
}

// is tells that a connection may be that of a join: by its name, or by its address if it came over an edge that reads no names.
func (h *held) is(news events.Joined) bool {
	if h.Redial != "" {
		return news.Remote != "" && news.Remote == h.Remote.String()
	}
	return h.Name == news.Name
}

// begins takes the right to open a connection's session, if nobody is at it and none was opened.
func (c *connections) begins(h *held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if h.opening || h.number != 0 {
		return false
	}
	h.opening = true
	return true
}

func (c *connections) begun(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	h.opening = false
}

// match gives the connection of a join, and whether it was announced before. A backend that
// began anew gives the players it finds new joins: they go on over the connections they have.
func (c *connections) match(d *Dispatcher, server events.HostID, news events.Joined) (_ *held, again bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var newest, matched *held
	for _, h := range c.byID {
		if h.Server != server || !h.is(news) {
			continue
		}
		if h.matched && h.join == news.Join {
			return h, true
		}
		if !h.matched && (newest == nil || h.ID > newest.ID) {
			newest = h
		}
		if h.matched && (matched == nil || h.ID > matched.ID) {
			matched = h
		}
	}
	if newest == nil && matched != nil {
		matched.join, matched.life = news.Join, news.Incarnation
		return matched, true
	}
	if newest == nil && d.cfg.Local != "" && server == d.cfg.Local {
		c.next++
		newest = &held{Connection: Connection{ID: c.next, Name: news.Name, Player: news.Player, Server: server}, direct: true}
		c.byID[newest.ID] = newest
	}
	if newest != nil {
		newest.Name = news.Name
		newest.matched, newest.player, newest.join, newest.life = true, news.Player, news.Join, news.Incarnation
	}
	return newest, false
}

// left closes the session of a player whom a backend saw go. An edge's connection stays, as
// long as the edge holds it: a client that comes back at once is on it before the backend
// has seen the old one go, and its own join is still to be announced.
func (c *connections) left(d *Dispatcher, server events.HostID, news events.Left) {
	for _, h := range c.part(server, news.Join) {
		d.background(func(ctx context.Context) { d.closeSession(ctx, h, news.Reason) })
	}
}

// part takes the connections of a join that is over out of their sessions.
func (c *connections) part(server events.HostID, join events.JoinID) []*held {
	c.mu.Lock()
	defer c.mu.Unlock()
	var gone []*held
	for id, h := range c.byID {
		if !h.matched || h.Server != server || h.join != join {
			continue
		}
		h.closed = true
		gone = append(gone, h)
		if h.direct {
			delete(c.byID, id)
		} else {
			c.byID[id] = &held{Connection: h.Connection}
		}
	}
	return gone
}

// unmatch frees a connection that was matched with the join of another one, so that its own
// can be: a backend repeats who is there, and may not know yet that somebody has gone. One that
// was only made up is made up again when its join is repeated.
func (c *connections) unmatch(h *held) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.byID[h.ID] != h:
	case h.direct:
		delete(c.byID, h.ID)
	default:
		c.byID[h.ID] = &held{Connection: h.Connection}
	}
}

// openSession writes that this dispatcher holds the player, who stands on that server.
func (d *Dispatcher) openSession(ctx context.Context, h *held) {
	if h.direct && !d.outermost(ctx, h) {
		d.conns.unmatch(h)
		return
	}
	had := false
	d.writeOpened(ctx, h, func(s projections.Session, known bool) bool {
		had = known && d.hadSession(s, d.conns.joinOf(h), h.direct)
		return !had
	})
	if had {
		d.conns.unmatch(h)
		return
	}
	d.stalls.joined(h.Server)
	d.tellMissed(h.player)
}

// hadSession tells that a join has a session, or had one: it came over another connection. A
// backend that says so long after the close knows better: what closed the session was wrong.
// Beside a backend nobody is held who is held in front, and a front that has slept leaves
// whoever is held beside the backend since.
func (d *Dispatcher) hadSession(s projections.Session, join events.JoinID, direct bool) bool {
	switch {
	case s.Join != join:
		return false
	case !s.Open:
		return d.Now().Sub(s.Seen) < announceEvery/2
	case s.HolderIncarnation == d.Source.Incarnation:
		return true
	}
	return (direct || s.Kind == events.KindDirect) && d.heldInFront(s, join)
}

// keepSession opens the session of a connection anew when nobody holds the player any more,
// as the log has it: the connection stands, and so the log is wrong.
func (d *Dispatcher) keepSession(ctx context.Context, h *held) {
	d.conns.mu.Lock()
	number := h.number
	d.conns.mu.Unlock()
	if number == 0 {
		return // openSession is at work
	}
	d.writeOpened(ctx, h, func(s projections.Session, known bool) bool {
		return !known || !s.Open || d.watch().presumedDead(s.Holder, s.HolderIncarnation).yes
	})
}

// writeOpened writes that this dispatcher holds the player, as long as the connection
// stands and wanted agrees with the newest session.
func (d *Dispatcher) writeOpened(ctx context.Context, h *held, wanted func(s projections.Session, known bool) bool) {
	kind := d.cfg.Kind
	if h.direct {
		kind = events.KindDirect
	}
	fact := &events.SessionOpened{Session: events.Session{
		Holder: d.Source.ID, HolderIncarnation: d.Source.Incarnation, Kind: kind, Server: h.Server,
		Join: d.conns.joinOf(h), Name: h.Name, Protocol: h.Protocol,
	}}
	fresh := false
	seq, ok := d.writeSession(ctx, h.player, func(s projections.Session, known bool) events.Fact {
		if d.conns.ended(h) || !wanted(s, known) {
			return nil
		}
		fresh = !known
		return fact
	})
	if !ok {
		return
	}
	if fresh {
		d.noteSeen(h.player, h.Name, h.Server)
	}
	d.conns.mu.Lock()
	h.number = seq
	d.conns.mu.Unlock()
	if d.conns.ended(h) {
		d.closeSession(ctx, h, "connection ended")
	}
}

func (c *connections) joinOf(h *held) events.JoinID {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.join
}

func (c *connections) ended(h *held) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return h.closed
}

// closeSession writes that the connection ended, unless a newer session has taken over.
func (d *Dispatcher) closeSession(ctx context.Context, h *held, reason string) {
	d.conns.mu.Lock()
	number := h.number
	d.conns.mu.Unlock()
	if number == 0 {
		return // openSession, still at work, will see that it was closed
	}
	d.writeSession(ctx, h.player, func(s projections.Session, known bool) events.Fact {
		if !known || !s.Open || s.Number != number {
			return nil
		}
		return &events.SessionClosed{Session: s.Session, Reason: reason}
	})
}

// refreshSessions repeats the state of sessions that retention would soon eat.
func (d *Dispatcher) refreshSessions(ctx context.Context) {
	if d.cfg.Retention == 0 {
		return
	}
	for player, s := range d.view.OpenSessions(d.Source.ID) {
		if s.HolderIncarnation != d.Source.Incarnation || d.Now().Sub(s.Seen) < d.cfg.Retention/4 {
			continue
		}
		d.writeSession(ctx, player, func(now projections.Session, known bool) events.Fact {
			if !known || !now.Open || now.Number != s.Number {
				return nil
			}
			return &events.SessionRefreshed{Session: now.Session}
		})
	}
}

// writeSession lands a session fact on top of the newest one. decide looks at that one and
// gives nil when nothing is to be written any more. It goes on through outages until ctx ends.
func (d *Dispatcher) writeSession(ctx context.Context, player events.PlayerID, decide func(projections.Session, bool) events.Fact) (uint64, bool) {
	var last draft
	for pause := 5 * time.Millisecond; ctx.Err() == nil; pause = min(2*pause, time.Second) {
		s, known := d.view.Session(player)
		fact := decide(s, known)
		if fact == nil {
			return 0, false
		}
		last.take(events.TransferID{}, fact, d.NewID)
		m, err := d.seal(last.id, player.String(), events.TransferID{}, last.prev(s.Last), fact)
		if err != nil {
			d.logger.Error("seal session", "player", player, "error", err)
			return 0, false
		}
		seq, err := d.appendSurely(ctx, m)
		if err == nil {
			return seq, d.view.WaitFolded(ctx, events.Sessions, seq) == nil
		}
		d.afterSessionConflict(ctx, s.Last, err, &last)
		sleep(ctx, pause)
	}
	return 0, false
}

// afterSessionConflict waits a moment until the fold holds what a conflict was about. What
// it cannot learn the next conflict tells.
func (d *Dispatcher) afterSessionConflict(ctx context.Context, folded uint64, err error, last *draft) {
	var failed *events.AppendError
	if !errors.As(err, &failed) || !slices.Contains([]events.AppendReason{events.Conflict, events.InFlight}, failed.Reason) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = d.catchUp(ctx, events.Sessions, folded, failed, last)
}
