package rcon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/landfall/landfall/actors"
)

// Config is what a Sidecar needs. Zero values are useful where said.
type Config struct {
	// Address of the server's RCON, host:port.
	Address string
	// Password of the server's RCON. Never logged.
	Password string
	// StateDir holds the record of force-loaded chunks, one directory a server.
	StateDir string
	// Aliases are the names of the command: /trigger rtp. None: DefaultAlias.
	Aliases []string
	// Regions a player may name by number in /trigger rtp set N, in any order.
	Regions []string
	// BareRegion is what /trigger rtp without a number asks for; "" is any.
	BareRegion string
	// CommandTimeout bounds one command; 0 means 10 s.
	CommandTimeout time.Duration
	// PollsPerSecond bounds what merely looks; 0 means 3.
	PollsPerSecond float64
	// WorkPerSecond bounds the preparation of places; 0 means 20.
	WorkPerSecond float64
	// Log is required.
	Log *slog.Logger
}

// Validate names the first setting a person must mend.
func (c Config) Validate() error {
	if _, port, err := net.SplitHostPort(c.Address); err != nil || port == "" {
		return fmt.Errorf("rcon.address %q: want host:port of the server's RCON, such as 127.0.0.1:25575", c.Address)
	}
	switch {
	case c.Password == "":
		return fmt.Errorf("rcon %s: password is empty; put the value of rcon.password of server.properties into rcon.passwordFile", c.Address)
	case checkCommand(c.Password) != nil:
		return fmt.Errorf("rcon %s: password holds a line break or is longer than %d bytes; rcon.passwordFile must hold one short line", c.Address, maxCommand)
	case c.StateDir == "":
		return fmt.Errorf("rcon %s: no directory for the record of force-loaded chunks", c.Address)
	case slices.ContainsFunc(c.Aliases, func(name string) bool { return !aliasPattern.MatchString(name) }):
		return fmt.Errorf("rcon %s: aliases %q: want names of a-z 0-9 _ -, 1 to 32 long", c.Address, c.Aliases)
	case c.Log == nil:
		return fmt.Errorf("rcon %s: no logger", c.Address)
	}
	return nil
}

var aliasPattern = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// Sidecar is a stock game server as a World. Nothing is dialled before Run or
// the first command, and no goroutine outlives a call.
type Sidecar struct {
	log     *slog.Logger
	console *console
	aliases []string
	regions []string
	bare    string
	vitals  vitals
	guests  *guests
	forced  *forced
	footing groundRules

	finding  chan struct{} // holds one value while a place is prepared
	borders  map[string]border
	unkilled atomic.Bool // a marker of ours may stand somewhere
	askTPS   bool        // belongs to Run, as do the watch's own fields
}

var _ actors.World = (*Sidecar)(nil)

// border is half the width of a world border and when it was read.
type border struct {
	half float64
	seen time.Time
}

// New validates the settings and reads the record of force-loaded chunks.
func New(c Config) (*Sidecar, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if len(c.Aliases) == 0 {
		c.Aliases = []string{DefaultAlias}
	}
	record, err := openForced(c.StateDir)
	if err != nil {
		return nil, err
	}
	return &Sidecar{
		log: c.Log,
		console: &console{
			client:  NewClient(c.Address, c.Password, c.CommandTimeout),
			limiter: NewLimiter(c.PollsPerSecond, c.WorkPerSecond),
		},
		aliases: sorted(c.Aliases),
		regions: sorted(c.Regions),
		bare:    c.BareRegion,
		guests:  newGuests(),
		forced:  record,
		footing: groundRules{avoid: hazards()},
		finding: make(chan struct{}, 1),
		borders: map[string]border{},
	}, nil
}

// Run watches the server until ctx ends: joins, triggers, health, and who is
// expected. It calls h one at a time, from this goroutine. An error other than
// ctx's is a password the server refused before it was ever up. It runs once:
// at its end the connection is closed for good.
func (s *Sidecar) Run(ctx context.Context, h actors.WorldEvents) error {
	defer s.console.client.Close()
	return newWatch(s, h).run(ctx)
}

// Expect makes the arrival of a player be looked for closely.
func (s *Sidecar) Expect(p actors.Player, within time.Duration) {
	if !namePattern.MatchString(p.Name) {
		s.log.Warn("cannot look for a player of this name", "player", p.ID, "name", p.Name)
		return
	}
	s.guests.expect(p, within)
}

// mendable says that waiting will not help.
func mendable(err error) bool {
	var auth *AuthError
	return errors.As(err, &auth)
}
