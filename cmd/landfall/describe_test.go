package main

import (
	"testing"

	"github.com/landfall/landfall/events"
)

// TestEveryFactIsDescribed: a new one must be told to people, too.
func TestEveryFactIsDescribed(t *testing.T) {
	for _, kind := range events.Catalog {
		fact := kind.New()
		switch f := fact.(type) { // their texts are their codes
		case *events.Failed:
			f.Code = events.NotArrived
		case *events.Cancelled:
			f.Code = events.GraceOver
		default:
		}
		if describe(fact) == "" {
			t.Errorf("%s has no description", kind.Type)
		}
		if _, ok := fact.(events.TransferFact); ok && ruleOf(fact) == "" {
			t.Errorf("%s has no rule", kind.Type)
		}
	}
}

func TestShortTypes(t *testing.T) {
	for wire, want := range map[string]string{
		"landfall.transfer.claimed.v1": "claimed",
		"landfall.session.opened.v1":   "session.opened",
		"landfall.transfer.new.v12":    "new",
		"claimed":                      "claimed",
		"session.opened":               "session.opened",
		"somebody.elses":               "somebody.elses",
		"":                             "",
	} {
		if got := shortType(wire); got != want {
			t.Errorf("%q: got %q, want %q", wire, got, want)
		}
	}
}
