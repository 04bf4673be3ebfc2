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

// looks are the stretches of the log in which a transfer is looked for, from about the moment
// when its id was made: by clocks that agree, by others, and at last everywhere.
func looks(id events.TransferID) []look {
	everywhere := look{}
	made, ok := madeAt(id)
	if !ok {
		return []look{everywhere}
	}
	near := look{made.Add(-50 * time.Millisecond), made.Add(time.Second)}
	return []look{near, {made.Add(-clockSlack), made.Add(clockSlack)}, everywhere}
}

// look is a stretch of time on the stream's clock; all of it when both ends are zero.
type look struct{ from, to time.Time }

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

// owner scans the log for the first fact of a transfer.
func (r *replay) owner(ctx context.Context, id events.TransferID) (events.PlayerID, error) {
	scanned, last := 0, 0
	for _, stretch := range looks(id) {
		player, n, err := r.scan(ctx, id, stretch)
		if err != nil {
			return player, err
		}
		scanned, last = scanned+n, n
		if !player.IsZero() {
			r.note(fmt.Sprintf("transfer %s belongs to player %s (scanned the headers of %s)", id, player, plural(scanned, "fact")))
			return player, nil
		}
	}
	return events.PlayerID{}, r.notFound(ctx, id, last)
}

// scan looks for a transfer by its key alone. Stored times may step back: a look by time may
// end too early, and the next one looks further.
func (r *replay) scan(ctx context.Context, id events.TransferID, at look) (player events.PlayerID, scanned int, err error) {
	correlation := id.String()
	for rec, err := range r.log.History(ctx, events.Transfers, streams.Range{Since: at.from, Heads: true}) {
		if err != nil {
			return player, scanned, err
		}
		if !at.to.IsZero() && rec.Stored.After(at.to) {
			break
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
