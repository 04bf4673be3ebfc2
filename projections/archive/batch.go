package archive

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// batch is what a run of facts leaves: it is written in one transaction with the positions.
// A row that changed several times is written once.
type batch struct {
	facts       int
	positions   map[events.Bucket]Position
	transfers   map[uint64]Transfer // by place
	attempts    map[attemptKey]Attempt
	decisions   []Decision
	refusals    []refusal
	quarantined []refusal
	gaps        []Gap
	// lost: what the file holds of players ends at a gap, before this batch.
	lost     bool
	standing map[events.PlayerID]state
}

type attemptKey struct {
	place uint64
	n     int
}

// Gap is a run of sequences that the log had dropped before they were read.
type Gap struct {
	Bucket events.Bucket `json:"bucket"`
	First  uint64        `json:"first"`
	Last   uint64        `json:"last"`
}

// refusal is a row of refusals.
type refusal struct {
	bucket          events.Bucket
	seq             uint64
	at              time.Time
	code            events.Code
	source, subject string
	detail          string
}

// state is what the folds stand on, of one player.
type state struct {
	projections.Standing
	Attempt *Attempt `json:"attempt,omitempty"` // the last one of the active transfer
}

func newBatch() *batch {
	return &batch{
		positions: map[events.Bucket]Position{}, transfers: map[uint64]Transfer{}, attempts: map[attemptKey]Attempt{},
		standing: map[events.PlayerID]state{},
	}
}

func (b *batch) empty() bool { return b.facts == 0 && len(b.positions) == 0 && !b.lost }

// add takes in the rows of one message.
func (b *batch) add(r Rows) {
	b.transfers[r.Transfer.Place] = r.Transfer
	if a := r.Attempt; a != nil {
		b.attempts[attemptKey{a.Place, a.N}] = *a
	}
	if r.Decision != nil {
		b.decisions = append(b.decisions, *r.Decision)
	}
}

// statement names of a writer.
const (
	putPosition   = "INSERT OR REPLACE INTO positions VALUES (?,?,?,?,?,?,?)"
	putTransfer   = "INSERT OR REPLACE INTO transfers VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	putAttempt    = "INSERT OR REPLACE INTO attempts VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
	putDecision   = "INSERT OR REPLACE INTO decisions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)"
	putRuledOut   = "INSERT OR REPLACE INTO ruled_out VALUES (?,?,?,?)"
	putRefusal    = "INSERT OR REPLACE INTO refusals VALUES (?,?,?,?,?,?,?)"
	putQuarantine = "INSERT OR REPLACE INTO quarantined VALUES (?,?,?,?)"
	putGap        = "INSERT OR REPLACE INTO gaps VALUES (?,?,?)"
	putState      = "INSERT OR REPLACE INTO fold_state VALUES (?,?,?,?,?)"
	getState      = "SELECT guard, stored, done, active FROM fold_state WHERE player = ?"
	checkEpoch    = "UPDATE archive SET halted_seq = 0, halted_bucket = '', halted_reason = '' WHERE epoch = ?"
)

// writer writes batches over one connection.
type writer struct {
	conn     *sql.Conn
	epoch    int64
	prepared map[string]*sql.Stmt
}

func newWriter(ctx context.Context, db *sql.DB, epoch int64) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{conn: conn, epoch: epoch, prepared: map[string]*sql.Stmt{}}, nil
}

func (w *writer) close() {
	for _, s := range w.prepared {
		_ = s.Close()
	}
	_ = w.conn.Close()
}

func (w *writer) exec(ctx context.Context, query string, args ...any) error {
	s, ok := w.prepared[query]
	if !ok {
		var err error
		if s, err = w.conn.PrepareContext(ctx, query); err != nil {
			return err
		}
		w.prepared[query] = s
	}
	_, err := s.ExecContext(ctx, args...)
	return err
}

// within runs one transaction, unless another writer has taken the file over.
func (w *writer) within(ctx context.Context, do func() error) (err error) {
	if _, err := w.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = w.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		}
	}()
	done, err := w.conn.ExecContext(ctx, checkEpoch, w.epoch)
	if err != nil {
		return err
	}
	if n, err := done.RowsAffected(); err != nil || n == 0 {
		return cmp.Or(err, ErrFenced)
	}
	if err := do(); err != nil {
		return err
	}
	_, err = w.conn.ExecContext(ctx, "COMMIT")
	return err
}

// write is one batch, in one transaction.
func (w *writer) write(ctx context.Context, b *batch) error {
	return w.within(ctx, func() error {
		if b.lost {
			if err := w.loseEnds(ctx); err != nil {
				return err
			}
		}
		for _, step := range []func(context.Context, *batch) error{w.writeTransfers, w.writeDecisions, w.writeRefusals, w.writeStates} {
			if err := step(ctx, b); err != nil {
				return err
			}
		}
		for _, p := range b.positions {
			if err := w.exec(ctx, putPosition, string(p.Bucket), p.Incarnation, int64(p.Begins), int64(p.Seq), p.ID.String(), unixMilli(p.Stored), int64(p.Facts)); err != nil { //nolint:gosec // sequences
				return err
			}
		}
		return nil
	})
}

// loseEnds: nobody will ever read how the transfers under way ended, nor where guards stand.
func (w *writer) loseEnds(ctx context.Context) error {
	for _, q := range []string{
		"UPDATE transfers SET phase = 'UNKNOWN' WHERE ended_at IS NULL",
		"DELETE FROM fold_state",
	} {
		if _, err := w.conn.ExecContext(ctx, q); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) writeTransfers(ctx context.Context, b *batch) error {
	for _, place := range slices.Sorted(maps.Keys(b.transfers)) {
		t := b.transfers[place]
		r := &t.Request
		var duration any
		if !t.EndedAt.IsZero() {
			duration = t.EndedAt.Sub(t.RequestedAt).Milliseconds()
		}
		err := w.exec(ctx, putTransfer,
			int64(t.Place), t.ID.String(), t.Player.String(), r.Name, r.NativeID, string(r.Trigger), r.Via, r.Wish.Region, r.Wish.World, string(r.Wish.Pin), string(r.Origin), //nolint:gosec // a sequence
			r.Bypass, string(t.Phase), string(t.Code), t.Detail, t.Waitlisted, t.Attempts, string(t.Server), t.Region, t.Facts, int64(t.Last), //nolint:gosec // a sequence
			unixMilli(t.RequestedAt), orNull(t.EndedAt), duration)
		if err != nil {
			return fmt.Errorf("transfer at %d: %w", t.Place, err)
		}
	}
	keys := slices.SortedFunc(maps.Keys(b.attempts), func(x, y attemptKey) int { return cmp.Or(cmp.Compare(x.place, y.place), x.n-y.n) })
	for _, key := range keys {
		a := b.attempts[key]
		err := w.exec(ctx, putAttempt,
			int64(a.Place), a.N, string(a.Server), a.Region, a.At.World, a.At.X, a.At.Y, a.At.Z, a.TTLMs, int64(a.ReservedSeq), unixMilli(a.ReservedAt), //nolint:gosec // sequences
			string(a.Dispatcher), string(a.From), orNull(a.ClaimedAt), a.Reopened, string(a.How), string(a.Move), orNull(a.MovedAt),
			seqOrNull(a.ArrivedSeq), orNull(a.ArrivedAt), string(a.Outcome), string(a.Reason), orNull(a.EndedAt))
		if err != nil {
			return fmt.Errorf("attempt %d of the transfer at %d: %w", a.N, a.Place, err)
		}
	}
	return nil
}

func (w *writer) writeDecisions(ctx context.Context, b *batch) error {
	for _, d := range b.decisions {
		text, err := scores(d.Why.Candidates)
		if err != nil {
			return fmt.Errorf("decision at %d: %w", d.Seq, err)
		}
		var score, margin any
		if c := d.Why.Candidates; len(c) > 0 {
			score = c[0].Score
			if len(c) > 1 {
				margin = c[1].Score - c[0].Score
			}
		}
		out := 0
		for _, f := range d.Why.Filtered {
			out += f.Count
			examples, err := json.Marshal(f.Examples)
			if err != nil {
				return err
			}
			if err := w.exec(ctx, putRuledOut, string(f.Code), int64(d.Seq), f.Count, string(examples)); err != nil { //nolint:gosec // a sequence
				return err
			}
		}
		err = w.exec(ctx, putDecision, int64(d.Seq), int64(d.Place), unixMilli(d.At), d.Kind, d.Why.Policy, int64(d.Why.Snapshot), d.Why.AgeMs, //nolint:gosec // sequences
			string(d.Server), d.Region, score, margin, text, out)
		if err != nil {
			return fmt.Errorf("decision at %d: %w", d.Seq, err)
		}
	}
	return nil
}

func (w *writer) writeRefusals(ctx context.Context, b *batch) error {
	for _, r := range b.refusals {
		if err := w.exec(ctx, putRefusal, string(r.bucket), int64(r.seq), unixMilli(r.at), string(r.code), clean(r.source), clean(r.subject), clean(r.detail)); err != nil { //nolint:gosec // a sequence
			return err
		}
	}
	for _, r := range b.quarantined {
		if err := w.exec(ctx, putQuarantine, string(r.bucket), int64(r.seq), string(r.code), clean(r.detail)); err != nil { //nolint:gosec // a sequence
			return err
		}
	}
	for _, g := range b.gaps {
		if err := w.exec(ctx, putGap, string(g.Bucket), int64(g.First), int64(g.Last)); err != nil { //nolint:gosec // sequences
			return err
		}
	}
	return nil
}

func (w *writer) writeStates(ctx context.Context, b *batch) error {
	players := slices.SortedFunc(maps.Keys(b.standing), func(x, y events.PlayerID) int { return slices.Compare(x[:], y[:]) })
	for _, id := range players {
		s := b.standing[id]
		done := make([]byte, 0, 16*len(s.Done))
		for _, t := range s.Done {
			done = append(done, t[:]...)
		}
		var active any
		if s.Active != nil || len(s.Strays) > 0 {
			raw, err := json.Marshal(s)
			if err != nil {
				return fmt.Errorf("player %s: %w", id, err)
			}
			active = string(raw)
		}
		if err := w.exec(ctx, putState, id[:], int64(s.Guard), s.Stored.UnixNano(), done, active); err != nil { //nolint:gosec // a sequence
			return err
		}
	}
	return nil
}

// readState takes a player's state out of the file; ok is false when there is none.
func readState(ctx context.Context, stmt *sql.Stmt, id events.PlayerID) (s state, ok bool, err error) {
	var guard, stored int64
	var done []byte
	var active sql.NullString
	err = stmt.QueryRowContext(ctx, id[:]).Scan(&guard, &stored, &done, &active)
	if err != nil {
		return s, false, err
	}
	if active.Valid {
		return s, true, json.Unmarshal([]byte(active.String), &s)
	}
	s.Guard, s.Stored = uint64(guard), time.Unix(0, stored).UTC() //nolint:gosec // written from one
	for ; len(done) >= 16; done = done[16:] {
		s.Done = append(s.Done, events.TransferID(done[:16]))
	}
	return s, true, nil
}

func unixMilli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func orNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UnixMilli()
}

func seqOrNull(seq uint64) any {
	if seq == 0 {
		return nil
	}
	return int64(seq) //nolint:gosec // a sequence
}

// clean is a text that somebody else wrote, as SQL and terminals take it.
func clean(s string) string {
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\x00", "\uFFFD"), "\uFFFD")
}
