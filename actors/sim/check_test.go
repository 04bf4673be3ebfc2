package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// check holds the log, the game servers and what the clients saw against what is promised.
// It runs when everything was mended long ago.
func (c *chaos) check() *ledger {
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
	c.checkBounds(l)
	c.checkKept(l)
	c.checkOrder()
	c.checkMoves(l)
	c.checkPlacements(l)
	c.checkPromises()
	c.checkPools()
	c.checkTold(l)
	c.checkSessions()
	c.checkFolds()
	return l
}

// wrong is a violation and whom it is about.
type wrong struct {
	players []events.PlayerID
	text    string
}

// ledger goes over the facts with a book of its own.
type ledger struct {
	journeys *projections.Journeys
	last     map[events.PlayerID]uint64 // the player's last sequence
	active   map[events.PlayerID]events.TransferID
	over     map[events.TransferID]bool
	audible  int   // ends that their players could hear of
	legs     []leg // of all transfers, those of each in order
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

// leg is a part of a transfer that somebody must end.
type leg struct {
	player   events.PlayerID
	transfer events.TransferID
	what     string
	from, to time.Time     // to is zero while it goes on
	within   time.Duration // 0: as long as the player is there
}

// promised is a token for as long as it was open.
type promised struct {
	*events.Reserved
	player  events.PlayerID
	token   events.Token
	from    time.Time
	to      time.Time // zero while it is open
	spent   time.Time // when its arrival was recorded, zero: it was not
	claimed bool
}

func newLedger() *ledger {
	return &ledger{
		journeys: projections.NewJourneys(0), active: map[events.PlayerID]events.TransferID{}, last: map[events.PlayerID]uint64{},
		over:     map[events.TransferID]bool{},
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
	if e.Prev != l.last[player] {
		l.blame(e, "%s was written on %d, and the player's last fact is %d", events.TypeName(e.Fact), e.Prev, l.last[player])
	}
	l.last[player] = e.Seq
	if l.over[id] {
		l.blame(e, "%s of a transfer that is over", events.TypeName(e.Fact))
	}
	switch f := e.Fact.(type) {
	case *events.Requested:
		if other, busy := l.active[player]; busy {
			l.blame(e, "a second active transfer beside %s", other.Short())
		}
		l.active[player] = id
		l.begin(e, player, id, "open", 0)
	case *events.Reserved:
		l.reserved(e, player, id, f)
	case *events.Claimed:
		l.claimed(e, id, f.Attempt, true)
	case *events.Reopened:
		l.claimed(e, id, f.Attempt, false)
	case *events.Consumed:
		l.arrived(e, player, id, f)
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
		l.begin(e, player, id, "open", 0)
	default:
	}
}

// begin ends the leg before.
func (l *ledger) begin(e events.Event, player events.PlayerID, id events.TransferID, what string, within time.Duration) {
	l.stop(e, id)
	l.legs = append(l.legs, leg{player: player, transfer: id, what: what, from: e.Stored, within: within})
}

func (l *ledger) stop(e events.Event, id events.TransferID) {
	for i := len(l.legs) - 1; i >= 0; i-- {
		if x := &l.legs[i]; x.transfer == id {
			x.to = e.Stored
			return
		}
	}
}

// claimed demands that a token is claimed once, and once more after each time the claim was
// taken back.
func (l *ledger) claimed(e events.Event, id events.TransferID, attempt int, yes bool) {
	p := l.open(id)
	switch {
	case p == nil || p.token.Attempt != attempt:
		l.blame(e, "%s of a token that is not open", events.TypeName(e.Fact))
	case p.claimed == yes:
		l.blame(e, "%s, and the token is claimed: %t", events.TypeName(e.Fact), p.claimed)
	default:
		p.claimed = yes
	}
}

func (l *ledger) arrived(e events.Event, player events.PlayerID, id events.TransferID, f *events.Consumed) {
	if _, twice := l.consumed[id]; twice {
		l.blame(e, "consumed twice")
	}
	l.consumed[id] = e
	p := l.open(id)
	if p == nil || p.token.Attempt != f.Attempt || p.Server != f.Server || p.Incarnation != f.Incarnation {
		l.blame(e, "consumed without a promise of that server")
		return
	}
	p.spent = e.Stored
	l.begin(e, player, id, "consumed", actors.Timing{}.WithDefaults().Placement)
}

func (l *ledger) end(e events.Event, player events.PlayerID, id events.TransferID) {
	if l.active[player] != id {
		l.blame(e, "an end of a transfer that is not active")
	}
	delete(l.active, player)
	l.over[id] = true
	l.close(e, id)
	l.stop(e, id)
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
	timing := actors.Timing{}.WithDefaults()
	l.begin(e, player, id, "promised", timing.TTL+timing.TTLSlack)
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

// acting is how long somebody who sees everything may take to end what is due: watch for long
// enough to judge, sweep, wait for the turn, ask the origin, write.
const acting = 15 * time.Second

// checkBounds demands that each state ended in time, if there was somebody to end it.
func (c *chaos) checkBounds(l *ledger) {
	now := time.Now()
	for _, x := range l.legs {
		if x.to.IsZero() {
			x.to = now
		}
		if x.within == 0 {
			c.checkGrace(x)
			continue
		}
		for _, edge := range chaosEdges {
			if due := x.from.Add(x.within); c.undisturbed(due, x.to, acting, edge) {
				c.blame([]events.PlayerID{x.player}, "%s of %s was %s from %.3f to %.3f, and %s let it be",
					x.transfer.Short(), c.name(x.player), x.what, x.from.Sub(c.began).Seconds(), x.to.Sub(c.began).Seconds(), edge)
				break
			}
		}
	}
}

// checkGrace demands that nobody's place was kept who was away for too long.
func (c *chaos) checkGrace(x leg) {
	timing := actors.Timing{}.WithDefaults()
	from := x.from
	for _, s := range append(stays(c.clientOf(x.player), x.to), stay{from: x.to}) {
		if to := earlier(s.from, x.to); to.After(from) {
			for _, edge := range chaosEdges {
				if c.undisturbed(from, to, timing.Grace+timing.Stale+acting, edge) {
					c.blame([]events.PlayerID{x.player}, "%s kept the place of %s, who was away from %.3f to %.3f",
						edge, c.name(x.player), from.Sub(c.began).Seconds(), to.Sub(c.began).Seconds())
					return
				}
			}
		}
		from = later(from, s.to)
	}
}

// checkKept demands that of no region more places were promised at a time than it keeps.
func (c *chaos) checkKept(l *ledger) {
	open := map[string][]promised{}
	for _, p := range l.promised {
		key := fmt.Sprintf("%s/%x/%s", p.Server, p.Incarnation, p.Region)
		held := slices.DeleteFunc(open[key], func(q promised) bool {
			return !q.to.IsZero() && !q.to.After(p.from) || !q.spent.IsZero() && !q.spent.After(p.from) || !c.held(q, p.from).After(p.from)
		})
		open[key] = append(held, p)
		if n, keep := len(open[key]), keepOf(p.Server, p.Region); n > keep {
			var players []events.PlayerID
			for _, q := range open[key] {
				players = append(players, q.player)
			}
			c.blame(players, "%d places of %s on %s were promised at %.3f, and %d are kept", n, p.Region, p.Server, p.from.Sub(c.began).Seconds(), keep)
		}
	}
}

func keepOf(server events.HostID, region string) int {
	for _, r := range chaosRegions[server] {
		if r.Name == region {
			return r.Keep
		}
	}
	return 0
}

// checkOrder demands that no destination gave a place while a lower one was asking for it: who
// had come a while before and was still there after.
func (c *chaos) checkOrder() {
	const awhile = 50 * time.Millisecond
	for i, g := range c.asked {
		for _, x := range c.asked[i+1:] { // in order of their answers
			if !g.granted || x.until.Sub(g.until) > longestAsk {
				break
			}
			if x.server != g.server || x.incarnation != g.incarnation || x.place >= g.place || !x.from.Before(g.until) {
				continue
			}
			c.queued++
			if g.until.Sub(x.from) > awhile && x.until.After(g.until) && c.undisturbed(x.from, x.until, x.until.Sub(x.from), x.server) {
				c.blame(nil, "%s gave a place to %d at %.3f, and %d had been asking since %.3f, until %.3f",
					g.server, g.place, g.until.Sub(c.began).Seconds(), x.place, x.from.Sub(c.began).Seconds(), x.until.Sub(c.began).Seconds())
			}
		}
	}
}

// longestAsk is longer than any request for a place waits at a host that is well.
const longestAsk = 10 * time.Second

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
	if until := c.held(p, s.At); s.At.After(until) {
		c.blame([]events.PlayerID{s.Player}, "%s was sent to %s %s after the place was given up", c.name(s.Player), p.Server, s.At.Sub(until))
	}
}

// held tells until when a server kept a promise, as it stood at a moment.
func (c *chaos) held(p promised, at time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[promiseID{p.Server, p.Incarnation, p.Promise}]; k != nil {
		return k.until(at)
	}
	return time.Time{}
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

// checkPromises demands that no server promised a coordinate while it was still to keep an
// earlier promise of it, whether that came into the log or not.
func (c *chaos) checkPromises() {
	type place struct {
		server      events.HostID
		incarnation events.Incarnation
		at          events.Position
	}
	c.mu.Lock()
	promises, all := slices.Clone(c.promises), maps.Clone(c.kept)
	c.mu.Unlock()
	last := map[place]*kept{}
	for _, id := range promises {
		k := all[id]
		at := place{id.server, id.incarnation, k.at}
		if before := last[at]; before != nil && before.until(k.said[0].from).After(k.said[0].from) {
			c.blame([]events.PlayerID{k.player, before.player}, "a coordinate of %s was promised to %s while %s held it", id.server, c.name(k.player), c.name(before.player))
		}
		last[at] = k
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
		l.audible++
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
	for _, s := range stays(p, time.Now()) {
		from, to := later(s.from, after), earlier(s.to, end)
		if to.After(from) && c.undisturbed(from, to, audible, s.server, s.edge) {
			return true
		}
	}
	return false
}

// stay is a stretch of time in which a client stood on one server, over one edge.
type stay struct {
	from, to     time.Time
	server, edge events.HostID
}

// stays of a client until now, in order.
func stays(p *sim.Client, now time.Time) []stay {
	var out []stay
	there := false
	end := func(at time.Time) {
		if there {
			out[len(out)-1].to = at
		}
	}
	for _, m := range p.History() {
		switch {
		case m.Text != "":
		case m.Server == "":
			end(m.At)
			there = false
		default:
			end(m.At)
			out, there = append(out, stay{from: m.At, to: now, server: m.Server, edge: m.Edge}), true
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
