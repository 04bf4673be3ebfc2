package actors

import (
	"fmt"
	"strings"

	"github.com/landfall/landfall/events"
)

// ParseWish reads where a player asks to go: nothing for any place, "<region>", or
// "<server>:<region>" for that server and no other. "=" is kept for later. What does not
// fit is refused, never taken for something else.
func ParseWish(text string) (events.Wish, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return events.Wish{}, nil
	}
	server, region, qualified := strings.Cut(text, ":")
	if !qualified {
		server, region = "", text
	}
	server, region = strings.TrimSpace(server), strings.TrimSpace(region)
	if qualified && server == "" || !isName(region) || server != "" && !isName(server) {
		return events.Wish{}, fmt.Errorf("%q is not a place: want <region> or <server>:<region>, each 1 to 63 of A-Z a-z 0-9 _ -", cutShort(text))
	}
	return events.Wish{Pin: events.HostID(server), Region: region}, nil
}

// isName tells that a text may name a host or a region.
func isName(s string) bool {
	_, err := events.ParseHostID(s)
	return err == nil
}

// cutShort is a text of a player as a message may repeat it.
func cutShort(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}
	return s
}
