package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// maxName is longer than any game's names.
const maxName = 64

// checkPlayer refuses what is neither an id nor could be a name.
func checkPlayer(text string) error {
	if text == "" || len(text) > maxName || strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsGraphic(r) || r == '/' }) {
		return usageError("player %q: want a name of at most %d characters, or a UUID", text, maxName)
	}
	return nil
}

// findPlayer gives the ids of a player: itself when text is one, else those under that
// name, in any case of letters, newest first. note says how far it was looked. Nobody under
// that name is an error with status 1.
func findPlayer(ctx context.Context, log history, o *opener, text string) (ids []events.PlayerID, note string, err error) {
	if id, err := events.ParseID[events.PlayerID](text); err == nil {
		return []events.PlayerID{id}, "", nil
	}
	var notes []string
	for _, look := range []struct {
		bucket events.Bucket
		r      streams.Range
	}{
		{events.Sessions, streams.Range{Newest: true}}, // one record a player
		{events.Transfers, streams.Range{}},
	} {
		found, scanned, err := scanForName(ctx, log, o, look.bucket, look.r, text)
		if err != nil {
			return nil, "", err
		}
		notes = append(notes, fmt.Sprintf("%s of %s", plural(scanned, "record"), look.bucket))
		if len(found) > 0 {
			return found, fmt.Sprintf("%q is %s (scanned %s)", text, joinIDs(found), strings.Join(notes, ", ")), nil
		}
	}
	return nil, "", exitWith(statusFailed, fmt.Errorf("player %q: nobody of that name in this store (scanned %s); give the UUID if you have it", text, strings.Join(notes, ", ")))
}

// scanForName reads a range of a bucket for facts that name a player.
func scanForName(ctx context.Context, log history, o *opener, b events.Bucket, r streams.Range, name string) (found []events.PlayerID, scanned int, err error) {
	requested := events.TypeName(&events.Requested{})
	for rec, err := range log.History(ctx, b, r) {
		if err != nil {
			return nil, scanned, err
		}
		scanned++
		if b == events.Transfers && rec.Header[events.HeaderType] != requested {
			continue
		}
		got := o.open(rec)
		if got.verified == forged || !strings.EqualFold(nameIn(got.event.Fact), name) {
			continue
		}
		id := got.player()
		found = append(slices.DeleteFunc(found, func(x events.PlayerID) bool { return x == id }), id)
	}
	slices.Reverse(found)
	return found, scanned, nil
}

// nameIn is the player's name as a fact gives it, empty when it gives none.
func nameIn(f events.Fact) string {
	switch f := f.(type) {
	case *events.Requested:
		return f.Name
	case *events.SessionOpened:
		return f.Session.Name
	case *events.SessionRefreshed:
		return f.Session.Name
	case *events.SessionClosed:
		return f.Session.Name
	default:
		return ""
	}
}

func joinIDs(ids []events.PlayerID) string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i] = id.String()
	}
	return strings.Join(out, " and ")
}
