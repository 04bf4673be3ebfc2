package sim

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// World is a simulated game server.
type World struct {
	id         events.HostID
	maxPlayers int
	delay      time.Duration // of each act, as a tick costs

	mu      sync.Mutex
	life    int
	down    bool
	players map[events.PlayerID]visit
	at      map[events.PlayerID]events.Position
	loaded  map[events.Position]bool // coordinates whose chunk is held
	unsafe  map[events.Position]bool
	next    int
	watches map[*watch]struct{}
	faults  Faults
	speaks  [2]int // lowest and highest protocol, 0: not told
	placed  map[Placement]int
	sent    []Sending
}

// visit is one stay of a client.
type visit struct {
	*Client
	number uint64
}

// watch is one process that watches the server, with what it has not heard yet.
type watch struct {
	queue []happening
	wake  chan struct{}
}

// Sending is a player whose client was told to reconnect elsewhere.
type Sending struct {
	At      time.Time
	Player  events.PlayerID
	Address string
}

// Placement is a player who was put on a coordinate.
type Placement struct {
	Player events.PlayerID
	At     events.Position
}

// Faults of a World. A nil hook is no fault.
type Faults struct {
	// Send replaces what Send answers; carried tells whether the player is sent nevertheless.
	Send func(p actors.Player, address string) (carried bool, err error)
	// Place replaces what Place answers; carried tells whether the player is put there nevertheless.
	Place func(p actors.Player) (carried bool, err error)
	// Barren makes Find fail.
	Barren bool
	// Closed refuses new connections.
	Closed bool
	// Kick takes the connection of a player and ends it during the login, as a ban does: the
	// player never joins.
	Kick func(p actors.Player) bool
}

// happening is what the server reports next.
type happening struct {
	joined *actors.Player
	left   *actors.Player
	reason string
	asked  *actors.Player
	region string
	cancel *actors.Player
	up     bool
	life   int
}

// NewWorld makes a game server with room for maxPlayers.
func NewWorld(id events.HostID, maxPlayers int, delay time.Duration) *World {
	return &World{
		id: id, maxPlayers: maxPlayers, delay: delay, life: 1, players: map[events.PlayerID]visit{},
		at: map[events.PlayerID]events.Position{}, loaded: map[events.Position]bool{}, unsafe: map[events.Position]bool{},
		watches: map[*watch]struct{}{}, placed: map[Placement]int{},
	}
}

var _ actors.World = (*World)(nil)

// Run implements actors.World.
func (w *World) Run(ctx context.Context, h actors.WorldEvents) error {
	x := w.watch()
	defer w.unwatch(x)
	for {
		for _, what := range w.take(x) {
			switch {
			case what.up:
				h.Up("life-" + strconv.Itoa(what.life))
			case what.joined != nil:
				h.Joined(*what.joined)
			case what.left != nil:
				h.Left(*what.left, what.reason)
			case what.asked != nil:
				h.Asked(*what.asked, what.region)
			case what.cancel != nil:
				h.Cancelled(*what.cancel)
			}
		}
		select {
		case <-x.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// watch begins to report. A backend that starts late still learns who is there.
func (w *World) watch() *watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	x := &watch{wake: make(chan struct{}, 1)}
	if !w.down {
		x.queue = append(x.queue, happening{up: true, life: w.life})
	}
	for _, c := range w.players {
		p := c.player()
		x.queue = append(x.queue, happening{joined: &p})
	}
	w.watches[x] = struct{}{}
	return x
}

func (w *World) unwatch(x *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watches, x)
}

func (w *World) take(x *watch) []happening {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := x.queue
	x.queue = nil
	return q
}

// report must be called with the lock held.
func (w *World) report(what happening) {
	for x := range w.watches {
		x.queue = append(x.queue, what)
		select {
		case x.wake <- struct{}{}:
		default:
		}
	}
}

// Set changes the faults.
func (w *World) Set(change func(*Faults)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.faults)
}

// Speak sets which protocols the server takes.
func (w *World) Speak(low, high int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.speaks = [2]int{low, high}
}

// Restart ends the server's life: everybody is disconnected, a new life begins.
func (w *World) Restart() {
	w.Kill()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.down = false
	w.life++
	w.loaded, w.unsafe = map[events.Position]bool{}, map[events.Position]bool{}
	w.report(happening{up: true, life: w.life})
}

// Kill ends the server: everybody is disconnected and nobody gets in.
func (w *World) Kill() {
	w.mu.Lock()
	w.down = true
	gone := make([]*Client, 0, len(w.players))
	for id, c := range w.players {
		p := c.player()
		w.report(happening{left: &p, reason: "server stopped"})
		gone = append(gone, c.Client)
		delete(w.players, id)
	}
	w.mu.Unlock()
	for _, c := range gone {
		c.dropped(w, "server stopped")
	}
}

// connect lets a client in.
func (w *World) connect(c *Client, number uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.down || w.faults.Closed:
		return fmt.Errorf("connect to %s: %w", w.id, actors.ErrDown)
	case len(w.players) >= w.maxPlayers:
		return fmt.Errorf("connect to %s: server is full", w.id)
	}
	p := c.player()
	if w.faults.Kick != nil && w.faults.Kick(p) {
		c.net.tasks.Go(func() {
			if pause(c.net.ctx, kickDelay) {
				c.dropped(w, "you are not allowed on this server")
			}
		})
		return nil
	}
	w.players[p.ID] = visit{c, number}
	w.at[p.ID] = Spawn
	w.report(happening{joined: &p})
	return nil
}

// kickDelay is from the connection to the kick: the login has been passed on by then.
const kickDelay = 20 * time.Millisecond

// Spawn is where players appear who are not put anywhere.
var Spawn = events.Position{World: "minecraft:overworld", X: 0.5, Y: 64, Z: 0.5}

// leave takes a client out, if it is still in for that visit.
func (w *World) leave(c *Client, number uint64, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := c.player()
	if w.players[p.ID] == (visit{c, number}) {
		delete(w.players, p.ID)
		w.report(happening{left: &p, reason: reason})
	}
}

// ask is what a player's command becomes.
func (w *World) ask(c *Client, region string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := c.player()
	w.report(happening{asked: &p, region: region})
}

// cancel is what a player's wish not to wait any more becomes.
func (w *World) cancel(c *Client) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := c.player()
	w.report(happening{cancel: &p})
}

// Health implements actors.World.
func (w *World) Health(context.Context) (actors.Health, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return actors.Health{}, actors.ErrDown
	}
	mspt := 8.0
	return actors.Health{Players: len(w.players), MaxPlayers: w.maxPlayers, Game: "simulation", ProtocolMin: w.speaks[0], ProtocolMax: w.speaks[1], MSPT: &mspt}, nil
}

// Find implements actors.World: no coordinate is ever given twice.
func (w *World) Find(ctx context.Context, r actors.Region) (events.Position, error) {
	if err := w.pass(ctx); err != nil {
		return events.Position{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.faults.Barren {
		return events.Position{}, actors.ErrUnsafe
	}
	w.next++
	at := events.Position{
		World: r.World, X: float64(r.CentreX+r.MinRadius+w.next*16) + 0.5, Y: 64 + float64(w.next%40), Z: float64(r.CentreZ+w.next%997) + 0.5,
	}
	w.loaded[at] = true
	return at, nil
}

// Check implements actors.World.
func (w *World) Check(_ context.Context, at events.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.down {
		return actors.ErrDown
	}
	if w.unsafe[at] || !w.loaded[at] {
		return actors.ErrUnsafe
	}
	return nil
}

// Spoil makes all coordinates found so far unsafe.
func (w *World) Spoil() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for at := range w.loaded {
		w.unsafe[at] = true
	}
}

// Forget implements actors.World.
func (w *World) Forget(_ context.Context, at events.Position) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.loaded, at)
	return nil
}

// Expect implements actors.World: this server reports joins at once anyway.
func (*World) Expect(actors.Player, time.Duration) {}

// Place implements actors.World.
func (w *World) Place(ctx context.Context, p actors.Player, at events.Position) (events.Position, error) {
	if err := w.pass(ctx); err != nil {
		return events.Position{}, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.players[p.ID].Client
	if c == nil {
		return events.Position{}, actors.ErrNotHere
	}
	carried, err := true, error(nil)
	if w.faults.Place != nil {
		carried, err = w.faults.Place(p)
	}
	if carried {
		w.at[p.ID] = at
		w.placed[Placement{p.ID, at}]++
		c.placed(w.id, at)
	}
	if err != nil {
		return events.Position{}, err
	}
	return at, nil
}

// Send implements actors.World.
func (w *World) Send(ctx context.Context, p actors.Player, address string) error {
	if err := w.pass(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	c := w.players[p.ID].Client
	fault := w.faults.Send
	w.mu.Unlock()
	if c == nil {
		return actors.ErrNotHere
	}
	carried, err := true, error(nil)
	if fault != nil {
		carried, err = fault(p, address)
	}
	if carried && c.sentTo(w, address) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.sent = append(w.sent, Sending{At: time.Now(), Player: p.ID, Address: address})
	}
	return err
}

// Sent lists the players who were sent away, in order.
func (w *World) Sent() []Sending {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Sending(nil), w.sent...)
}

// Tell implements actors.World.
func (w *World) Tell(_ context.Context, p actors.Player, text string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := w.players[p.ID].Client
	if c == nil {
		return actors.ErrNotHere
	}
	c.heard(text)
	return nil
}

// Placed counts how often a player was put on a coordinate here.
func (w *World) Placed(p Placement) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.placed[p]
}

// Placements lists how often each player was put on each coordinate here.
func (w *World) Placements() map[Placement]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.placed)
}

// Players counts the players on the server.
func (w *World) Players() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.players)
}

// Where tells where a player stands.
func (w *World) Where(id events.PlayerID) (events.Position, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, here := w.players[id]
	return w.at[id], here
}

func (w *World) pass(ctx context.Context) error {
	w.mu.Lock()
	down := w.down
	w.mu.Unlock()
	if down {
		return actors.ErrDown
	}
	if w.delay == 0 {
		return ctx.Err()
	}
	t := time.NewTimer(w.delay)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
