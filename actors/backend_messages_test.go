package actors

import (
	"context"
	"testing"

	"github.com/landfall/landfall/events"
)

// Texts can be replaced while a backend runs: what is told from then on follows the new ones.
// They are those of the player's language, or of the one that whoever tells has named.
func TestMessagesAreReplacedWhileABackendRuns(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		tell := func(in string) string {
			if a := s.answerTell(ctx, events.TellAsk{Player: steve, Message: "transfer.arrived", Locale: in}); a.Code != events.OK {
				t.Fatalf("tell: %+v", a)
			}
			texts := s.ground.texts()
			return texts[len(texts)-1]
		}
		s.comes()
		if got := tell(""); got != ShippedMessages()["transfer.arrived"] {
			t.Errorf("at first: %q", got)
		}
		s.SetMessages(NewLanguages(Messages{"transfer.arrived": "you made it"}, map[string]Messages{
			"de": {"transfer.arrived": "geschafft"}, "pt_br": {"transfer.arrived": "chegou"},
		}))
		if got := tell(""); got != "you made it" {
			t.Errorf("with other messages: %q", got)
		}
		s.Left(Player{ID: steve, Name: "Steve"}, "quit")
		s.Joined(Player{ID: steve, Name: "Steve", Locale: "de_at"})
		for in, want := range map[string]string{"": "geschafft", "pt-BR": "chegou", "fr_fr": "you made it"} {
			if got := tell(in); got != want {
				t.Errorf("a player of de_at reads %q in %q, want %q", got, in, want)
			}
		}
	})
}
