package actors

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// TestLengthsAreTold: a length travels as seconds, and is read in words.
func TestLengthsAreTold(t *testing.T) {
	m := Messages{
		"m": "wait {wait}", "length.seconds": "{n} s", "length.minutes": "{n} min", "length.hours": "{n} h", "length.days": "{n} d", "length.unknown": "unknown",
	}
	for d, want := range map[time.Duration]string{
		-time.Second: "1 s", 0: "1 s", 300 * time.Millisecond: "1 s", 4200 * time.Millisecond: "5 s", 10 * time.Second: "10 s", 11 * time.Second: "15 s",
		59 * time.Second: "60 s", 61 * time.Second: "2 min", 90 * time.Minute: "90 min", 3 * time.Hour: "3 h", 170 * time.Minute: "3 h",
		48 * time.Hour: "48 h", 49 * time.Hour: "3 d",
	} {
		if got := m.Text("m", []events.Arg{lengthArg("wait", d, true)}); got != "wait "+want {
			t.Errorf("%s is told as %q, want %q", d, got, want)
		}
	}
	if a := lengthArg("eta", 4200*time.Millisecond, true); a != (events.Arg{Name: "eta", Value: "5"}) {
		t.Errorf("on the wire: %+v", a)
	}
	for name, a := range map[string]events.Arg{
		"not known": lengthArg("wait", time.Hour, false), "no number": {Name: "wait", Value: "soon"}, "negative": {Name: "wait", Value: "-1"}, "not whole": {Name: "wait", Value: "1.5"},
	} {
		if got := m.Text("m", []events.Arg{a}); got != "wait unknown" {
			t.Errorf("%s is told as %q", name, got)
		}
	}
	if got := m.Text("m", []events.Arg{{Name: "wait", Value: "9223372036854775807"}}); got != "wait 11575 d" {
		t.Errorf("for ever is told as %q", got)
	}
	if got := (Messages{"refused.COOLDOWN": "wait {wait}", "length.unknown": "?"}).Text("refused.COOLDOWN", nil); got != "wait ?" {
		t.Errorf("a length that did not come is told as %q", got)
	}
	french := Messages{"m": "encore {wait}", "length.minutes": "{n} minute(s)"}
	if got := french.Text("m", []events.Arg{{Name: "wait", Value: "120"}}); got != "encore 2 minute(s)" {
		t.Errorf("in another language: %q", got)
	}
}

// TestArgumentsAreNotReadAgain: what a player or a server wrote is shown as it is, also when
// it looks like a placeholder.
func TestArgumentsAreNotReadAgain(t *testing.T) {
	m := Messages{"refused": "no ({code}): {detail}"}
	got := m.Text("refused.X", []events.Arg{{Name: "detail", Value: "{code} {server}"}, {Name: "server", Value: "b"}})
	if want := "no (X): {code} {server}"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
