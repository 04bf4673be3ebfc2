package edge

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// Identity says how backends of the network decide who a player is.
type Identity string

const (
	// Online backends ask Mojang: the claimed UUID is the likely one.
	Online Identity = "online"
	// Offline backends ignore the claim and hash the name.
	Offline Identity = "offline"
)

// Game says what the clients of an edge speak.
type Game string

// Games. Of those but Minecraft a client's first bytes do not say who it is: their Router is a Tracer.
const (
	Minecraft    Game = "minecraft"
	VintageStory Game = "vintagestory"
	TCP          Game = "tcp" // any other: nothing is read but a marker
)

// Config describes one listening edge. Router and Listen are required; every
// other zero value stands for the default named beside it.
type Config struct {
	// Listen is the TCP address, as for net.Listen; port 0 picks a free one.
	Listen string
	Router Router
	// Log receives what the edge does; nil discards. Tokens are never logged.
	Log *slog.Logger

	// Domain is the suffix of token host names; "" accepts any.
	Domain string
	// Identity defaults to Online.
	Identity Identity
	// TrustedProxies are the peers whose PROXY header is believed; from all
	// others a header is garbage. A trusted peer may also send none.
	TrustedProxies []netip.Prefix

	// Game defaults to Minecraft.
	Game Game
	// RedirectAddress is where a redirected client is told to dial, host:port: this edge, as players know
	// it. Vintage Story alone; mandatory there.
	RedirectAddress string
	// StandsFor is the server that this edge's own address stands for; "": it stands for none.
	StandsFor string

	FirstFrameWait time.Duration // for the first bytes of a client that may be silent; 1.5 s. Not Minecraft
	RedirectWait   time.Duration // for the end of the server's frame, before a redirect; 2 s

	FirstByteTimeout time.Duration // until the client says anything, from accept; 3 s, at most OpeningTimeout. Minecraft
	OpeningTimeout   time.Duration // until Login Start is complete, from accept; 5 s
	LegacyWait       time.Duration // for the bytes after a leading 0xFE; 300 ms
	RouteTimeout     time.Duration // all Route calls and dials of one login; 20 s (clients wait 30 s)
	DialTimeout      time.Duration // one dial; 2 s
	AnswerTimeout    time.Duration // from the login passed on to the first byte of the answer; 8 s
	HalfCloseGrace   time.Duration // for one direction after the other ended; 5 s

	Redials      int // how often Route is asked again after a failed dial; 3
	PendingPerIP int // connections not yet spliced, per IPv4 address or IPv6 /64; 64
	Pending      int // connections not yet spliced, in all; 2048
	PerSecond    int // new connections in a second, per IPv4 address or IPv6 /64, four seconds' worth at once; 50
	Players      int // expected at once, checked against the file limit at start; 1000

	Texts Texts
}

// Texts are the sentences the edge itself shows a player.
type Texts struct {
	Unreachable string // no chosen backend could be dialled
	Slow        string // RouteTimeout is over
	Stopping    string // the edge stops while the login is held
	Cut         string // Disconnect while the login is held
	BadName     string // the name does not fit [A-Za-z0-9_]{1,16}
}

// Validate says what is wrong with c, naming the field.
func (c Config) Validate() error {
	if c.Router == nil {
		return errors.New("edge: no router given")
	}
	if c.Listen == "" {
		return errors.New("edge: no listen address given; set listen to host:port")
	}
	switch c.Game {
	case "", Minecraft:
	case VintageStory, TCP:
		if _, ok := c.Router.(Tracer); !ok {
			return fmt.Errorf("edge: the router of a %s edge must be a Tracer", c.Game)
		}
		if c.Game == VintageStory && c.RedirectAddress == "" {
			return errors.New("edge: no redirect address given; set it to the host:port that players dial")
		}
	default:
		return fmt.Errorf("edge: game %q is unknown; allowed are %s, %s, %s", c.Game, Minecraft, VintageStory, TCP)
	}
	switch c.Identity {
	case "", Online, Offline:
	default:
		return fmt.Errorf("edge: identity %q is unknown; allowed are %s and %s", c.Identity, Online, Offline)
	}
	for _, d := range []time.Duration{c.FirstByteTimeout, c.FirstFrameWait, c.RedirectWait, c.OpeningTimeout, c.LegacyWait, c.RouteTimeout, c.DialTimeout, c.AnswerTimeout, c.HalfCloseGrace} {
		if d < 0 {
			return fmt.Errorf("edge: a negative time-out (%v) is not allowed", d)
		}
	}
	for _, n := range []int{c.Redials, c.PendingPerIP, c.Pending, c.PerSecond, c.Players} {
		if n < 0 {
			return fmt.Errorf("edge: a negative limit (%d) is not allowed", n)
		}
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return fmt.Errorf("edge: trusted proxy %v is no CIDR; write it as 10.0.0.0/8", p)
		}
	}
	return nil
}

// or returns v, or def when v is its zero value.
func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

func (c Config) withDefaults() Config {
	c.Log = or(c.Log, slog.New(slog.DiscardHandler))
	c.Identity = or(c.Identity, Online)
	c.Game = or(c.Game, Minecraft)
	c.FirstFrameWait = or(c.FirstFrameWait, 1500*time.Millisecond)
	c.RedirectWait = or(c.RedirectWait, 2*time.Second)
	c.Domain = CleanHost(c.Domain)
	c.OpeningTimeout = or(c.OpeningTimeout, 5*time.Second)
	c.FirstByteTimeout = min(or(c.FirstByteTimeout, 3*time.Second), c.OpeningTimeout)
	c.LegacyWait = or(c.LegacyWait, 300*time.Millisecond)
	c.RouteTimeout = or(c.RouteTimeout, 20*time.Second)
	c.DialTimeout = or(c.DialTimeout, 2*time.Second)
	c.AnswerTimeout = or(c.AnswerTimeout, 8*time.Second)
	c.HalfCloseGrace = or(c.HalfCloseGrace, 5*time.Second)
	c.Redials = or(c.Redials, 3)
	c.PendingPerIP = or(c.PendingPerIP, 64)
	c.Pending = or(c.Pending, 2048)
	c.PerSecond = or(c.PerSecond, 50)
	c.Players = or(c.Players, 1000)
	c.Texts = c.Texts.withDefaults()
	return c
}

func (t Texts) withDefaults() Texts {
	t.Unreachable = or(t.Unreachable, "That server is not reachable, try again")
	t.Slow = or(t.Slow, "No server answered in time, try again")
	t.Stopping = or(t.Stopping, "This entrance is restarting, try again")
	t.Cut = or(t.Cut, "The connection was closed, try again")
	t.BadName = or(t.BadName, "This network does not accept that player name")
	return t
}
