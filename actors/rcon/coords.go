package rcon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

const (
	// findTries bounds how many chunks one Find looks at.
	findTries = 12
	// spreadRange keeps the marker inside the one chunk that is loaded: outside
	// it would be unloaded and gone.
	spreadRange = 7
	// busyMSPT is where preparing places, which may generate terrain, stops.
	busyMSPT = 35.0
	// borderAge is how long a width of the world border is believed.
	borderAge = time.Minute
	// markerTag marks our marker. Only one exists at a time.
	markerTag = "landfall_probe"
	// entityTries: a chunk's entities load a little after its blocks, and until
	// then selectors do not find the marker.
	entityTries = 5
	entityPause = 100 * time.Millisecond
	// cleanUpTime bounds tidying after ctx has ended.
	cleanUpTime = 5 * time.Second

	marker = "@e[type=marker,tag=" + markerTag + ",limit=1]"
	// markers selects all of ours: a killed sidecar may have left one.
	markers = "@e[type=marker,tag=" + markerTag + "]"
)

// Find looks for one safe place in a region and keeps its chunk loaded until
// Forget. Places are prepared one at a time and not while the server takes 35
// ms or more a tick (actors.ErrNotSent: try later). actors.ErrUnsafe when a
// bounded search found none.
func (s *Sidecar) Find(ctx context.Context, r actors.Region) (events.Position, error) {
	act := "find a place in region " + r.Name
	if err := checkWorld(act, r.World); err != nil {
		return events.Position{}, err
	}
	select {
	case s.finding <- struct{}{}:
		defer func() { <-s.finding }()
	case <-ctx.Done():
		return events.Position{}, fmt.Errorf("%s: %w: %w", act, actors.ErrNotSent, context.Cause(ctx))
	}
	if err := s.idleEnough(act); err != nil {
		return events.Position{}, err
	}
	half, err := s.border(ctx, r.World)
	if err != nil {
		return events.Position{}, fmt.Errorf("%s: %w", act, err)
	}
	for range findTries {
		at, err := s.tryPlace(ctx, r, half)
		if err == nil {
			return at, nil
		}
		if !errors.Is(err, actors.ErrUnsafe) {
			return events.Position{}, fmt.Errorf("%s: %w", act, err)
		}
	}
	return events.Position{}, fmt.Errorf("%s: %d chunks without a safe place inside radius, border and excludes: %w", act, findTries, actors.ErrUnsafe)
}

// Forget lets go of a place's chunk. While the server cannot be asked the wish
// is recorded and carried out when it answers again, also by a later process.
func (s *Sidecar) Forget(ctx context.Context, at events.Position) error {
	c := chunkOf(at)
	if !s.forced.abandon(c) {
		return nil
	}
	return s.release(ctx, c)
}

// idleEnough keeps preparation away from a server that is down or struggles.
func (s *Sidecar) idleEnough(act string) error {
	health, err := s.sample()
	if err != nil {
		return fmt.Errorf("%s: %w", act, err)
	}
	if health.MSPT != nil && *health.MSPT >= busyMSPT {
		return fmt.Errorf("%s: the server takes %.1f ms a tick, limit %.0f: %w", act, *health.MSPT, busyMSPT, actors.ErrNotSent)
	}
	return nil
}

// border is half the width of the world border, around 0 0: no command tells
// its centre.
func (s *Sidecar) border(ctx context.Context, world string) (float64, error) {
	if known, ok := s.borders[world]; ok && time.Since(known.seen) < borderAge {
		return known.half, nil
	}
	reply, err := s.console.run(ctx, Work, s.console.in(world, "worldborder get"))
	if err != nil {
		return 0, err
	}
	width, ok := parseBorder(reply)
	if !ok { // an unusual server; teleports have their own limit
		s.log.WarnContext(ctx, "world border not readable, places are kept inside their region only", "world", world, "reply", clean(reply))
		width = 6e7
	}
	s.borders[world] = border{half: width / 2, seen: time.Now()}
	return width / 2, nil
}

// tryPlace looks at one chunk. Whatever goes wrong, neither marker nor forced
// chunk stays, now or when the server answers again.
func (s *Sidecar) tryPlace(ctx context.Context, r actors.Region, half float64) (events.Position, error) {
	c := pick(r)
	if x, z := c.centre(); !allowed(r, half, float64(x), float64(z), 8) {
		return events.Position{}, actors.ErrUnsafe
	}
	fresh, err := s.forced.keep(c)
	if err != nil {
		return events.Position{}, err
	}
	if !fresh {
		return events.Position{}, actors.ErrUnsafe
	}
	at, err := s.survey(ctx, r, half, c)
	if err != nil {
		s.undo(ctx, c)
	}
	return at, err
}

func (s *Sidecar) survey(ctx context.Context, r actors.Region, half float64, c chunk) (events.Position, error) {
	x, z := c.centre()
	reply, err := s.console.run(ctx, Work, s.console.in(c.World, fmt.Sprintf("forceload add %d %d", x, z)))
	if err != nil {
		return events.Position{}, err
	}
	switch parseForceload(reply) {
	case markAdded:
	case markAlready: // the operator's: not ours to release
		if err := s.forced.forget(c); err != nil {
			return events.Position{}, err
		}
		return events.Position{}, actors.ErrUnsafe
	default:
		return events.Position{}, refused("forceload", reply)
	}
	at, err := s.ground(ctx, c)
	if err != nil {
		return events.Position{}, err
	}
	if chunkOf(at) != c || !allowed(r, half, at.X, at.Z, 0) {
		return events.Position{}, actors.ErrUnsafe
	}
	return at, s.Check(ctx, at)
}

// ground lets the game itself find where a player could stand: it spreads a
// marker, which is nothing but a position.
func (s *Sidecar) ground(ctx context.Context, c chunk) (events.Position, error) {
	x, z := c.centre()
	reply, err := s.console.run(ctx, Work, s.console.in(c.World, fmt.Sprintf(`summon marker %d 64 %d {Tags:["%s"]}`, x, z, markerTag)))
	if err != nil {
		s.unkilled.Store(true)
		return events.Position{}, err
	}
	if !summoned(reply) {
		return events.Position{}, refused("summon marker", reply)
	}
	at, err := s.spread(ctx, c)
	return at, errors.Join(err, s.killMarkers(ctx))
}

func (s *Sidecar) spread(ctx context.Context, c chunk) (events.Position, error) {
	x, z := c.centre()
	under := ""
	if c.World == "minecraft:the_nether" {
		under = "under 120 " // below the bedrock roof
	}
	reply, err := s.untilLoaded(ctx, s.console.in(c.World, fmt.Sprintf("spreadplayers %d %d 0 %d %sfalse %s", x, z, spreadRange, under, marker)))
	if err != nil {
		return events.Position{}, err
	}
	found, ok := parseSpread(reply)
	if !ok {
		return events.Position{}, refused("spreadplayers", reply)
	}
	if !found {
		return events.Position{}, actors.ErrUnsafe
	}
	reply, err = s.console.run(ctx, Work, s.console.own("data get entity "+marker+" Pos"))
	if err != nil {
		return events.Position{}, err
	}
	at, ok := parsePos(reply)
	if !ok {
		return events.Position{}, refused("data get Pos of marker", reply)
	}
	return events.Position{World: c.World, X: at.X, Y: at.Y, Z: at.Z}, nil
}

// untilLoaded repeats a command that found nobody.
func (s *Sidecar) untilLoaded(ctx context.Context, command string) (reply string, err error) {
	for try := range entityTries {
		if try > 0 {
			if err := pause(ctx, entityPause); err != nil {
				return "", err
			}
		}
		reply, err = s.console.run(ctx, Work, command)
		if err != nil || !nobody(reply) {
			break
		}
	}
	return reply, err
}

func (s *Sidecar) killMarkers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	_, err := s.console.run(ctx, Work, s.console.own("kill "+markers))
	s.unkilled.Store(err != nil)
	return err
}

// undo leaves nothing of a chunk that is not used. What the server cannot be
// told now it is told when it answers again.
func (s *Sidecar) undo(ctx context.Context, c chunk) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTime)
	defer cancel()
	if s.unkilled.Load() {
		if err := s.killMarkers(ctx); err != nil {
			s.forced.abandon(c) // the marker stays findable while its chunk is loaded
			return
		}
	}
	if s.forced.abandon(c) {
		if err := s.release(ctx, c); err != nil {
			s.log.InfoContext(ctx, "chunk is released later", "world", c.World, "x", c.X, "z", c.Z, "err", err)
		}
	}
}

// release unloads an abandoned chunk and strikes it off the record.
func (s *Sidecar) release(ctx context.Context, c chunk) error {
	x, z := c.centre()
	reply, err := s.console.run(ctx, Work, s.console.in(c.World, fmt.Sprintf("forceload remove %d %d", x, z)))
	if err != nil {
		return fmt.Errorf("release chunk %d %d in %s: %w", c.X, c.Z, c.World, err)
	}
	if parseForceload(reply) == markFailed { // such as a world that is no more
		s.log.WarnContext(ctx, "force-loaded chunk was not released", "world", c.World, "x", c.X, "z", c.Z, "reply", clean(reply))
	}
	return s.forced.forget(c)
}

// tidy removes what an earlier life, or a broken connection, left behind.
func (s *Sidecar) tidy(ctx context.Context) error {
	if err := s.killMarkers(ctx); err != nil {
		return err
	}
	for _, c := range s.forced.leftovers() {
		if err := s.release(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// pick takes a chunk with equal chance per area of the region's ring.
func pick(r actors.Region) chunk {
	low, high := float64(r.MinRadius), float64(r.MaxRadius)
	radius := math.Sqrt(low*low + rand.Float64()*(high*high-low*low)) //nolint:gosec // a place, not a secret
	angle := rand.Float64() * 2 * math.Pi                             //nolint:gosec // as above
	return chunkOf(events.Position{
		World: r.World,
		X:     float64(r.CentreX) + radius*math.Cos(angle),
		Z:     float64(r.CentreZ) + radius*math.Sin(angle),
	})
}

// allowed says whether a column lies in the region's ring, inside the border
// and outside the excludes; slack widens the ring for a first look.
func allowed(r actors.Region, half, x, z, slack float64) bool {
	if math.Abs(x) > half-1 || math.Abs(z) > half-1 {
		return false
	}
	radius := math.Hypot(x-float64(r.CentreX), z-float64(r.CentreZ))
	if radius < float64(r.MinRadius)-slack*math.Sqrt2 || radius > float64(r.MaxRadius)+slack*math.Sqrt2 {
		return false
	}
	bx, bz := int(math.Floor(x)), int(math.Floor(z))
	for _, a := range r.Exclude {
		if slack == 0 && bx >= a.MinX && bx <= a.MaxX && bz >= a.MinZ && bz <= a.MaxZ {
			return false
		}
	}
	return true
}

// pause waits, unless ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
