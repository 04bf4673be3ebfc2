package rcon

import (
	"fmt"
	"net"
	"regexp"
	"strconv"
	"strings"

	"github.com/landfall/landfall/actors"
)

// Everything that reaches a command from outside passes one of these: a crafted
// value must never become an argument.
var (
	namePattern  = regexp.MustCompile(`^` + nameText + `$`) // Floodgate puts a . or * ahead
	hostPattern  = regexp.MustCompile(`^[A-Za-z0-9.-]{1,253}$`)
	worldPattern = regexp.MustCompile(`^[a-z0-9_.-]{1,64}:[a-z0-9_./-]{1,128}$`)
)

// target is a player as a command's entity argument, where a name that does
// not begin like a word must be quoted.
func target(act string, p actors.Player) (string, error) {
	if !namePattern.MatchString(p.Name) {
		return "", fmt.Errorf("%s: player name %q is not one of a Minecraft player: %w", act, p.Name, actors.ErrNotSent)
	}
	if strings.HasPrefix(p.Name, "*") {
		return `"` + p.Name + `"`, nil
	}
	return p.Name, nil
}

func checkWorld(act, world string) error {
	if !worldPattern.MatchString(world) {
		return fmt.Errorf("%s: world %q is not a dimension id such as minecraft:overworld: %w", act, world, actors.ErrNotSent)
	}
	return nil
}

// splitAddress takes host:port apart, and nothing that is not plainly that.
func splitAddress(act, address string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(address)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || !hostPattern.MatchString(host) || port < 1 || port > 65535 {
		return "", 0, fmt.Errorf("%s: address %q is not host:port: %w", act, address, actors.ErrNotSent)
	}
	return host, port, nil
}
