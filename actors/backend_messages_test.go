package actors

import (
	"context"
	"testing"

	"github.com/landfall/landfall/events"
)

// Texts can be replaced while a backend runs: what is told from then on follows the new ones.
func TestMessagesAreReplacedWhileABackendRuns(t *testing.T) {
	onSite(t, func(t *testing.T, ctx context.Context, s *site) {
		s.comes()
		tell := func() string {
			if a := s.answerTell(ctx, events.TellAsk{Player: steve, Message: "transfer.arrived"}); a.Code != events.OK {
				t.Fatalf("tell: %+v", a)
			}
			texts := s.ground.texts()
			return texts[len(texts)-1]
		}
		if got := tell(); got != ShippedMessages()["transfer.arrived"] {
			t.Errorf("at first: %q", got)
		}
		s.SetMessages(ShippedMessages().With(Messages{"transfer.arrived": "you made it"}))
		if got := tell(); got != "you made it" {
			t.Errorf("with other messages: %q", got)
		}
	})
}
