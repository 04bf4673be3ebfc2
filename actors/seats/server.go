// Package seats is a game server that can be neither commanded nor watched, as a stock server of Vintage
// Story: it is asked what it shows in a server list, and the fronts of the network tell who is on it
// (actors.Witness). A coordinate on it is a seat: where a player then stands is the game's to say.
package seats

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge/vintage"
	"github.com/landfall/landfall/events"
)

// Config makes a Server. Address is mandatory.
type Config struct {
	Address string // host:port of the game server
	Log     *slog.Logger
	Every   time.Duration // between two questions; 1 s
	Timeout time.Duration // of one; 2 s
	Misses  int           // questions without an answer after which the server counts as down; 3
}

// maxAnswer bounds what a server may answer.
const maxAnswer = 16 << 10

// Server implements actors.World and actors.Witness.
type Server struct {
	cfg Config

	mu      sync.Mutex
	hears   actors.WorldEvents // nil: nobody yet
	here    map[events.PlayerID]sighting
	health  *actors.Health // nil: it does not answer
	misses  int
	lives   int
	answers bool
}

// sighting is a player as a front has last seen it.
type sighting struct {
	actors.Player

	connection string
	last       time.Time
}

var (
	_ actors.World   = (*Server)(nil)
	_ actors.Witness = (*Server)(nil)
)

// New validates the configuration. It dials nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Address == "" {
		return nil, errors.New("seats: no address of the game server given")
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Every == 0 {
		cfg.Every = time.Second
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.Misses == 0 {
		cfg.Misses = 3
	}
	return &Server{cfg: cfg, here: map[events.PlayerID]sighting{}}, nil
}

// Run implements actors.World.
func (s *Server) Run(ctx context.Context, h actors.WorldEvents) error {
	s.mu.Lock()
	s.hears = h
	s.mu.Unlock()
	look := time.NewTicker(s.cfg.Every)
	defer look.Stop()
	for {
		answer, err := s.ask(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.note(answer, err)
		s.forget(time.Now())
		select {
		case <-look.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask does what a client does that shows a server list.
func (s *Server) ask(ctx context.Context) (vintage.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return vintage.Answer{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if _, err := conn.Write(vintage.AppendServerQuery(nil)); err != nil {
		return vintage.Answer{}, err
	}
	return readAnswer(bufio.NewReader(conn))
}

func readAnswer(r io.Reader) (vintage.Answer, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return vintage.Answer{}, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if n > maxAnswer {
		return vintage.Answer{}, fmt.Errorf("an answer of %d bytes", n)
	}
	payload := make([]byte, n)
	if _, err := io.ReadFull(r, payload); err != nil {
		return vintage.Answer{}, err
	}
	got, err := vintage.ParseServer(payload)
	if err == nil && got.Kind != vintage.QueryAnswer {
		err = fmt.Errorf("a %s instead of an answer", got.Kind)
	}
	return got.Answer, err
}

// note tells what has changed. A server that was away for several questions may have been restarted: it begins a
// new life.
func (s *Server) note(a vintage.Answer, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.misses++; s.misses == s.cfg.Misses {
			s.health, s.answers, s.here = nil, false, map[events.PlayerID]sighting{}
			s.hears.Down(fmt.Errorf("ask %s: %w", s.cfg.Address, err))
		}
		return
	}
	s.misses = 0
	s.health = &actors.Health{
		Players: a.Players, MaxPlayers: a.Max, Game: "vintagestory " + a.Version,
		ProtocolMin: actors.ProtocolVintageStory, ProtocolMax: actors.ProtocolVintageStory,
	}
	if !s.answers {
		s.answers = true
		s.lives++
		s.hears.Up(strconv.Itoa(s.lives))
	}
}

// Seen implements actors.Witness. The newest connection of a player counts: the end of an older one is no leave.
func (s *Server) Seen(p actors.Player, connection string, here bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.here[p.ID]
	switch {
	case s.hears == nil:
	case here:
		s.here[p.ID] = sighting{p, connection, time.Now()}
		if !known || before.connection != connection {
			s.hears.Joined(p)
		}
	case known && before.connection == connection:
		delete(s.here, p.ID)
		s.hears.Left(p, "connection ended")
	}
}

// forget lets go of those whose front has fallen silent.
func (s *Server) forget(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.here {
		if now.Sub(p.last) > 3*actors.SeenEvery {
			delete(s.here, id)
			s.hears.Left(p.Player, "no front has seen the player for long")
		}
	}
}

// Health implements actors.World.
func (s *Server) Health(context.Context) (actors.Health, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health == nil {
		return actors.Health{}, actors.ErrDown
	}
	return *s.health, nil
}

// Find implements actors.World: a seat.
func (s *Server) Find(_ context.Context, r actors.Region) (events.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.health == nil {
		return events.Position{}, actors.ErrDown
	}
	return events.Position{World: r.World, X: float64(r.CentreX), Z: float64(r.CentreZ)}, nil
}

// Check implements actors.World.
func (s *Server) Check(context.Context, events.Position) error { return nil }

// Forget implements actors.World.
func (s *Server) Forget(context.Context, events.Position) error { return nil }

// Expect implements actors.World.
func (s *Server) Expect(actors.Player, time.Duration) {}

// Place implements actors.World: the game has placed the player already.
func (s *Server) Place(_ context.Context, p actors.Player, at events.Position) (events.Position, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.here[p.ID]; !known {
		return at, actors.ErrNotHere
	}
	return at, nil
}

// Send implements actors.World: only the front that has the player's connection can.
func (s *Server) Send(context.Context, actors.Player, string) error {
	return fmt.Errorf("%w: the player did not come over a front that redirects", actors.ErrNotSent)
}

// Tell implements actors.World. The game has no way for others to speak: nothing is shown.
func (s *Server) Tell(_ context.Context, p actors.Player, text string) error {
	s.cfg.Log.Debug("not shown", "player", p.ID, "text", text)
	return nil
}
