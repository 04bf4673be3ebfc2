package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// clockSlack is how far the clocks of a caller, a writer and a stream may be apart before a
// look by time misses something. It only saves reading: what is not found is looked for again.
const clockSlack = 10 * time.Minute

// find gives a transfer's tale by its id alone. Whose it is, only a scan tells; a wildcard
// read over all players would hold up the store.
func (r *replay) find(ctx context.Context, id events.TransferID) (*tale, error) {
	player, err := r.owner(ctx, id)
	if err != nil {
		return nil, err
	}
	tales, err := r.tales(ctx, player)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(tales, func(t *tale) bool { return t.id == id })
	if i < 0 {
		return nil, exitWith(statusFailed, fmt.Errorf("transfer %s: it has just been removed by retention", id))
	}
	return tales[i], nil
}

// owner scans the log for the first fact of a transfer: from about the time in its id on,
// then all of it.
func (r *replay) owner(ctx context.Context, id events.TransferID) (events.PlayerID, error) {
	from := []time.Time{{}}
	if made, ok := madeAt(id); ok {
		from = []time.Time{made.Add(-clockSlack), {}}
	}
	scanned := 0
	for _, since := range from {
		var player events.PlayerID
		var err error
		player, scanned, err = r.scan(ctx, id, since)
		if err != nil {
			return player, err
		}
		if !player.IsZero() {
			r.note(fmt.Sprintf("transfer %s belongs to player %s (scanned the headers of %s)", id, player, plural(scanned, "fact")))
			return player, nil
		}
	}
	return events.PlayerID{}, r.notFound(ctx, id, scanned)
}

func (r *replay) scan(ctx context.Context, id events.TransferID, since time.Time) (player events.PlayerID, scanned int, err error) {
	correlation := id.String()
	for rec, err := range r.log.History(ctx, events.Transfers, streams.Range{Since: since}) {
		if err != nil {
			return player, scanned, err
		}
		scanned++
		if rec.Header[events.HeaderCorrelation] != correlation && !strings.HasSuffix(rec.Key, correlation) {
			continue
		}
		if player, transfer, err := events.ParseTransferKey(rec.Key); err == nil && transfer == id {
			return player, scanned, nil
		}
	}
	return player, scanned, nil
}

// notFound tells a transfer that never was from one that retention has removed.
func (r *replay) notFound(ctx context.Context, id events.TransferID, scanned int) error {
	state, err := r.log.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	made, dated := madeAt(id)
	if begins := r.beginning(ctx, state); dated && state.First > 1 && made.Before(begins) {
		return exitWith(statusIncomplete, fmt.Errorf("transfer %s: it was asked for at %s, and retention has removed everything before %s (sequence %d)",
			id, made.UTC().Format(timeForm), begins.UTC().Format(timeForm), state.First))
	}
	return exitWith(statusFailed, fmt.Errorf("transfer %s: not in this store (scanned all %s)", id, plural(scanned, "fact")))
}

// beginning is the stored time of the oldest fact held; the stream's now when it holds none.
func (r *replay) beginning(ctx context.Context, state events.StreamState) time.Time {
	for rec, err := range r.log.History(ctx, events.Transfers, streams.Range{Limit: 1}) {
		if err == nil {
			return rec.Stored
		}
	}
	return clockOf(state)
}

// madeAt is the time in an id of version 7.
func madeAt(id events.TransferID) (time.Time, bool) {
	if id[6]>>4 != 7 {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)), true //nolint:gosec // 48 bits
}

// tales are a player's transfers, oldest first.
func (r *replay) tales(ctx context.Context, player events.PlayerID) ([]*tale, error) {
	state, err := r.log.Info(ctx, events.Transfers)
	if err != nil {
		return nil, err
	}
	records, err := r.read(ctx, events.Transfers, streams.Range{Keys: player.String() + ".>"}, nil)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(tell(player, state.First, records), func(t *tale) bool { return t.id.IsZero() }), nil
}

func (r *replay) read(ctx context.Context, b events.Bucket, span streams.Range, want func(reading) bool) (out []reading, err error) {
	for rec, err := range r.log.History(ctx, b, span) {
		if err != nil {
			return nil, err
		}
		if got := r.opener.open(rec); want == nil || want(got) {
			out = append(out, got)
		}
	}
	return out, nil
}

// asides are what else the log says about a transfer.
func (r *replay) asides(ctx context.Context, t *tale) (a aside, err error) {
	start := t.entries[0].Stored
	a.audit, err = r.read(ctx, events.Audit, streams.Range{Since: start.Add(-clockSlack)}, func(x reading) bool {
		return rejectionNames(x, t.id.String())
	})
	if err != nil || !r.sessions {
		return a, err
	}
	all, err := r.read(ctx, events.Sessions, streams.Range{Keys: t.player.String()}, nil)
	a.sessions = t.meanwhile(all)
	return a, err
}

// meanwhile is the session at the request and what came after it, up to the transfer's end.
func (t *tale) meanwhile(sessions []reading) []reading {
	start, end := t.entries[0].Stored, t.entries[len(t.entries)-1].Stored
	phase, _ := t.ending()
	from, to := 0, len(sessions)
	for i, s := range sessions {
		if !s.Stored.After(start) {
			from = i
		}
		if phase.Terminal() && s.Stored.After(end) {
			to = min(to, i)
		}
	}
	return sessions[min(from, to):to]
}

// hasToken refuses a token that the transfer never had.
func (t *tale) hasToken(token events.Token) error {
	most := 0
	for _, e := range t.entries {
		n, ok := attemptOf(e.event.Fact)
		if ok && n == token.Attempt {
			return nil
		}
		most = max(most, n)
	}
	if missing := t.missing(); missing != "" {
		return exitWith(statusIncomplete, fmt.Errorf("token %s: %s", token, missing))
	}
	return exitWith(statusFailed, fmt.Errorf("token %s: the transfer has %s", token, plural(most, "token")))
}
