package rcon

import (
	"context"
	"strings"
	"sync/atomic"
)

// console is a paced Client that knows which family of servers it talks to.
type console struct {
	client  *Client
	limiter *Limiter
	paper   atomic.Bool
}

// run waits for the class's turn and sends one command.
func (c *console) run(ctx context.Context, class Class, command string) (string, error) {
	if err := c.limiter.Wait(ctx, class); err != nil {
		return "", &NotSentError{Address: c.client.address, Command: verb(command), Err: err}
	}
	return c.client.Do(ctx, command)
}

// own names the game's own command where plugins may have put theirs under the
// same name. Vanilla does not know the prefix.
func (c *console) own(command string) string {
	if c.paper.Load() {
		return "minecraft:" + command
	}
	return command
}

// in runs a command in a world.
func (c *console) in(world, command string) string {
	return c.own("execute in " + world + " run " + c.own(command))
}

// probe finds out the family and thereby that the server answers. tps is
// Bukkit's; no other family has it.
func (c *console) probe(ctx context.Context) error {
	reply, err := c.run(ctx, Work, "tps")
	if err != nil {
		return err
	}
	c.paper.Store(!unknownCommand(reply) && strings.Contains(clean(reply), "TPS"))
	return nil
}
