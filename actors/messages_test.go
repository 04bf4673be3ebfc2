package actors

import (
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// TestMessagesForPlayers: every code with which a request is refused, a transfer ends, or a
// token is refused has words of its own; the ones that nobody expects name the code.
func TestMessagesForPlayers(t *testing.T) {
	m := ShippedMessages()
	families := map[string][]events.Code{
		"refused": {
			events.KillSwitch, events.TransportDown, events.LogFull, events.NotHere, events.AlreadyActive, events.AlreadyMoving,
			events.BadRequest, events.AuthFailed, events.Disabled, events.LineFull, events.NoPermission,
		},
		"failed": {
			events.ClientTooOld, events.RegionMissing, events.NoCandidate, events.AttemptsExhausted, events.MoveRefused, events.NotArrived,
			events.PlacementUnconfirmed, events.PromiseGone, events.Unreachable, events.PlayerLeft, events.PlayerOffline, events.GraceOver,
			events.AgedOut, events.KeyFull, events.KillSwitch, events.Cancel, events.LineFull, events.BypassBound,
		},
		"token": {events.TokenUnknown, events.TokenSpent, events.WrongPlayer},
	}
	for family, codes := range families {
		for _, code := range codes {
			if _, own := m[family+"."+string(code)]; !own {
				t.Errorf("%s.%s has no text of its own", family, code)
			}
		}
		if got := m.Text(family+".SOMETHING_NEW", nil); !strings.Contains(got, "SOMETHING_NEW") || strings.Contains(got, "{") {
			t.Errorf("%s.SOMETHING_NEW is told as %q, want a text that names the code", family, got)
		}
	}
	for _, key := range []string{
		"transfer.accepted", "transfer.active", "transfer.waiting", "transfer.position", "transfer.none", "transfer.replaced", "transfer.arrived", "transfer.unconfirmed", "login.none", "login.down",
	} {
		if m[key] == "" {
			t.Errorf("%s has no text", key)
		}
	}
}

// TestMessagesHaveNoHoles: what a player reads has no placeholder left, given the arguments
// that come with its family.
func TestMessagesHaveNoHoles(t *testing.T) {
	given := map[string][]events.Arg{
		"failed":   {{Name: "code"}, {Name: "detail"}, {Name: "region"}, {Name: "server"}},
		"refused":  {{Name: "detail"}},
		"transfer": {{Name: "state"}, {Name: "position"}, {Name: "eta"}},
		"status":   {{Name: "network"}},
	}
	m := ShippedMessages()
	for key := range m {
		family, code, specific := strings.Cut(key, ".")
		if !specific {
			key, code = family+".X", "X"
		}
		if got := m.Text(key, given[family]); strings.ContainsAny(got, "{}") {
			t.Errorf("%s (%s) is told as %q", key, code, got)
		}
	}
}

func TestMessagesText(t *testing.T) {
	m := Messages{"failed": "ended ({code})", "failed.A": "to {server}: {detail} {detail}", "plain": "hello"}
	args := []events.Arg{{Name: "server", Value: "b"}, {Name: "detail", Value: "why"}}
	for key, want := range map[string]string{
		"failed.A": "to b: why why", "failed.B": "ended (B)", "plain": "hello", "nothing.X": "nothing.X", "nothing": "nothing",
	} {
		if got := m.Text(key, args); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
	with := m.With(Messages{"plain": "bonjour", "new": "x"})
	if with["plain"] != "bonjour" || with["new"] != "x" || with["failed"] != m["failed"] || m["plain"] != "hello" {
		t.Errorf("replaced texts: %v, the old ones: %v", with, m)
	}
}

// TestMessagesBadFile: a file that cannot be used is refused with what is wanted.
func TestMessagesBadFile(t *testing.T) {
	for name, text := range map[string]string{
		"a list": "- a\n- b\n", "nested": "failed:\n  KILL_SWITCH: x\n", "a key twice": "a: x\na: y\n", "not YAML": "a: [", "a tab": "\ta: x",
	} {
		if m, err := ParseMessages([]byte(text)); err == nil {
			t.Errorf("%s was read as %v", name, m)
		} else if !strings.Contains(err.Error(), "key: text") {
			t.Errorf("%s: the error does not say what is wanted: %v", name, err)
		}
	}
	for name, text := range map[string]string{"empty": "", "comments": "# nothing\n"} {
		if m, err := ParseMessages([]byte(text)); err != nil || len(m) != 0 {
			t.Errorf("%s: %v, %v", name, m, err)
		}
	}
}
