package rcon

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/landfall/landfall/actors"
)

// Tell shows a line of text to a player. What does not fit one command is cut
// and ends in an ellipsis; control characters are left out.
func (s *Sidecar) Tell(ctx context.Context, p actors.Player, text string) error {
	act := "tell " + p.Name
	name, err := target(act, p)
	if err != nil {
		return err
	}
	head := s.console.own("tellraw " + name + " ")
	reply, err := s.console.run(ctx, Urgent, head+textComponent(text, maxCommand-len(head)))
	switch {
	case err != nil:
		return err
	case nobody(reply):
		return fmt.Errorf("%s: %w", act, actors.ErrNotHere)
	case clean(reply) != "":
		return refused(act, reply)
	}
	return nil
}

// textComponent is text as the game's JSON text, in at most limit bytes.
func textComponent(text string, limit int) string {
	runes := []rune(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u00a7' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "")))
	whole := string(runes)
	for {
		out, err := json.Marshal(struct {
			Text string `json:"text"`
		}{whole})
		if err != nil || len(out) <= limit || len(runes) == 0 {
			return string(out)
		}
		runes = runes[:max(0, len(runes)-max(1, (len(out)-limit)/6))]
		whole = string(runes) + "…"
	}
}
