package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// Load is players who wander: each asks, again and again, for a place on another server.
type Load struct {
	Stage    *Stage
	Players  int
	Rate     float64       // requests a second, over all players
	Duration time.Duration // of asking; those under way are then waited for
	Settle   time.Duration // how long they are waited for
	// KillAt ends the named proxy after this long, 0 never.
	KillAt time.Duration
	Kill   events.HostID
	Seed   uint64
}

// Run lets the players wander until the time is over or ctx ends, and then waits for those
// under way. It reports how many requests the players made.
func (l Load) Run(ctx context.Context) (asked int, err error) {
	var wg sync.WaitGroup
	defer wg.Wait()
	life, end := context.WithCancel(ctx)
	defer end()
	clients := l.join(life, &wg)
	l.awaitJoins(life, clients)
	if l.KillAt > 0 {
		wg.Go(func() { l.killLater(life) })
	}
	rnd := rand.New(rand.NewPCG(l.Seed, 1)) //nolint:gosec // a schedule that can be repeated
	ticker := time.NewTicker(time.Duration(float64(time.Second) / l.Rate))
	defer ticker.Stop()
	over := time.NewTimer(l.Duration)
	defer over.Stop()
	for {
		select {
		case <-ticker.C:
			asked += l.askOne(clients, rnd)
		case <-over.C:
			return asked, l.settle(ctx)
		case <-ctx.Done():
			return asked, nil
		}
	}
}

// join brings the players in, over the proxies in turn, and keeps them in: a player whose
// connection broke logs in again, as people do.
func (l Load) join(ctx context.Context, wg *sync.WaitGroup) []*Client {
	clients := make([]*Client, 0, l.Players)
	for i := range l.Players {
		c := l.Stage.Net().AddClient(fmt.Sprintf("Player%03d", i+1), 767)
		clients = append(clients, c)
		wg.Go(func() { l.keepIn(ctx, c, i) })
	}
	return clients
}

// joinPatience bounds how long the first joins are waited for.
const joinPatience = 10 * time.Second

// awaitJoins waits until the log knows where every player is.
func (l Load) awaitJoins(ctx context.Context, clients []*Client) {
	ctx, cancel := context.WithTimeout(ctx, joinPatience)
	defer cancel()
	for _, c := range clients {
		for !l.stands(c) {
			select {
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return
			}
		}
	}
}

// stands tells that the log names the server where the client is.
func (l Load) stands(c *Client) bool {
	d := l.Stage.Observer()
	if d == nil {
		return false
	}
	s, known := d.View().Session(c.ID)
	return known && s.Open && s.Server == c.Look().Server
}

// absence is how long a client may be away before its player logs in again by hand.
const absence = 2 * time.Second

func (l Load) keepIn(ctx context.Context, c *Client, i int) {
	online := func(v View) bool { return v.Server != "" }
	offline := func(v View) bool { return v.Server == "" }
	for patience := time.Duration(0); ctx.Err() == nil; patience = absence {
		away, cancel := context.WithTimeout(ctx, patience)
		back := c.Until(away, online)
		cancel()
		alive := l.Stage.Net().Alive()
		if !back && len(alive) > 0 {
			_ = c.Join(ctx, alive[i%len(alive)], events.Token{})
		}
		if online(c.Look()) {
			c.Until(ctx, offline)
		}
	}
}

func (l Load) killLater(ctx context.Context) {
	t := time.NewTimer(l.KillAt)
	defer t.Stop()
	select {
	case <-t.C:
		l.Stage.Kill(l.Kill)
	case <-ctx.Done():
	}
}

// askOne lets one idle player ask for a place on another server.
func (l Load) askOne(clients []*Client, rnd *rand.Rand) int {
	d := l.Stage.Observer()
	if d == nil {
		return 0
	}
	for _, i := range rnd.Perm(len(clients)) {
		c := clients[i]
		if !l.stands(c) || d.View().Player(c.ID).Active != nil {
			continue
		}
		c.Ask(RegionOf(l.elsewhere(c.Look().Server, rnd)))
		return 1
	}
	return 0
}

func (l Load) elsewhere(at events.HostID, rnd *rand.Rand) events.HostID {
	list := l.Stage.cfg.Backends
	for _, i := range rnd.Perm(len(list)) {
		if list[i] != at {
			return list[i]
		}
	}
	return at
}

// quiet is how long nothing must be under way before all is taken to have ended: a request
// that a game server is still to hear of is not in the log yet.
const quiet = 500 * time.Millisecond

// settle waits until no transfer is under way.
func (l Load) settle(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.Settle)
	defer cancel()
	idle := time.Now()
	for time.Since(idle) < quiet {
		if d := l.Stage.Observer(); d == nil || len(d.View().Active()) > 0 {
			idle = time.Now()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}
