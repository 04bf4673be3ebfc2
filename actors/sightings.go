package actors

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// sightings are the players of this dispatcher's edges whose backends cannot see them by themselves.
type sightings struct {
	mu   sync.Mutex
	open map[uint64]context.CancelFunc // by connection
}

func (s *sightings) init() { s.open = map[uint64]context.CancelFunc{} }

// begin gives the context of a sighting, which ends with the connection; false: it is on already.
func (s *sightings) begin(ctx context.Context, conn uint64) (context.Context, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[conn] != nil {
		return ctx, false
	}
	ctx, s.open[conn] = context.WithCancel(ctx)
	return ctx, true
}

func (s *sightings) end(conn uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.open[conn]; cancel != nil {
		cancel()
		delete(s.open, conn)
	}
}

// How often a backend that does not answer is told again what was seen.
const (
	seenAgain    = 500 * time.Millisecond
	seenPatience = 2 * time.Second
)

// LetIn says that an edge has seen a server let a client in. The server's backend hears of it as long as the
// connection stands, and of its end. It does not block.
func (d *Dispatcher) LetIn(c Connection, nativeID string) {
	q := events.SeenAsk{
		Player: c.Player, Name: c.Name, NativeID: nativeID, Here: true,
		Connection: d.Source.Incarnation.Hex() + "-" + strconv.FormatUint(c.ID, 10),
	}
	d.background(func(ctx context.Context) {
		standing, first := d.sightings.begin(ctx, c.ID)
		if !first {
			return
		}
		d.repeatSeen(standing, c.Server, q)
		q.Here = false
		for range 5 {
			if ctx.Err() != nil || d.saySeen(ctx, c.Server, q) == nil || !sleep(ctx, seenAgain) {
				return
			}
		}
	})
}

// repeatSeen says that a player is there until the connection ends.
func (d *Dispatcher) repeatSeen(ctx context.Context, server events.HostID, q events.SeenAsk) {
	for {
		pause := SeenEvery
		if err := d.saySeen(ctx, server, q); err != nil {
			pause = seenAgain
		}
		if !sleep(ctx, pause) {
			return
		}
	}
}

func (d *Dispatcher) saySeen(ctx context.Context, server events.HostID, q events.SeenAsk) error {
	ctx, cancel := context.WithTimeout(ctx, seenPatience)
	defer cancel()
	_, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(server, events.VerbSeen), q)
	return err
}
