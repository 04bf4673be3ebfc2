package main

import (
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
)

// filter says which records are shown. The zero value shows all.
type filter struct {
	players  []events.PlayerID
	server   events.HostID
	transfer events.TransferID
	attempt  int // of transfer; 0: all of it
	types    []string
}

// parseFilter reads the flags, but for the player, who may have to be looked up.
func parseFilter(server, token string, types []string) (f filter, err error) {
	if server != "" {
		if f.server, err = events.ParseHostID(server); err != nil {
			return f, usageError("--server: %w", err)
		}
	}
	if token != "" {
		if f.transfer, f.attempt, err = parseTokenOrTransfer(token); err != nil {
			return f, usageError("--token: %w", err)
		}
	}
	known := knownTypes()
	for _, t := range types {
		short := shortType(t)
		if !slices.Contains(known, short) {
			return f, usageError("--type %q: want one of %s", t, strings.Join(known, ", "))
		}
		f.types = append(f.types, short)
	}
	return f, nil
}

// parseTokenOrTransfer accepts a token in either form, or the id of a whole transfer.
func parseTokenOrTransfer(text string) (events.TransferID, int, error) {
	if t, err := events.ParseToken(text); err == nil {
		return t.Transfer, t.Attempt, nil
	}
	if id, err := events.ParseID[events.TransferID](text); err == nil {
		return id, 0, nil
	}
	_, err := events.ParseToken(text)
	return events.TransferID{}, 0, err
}

// knownTypes are the short names of all facts, in the catalog's order.
func knownTypes() []string {
	var out []string
	for _, k := range events.Catalog {
		out = append(out, shortType(k.Type))
	}
	return out
}

// keys is the part of the filter that the store itself can evaluate: a key pattern, "" for
// all. A wildcard over all players is never asked for, since it would hold up the store.
func (f filter) keys(b events.Bucket) string {
	if len(f.players) != 1 {
		return ""
	}
	switch player := f.players[0]; {
	case b == events.Sessions:
		return player.String()
	case b != events.Transfers:
		return ""
	case f.transfer.IsZero():
		return player.String() + ".>"
	default:
		return events.TransferKey(player, f.transfer)
	}
}

// match holds a record against all of the filter.
func (f filter) match(r reading) bool {
	return f.matchPlayer(r) && f.matchToken(r) && f.matchServer(r) &&
		(len(f.types) == 0 || slices.Contains(f.types, shortType(r.Header[events.HeaderType])))
}

func (f filter) matchPlayer(r reading) bool {
	if len(f.players) == 0 || slices.Contains(f.players, r.player()) {
		return true
	}
	return slices.ContainsFunc(f.players, func(p events.PlayerID) bool { return rejectionNames(r, p.String()) })
}

func (f filter) matchToken(r reading) bool {
	if f.transfer.IsZero() {
		return true
	}
	if r.transfer() != f.transfer {
		return rejectionNames(r, f.transfer.String())
	}
	n, ok := attemptOf(r.event.Fact)
	return f.attempt == 0 || !ok || n == f.attempt
}

func (f filter) matchServer(r reading) bool {
	return f.server == "" || r.event.Source.ID == f.server || slices.Contains(hostsOf(r.event.Fact), f.server)
}

// rejectionNames tells that an audit entry is about an id.
func rejectionNames(r reading, id string) bool {
	rejected, ok := r.event.Fact.(*events.Rejected)
	return ok && (strings.Contains(rejected.Subject, id) || strings.Contains(rejected.Detail, id))
}
