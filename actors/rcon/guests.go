package rcon

import (
	"slices"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
)

// departure is how long a player to whom a transfer was sent may still be
// listed before that is taken for a return too quick to be seen.
const departure = 5 * time.Second

// comeback is the same for a player who is promised a place here meanwhile: an edge holds
// the new login, so the old connection has ended.
const comeback = time.Second

// guest is a player who is looked for closely.
type guest struct {
	player actors.Player
	until  time.Time
	// leaves is set when a transfer was sent: then absence is the news.
	leaves bool
	// back is until when a leaving player is expected to come back here; zero: not at all.
	back time.Time
}

// guests are the players whose coming or going is due. Safe for concurrent use.
type guests struct {
	mu     sync.Mutex
	byName map[string]guest
	last   string        // whom we looked for last
	wake   chan struct{} // has room for one
}

func newGuests() *guests {
	return &guests{byName: map[string]guest{}, wake: make(chan struct{}, 1)}
}

func (g *guests) expect(p actors.Player, within time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if within <= 0 {
		if !g.byName[p.Name].leaves {
			delete(g.byName, p.Name)
		}
		return
	}
	now := time.Now()
	if w := g.byName[p.Name]; w.leaves {
		w.back = now.Add(within)
		if soon := now.Add(comeback); soon.Before(w.until) {
			w.until = soon
		}
		g.byName[p.Name] = w
	} else {
		g.byName[p.Name] = guest{player: p, until: now.Add(within)}
	}
	g.ring()
}

// leaving is called when a transfer was sent.
func (g *guests) leaving(p actors.Player) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.byName[p.Name] = guest{player: p, until: time.Now().Add(departure), leaves: true}
	g.ring()
}

func (g *guests) ring() {
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *guests) done(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.byName, name)
}

// left turns a departure that was seen into an expectation of the return: a
// move that leads nowhere brings the player back at once.
func (g *guests) left(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if w, ok := g.byName[name]; ok && w.leaves {
		w.leaves = false
		if w.back.After(w.until) {
			w.until = w.back
		}
		g.byName[name] = w
	}
}

// sought lists whom to look for at now, in turn; overdue are departures that
// were never seen. Those who are here, and not leaving, need no looking for.
func (g *guests) sought(now time.Time, here func(name string) bool) (names []string, overdue []actors.Player) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, w := range g.byName {
		switch {
		case !w.until.After(now):
			delete(g.byName, name)
			if w.leaves && here(name) {
				overdue = append(overdue, w.player)
			}
		case w.leaves == here(name):
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if i, found := slices.BinarySearch(names, g.last); i < len(names) {
		if found {
			i++
		}
		names = slices.Concat(names[i:], names[:i])
	}
	return names, overdue
}

func (g *guests) looked(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = name
}
