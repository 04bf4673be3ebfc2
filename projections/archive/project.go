package archive

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// Config says what a file is projected from.
type Config struct {
	Log     projections.Tailer
	Keys    *events.Keyring
	Folding Folding      // zero: Current
	Logger  *slog.Logger // nil: nothing is logged
	// UpTo ends the projection behind this sequence of transfers; 0: it goes on. With a
	// sequence that the log does not have yet it ends where the log does.
	UpTo uint64
	// Once ends the projection where the log ended when it was reached.
	Once bool
	// Quarantine are records to leave out, if the folding must stop at them.
	Quarantine map[Place]bool
	// Quarantined is told before a record is left out; an error ends the projection. May be nil.
	Quarantined func(ctx context.Context, h *Halt) error
}

// Place names one record of the log.
type Place struct {
	Bucket events.Bucket
	Seq    uint64
}

// Halt is a record at which the folding stops: nobody can say what it would have done.
type Halt struct {
	Place
	Key    string
	Source string
	Type   string
	Code   events.Code
	Reason string
}

func (h *Halt) Error() string {
	return fmt.Sprintf("halted at sequence %d of %s (%s, key %s, by %s): %s", h.Seq, h.Bucket, h.Type, h.Key, h.Source, h.Reason)
}

// ErrForked says that the log is not the one that this file was made from.
var ErrForked = errors.New("the log is not the one that this archive was made from")

// Buckets are those that the archive is folded from.
var Buckets = []events.Bucket{events.Transfers, events.Audit}

// batchFacts bounds how many facts one transaction takes: a crash repeats so many, and what
// is not written yet is held in memory.
const batchFacts = 4096

// errDone ends a projection that has reached what was asked for.
var errDone = errors.New("done")

// Projector writes one file. It is single-use.
type Projector struct {
	file *File
	cfg  Config
	log  *slog.Logger

	mu       sync.Mutex
	changed  sync.Cond // of everything below
	pages    pages
	next     *batch
	at       map[events.Bucket]Position // behind next
	live     map[events.Bucket]bool
	closing  bool
	failed   error // why it closes; nil: all is well
	cancel   context.CancelFunc
	progress Progress
}

// Progress is how far a projection is.
type Progress struct {
	Facts  uint64 // folded by it so far
	Seq    uint64 // of transfers, as it stands in the file
	Target uint64 // where transfers ended when it was looked at
	Stored time.Time
	Clock  time.Time // the stream's clock when it was looked at
	Live   bool      // both buckets have caught up, and that is in the file
}

// NewProjector makes one for an open file.
func NewProjector(f *File, cfg Config) *Projector {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Folding.Fold == nil {
		cfg.Folding = Current
	}
	p := &Projector{file: f, cfg: cfg, log: cfg.Logger.With("archive", f.Path), next: newBatch(), live: map[events.Bucket]bool{}}
	p.changed.L = &p.mu
	return p
}

// Progress tells how far it is. Safe for concurrent use.
func (p *Projector) Progress() Progress {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.progress
}

// Run projects until ctx ends, or until what Config asks for is reached: it then returns nil.
// It fails with *Halt, ErrForked, ErrFenced, or because the file cannot be written. What was
// written stands: the next Run goes on behind it.
func (p *Projector) Run(ctx context.Context) error {
	if p.file.Fold != p.cfg.Folding.Version {
		return fmt.Errorf("archive %s was folded by version %d, this is version %d: it is for `landfall rebuild`", p.file.Path, p.file.Fold, p.cfg.Folding.Version)
	}
	w, err := newWriter(ctx, p.file.db, p.file.epoch)
	if err != nil {
		return err
	}
	defer w.close()
	if p.at, err = readPositions(ctx, p.file.db); err != nil {
		return err
	}
	for _, b := range Buckets {
		if _, ok := p.at[b]; !ok {
			p.at[b] = Position{Bucket: b}
		}
	}
	reads, err := p.file.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer reads.Close()
	if p.pages.lookup, err = reads.PrepareContext(ctx, getState); err != nil {
		return err
	}
	defer p.pages.lookup.Close()
	p.progress.Seq, p.progress.Stored = p.at[events.Transfers].Seq, p.at[events.Transfers].Stored
	if p.cfg.UpTo > 0 && p.progress.Seq >= p.cfg.UpTo {
		return nil
	}
	return p.noteEnd(w, p.run(ctx, w))
}

func (p *Projector) run(ctx context.Context, w *writer) error {
	ctx, p.cancel = context.WithCancel(ctx)
	defer p.cancel()
	// Who waits for room or for work must hear that there will be none.
	defer context.AfterFunc(ctx, func() { p.close(nil) })()
	written := make(chan error, 1)
	go func() { written <- p.writeAll(context.WithoutCancel(ctx), w) }()
	tails, tailing := errgroup.WithContext(ctx)
	for b, at := range maps.Clone(p.at) {
		f := &follower{p: p, bucket: b, ctx: tailing}
		tails.Go(func() error {
			return p.cfg.Log.Tail(tailing, b, events.TailStart{Mode: events.TailResume, Cursor: events.Cursor{Seq: at.Seq, ID: at.ID, Incarnation: at.Incarnation}}, f)
		})
	}
	p.close(ignoreEnd(tails.Wait()))
	err := <-written
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.failed, err)
}

func ignoreEnd(err error) error {
	if errors.Is(err, errDone) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// noteEnd writes down why the folding stopped, so that whoever asks later can read it.
func (p *Projector) noteEnd(w *writer, err error) error {
	var h *Halt
	if !errors.As(err, &h) {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return errors.Join(err, w.within(ctx, func() error {
		_, err := w.conn.ExecContext(ctx, "UPDATE archive SET halted_bucket = ?, halted_seq = ?, halted_reason = ?", string(h.Bucket), int64(h.Seq), clean(h.Error())) //nolint:gosec // a sequence
		return err
	}))
}

func (p *Projector) close(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shut(err)
}

// shut is close for who has p.mu.
func (p *Projector) shut(err error) {
	p.closing = true
	if p.failed == nil {
		p.failed = err
	}
	p.cancel()
	p.changed.Broadcast()
}

// writeAll writes one batch after another, whatever has gathered, until the projection closes
// and everything is written.
func (p *Projector) writeAll(ctx context.Context, w *writer) error {
	for {
		b, last := p.takeBatch()
		if b != nil {
			if err := w.write(ctx, b); err != nil {
				p.close(nil)
				return fmt.Errorf("write archive %s: %w", p.file.Path, err)
			}
		}
		if p.wrote(b) {
			if err := p.build(ctx, w); err != nil {
				p.close(nil)
				return err
			}
		}
		if last {
			return nil
		}
	}
}

// takeBatch waits for something to write. last: nothing follows.
func (p *Projector) takeBatch() (b *batch, last bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next.empty() && !p.closing {
		p.changed.Wait()
	}
	if p.next.empty() {
		return nil, true
	}
	b, p.next = p.next, newBatch()
	for id := range b.standing {
		b.standing[id] = p.pages.state(id)
		p.pages.held[id].written = true
	}
	p.changed.Broadcast()
	return b, false
}

// wrote notes what stands in the file now. built: the log's end has been reached for the
// first time.
func (p *Projector) wrote(b *batch) (built bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b == nil {
		return false
	}
	p.pages.wrote(b)
	p.progress.Facts += uint64(b.facts) //nolint:gosec // a count
	if at, ok := b.positions[events.Transfers]; ok {
		p.progress.Seq, p.progress.Stored = at.Seq, at.Stored
	}
	p.changed.Broadcast()
	return p.caughtUp() && !p.progress.Live
}

// caughtUp wants p.mu held: everything up to the ends that were looked at is written.
func (p *Projector) caughtUp() bool {
	return p.next.empty() && !slices.ContainsFunc(Buckets, func(b events.Bucket) bool { return !p.live[b] })
}

// build makes the indexes, which cost more than the rows while there are many to come.
func (p *Projector) build(ctx context.Context, w *writer) error {
	for _, s := range statements(indexes) {
		if _, err := w.conn.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("index archive %s: %w", p.file.Path, err)
		}
	}
	err := w.within(ctx, func() error {
		_, err := w.conn.ExecContext(ctx, "UPDATE archive SET built = 1")
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress.Live = err == nil
	if p.cfg.Once || p.cfg.UpTo > 0 {
		p.shut(nil)
	}
	p.changed.Broadcast()
	return err
}

// follower is the tail of one bucket.
type follower struct {
	p      *Projector
	bucket events.Bucket
	ctx    context.Context //nolint:containedctx // of the tail, which calls without one
}

// Begin implements events.Follower.
func (f *follower) Begin(s events.StreamState, fork bool) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if fork || s.Network != "" && s.Network != p.file.Network || f.bucket == events.Transfers && s.Incarnation != p.file.Incarnation {
		p.shut(fmt.Errorf("%w: %s", ErrForked, f.bucket))
		return
	}
	at := p.at[f.bucket]
	known, gap := at.Begins > 0, s.First > at.Seq+1
	if !known {
		at.Begins = max(s.First, 1)
	}
	if gap {
		p.next.gaps = append(p.next.gaps, Gap{Bucket: f.bucket, First: at.Seq + 1, Last: s.First - 1})
		p.log.Warn("the log had dropped facts before they were read", "bucket", f.bucket, "first", at.Seq+1, "last", s.First-1)
		at.Seq, at.ID = s.First-1, events.EventID{}
	}
	at.Incarnation = s.Incarnation
	if f.bucket == events.Transfers && (p.pages.journeys == nil || gap) {
		if gap && known {
			p.loseEnds()
		}
		p.pages.held, p.pages.idle = map[events.PlayerID]*page{}, nil
		p.pages.journeys = projections.NewPagedJourneys(max(s.First, 1), s.Keeps)
	}
	if f.bucket == events.Transfers {
		p.progress.Target, p.progress.Clock = s.Last, time.Unix(0, s.Clock)
	}
	p.at[f.bucket] = at
	p.next.positions[f.bucket] = at
	p.changed.Broadcast()
}

// loseEnds wants p.mu held. What was gathered and not written is of before the gap.
func (p *Projector) loseEnds() {
	for place, t := range p.next.transfers {
		if t.EndedAt.IsZero() {
			t.Phase = "UNKNOWN"
			p.next.transfers[place] = t
		}
	}
	p.next.lost, p.next.standing, p.pages.emptied = true, map[events.PlayerID]state{}, true
}

// Record implements events.Follower.
func (f *follower) Record(r events.Record) error {
	p := f.p
	if f.bucket == events.Transfers && p.cfg.UpTo > 0 && r.Seq > p.cfg.UpTo {
		return errDone
	}
	e, refusal := events.Open(p.cfg.Keys, r)
	if refusal != nil && halts(refusal) {
		return f.halt(r, refusal.Code, refusal.Error())
	}
	return f.take(r, e, refusal)
}

// halts tells that a record cannot be judged: what it means is known to a newer program, or
// with another key. Every fold stops at it. What is no fact, every fold leaves out.
func halts(r *events.Refusal) bool {
	return r.Code == events.UnknownType || r.Code == events.UnknownKey
}

// halt stops at a record, or leaves it out when that was asked for.
func (f *follower) halt(r events.Record, code events.Code, reason string) error {
	h := &Halt{
		Place: Place{Bucket: f.bucket, Seq: r.Seq}, Key: r.Key, Source: r.Header[events.HeaderSource], Type: r.Header[events.HeaderType],
		Code: code, Reason: reason,
	}
	if !f.p.cfg.Quarantine[h.Place] {
		return h
	}
	if f.p.cfg.Quarantined != nil {
		if err := f.p.cfg.Quarantined(f.ctx, h); err != nil {
			return fmt.Errorf("quarantine: %w", err)
		}
	}
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next.quarantined = append(p.next.quarantined, refusal{bucket: f.bucket, seq: r.Seq, code: code, detail: h.Error()})
	if f.bucket == events.Transfers {
		if err := p.skip(f.ctx, r); err != nil {
			return err
		}
	}
	p.moved(r)
	return nil
}

// take folds one record, once there is room for it.
func (f *follower) take(r events.Record, e events.Event, refused *events.Refusal) (err error) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next.facts >= batchFacts && !p.closing {
		p.changed.Wait()
	}
	if p.closing {
		return errDone
	}
	defer func() {
		if x := recover(); x != nil {
			p.log.Error("a fold panicked", "bucket", r.Bucket, "seq", r.Seq, "panic", x, "stack", string(debug.Stack()))
			err = &Halt{Place: Place{r.Bucket, r.Seq}, Key: r.Key, Source: r.Header[events.HeaderSource], Type: r.Header[events.HeaderType], Code: events.Impossible, Reason: fmt.Sprintf("the fold panicked: %v", x)}
		}
	}()
	switch {
	case f.bucket == events.Audit:
		p.audit(r, e, refused)
	case refused != nil:
		p.refuse(r, refused)
		err = p.skip(f.ctx, r)
	default:
		err = p.fold(f.ctx, r, e)
	}
	if err != nil {
		return err
	}
	p.moved(r)
	if f.bucket == events.Transfers && r.Seq == p.cfg.UpTo {
		return errDone
	}
	return nil
}

// moved wants p.mu held.
func (p *Projector) moved(r events.Record) {
	at := p.at[r.Bucket]
	at.Seq, at.ID, at.Stored = r.Seq, r.EventID(), r.Stored
	at.Facts++
	p.at[r.Bucket], p.next.positions[r.Bucket] = at, at
	p.next.facts++
	p.changed.Broadcast()
}

func (p *Projector) refuse(r events.Record, x *events.Refusal) {
	p.next.refusals = append(p.next.refusals, refusal{
		bucket: r.Bucket, seq: r.Seq, at: r.Stored, code: x.Code, source: r.Header[events.HeaderSource], subject: r.Bucket.Subject(r.Key), detail: x.Detail,
	})
}

func (p *Projector) audit(r events.Record, e events.Event, refused *events.Refusal) {
	f, ok := e.Fact.(*events.Rejected)
	if refused != nil || !ok {
		if refused == nil {
			refused = events.Refuse(events.Malformed, "not a fact of audit")
		}
		p.refuse(r, refused)
		return
	}
	p.next.refusals = append(p.next.refusals, refusal{bucket: r.Bucket, seq: r.Seq, at: r.Stored, code: f.Code, source: f.Source, subject: f.Subject, detail: f.Detail})
}

// fold takes in a genuine fact of transfers.
func (p *Projector) fold(ctx context.Context, r events.Record, e events.Event) error {
	player, transfer, err := events.ParseTransferKey(r.Key)
	if err != nil {
		p.refuse(r, events.Refuse(events.Malformed, err.Error()))
		return nil
	}
	return p.change(ctx, r, player, transfer, func() *events.Event {
		if x := p.pages.journeys.Apply(e, e.Stored); x != nil {
			p.refuse(r, x)
			return nil
		}
		return &e
	})
}

// skip counts a message that is no fact.
func (p *Projector) skip(ctx context.Context, r events.Record) error {
	player, transfer, err := events.ParseTransferKey(r.Key)
	if err != nil {
		return nil //nolint:nilerr // a key that is nobody's moves no guard
	}
	return p.change(ctx, r, player, transfer, func() *events.Event {
		p.pages.journeys.Skip(r.Key, r.Seq)
		return nil
	})
}

// change lets a message of a player's transfer act, and gathers the rows that it changed. act
// gives the event that was folded, nil when the message only counted.
func (p *Projector) change(ctx context.Context, r events.Record, player events.PlayerID, transfer events.TransferID, act func() *events.Event) error {
	held, err := p.pages.take(ctx, player)
	if err != nil {
		return fmt.Errorf("player %s: %w", player, err)
	}
	before := p.pages.journeys.Player(player).Active
	taken := act()
	held.written = false
	p.next.standing[player] = state{} // filled when the batch is taken
	after := p.pages.journeys.Player(player)
	t := after.Find(transfer)
	if t == nil || t.Request == nil || (before == nil || before.ID != transfer) && (after.Active == nil || after.Active.ID != transfer) {
		return nil // it was over before, or never began
	}
	if before == nil || before.ID != transfer {
		held.attempt = nil
	}
	e := events.Event{Bucket: r.Bucket, Seq: r.Seq, Stored: r.Stored}
	if taken != nil {
		e = *taken
	}
	rows := p.cfg.Folding.Fold(*t, held.attempt, e)
	held.attempt = rows.Attempt
	p.next.add(rows)
	return nil
}

// Live implements events.Follower.
func (f *follower) Live(last uint64) {
	p := f.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.live[f.bucket] = true
	if f.bucket == events.Transfers {
		p.progress.Target = max(p.progress.Target, last)
	}
	p.next.positions[f.bucket] = p.at[f.bucket] // so that it is looked at once more
	p.changed.Broadcast()
}

// Blind implements events.Follower.
func (f *follower) Blind(err error) {
	f.p.log.Warn("the archive lost its store", "bucket", f.bucket, "error", err)
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	f.p.live[f.bucket] = false
}

// Wait blocks until the file holds what the log held, and answers by its indexes. It fails
// when ctx ends first; why a Run ended is Run's to say.
func (p *Projector) Wait(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.changed.Broadcast()
	})()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.progress.Live && !p.closing && ctx.Err() == nil {
		p.changed.Wait()
	}
	return ctx.Err()
}
