package rcon

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// tolerance is how far from the place a player may stand, per axis in blocks,
// and still count as placed.
const tolerance = 1.0

// Place teleports a player and reads back where the player stands. A teleport
// is the same done twice, so one that cannot be confirmed is repeated once;
// actors.ErrUnknown when that cannot be confirmed either.
func (s *Sidecar) Place(ctx context.Context, p actors.Player, at events.Position) (events.Position, error) {
	act := "place " + p.Name
	name, err := target(act, p)
	if err == nil {
		err = checkPosition(act, at)
	}
	if err != nil {
		return events.Position{}, err
	}
	var doubt error
	for range 2 {
		told, err := s.teleport(ctx, act, name, at)
		switch {
		case errors.Is(err, actors.ErrUnknown):
		case err != nil && doubt != nil && !errors.Is(err, actors.ErrNotHere):
			return events.Position{}, doubt
		case err != nil:
			return events.Position{}, err
		}
		stands, err := s.readBack(ctx, act, name, at, told)
		if err == nil {
			return stands, nil
		}
		if errors.Is(err, actors.ErrNotHere) {
			return events.Position{}, err
		}
		doubt = fmt.Errorf("%s: %w: %w", act, actors.ErrUnknown, err)
	}
	return events.Position{}, doubt
}

// teleport sends one tp. told is true when the server said that it did it.
func (s *Sidecar) teleport(ctx context.Context, act, name string, at events.Position) (told bool, err error) {
	command := fmt.Sprintf("tp %s %s %s %s", name, exact(at.X), exact(at.Y), exact(at.Z))
	if at.Yaw != 0 || at.Pitch != 0 {
		command += " " + exact(at.Yaw) + " " + exact(at.Pitch)
	}
	reply, err := s.console.run(ctx, Urgent, s.console.in(at.World, command))
	if err != nil {
		return false, err
	}
	if nobody(reply) {
		return false, fmt.Errorf("%s: %w", act, actors.ErrNotHere)
	}
	if _, ok := parseTeleported(reply); !ok {
		return false, refused(act, reply)
	}
	return true, nil
}

// readBack fails when the player stands elsewhere. The world is asked for only
// when the server's own word for it is missing.
func (s *Sidecar) readBack(ctx context.Context, act, name string, at events.Position, told bool) (events.Position, error) {
	stands, err := s.where(ctx, act, name)
	if err != nil {
		return events.Position{}, err
	}
	if math.Abs(stands.X-at.X) > tolerance || math.Abs(stands.Y-at.Y) > tolerance || math.Abs(stands.Z-at.Z) > tolerance {
		return events.Position{}, fmt.Errorf("stands at %.1f %.1f %.1f, not at %.1f %.1f %.1f", stands.X, stands.Y, stands.Z, at.X, at.Y, at.Z)
	}
	if !told {
		world, err := s.worldOf(ctx, act, name)
		if err != nil {
			return events.Position{}, err
		}
		if world != at.World {
			return events.Position{}, fmt.Errorf("stands in %s, not in %s", world, at.World)
		}
	}
	return events.Position{World: at.World, X: stands.X, Y: stands.Y, Z: stands.Z, Yaw: at.Yaw, Pitch: at.Pitch}, nil
}

func (s *Sidecar) where(ctx context.Context, act, name string) (point, error) {
	reply, err := s.console.run(ctx, Urgent, s.console.own("data get entity "+name+" Pos"))
	if err != nil {
		return point{}, err
	}
	if nobody(reply) {
		return point{}, fmt.Errorf("%s: %w", act, actors.ErrNotHere)
	}
	at, ok := parsePos(reply)
	if !ok {
		return point{}, refused(act, reply)
	}
	return at, nil
}

func (s *Sidecar) worldOf(ctx context.Context, act, name string) (string, error) {
	reply, err := s.console.run(ctx, Urgent, s.console.own("data get entity "+name+" Dimension"))
	if err != nil {
		return "", err
	}
	if nobody(reply) {
		return "", fmt.Errorf("%s: %w", act, actors.ErrNotHere)
	}
	world, ok := parseDimension(reply)
	if !ok {
		return "", refused(act, reply)
	}
	return world, nil
}

// exact writes a coordinate that the server does not move to the middle of its
// block, which it does to whole numbers.
func exact(v float64) string {
	text := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(text, ".") {
		text += ".0"
	}
	return text
}

// checkPosition refuses what is no place in any world.
func checkPosition(act string, at events.Position) error {
	if err := checkWorld(act, at.World); err != nil {
		return err
	}
	const edge, height, turn = 3e7, 1e5, 360
	for _, v := range [...]struct{ value, limit float64 }{{at.X, edge}, {at.Z, edge}, {at.Y, height}, {at.Yaw, turn}, {at.Pitch, turn}} {
		if !(math.Abs(v.value) <= v.limit) { // also false for NaN
			return fmt.Errorf("%s: %v is no coordinate: %w", act, v.value, actors.ErrNotSent)
		}
	}
	return nil
}
