package rcon

import (
	"context"
	"fmt"
	"strings"

	"github.com/landfall/landfall/actors"
)

// Send makes the player's client reconnect to address (host:port) by the
// game's own transfer packet, once. nil: the server sent it. Errors match
// actors.ErrNotHere, actors.ErrNotSent (a *TooOldError when the server has no
// such command) or actors.ErrUnknown.
func (s *Sidecar) Send(ctx context.Context, p actors.Player, address string) error {
	act := "send " + p.Name
	name, err := target(act, p)
	if err != nil {
		return err
	}
	host, port, err := splitAddress(act, address)
	if err != nil {
		return err
	}
	reply, err := s.console.run(ctx, Urgent, s.console.own(fmt.Sprintf("transfer %s %d %s", host, port, name)))
	switch {
	case err != nil:
		return err
	case transferring(reply):
		s.guests.leaving(p)
		return nil
	case nobody(reply) || strings.Contains(clean(reply), "Must specify at least one player"):
		return fmt.Errorf("%s: %w", act, actors.ErrNotHere)
	case unknownCommand(reply):
		return &TooOldError{Address: s.console.client.address}
	}
	return refused(act, reply)
}
