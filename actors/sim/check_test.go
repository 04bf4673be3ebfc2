package sim_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// check holds the log, the game servers and what the clients saw against what is promised.
// It runs when everything was mended long ago.
func (c *chaos) check() {
	c.inspect()
	c.awake()
	l := newLedger()
	for _, e := range c.facts(events.Transfers) {
		l.take(e)
	}
	for _, w := range l.wrong {
		c.blame(w.players, "%s", w.text)
	}
	c.checkEnds(l)
	c.checkMoves(l)
	c.checkPlacements(l)
	c.checkPromises(l)
	c.checkPools()
	c.checkTold(l)
	c.checkSessions()
	c.checkFolds()
}

// wrong is a violation and whom it is about.
type wrong struct {
	players []events.PlayerID
	text    string
}

// ledger goes over the facts with a book of its own.
type ledger struct {
	journeys *projections.Journeys
	active   map[events.PlayerID]events.TransferID
	consumed map[events.TransferID]events.Event
	done     map[events.TransferID]events.Event // completions
	ends     []ending
	promised []promised
	number   map[string]events.Token // promise number of a life → the token that has it
	wrong    []wrong
}

// ending is a transfer that ended otherwise than by arriving.
type ending struct {
	player events.PlayerID
	at     time.Time
	code   events.Code
}

// promised is a token for as long as it was open.
type promised struct {
	*events.Reserved
	player  events.PlayerID
	token   events.Token
	from    time.Time
	to      time.Time // zero while it is open
	claimed bool
}

func newLedger() *ledger {
	return &ledger{
		journeys: projections.NewJourneys(0), active: map[events.PlayerID]events.TransferID{},
		consumed: map[events.TransferID]events.Event{}, done: map[events.TransferID]events.Event{}, number: map[string]events.Token{},
	}
}

func (l *ledger) blame(e events.Event, format string, args ...any) {
	player, _, _ := events.ParseTransferKey(e.Key)
	l.wrong = append(l.wrong, wrong{[]events.PlayerID{player}, fmt.Sprintf("%d: ", e.Seq) + fmt.Sprintf(format, args...)})
}

func (l *ledger) take(e events.Event) {
	player, id, _ := events.ParseTransferKey(e.Key)
	if refusal := l.journeys.Apply(e, e.Stored); refusal != nil {
		l.blame(e, "the fold refuses %s: %v", events.TypeName(e.Fact), refusal)
	}
	switch f := e.Fact.(type) {
	case *events.Requested:
		if other, busy := l.active[player]; busy {
			l.blame(e, "a second active transfer beside %s", other.Short())
		}
		l.active[player] = id
	case *events.Reserved:
		l.reserved(e, player, id, f)
	case *events.Claimed:
		if p := l.open(id); p != nil {
			p.claimed = true
		}
	case *events.Consumed:
		if _, twice := l.consumed[id]; twice {
			l.blame(e, "consumed twice")
		}
		l.consumed[id] = e
	case *events.Completed:
		l.done[id] = e
		l.end(e, player, id)
	case *events.Failed:
		l.ends = append(l.ends, ending{player, e.Stored, f.Code})
		l.end(e, player, id)
	case *events.Cancelled:
		l.ends = append(l.ends, ending{player, e.Stored, f.Code})
		l.end(e, player, id)
	case *events.Superseded:
		l.end(e, player, id)
	case *events.Released, *events.Expired:
		l.close(e, id)
	default:
	}
}

func (l *ledger) end(e events.Event, player events.PlayerID, id events.TransferID) {
	if l.active[player] != id {
		l.blame(e, "an end of a transfer that is not active")
	}
	delete(l.active, player)
	l.close(e, id)
}

func (l *ledger) reserved(e events.Event, player events.PlayerID, id events.TransferID, f *events.Reserved) {
	token := events.Token{Transfer: id, Attempt: f.Attempt}
	key := fmt.Sprintf("%s/%x/%d", f.Server, f.Incarnation, f.Promise)
	if other, taken := l.number[key]; taken {
		l.blame(e, "promise %d of %s was for %s already", f.Promise, f.Server, other)
	}
	l.number[key] = token
	if l.open(id) != nil {
		l.blame(e, "a second open token")
	}
	l.promised = append(l.promised, promised{Reserved: f, player: player, token: token, from: e.Stored})
}

func (l *ledger) open(id events.TransferID) *promised {
	for i := len(l.promised) - 1; i >= 0; i-- {
		if p := &l.promised[i]; p.token.Transfer == id && p.to.IsZero() {
			return p
		}
	}
	return nil
}

func (l *ledger) close(e events.Event, id events.TransferID) {
	if p := l.open(id); p != nil {
		p.to = e.Stored
	}
}

// checkEnds demands that every request has ended.
func (c *chaos) checkEnds(l *ledger) {
	for player, id := range l.active {
		t := l.journeys.Player(player).Active
		c.blame([]events.PlayerID{player}, "transfer %s of %s has not ended: %s", id.Short(), c.name(player), t.Phase)
	}
}

func (c *chaos) name(id events.PlayerID) string {
	for _, p := range c.clients {
		if p.ID == id {
			return p.Name
		}
	}
	return id.String()
}

// checkMoves demands that nobody was sent away twice in one transfer, and that a place was
// ready when somebody was.
func (c *chaos) checkMoves(l *ledger) {
	moves := map[events.TransferID]int{}
	for _, id := range chaosServers {
		for _, s := range c.worlds[id].Sent() {
			label, _, _ := strings.Cut(s.Address, ".")
			token, err := events.ParseToken(label)
			if err != nil {
				c.blame([]events.PlayerID{s.Player}, "%s was sent to %s", c.name(s.Player), s.Address)
				continue
			}
			if moves[token.Transfer]++; moves[token.Transfer] > 1 {
				c.blame([]events.PlayerID{s.Player}, "%s was sent away twice by %s", c.name(s.Player), token.Transfer.Short())
			}
			c.checkReady(l, token, s)
		}
	}
}

// checkReady demands that the destination still held the place when the player was sent.
func (c *chaos) checkReady(l *ledger, token events.Token, s sim.Sending) {
	i := slices.IndexFunc(l.promised, func(p promised) bool { return p.token == token })
	if i < 0 {
		c.blame([]events.PlayerID{s.Player}, "%s was sent away with a token that nobody reserved", c.name(s.Player))
		return
	}
	p := l.promised[i]
	if until, why := c.held(p, s.At); s.At.After(until) {
		c.blame([]events.PlayerID{s.Player}, "%s was sent to %s %s after the place was given up (%s)", c.name(s.Player), p.Server, s.At.Sub(until), why)
	}
}

// held tells until when a server kept a promise, as it stood at a moment.
func (c *chaos) held(p promised, at time.Time) (time.Time, string) {
	w := c.worlds[p.Server]
	w.mu.Lock()
	defer w.mu.Unlock()
	var until time.Time
	why := "never promised"
	for _, x := range w.promises {
		switch {
		case x.player != p.player || x.at.After(at):
		case x.within > 0 && (!x.at.After(p.from) || x.at.Before(until)):
			until, why = x.at.Add(x.within), "its time was over"
		case x.within == 0 && x.at.After(p.from) && x.at.Before(until):
			until, why = x.at, "released"
		}
	}
	return until, why
}

// checkPlacements demands that an arrival in the log is one on a server and the other way
// round, and that no two players were put on one coordinate.
func (c *chaos) checkPlacements(l *ledger) {
	stood := map[string]events.PlayerID{}
	arrivals := map[string]int{}
	for id, e := range l.done {
		p := l.journeysOf(id)
		at := e.Fact.(*events.Completed).At //nolint:forcetypeassert // filled that way
		if p == nil {
			continue
		}
		if c.worlds[p.Server].Placed(sim.Placement{Player: p.player, At: p.At}) != 1 || at != p.At {
			c.blame([]events.PlayerID{p.player}, "%d: %s did not stand on its coordinate of %s once", e.Seq, c.name(p.player), p.Server)
		}
	}
	for id := range l.consumed {
		if p := l.journeysOf(id); p != nil {
			arrivals[fmt.Sprint(p.Server, p.player, p.At)]++
		}
	}
	for _, id := range chaosServers {
		for at, n := range c.worlds[id].Placements() {
			place := fmt.Sprint(id, at.At)
			if other, taken := stood[place]; taken && other != at.Player {
				c.blame([]events.PlayerID{other, at.Player}, "%s and %s were put on one coordinate of %s", c.name(other), c.name(at.Player), id)
			}
			stood[place] = at.Player
			if most := arrivals[fmt.Sprint(id, at.Player, at.At)]; n > most {
				c.blame([]events.PlayerID{at.Player}, "%s was put on a coordinate of %s %d times, for %d arrivals", c.name(at.Player), id, n, most)
			}
		}
	}
}

// journeysOf is the last token of a transfer.
func (l *ledger) journeysOf(id events.TransferID) *promised {
	for i := len(l.promised) - 1; i >= 0; i-- {
		if l.promised[i].token.Transfer == id {
			return &l.promised[i]
		}
	}
	return nil
}

// checkPromises demands that no server promised a coordinate to a second player while it
// was still to keep the first promise.
func (c *chaos) checkPromises(l *ledger) {
	last := map[string]promised{}
	for _, p := range l.promised {
		key := fmt.Sprintf("%s/%x/%v", p.Server, p.Incarnation, p.At)
		if q, again := last[key]; again && (q.to.IsZero() || q.to.After(p.from)) {
			if until, why := c.held(q, p.from); until.After(p.from) || why == "released" {
				c.blame([]events.PlayerID{p.player, q.player}, "a coordinate of %s was promised to %s while %s held it (%s)", p.Server, c.name(p.player), c.name(q.player), why)
			}
		}
		last[key] = p
	}
}

// checkPools demands that every coordinate is accounted for.
func (c *chaos) checkPools() {
	for id, h := range c.backends {
		n, want := h.actor.Tally(), 0
		for _, r := range chaosRegions[id] {
			want += r.Keep
		}
		if n.Promised != 0 || n.Found != n.Ready+n.Placed+n.Dropped || n.Ready < want {
			c.blame(nil, "coordinates of %s: %+v, want %d ready and none promised", id, n, want)
		}
	}
}

// audible is how long somebody must have stood on a server, with nothing broken, to have
// heard a message; the window is how long messages wait for their players.
const (
	audible    = 12 * time.Second
	tellWindow = 30 * time.Second
)

// checkTold demands that who could hear it was told why the transfer ended.
func (c *chaos) checkTold(l *ledger) {
	for _, e := range l.ends {
		p := c.clientOf(e.player)
		if p == nil || !c.couldHear(p, e.at) {
			continue
		}
		key := "failed." + string(e.code)
		told := slices.ContainsFunc(p.History(), func(m sim.Moment) bool {
			return m.Text != "" && !m.At.Before(e.at) && m.At.Sub(e.at) <= tellWindow+5*time.Second && matches(m.Text, expand(key))
		})
		if !told {
			c.blame([]events.PlayerID{e.player}, "%s was not told of %s at %.3f", p.Name, e.code, e.at.Sub(c.began).Seconds())
		}
	}
}

func (c *chaos) clientOf(id events.PlayerID) *sim.Client {
	for _, p := range c.clients {
		if p.ID == id {
			return p
		}
	}
	return nil
}

// couldHear tells that a player stood somewhere long enough, undisturbed, after a moment.
func (c *chaos) couldHear(p *sim.Client, after time.Time) bool {
	end := after.Add(tellWindow)
	for _, stay := range stays(p, time.Now()) {
		from, to := later(stay.from, after), earlier(stay.to, end)
		for _, f := range c.faulty { // in order of their beginnings
			if f.from.Sub(from) >= audible {
				break
			}
			if f.to.After(from) && f.from.Before(to) {
				from = f.to
			}
		}
		if to.Sub(from) >= audible && !c.cutShort(from, to) {
			return true
		}
	}
	return false
}

// cutShort tells that a fault begins too early in a stretch.
func (c *chaos) cutShort(from, to time.Time) bool {
	return slices.ContainsFunc(c.faulty, func(f span) bool {
		return f.from.Before(earlier(to, from.Add(audible))) && f.to.After(from)
	})
}

// stays are the stretches of time in which a client stood on one server.
func stays(p *sim.Client, now time.Time) []span {
	var out []span
	on := ""
	for _, m := range p.History() {
		switch {
		case m.Text != "":
		case m.Server == "":
			if on != "" {
				out[len(out)-1].to = m.At
			}
			on = ""
		default:
			on = string(m.Server)
			out = append(out, span{from: m.At, to: now})
		}
	}
	return out
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// checkSessions demands that the log knows where everybody is.
func (c *chaos) checkSessions() {
	view := c.observer().View()
	for _, p := range c.clients {
		at := p.Look().Server
		s, _ := view.Session(p.ID)
		living := false
		if h, ok := c.dispatchers[s.Holder]; ok {
			living = h.actor.Source.Incarnation == s.HolderIncarnation
		}
		switch {
		case at == "" && s.Open && living:
			c.blame([]events.PlayerID{p.ID}, "%s is away, and a session is open on %s", p.Name, s.Server)
		case at != "" && (!s.Open || s.Server != at || !living):
			c.blame([]events.PlayerID{p.ID}, "%s is on %s, and the session says %s (open %t, held by %s, living %t)", p.Name, at, s.Server, s.Open, s.Holder, living)
		}
	}
}

// checkFolds demands that all dispatchers came to the same state.
func (c *chaos) checkFolds() {
	first := c.dispatchers[chaosEdges[0]].actor.View()
	for _, id := range chaosEdges[1:] {
		view := c.dispatchers[id].actor.View()
		if a, b := fmt.Sprintf("%+v", controls(first)), fmt.Sprintf("%+v", controls(view)); a != b {
			c.blame(nil, "controls at %s: %s, at %s: %s", chaosEdges[0], a, id, b)
		}
		for _, p := range c.clients {
			if a, b := folded(first, p), folded(view, p); a != b {
				c.blame([]events.PlayerID{p.ID}, "%s at %s: %s, at %s: %s", p.Name, chaosEdges[0], a, id, b)
			}
		}
	}
}

func controls(v *projections.View) string {
	k := v.Controls()
	var out strings.Builder
	out.WriteString(fmt.Sprint(k.Killed))
	for _, id := range slices.Concat(chaosEdges, chaosServers) {
		out.WriteString(fmt.Sprint(" ", k.IsDrained(id)))
	}
	return out.String()
}

// folded is what a fold holds of a player, without what it may have forgotten.
func folded(v *projections.View, p *sim.Client) string {
	x := v.Player(p.ID)
	s, _ := v.Session(p.ID)
	out := fmt.Sprintf("session %d last %d open %t on %s", s.Number, s.Last, s.Open, s.Server)
	if x.Active != nil {
		out += fmt.Sprintf(" active %s %s last %d", x.Active.ID.Short(), x.Active.Phase, x.Active.Last)
	}
	return out
}
