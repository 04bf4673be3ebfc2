package main

import (
	"regexp"
	"slices"
	"strings"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// filter says which records are shown. The zero value shows all.
type filter struct {
	players  []events.PlayerID
	server   events.HostID
	transfer events.TransferID
	attempt  int // of transfer; 0: all of it
	types    []string
	outcomes []projections.Phase // ways in which a transfer ended
	codes    []events.Code       // reasons that a fact gives
}

// filterFlags are those flags of a command line that say what is shown, but for the player,
// who may have to be looked up.
type filterFlags struct {
	server, token          string
	types, outcomes, codes []string
}

func (o *filterFlags) parse() (f filter, err error) {
	if o.server != "" {
		if f.server, err = events.ParseHostID(o.server); err != nil {
			return f, usageError("--server: %w", err)
		}
	}
	if o.token != "" {
		if f.transfer, f.attempt, err = parseTokenOrTransfer(o.token); err != nil {
			return f, usageError("--token: %w", err)
		}
	}
	if f.types, err = parseTypes(o.types); err != nil {
		return f, err
	}
	if f.outcomes, err = parseOutcomes(o.outcomes); err != nil {
		return f, err
	}
	f.codes, err = parseCodes(o.codes)
	return f, err
}

// typeSecurity is another name for what was refused.
const typeSecurity = "security"

func parseTypes(types []string) (out []string, err error) {
	known := knownTypes()
	for _, t := range types {
		short := shortType(t)
		if short == typeSecurity {
			short = shortType(events.TypeName(&events.Rejected{}))
		}
		if !slices.Contains(known, short) {
			return nil, usageError("--type %q%s: want one of %s", t, network.Meant(network.Nearest(short, known)), strings.Join(known, ", "))
		}
		out = append(out, short)
	}
	return out, nil
}

// outcomes are the ways in which a transfer can end.
var outcomes = []projections.Phase{projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded}

func parseOutcomes(texts []string) (out []projections.Phase, err error) {
	for _, text := range texts {
		phase := projections.Phase(strings.ToUpper(text))
		if !slices.Contains(outcomes, phase) {
			return nil, usageError("--outcome %q: want one of completed, failed, cancelled, superseded", text)
		}
		out = append(out, phase)
	}
	return out, nil
}

var codeForm = regexp.MustCompile(`^[A-Z][A-Z_]*$`)

// parseCodes takes any code that has the form of one: the log may hold those of another version.
func parseCodes(texts []string) (out []events.Code, err error) {
	for _, text := range texts {
		code := strings.ToUpper(text)
		if !codeForm.MatchString(code) {
			return nil, usageError("--code %q: want a reason code, such as NO_CANDIDATE", text)
		}
		out = append(out, events.Code(code))
	}
	return out, nil
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
		(len(f.types) == 0 || slices.Contains(f.types, shortType(r.Header[events.HeaderType]))) &&
		(len(f.outcomes) == 0 || endsAs(r.event.Fact, f.outcomes)) &&
		(len(f.codes) == 0 || slices.Contains(f.codes, codeOf(r.event.Fact)))
}

// endsAs tells that a fact ends its transfer in one of these ways.
func endsAs(f events.Fact, outcomes []projections.Phase) bool {
	end, ok := f.(events.TransferFact)
	if !ok {
		return false
	}
	phase, _ := projections.Ending(end)
	return slices.Contains(outcomes, phase)
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
