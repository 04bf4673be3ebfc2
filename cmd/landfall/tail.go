package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

// allBuckets are those that a tail shows together: what happened, without what expires.
var allBuckets = []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Audit, events.Checkpoints, events.Fleet}

// expiringBuckets are those whose facts stand for a while: a tail shows one of them when it is named.
var expiringBuckets = []events.Bucket{events.Limits, events.Routes}

// tailFlags are the command line of tail.
type tailFlags struct {
	storeFlags
	filterFlags
	follow       bool
	pulse        time.Duration
	since, until string
	after        uint64
	afterSet     bool
	player       string
	limit        int
	json         bool
	bucket       string
}

func newTail() *cobra.Command {
	var f tailFlags
	c := &cobra.Command{
		Use:   "tail",
		Short: "Show the facts of the log, and with --follow the ones to come",
		Long: `Shows the facts of the log in their order, one line each: as columns, or with --json as one
object a line with seq, bucket, key, stored (the stream's clock), time (the writer's clock),
schema, type, source, id, correlation, prev, verified (true, false or "no key") and fact.

It ends by itself at the end of the log as it was at the start; with --follow it goes on,
through restarts of the store, until it is interrupted, and says on stderr now and then that
it is alive: how far it is, and how far the store is. At the end it says how far it looked and
how to go on. What cannot be decoded or verified is shown as such.

Buckets are merged by stored time. Sequences are counted per bucket; those of fleet may be
used again after a crash of the store.

Exit status: 0 done, 1 failed (or no such player), 64 wrong command line, 130 interrupted.`,
		Example: `  landfall tail --follow
  landfall tail --player steve --since 10m --json
  landfall tail --store nats://127.0.0.1:4222 --outcome failed --code NO_CANDIDATE --limit 20
  landfall tail --bucket audit --after 1200`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			f.afterSet = c.Flags().Changed("after")
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c)
	f.addFile(c)
	f.addTo(c)
	return c
}

func (f *tailFlags) addTo(c *cobra.Command) {
	c.Flags().BoolVarP(&f.follow, "follow", "f", false, "go on with what is written from now on")
	c.Flags().DurationVar(&f.pulse, "pulse", 30*time.Second, "how often --follow says on stderr that it is alive; 0: never")
	c.Flags().StringVar(&f.since, "since", "", "begin `AT`: a length before now (10m), a sequence, or an RFC 3339 time")
	c.Flags().StringVar(&f.until, "until", "", "end `AT`: a length before now, a sequence (included), or an RFC 3339 time (excluded)")
	c.Flags().Uint64Var(&f.after, "after", 0, "continue after `SEQ`, as an earlier tail said")
	c.Flags().StringVar(&f.player, "player", "", "only this player: `NAME` or UUID")
	c.Flags().StringVar(&f.server, "server", "", "only what this host wrote or is named in: `ID`")
	c.Flags().StringVar(&f.token, "token", "", "only this token, or this whole transfer: `ID`")
	c.Flags().StringSliceVar(&f.types, "type", nil, "only this `TYPE` of fact, such as claimed, session.opened, or security for all that was refused (repeatable)")
	c.Flags().StringSliceVar(&f.outcomes, "outcome", nil, "only facts that end a transfer so: completed, failed, cancelled, superseded (repeatable)")
	c.Flags().StringSliceVar(&f.codes, "code", nil, "only facts that give this reason `CODE`, such as NO_CANDIDATE (repeatable)")
	c.Flags().IntVar(&f.limit, "limit", 0, "stop after `N` lines")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line")
	c.Flags().StringVar(&f.bucket, "bucket", "", "`BUCKET`: "+bucketNames()+" or all (default: where --type lies, else transfers)")
}

func bucketNames() string {
	var names []string
	for _, b := range slices.Concat(allBuckets, expiringBuckets) {
		names = append(names, string(b))
	}
	return strings.Join(names, ", ")
}

// bucketsOf are where facts of these types lie; where transfers do, when no type was named.
func bucketsOf(types []string) (out []events.Bucket) {
	for _, b := range allBuckets {
		if slices.ContainsFunc(events.Catalog, func(k events.Kind) bool { return k.Bucket == b && slices.Contains(types, shortType(k.Type)) }) {
			out = append(out, b)
		}
	}
	if len(out) == 0 {
		return []events.Bucket{events.Transfers}
	}
	return out
}

// buckets are the ones that --bucket names, or that the types lie in.
func (f *tailFlags) buckets(types []string) ([]events.Bucket, error) {
	switch f.bucket {
	case "all":
		return slices.Clone(allBuckets), nil
	case "":
		return bucketsOf(types), nil
	}
	if b := events.Bucket(f.bucket); slices.Contains(allBuckets, b) || slices.Contains(expiringBuckets, b) {
		return []events.Bucket{b}, nil
	}
	return nil, usageError("--bucket %q: want one of %s or all", f.bucket, bucketNames())
}

// plan is a checked command line.
func (f *tailFlags) plan() (t *tail, err error) {
	t = &tail{limit: f.limit, pulse: f.pulse}
	if t.filter, err = f.filterFlags.parse(); err != nil {
		return nil, err
	}
	if t.buckets, err = f.buckets(t.filter.types); err != nil {
		return nil, err
	}
	if t.window, err = f.window(len(t.buckets)); err != nil {
		return nil, err
	}
	if f.limit < 0 || f.pulse < 0 {
		return nil, usageError("--limit %d, --pulse %s: want a number of lines, and a length of time", f.limit, f.pulse)
	}
	if f.player != "" {
		err = checkPlayer(f.player)
	}
	return t, err
}

func (f *tailFlags) window(buckets int) (w window, err error) {
	if w.since, err = parseBound("--since", f.since); err != nil {
		return w, err
	}
	if w.until, err = parseBound("--until", f.until); err != nil {
		return w, err
	}
	if f.afterSet {
		if w.since.set {
			return w, usageError("--after and --since both say where to begin: give one")
		}
		w.since = bound{seq: f.after + 1, set: true}
	}
	if f.follow && f.file != "" {
		return w, usageError("--follow waits for what is written, and nothing is written to --from-file: give one")
	}
	if f.follow && w.until.set {
		return w, usageError("--follow has no end, --until is one: give one")
	}
	if buckets > 1 && (w.since.bySeq() || w.until.bySeq()) {
		return w, usageError("a sequence is counted per bucket: name one with --bucket")
	}
	return w, nil
}

func (f *tailFlags) run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	t, err := f.plan()
	if err != nil {
		return err
	}
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	if t.opener, err = newOpener(src.trust); err != nil {
		return err
	}
	out := bufio.NewWriter(stdout)
	t.out, t.flush, t.notes = printer{w: out, json: f.json}, out.Flush, stderr
	defer func() { err = errors.Join(err, out.Flush()) }()
	log, err := src.read(ctx)
	if err != nil {
		return err
	}
	if err := t.opener.know(ctx, log); err != nil {
		return errors.Join(err, log.Close())
	}
	if err := t.begin(ctx, log, f.player); err != nil {
		return errors.Join(err, log.Close())
	}
	store, grows := log.(*reader)
	if !f.follow || !grows || t.full() {
		return errors.Join(log.Close(), t.finish(ctx))
	}
	return errors.Join(t.follow(ctx, src, store), t.finish(context.WithoutCancel(ctx)))
}

// tail reads buckets and shows what passes its filter.
type tail struct {
	buckets []events.Bucket
	window  window
	filter  filter
	limit   int
	pulse   time.Duration
	opener  *opener
	out     printer
	flush   func() error
	notes   io.Writer // for people, beside the rows

	shown   int
	at      map[events.Bucket]*position
	writing atomic.Uint64 // odd while a record is on its way to the output
}

// position is how far a bucket was read.
type position struct {
	state   events.StreamState // when reading began
	end     uint64             // where it was to end
	last    uint64             // last sequence that was looked at
	scanned uint64
	cursor  events.Cursor
	keys    map[string]events.EventID // of fleet: newest record of each key, which a tail begins with
	live    bool
	behind  uint64 // at the last pulse
}

// begin shows what is there.
func (t *tail) begin(ctx context.Context, log history, player string) error {
	if player != "" {
		ids, note, err := findPlayer(ctx, log, t.opener, player)
		if err != nil {
			return err
		}
		t.note(note)
		t.filter.players = ids
	}
	if !t.out.json {
		fmt.Fprintln(t.out.w, tailHeader)
	}
	t.at = map[events.Bucket]*position{}
	var parts []iter.Seq2[reading, error]
	for _, b := range slices.Clone(t.buckets) {
		part, err := t.part(ctx, log, b)
		if errors.Is(err, errNotExported) && len(t.buckets) > 1 {
			t.note(err.Error())
			t.buckets = slices.DeleteFunc(t.buckets, func(x events.Bucket) bool { return x == b })
			continue
		}
		if err != nil {
			return err
		}
		parts = append(parts, part)
	}
	for r, err := range merged(parts...) {
		if err != nil {
			if ctx.Err() != nil { // interrupted: say how far it went
				return nil
			}
			return err
		}
		if err := t.show(r); err != nil {
			return err
		}
		if t.full() {
			return nil
		}
	}
	t.toTheEnd()
	return nil
}

// part is what is there of one bucket.
func (t *tail) part(ctx context.Context, log history, b events.Bucket) (iter.Seq2[reading, error], error) {
	state, err := log.Info(ctx, b)
	if err != nil {
		return nil, err
	}
	t.note(t.window.gone(b, state))
	span := t.window.span(state)
	span.Keys = t.filter.keys(b)
	t.at[b] = &position{state: state, end: span.UpTo, last: span.After, keys: map[string]events.EventID{}}
	return func(yield func(reading, error) bool) {
		if span.UpTo == 0 { // an empty stream; 0 would mean "no bound"
			return
		}
		for rec, err := range log.History(ctx, b, span) {
			if !yield(t.opener.open(rec), err) {
				return
			}
		}
	}, nil
}

// show counts a record, and prints it if it passes.
func (t *tail) show(r reading) error {
	p := t.at[r.Bucket]
	p.last, p.scanned = r.Seq, p.scanned+1
	if r.Bucket == events.Fleet {
		p.keys[r.Key] = r.EventID()
	}
	if ended := slices.Contains(expiringBuckets, r.Bucket) && r.Header[events.HeaderType] == ""; ended || !t.filter.match(r) {
		return nil
	}
	t.shown++
	return t.out.print(rowOf(r))
}

// toTheEnd notes that what the store left out by key was looked at, too.
func (t *tail) toTheEnd() {
	for _, p := range t.at {
		if !t.window.until.set || t.window.until.bySeq() {
			p.last = max(p.last, p.end)
		}
	}
}

func (t *tail) full() bool { return t.limit > 0 && t.shown >= t.limit }

func (t *tail) note(text string) {
	if text != "" {
		fmt.Fprintln(t.notes, printable(text))
	}
}

// finish says how far it was looked, and how to go on.
func (t *tail) finish(ctx context.Context) error {
	if err := t.flush(); err != nil {
		return err
	}
	stopped := ""
	switch {
	case t.full():
		stopped = ", stopped at the limit"
	case ctx.Err() != nil:
		stopped = ", interrupted"
	}
	for _, b := range t.buckets {
		t.note(t.at[b].summary(b, t.filter.keys(b) != "") + stopped + t.hint(b))
	}
	t.note(plural(t.shown, "line") + " shown")
	return ctx.Err()
}

func (p *position) summary(b events.Bucket, byKey bool) string {
	held := uint64(0)
	if last := max(p.last, p.state.Last); last >= p.state.First && last > 0 {
		held = last - max(p.state.First, 1) + 1
	}
	how := ""
	if byKey {
		how = " (the others left out by key)"
	}
	return fmt.Sprintf("%s: scanned %d of %d%s, last sequence %d", b, p.scanned, held, how, p.last)
}

// hint is the command that continues, where one bucket was read.
func (t *tail) hint(b events.Bucket) string {
	if len(t.buckets) > 1 {
		return ""
	}
	return fmt.Sprintf("; continue with --after %d", t.at[b].last)
}
