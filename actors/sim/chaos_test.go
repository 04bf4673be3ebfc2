package sim_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// chaos is a whole network that goes through a script of requests and faults: three edges,
// a lobby "a" and three destinations.
type chaos struct {
	*rig

	began   time.Time
	worlds  map[events.HostID]*sim.World
	life    map[events.HostID]int
	alive   map[events.HostID]bool // the process, not the game server
	booted  map[events.HostID]bool // the game server
	clients []*sim.Client
	asleep  []*sleeper

	mu       sync.Mutex
	healed   bool
	faulty   []span // when something was broken, in order of their beginnings
	lines    []line // what was done
	asked    []grantAsk
	kept     map[promiseID]*kept
	promises []promiseID // in the order in which they were made
	queued   int         // how many lower places were waiting when one was given, or had just come
	bad      []string
	blamed   map[events.PlayerID]bool
}

// span is a stretch of time in which a host was not to be relied on, or, without one, nobody.
type span struct {
	from, to time.Time
	host     events.HostID
	down     bool // until the host is started again
}

// grantAsk is one request for a place, as its destination saw it.
type grantAsk struct {
	server      events.HostID
	incarnation events.Incarnation
	place       uint64
	from, until time.Time
	granted     bool
}

// line is something that happened in the story of a run.
type line struct {
	at   time.Time
	text string
}

// sleeper is a process that was stopped and replaced; it wakes later.
type sleeper struct {
	id   events.HostID
	gate *gate
	err  chan error
}

// chaosPlayers is how many players there are, unless it is a crowd.
const chaosPlayers = 14

var (
	chaosEdges   = []events.HostID{"e1", "e2", "e3"}
	chaosServers = []events.HostID{"a", "b", "c", "d"}
	chaosRegions = map[events.HostID][]actors.Region{
		"b": {region("default", 3)},
		"c": {region("default", 2)},
		"d": {region("default", 1), region("wild", 2)},
	}
)

func region(name string, keep int) actors.Region {
	return actors.Region{Name: name, World: "minecraft:overworld", MaxRadius: 1000, Keep: keep}
}

// verdict is what was wrong in a run, and how it came to it.
type verdict struct {
	bad   []string
	story string
	seen  map[string]int // how often each kind of fact, and each end, came about
}

// calm is how long a network is watched after everything was mended: longer than every
// deadline.
const calm = 5 * time.Minute

// chaosNet is what a run is made on.
type chaosNet struct {
	players  int
	store    opener
	pace     float64 // of each server; 0: as many places as are asked for
	quiet    bool    // hosts do not log
	restless bool    // players whose connection broke come back by themselves
}

// runChaos lets a network go through a script, mends everything, and checks.
func runChaos(t *testing.T, n chaosNet, script []string) verdict {
	var v verdict
	simulateOn(t, n.store, events.KindEdge, func(r *rig) {
		r.quiet, r.pace, r.line = n.quiet, n.pace, actors.ShippedLineRules()
		r.line.DrainPerSecond = n.pace
		c := &chaos{
			rig: r, began: time.Now(), kept: map[promiseID]*kept{}, worlds: map[events.HostID]*sim.World{}, life: map[events.HostID]int{}, alive: map[events.HostID]bool{},
			booted: map[events.HostID]bool{}, blamed: map[events.PlayerID]bool{},
		}
		c.raise(n)
		for _, s := range script {
			c.step(s)
		}
		c.heal()
		c.pass(calm)
		l := c.check()
		v.bad, v.seen = c.bad, c.census(l)
		if len(c.bad) > 0 {
			v.story = c.tale()
		}
	})
	return v
}

// replay runs a script that once led to a violation.
func replay(t *testing.T, latency time.Duration, script ...string) {
	t.Helper()
	if v := runChaos(t, chaosNet{players: chaosPlayers, store: inMemory(streamtest.WithLatency(latency))}, script); len(v.bad) > 0 {
		t.Errorf("%s\n%s", strings.Join(v.bad, "\n"), v.story)
	}
}

func (c *chaos) raise(n chaosNet) {
	for _, id := range chaosEdges {
		c.startEdge(id)
	}
	for _, id := range chaosServers {
		w := sim.NewWorld(id, 1000, 0)
		c.net.AddWorld(w)
		c.worlds[id], c.booted[id] = w, true
		c.attachTo(id)
	}
	c.settle()
	for i := range n.players {
		p := c.net.AddClient(fmt.Sprintf("P%d", i), 767)
		c.clients = append(c.clients, p)
		c.pinned(p, "a")
		if err := p.Join(c.ctx, chaosEdges[i%len(chaosEdges)], events.Token{}); err != nil {
			c.t.Fatal(err)
		}
	}
	c.pass(time.Second)
	if n.restless {
		for i, p := range c.clients {
			c.wg.Go(func() { c.comeBack(p, i) })
		}
	}
}

// comeBack lets a player log in again, some seconds after the connection broke.
func (c *chaos) comeBack(p *sim.Client, i int) {
	for c.ctx.Err() == nil {
		p.Until(c.ctx, func(v sim.View) bool { return v.Server == "" })
		soon, cancel := context.WithTimeout(c.ctx, time.Duration(2+i%9)*time.Second)
		back := p.Until(soon, func(v sim.View) bool { return v.Server != "" })
		cancel()
		if alive := c.net.Alive(); !back && len(alive) > 0 {
			_ = p.Join(c.ctx, alive[i%len(alive)], events.Token{})
		}
	}
}

// newConn gives each life of a host a connection of its own.
func (c *chaos) newConn(id events.HostID) string {
	c.life[id]++
	c.alive[id] = true
	return fmt.Sprintf("%s.%d", id, c.life[id])
}

func (c *chaos) startEdge(id events.HostID) {
	c.startDispatcherOn(c.newConn(id), id, events.SourceEdge, actors.DispatcherConfig{Kind: events.KindEdge, Domain: "play.example.net", Port: 25565})
}

func (c *chaos) attachTo(id events.HostID) {
	client := &gate{conn: c.store.Client(c.newConn(id)), served: c.hearsAsks(id)}
	b, err := actors.NewBackend(actors.BackendConfig{
		Identity: c.identity(events.SourceBackend, id), Log: client, Bus: client, World: c.worlds[id], Logger: c.logger(id), Timing: c.timing, Pace: c.pace,
		Regions: chaosRegions[id], Advertise: sim.WorldAddress(id), Public: sim.WorldAddress(id), Adapter: "sim",
	})
	if err != nil {
		c.t.Fatal(err)
	}
	c.backends[id] = start(c.rig, b, client, b.Run)
}

// hearsAsks writes down what a server promises, to whom, and what it takes back.
func (c *chaos) hearsAsks(id events.HostID) func(time.Time, string, events.Wire, events.Wire) {
	return func(came time.Time, subject string, q, a events.Wire) {
		switch {
		case a.Silent():
		case subject == events.ToBackend(id, events.VerbReserve):
			ask, answer := read[events.ReserveAsk](c, q), read[events.ReserveAnswer](c, a)
			c.noteReserve(id, came, ask, answer)
		case subject == events.ToBackend(id, events.VerbRelease):
			ask, answer := read[events.ReleaseAsk](c, q), read[events.Answer](c, a)
			if answer.Code == events.OK {
				c.keeps(promiseID{id, ask.Incarnation, ask.Promise}, time.Now())
			}
		}
	}
}

func read[T any](c *chaos, w events.Wire) (out T) {
	if err := events.Unmarshal(w.Body, &out); err != nil {
		c.t.Errorf("%T cannot be read: %v", out, err)
	}
	return out
}

func (c *chaos) noteReserve(id events.HostID, came time.Time, ask events.ReserveAsk, answer events.ReserveAnswer) {
	promise := promiseID{id, ask.Incarnation, answer.Promise}
	granted := answer.Code == events.Promised
	c.mu.Lock()
	again := c.kept[promise] != nil
	c.asked = append(c.asked, grantAsk{
		server: id, incarnation: ask.Incarnation, place: ask.Place, from: came, until: time.Now(), granted: granted && !again,
	})
	if granted && !again {
		c.kept[promise] = &kept{player: ask.Player, at: answer.At}
		c.promises = append(c.promises, promise)
	}
	c.mu.Unlock()
	if granted {
		hold := time.Duration(ask.TTLMs)*time.Millisecond + actors.Timing{}.WithDefaults().TTLSlack
		c.keeps(promise, time.Now().Add(hold))
	}
}

// keeps notes that from now on a promise ends then.
func (c *chaos) keeps(id promiseID, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.kept[id]; k != nil {
		k.said = append(k.said, span{from: time.Now(), to: until})
	}
}

// promiseID names a promise.
type promiseID struct {
	server      events.HostID
	incarnation events.Incarnation
	number      uint64
}

// kept is a promise as its server told of it.
type kept struct {
	player events.PlayerID
	at     events.Position
	said   []span // when, and until when it was to be kept; in order
}

// until tells until when the promise was kept, as it stood at a moment.
func (k *kept) until(moment time.Time) (end time.Time) {
	for _, s := range k.said {
		if !s.from.After(moment) {
			end = s.to
		}
	}
	return end
}

// step carries out one line of a script: a pause, an act, and its arguments.
func (c *chaos) step(text string) {
	f := strings.Fields(text)
	c.pass(length(f[0]))
	c.say("== " + text)
	c.act(f[1], append(f[2:], "", ""))
	c.inspect()
}

func (c *chaos) say(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, line{time.Now(), text})
}

func length(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		panic(err)
	}
	return d
}

func (c *chaos) act(op string, arg []string) {
	id := events.HostID(arg[0])
	switch op {
	case "ask":
		c.client(arg[0]).Ask(strings.Join(arg[1:len(arg)-2], " "))
	case "quit":
		c.client(arg[0]).Quit()
	case "leave":
		c.client(arg[0]).Cancel()
	case "join":
		c.login(c.client(arg[0]), events.HostID(arg[1]), events.Token{})
	case "token": // with the token of somebody's newest transfer
		c.login(c.client(arg[0]), events.HostID(arg[1]), c.tokenOf(c.client(arg[2])))
	case "deaf":
		p := c.client(arg[0])
		p.Follow(false)
		c.later(length(arg[1]), func() { p.Follow(true) })
	case "kill", "start", "zombie", "stop", "cut", "noack", "slow", "refuse":
		c.actOnHost(op, id, arg[1:])
	case "crash", "boot", "barren", "spoil", "closed", "send", "place":
		c.actOnWorld(op, id, arg[1:])
	case "outage":
		c.disturb("", length(arg[0]))
		c.store.Outage()
		c.later(length(arg[0]), c.store.Restore)
	case "drop":
		c.disturb("", ruleWindow)
		c.store.DropRequest(c.verb(arg[0]), number(arg[1]))
	case "lose":
		c.disturb("", ruleWindow)
		c.store.LoseAnswer(c.verb(arg[0]), number(arg[1]))
	case "switch":
		c.control("kill", &events.KillSet{On: true, Who: "op", Why: "maintenance"})
		c.later(length(arg[0]), func() { c.control("kill", &events.KillSet{Who: "op"}) })
	case "pause":
		what, name, _ := strings.Cut(arg[0], ":")
		c.pause(what, name, length(arg[1]))
	case "drain":
		c.control("drain."+arg[0], &events.DrainSet{Host: id, On: true, Who: "op"})
		c.later(length(arg[1]), func() { c.control("drain."+arg[0], &events.DrainSet{Host: id, Who: "op"}) })
	case "pass":
	default:
		panic("no act is called " + op)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

func (c *chaos) client(name string) *sim.Client {
	return c.clients[number(strings.TrimPrefix(name, "P"))%len(c.clients)]
}

func (c *chaos) login(p *sim.Client, edge events.HostID, token events.Token) {
	c.wg.Go(func() { _ = p.Join(c.ctx, edge, token) })
}

// tokenOf is the token that a player has, or had last, as the log shows it.
func (c *chaos) tokenOf(p *sim.Client) (token events.Token) {
	for _, r := range c.store.Records(events.Transfers) {
		player, transfer, _ := events.ParseTransferKey(r.Key)
		if player != p.ID {
			continue
		}
		if e, refusal := events.Open(streamtest.Keyring(), r); refusal == nil {
			if f, ok := e.Fact.(*events.Reserved); ok {
				token = events.Token{Transfer: transfer, Attempt: f.Attempt}
			}
		}
	}
	return token
}

// later undoes a fault, at the latest when everything is mended.
func (c *chaos) later(d time.Duration, undo func()) {
	time.AfterFunc(d, func() {
		c.mu.Lock()
		over := c.healed
		c.mu.Unlock()
		if !over {
			undo()
		}
	})
}

// afterwards is how long what was broken may still show after it was mended.
const afterwards = 2 * time.Second

// disturb notes that a host, or "" for everybody, is not to be relied on for a while.
func (c *chaos) disturb(id events.HostID, d time.Duration) {
	c.faulty = append(c.faulty, span{from: time.Now(), to: time.Now().Add(d + afterwards), host: id})
}

// down disturbs until the host is there again.
func (c *chaos) down(id events.HostID) {
	c.faulty = append(c.faulty, span{from: time.Now(), to: time.Now().Add(24 * time.Hour), host: id, down: true})
}

// mended ends what began when a host went down.
func (c *chaos) mended(id events.HostID) {
	for i := range c.faulty {
		if f := &c.faulty[i]; f.down && f.host == id {
			f.to, f.down = time.Now().Add(afterwards), false
		}
	}
}

// allMended ends whatever is broken.
func (c *chaos) allMended() {
	for i := range c.faulty {
		c.faulty[i].to = earlier(c.faulty[i].to, time.Now().Add(afterwards))
	}
}

// undisturbed tells that in a stretch of time nothing was broken of these hosts for so long.
func (c *chaos) undisturbed(from, to time.Time, length time.Duration, hosts ...events.HostID) bool {
	for _, f := range c.faulty {
		if f.host != "" && !slices.Contains(hosts, f.host) || !f.to.After(from) {
			continue
		}
		if earlier(f.from, to).Sub(from) >= length {
			return true
		}
		from = later(from, f.to)
	}
	return to.Sub(from) >= length
}

// ruleWindow is how long requests of a kind may still be lost.
const ruleWindow = 5 * time.Second

// verb matches the requests and news of one kind, for a while.
func (c *chaos) verb(name string) func(string) bool {
	until := time.Now().Add(ruleWindow)
	return func(subject string) bool {
		return strings.HasSuffix(subject, "."+name) && time.Now().Before(until)
	}
}

func (c *chaos) actOnHost(op string, id events.HostID, arg []string) {
	edge := slices.Contains(chaosEdges, id)
	switch {
	case op == "start":
		c.startAgain(id)
	case !c.alive[id]:
	case op == "kill" && edge:
		c.alive[id] = false
		c.down(id)
		c.killDispatcher(id)
	case op == "kill":
		c.alive[id] = false
		c.down(id)
		c.killBackend(id)
	case op == "zombie":
		if c.hasBeaten(id) { // of two that begin at once either may be the one
			c.replace(id, length(arg[0]))
		}
	default:
		c.strain(op, id, arg)
	}
}

// strain is a fault of a host's connection.
func (c *chaos) strain(op string, id events.HostID, arg []string) {
	g := c.gateOf(id)
	switch op {
	case "stop":
		c.disturb(id, length(arg[0]))
		g.Stop()
		c.later(length(arg[0]), g.Resume)
	case "cut":
		c.disturb(id, length(arg[0]))
		g.Cut()
		c.later(length(arg[0]), g.Heal)
	case "noack":
		g.LoseNextAck(number(arg[0]))
	case "slow":
		g.DelayAppend(length(arg[0]))
		c.later(length(arg[1]), func() { g.DelayAppend(0) })
		c.disturb(id, length(arg[1])+length(arg[0]))
	case "refuse":
		g.FailAppend(events.Unavailable, number(arg[0]))
		c.disturb(id, time.Second)
	}
}

func (c *chaos) startAgain(id events.HostID) {
	if c.alive[id] {
		return
	}
	if slices.Contains(chaosEdges, id) {
		c.startEdge(id)
	} else {
		c.attachTo(id)
	}
	c.mended(id)
}

func (c *chaos) gateOf(id events.HostID) *gate {
	if h, ok := c.dispatchers[id]; ok {
		return h.client
	}
	return c.backends[id].client
}

// hasBeaten tells that the log knows the present process of a host.
func (c *chaos) hasBeaten(id events.HostID) bool {
	var key string
	var life events.Incarnation
	if h, ok := c.dispatchers[id]; ok {
		key, life = events.ProxyKey(id), h.actor.Source.Incarnation
	} else {
		key, life = events.BackendKey(id), c.backends[id].actor.Incarnation()
	}
	r, found, err := c.store.Client("operator").LastOf(c.ctx, events.Fleet, key)
	if err != nil || !found {
		return false
	}
	e, refusal := events.Open(streamtest.Keyring(), r)
	return refusal == nil && e.Source.Incarnation == life
}

// replace stops a process, starts another one under its id, and wakes the first one later.
func (c *chaos) replace(id events.HostID, after time.Duration) {
	s := &sleeper{id: id, gate: c.gateOf(id)}
	s.gate.Stop()
	c.asleep = append(c.asleep, s)
	if h, ok := c.dispatchers[id]; ok {
		s.err = h.err
		c.net.Edge(id).Kill() // its players run into a time-out
		c.startEdge(id)
	} else {
		s.err = c.backends[id].err
		c.attachTo(id)
	}
	c.disturb(id, after+10*time.Second)
	c.later(after, s.gate.Resume)
}

func (c *chaos) actOnWorld(op string, id events.HostID, arg []string) {
	w := c.worlds[id]
	switch op {
	case "crash":
		c.booted[id] = false
		w.Kill()
	case "boot":
		c.booted[id] = true
		w.Restart()
	case "spoil":
		w.Spoil()
	case "barren":
		w.Set(func(f *sim.Faults) { f.Barren = true })
		c.later(length(arg[0]), func() { w.Set(func(f *sim.Faults) { f.Barren = false }) })
	case "closed":
		w.Set(func(f *sim.Faults) { f.Closed = true })
		c.later(length(arg[0]), func() { w.Set(func(f *sim.Faults) { f.Closed = false }) })
	case "send":
		carried, err := actFault(arg[0])
		left := number(arg[1])
		w.Set(func(f *sim.Faults) {
			f.Send = func(actors.Player, string) (bool, error) { return few(c, &left, carried, err) }
		})
	case "place":
		carried, err := actFault(arg[0])
		left := number(arg[1])
		w.Set(func(f *sim.Faults) {
			f.Place = func(actors.Player) (bool, error) { return few(c, &left, carried, err) }
		})
	}
}

// actFault is what an act of a game server may come to.
func actFault(kind string) (carried bool, err error) {
	switch kind {
	case "happened":
		return true, actors.ErrUnknown
	case "lost":
		return false, actors.ErrUnknown
	case "refused":
		return false, actors.ErrNotSent
	}
	panic("no fault is called " + kind)
}

func few(c *chaos, left *int, carried bool, err error) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *left == 0 || c.healed {
		return true, nil
	}
	*left--
	return carried, err
}

// control writes what an operator decides, as far as the store can be reached.
func (c *chaos) control(key string, f events.Fact) {
	operator := c.store.Client("operator")
	last, _, err := operator.LastOf(c.ctx, events.Control, key)
	if err == nil {
		_, _ = operator.Append(c.ctx, streamtest.Fact(c.t, key, last.Seq, f))
	}
}

// pausable is what the line can be stopped for.
var pausable = [][2]string{{"line", ""}, {"server", "b"}, {"server", "c"}, {"region", "default"}, {"region", "wild"}}

func (c *chaos) pause(what, name string, d time.Duration) {
	f := &events.PauseSet{What: events.PauseWhat(what), Name: name, On: true, Who: "op", Why: "maintenance"}
	c.control(events.PauseKey(f.What, f.Name), f)
	c.later(d, func() { c.unpause(what, name) })
}

func (c *chaos) unpause(what, name string) {
	f := &events.PauseSet{What: events.PauseWhat(what), Name: name, Who: "op"}
	c.control(events.PauseKey(f.What, f.Name), f)
}

// heal ends every fault: all hosts live, nothing is lost any more.
func (c *chaos) heal() {
	c.say("== heal")
	c.mu.Lock()
	c.healed = true
	c.mu.Unlock()
	c.store.Restore()
	for _, id := range slices.Concat(chaosEdges, chaosServers) {
		c.startAgain(id)
		c.gateOf(id).mend()
	}
	for id, w := range c.worlds {
		w.Set(func(f *sim.Faults) { *f = sim.Faults{} })
		if !c.booted[id] {
			w.Restart()
		}
	}
	for _, s := range c.asleep {
		s.gate.mend()
	}
	for _, p := range c.clients {
		p.Follow(true)
	}
	c.control("kill", &events.KillSet{Who: "op"})
	for _, id := range slices.Concat(chaosEdges, chaosServers) {
		c.control("drain."+string(id), &events.DrainSet{Host: id, Who: "op"})
	}
	for _, what := range pausable {
		c.unpause(what[0], what[1])
	}
	c.allMended()
	c.pass(time.Second)
}

// mend ends every fault of a connection.
func (g *gate) mend() {
	g.Heal()
	g.Resume()
	g.DelayAppend(0)
	g.LoseNextAck(0)
}

// inspect demands what must hold at every moment.
func (c *chaos) inspect() {
	synctest.Wait()
	for id, h := range c.dispatchers {
		c.lives(id, h.err)
	}
	for id, h := range c.backends {
		c.lives(id, h.err)
		if n := h.actor.Tally(); n.Found < n.Ready+n.Promised+n.Placed+n.Dropped {
			c.blame(nil, "coordinates of %s doubled: %+v", id, n)
		}
	}
}

// lives demands that nobody ends who was not ended.
func (c *chaos) lives(id events.HostID, ended chan error) {
	select {
	case err := <-ended:
		if c.alive[id] {
			c.blame(nil, "%s ended by itself: %v", id, err)
			c.alive[id] = false
		}
	default:
	}
}

func (c *chaos) blame(players []events.PlayerID, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	c.bad = append(c.bad, text)
	c.say("!! " + text)
	for _, p := range players {
		c.blamed[p] = true
	}
}

// awake demands that those who slept noticed that they were replaced.
func (c *chaos) awake() {
	for _, s := range c.asleep {
		select {
		case err := <-s.err:
			if !errors.Is(err, actors.ErrDuplicateID) && !errors.Is(err, context.Canceled) {
				c.blame(nil, "a replaced %s ended with %v", s.id, err)
			}
		default:
			c.blame(nil, "a replaced %s goes on", s.id)
		}
	}
}

// tale tells a run: what was done, what the log says and what the clients saw, in order.
func (c *chaos) tale() string {
	names := map[events.PlayerID]string{}
	lines := slices.Clone(c.lines)
	all := len(c.blamed) == 0
	for _, p := range c.clients {
		names[p.ID] = p.Name
		if !all && !c.blamed[p.ID] {
			continue
		}
		for _, m := range p.History() {
			lines = append(lines, line{m.At, fmt.Sprintf("   %s at %q %s", p.Name, m.Server, m.Text)})
		}
		for _, id := range chaosServers {
			for _, s := range c.worlds[id].Sent() {
				if s.Player == p.ID {
					lines = append(lines, line{s.At, fmt.Sprintf("   %s sent to %s", p.Name, s.Address)})
				}
			}
		}
	}
	for _, b := range []events.Bucket{events.Transfers, events.Sessions, events.Control} {
		for _, e := range c.facts(b) {
			player, _, _ := events.ParseTransferKey(e.Key)
			if b == events.Sessions {
				player, _ = events.ParsePlayerKey(e.Key)
			}
			if all || c.blamed[player] || b == events.Control {
				lines = append(lines, line{e.Stored, fmt.Sprintf("%d %s %s %s %s", e.Seq, names[player], e.Source.ID, events.TypeName(e.Fact), brief(e))})
			}
		}
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.at.Compare(b.at) })
	var out strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&out, "%9.3f %s\n", l.at.Sub(c.began).Seconds(), l.text)
	}
	return out.String()
}

// census counts facts, and ends by their codes; and what the checks had to look at.
func (c *chaos) census(l *ledger) map[string]int {
	out := map[string]int{"places asked for": len(c.asked), "ends that could be heard": l.audible, "lower places waiting at a grant": c.queued}
	for _, e := range c.facts(events.Transfers) {
		name := events.TypeName(e.Fact)
		switch f := e.Fact.(type) {
		case *events.Failed:
			name += " " + string(f.Code)
		case *events.Cancelled:
			name += " " + string(f.Code)
		case *events.Released:
			name += " " + string(f.Reason)
		case *events.Expired:
			name += " " + string(f.Reason)
		case *events.Transferred:
			name += " " + string(f.Result)
		default:
		}
		out[name]++
	}
	return out
}

// brief is a fact without its decision.
func brief(e events.Event) string {
	if f, ok := e.Fact.(*events.Reserved); ok {
		return fmt.Sprintf("%s n=%d on %s promise %d at %v", e.Correlation.Short(), f.Attempt, f.Server, f.Promise, f.At.X)
	}
	if f, ok := e.Fact.(*events.Waitlisted); ok {
		return fmt.Sprintf("%s %+v", e.Correlation.Short(), f.Decision.Filtered)
	}
	if e.Correlation.IsZero() {
		return fmt.Sprintf("%+v", e.Fact)
	}
	return fmt.Sprintf("%s %+v", e.Correlation.Short(), e.Fact)
}
