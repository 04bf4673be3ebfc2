package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections/archive"
)

// rebuildFlags are the command line of rebuild.
type rebuildFlags struct {
	archiveFlags
	json       bool
	quarantine []uint64
	live       bool
	who, why   string
	keys       int

	folding archive.Folding // zero: this program's
}

func newRebuild() *cobra.Command { return rebuildWith(archive.Folding{}) }

// rebuildWith is the verb of a program with another folding.
func rebuildWith(folding archive.Folding) *cobra.Command {
	f := rebuildFlags{folding: folding}
	c := &cobra.Command{
		Use:   "rebuild",
		Short: "Make the archive anew beside the one that answers, compare, and switch",
		Long: `Makes the archive of landfall query anew from the log, in a file beside the one that answers
(docs/archive.md). It ends when it has caught up, goes on where it was when it is ended before,
and does nothing but write its own file: nobody is moved, told or asked. "diff" compares, "switch"
lets the new file answer, "rollback" the one before.

Exit status: 0 done, 1 failed, 64 wrong command line, 130 interrupted; of diff: 0 the files are
equal, 1 they differ, 2 failed.`,
		Example: `  landfall rebuild plan --config network.yml
  landfall rebuild run --config network.yml
  landfall rebuild diff --config network.yml
  landfall rebuild switch --config network.yml --why "version 2"`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(
		f.verb("plan", "Show what a rebuild would read and write, and how long it would take", f.plan),
		f.runVerb(),
		f.verb("status", "Show which file answers, which is being made, how far each is, and who writes it", f.status),
		f.diffVerb(),
		f.decision("switch", "Let the new file answer", f.change),
		f.decision("rollback", "Let the file answer that answered before", f.rollback),
	)
	return c
}

func (f *rebuildFlags) verb(use, short string, run func(c *cobra.Command) error) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: exactly(0, ""), RunE: func(c *cobra.Command, _ []string) error { return run(c) }}
	f.archiveFlags.add(c)
	c.Flags().BoolVar(&f.json, "json", false, "JSON, one object a line")
	return c
}

func (f *rebuildFlags) runVerb() *cobra.Command {
	c := f.verb("run", "Make the new file, or go on with it, until it has caught up with the log", f.run)
	c.Long = `Makes the new file, or goes on with it, until it has caught up with the log. Where no archive is
yet, the file answers at once. It stops at a record that cannot be judged (a fact of a newer
version, a signature by an unknown key) and names it; --quarantine leaves it out, which stands in
the bucket audit and in the file. While another process writes the file it is named.`
	c.Flags().Func("quarantine", "leave out the record of transfers at this `SEQ` if the folding must stop there (repeatable)", func(text string) error {
		var seq uint64
		if _, err := fmt.Sscan(text, &seq); err != nil || seq == 0 {
			return fmt.Errorf("want a sequence from 1 on")
		}
		f.quarantine = append(f.quarantine, seq)
		return nil
	})
	c.Flags().BoolVar(&f.live, "live", false, "bring the file that answers up to the log instead, where no host keeps it")
	return c
}

func (f *rebuildFlags) diffVerb() *cobra.Command {
	c := f.verb("diff", "Compare the new file with the one that answers", func(c *cobra.Command) error { return troubled(f.diff(c)) })
	c.Flags().IntVar(&f.keys, "keys", 10, "name at most so many keys of each table")
	return c
}

func (f *rebuildFlags) decision(use, short string, run func(c *cobra.Command) error) *cobra.Command {
	c := f.verb(use, short, run)
	c.Flags().StringVar(&f.who, "who", userName(), "who decides, the user of this machine when left out; stands in the log")
	c.Flags().Lookup("who").DefValue = ""
	c.Flags().StringVar(&f.why, "why", "", "why; stands in the log")
	return c
}

func (f *rebuildFlags) version() archive.Folding {
	if f.folding.Fold == nil {
		return archive.Current
	}
	return f.folding
}

// view is the archive's name in the log when its directory does not say it yet.
func (f *rebuildFlags) view() string {
	if f.config != "" {
		if n, err := network.Load(f.config); err == nil {
			for id, x := range n.Hosts {
				if x.Archive != "" {
					return viewOf(id)
				}
			}
		}
	}
	return viewOf("local")
}

// run makes the new file.
func (f *rebuildFlags) run(c *cobra.Command) error {
	ctx := c.Context()
	dir, err := f.directory()
	if err != nil {
		return err
	}
	return f.within(ctx, func(d deciding) error {
		r := &rebuilding{flags: f, dir: dir, store: d, notes: c.ErrOrStderr()}
		if err := r.prepare(ctx); err != nil {
			return err
		}
		end, err := r.build(ctx)
		if err != nil {
			return err
		}
		return printer{w: c.OutOrStdout(), json: f.json}.print(end)
	})
}

// rebuilding is one run.
type rebuilding struct {
	flags *rebuildFlags
	dir   archive.Directory
	store deciding
	notes io.Writer

	pointer archive.Pointer
	name    string // of the file that is made
	lease   *archive.Lease
}

// prepare finds or makes the file, and takes it.
func (r *rebuilding) prepare(ctx context.Context) error {
	state, err := r.store.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	id := archive.Identity{Network: state.Network, Incarnation: state.Incarnation, Fold: r.flags.version().Version}
	first := false
	r.pointer, err = r.dir.Pointer()
	switch {
	case errors.Is(err, archive.ErrNone):
		r.pointer, first = archive.Pointer{View: r.flags.view(), Network: id.Network}, true
	case err != nil:
		return err
	case r.pointer.Network != id.Network:
		return fmt.Errorf("%s holds the archive of network %q, the log is that of %q", r.dir, r.pointer.Network, id.Network)
	}
	if !first {
		if err := r.choose(ctx, id); err != nil {
			return err
		}
	}
	if r.name == "" {
		if r.name, err = r.dir.Make(ctx, id); err != nil {
			return err
		}
	}
	who := fmt.Sprintf("landfall rebuild run by %s, process %d, since %s", userName(), os.Getpid(), time.Now().UTC().Format(timeForm))
	if r.lease, err = archive.Acquire(ctx, r.store, archive.LeaseKey(r.pointer.View, r.name), who, newID); err != nil {
		return err
	}
	switch {
	case first:
		r.pointer.Live = r.name
	case r.name != r.pointer.Live:
		r.pointer.Shadow = r.name
	}
	return r.dir.Point(r.pointer)
}

// choose finds the file to go on with; none: a new one is to be made.
func (r *rebuilding) choose(ctx context.Context, id archive.Identity) error {
	live, err := archive.OpenReader(ctx, r.dir.File(r.pointer.Live))
	if err != nil {
		return err
	}
	if err := live.Close(); err != nil {
		return err
	}
	switch {
	case live.Identity == id && (r.flags.live || !live.Built && r.pointer.Shadow == ""):
		r.name = r.pointer.Live
		return nil
	case r.flags.live:
		return fmt.Errorf("%s is of another folding or of another log (fold %d, this is %d): make a new file, without --live", r.pointer.Live, live.Fold, id.Fold)
	case r.pointer.Shadow == "":
		return nil
	}
	got, err := r.dir.Identity(ctx, r.pointer.Shadow)
	if err != nil {
		return err
	}
	if got == id {
		r.name = r.pointer.Shadow
		return nil
	}
	return r.dir.Drop(r.pointer.Shadow)
}

// build fills the file, saying how far it is.
func (r *rebuilding) build(ctx context.Context) (rebuildEnd, error) {
	end := rebuildEnd{Kind: "end", File: r.name, Answers: r.pointer.Live == r.name, View: r.pointer.View}
	file, err := archive.Open(ctx, r.dir.File(r.name), "landfall rebuild run by "+userName())
	if err != nil {
		return end, err
	}
	o, err := r.store.opener(ctx)
	if err != nil {
		return end, errors.Join(err, file.Close())
	}
	p := archive.NewProjector(file, archive.Config{
		Log: r.store.Store, Keys: o.keys, Folding: r.flags.folding, Once: true, Quarantine: r.flags.places(), Quarantined: r.quarantined,
	})
	began := time.Now()
	group, running := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(running)
	group.Go(func() error { return r.lease.Hold(running) })
	group.Go(func() error { newMeter(r.notes).watch(running, p); return nil })
	group.Go(func() error {
		defer stop()
		return p.Run(running)
	})
	err = errors.Join(group.Wait(), file.Close())
	now := p.Progress()
	end.Facts, end.Seq, end.Ms = now.Facts, now.Seq, time.Since(began).Milliseconds()
	end.PerSecond = int64(float64(end.Facts) / max(time.Since(began).Seconds(), 1e-9))
	if err == nil {
		err = ctx.Err()
	}
	return end, err
}

func (f *rebuildFlags) places() map[archive.Place]bool {
	out := map[archive.Place]bool{}
	for _, seq := range f.quarantine {
		out[archive.Place{Bucket: events.Transfers, Seq: seq}] = true
	}
	return out
}

// quarantined writes into the log what is left out, before it is.
func (r *rebuilding) quarantined(ctx context.Context, h *archive.Halt) error {
	op, err := r.store.operator()
	if err != nil {
		return err
	}
	return recordAudit(ctx, op, string(operatorID)+".QUARANTINED", &events.Rejected{
		Source: op.Source.String(), Code: h.Code, Subject: h.Bucket.Subject(h.Key), At: h.Seq,
		Detail: fmt.Sprintf("left out of %s (%s) by %s: %s", r.pointer.View, r.name, userName(), h.Reason),
	})
}

// rebuildEnd says what a run did.
type rebuildEnd struct {
	Kind      string `json:"kind"`
	View      string `json:"view"`
	File      string `json:"file"`
	Answers   bool   `json:"answers"` // it is the one that answers
	Facts     uint64 `json:"facts"`   // read by this run
	Seq       uint64 `json:"seq"`
	Ms        int64  `json:"ms"`
	PerSecond int64  `json:"perSecond"`
}

func (e rebuildEnd) String() string {
	text := fmt.Sprintf("%s has caught up: transfers up to %d; %s in %s, %d a second", e.File, e.Seq, plural(e.Facts, "fact"), millis(e.Ms), e.PerSecond)
	if e.Answers {
		return text + "\nit answers landfall query"
	}
	return text + "\ncompare it with `landfall rebuild diff`, let it answer with `landfall rebuild switch`"
}

// files are the names of a pointer, with what they are for.
func files(p archive.Pointer) (out [][2]string) {
	for _, x := range [][2]string{{"answers", p.Live}, {"new", p.Shadow}, {"before", p.Previous}} {
		if x[1] != "" {
			out = append(out, x)
		}
	}
	return out
}

// diff compares.
func (f *rebuildFlags) diff(c *cobra.Command) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	p, err := dir.Pointer()
	if err != nil {
		return err
	}
	if p.Shadow == "" {
		return errors.New("there is no new file to compare: make one with `landfall rebuild run`")
	}
	got, err := archive.Compare(c.Context(), dir.File(p.Live), dir.File(p.Shadow), f.keys)
	if err != nil {
		return err
	}
	if err := (printer{w: c.OutOrStdout(), json: f.json}).print(comparison{p.Live, p.Shadow, got}); err != nil || got.Equal() {
		return err
	}
	return exitWith(statusDifferent, nil)
}

// comparison is what diff prints.
type comparison struct {
	A string `json:"answers"`
	B string `json:"new"`

	archive.Comparison
}

func (x comparison) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (answers) and %s (new), transfers %d to %d", x.A, x.B, x.From, x.At)
	if x.Moved > 0 {
		fmt.Fprintf(&text, "; %s left out that went on since", plural(uint64(x.Moved), "transfer")) //nolint:gosec // a count
	}
	fmt.Fprintf(&text, "\n%-12s %10s %10s %10s %10s %10s  KEYS\n", "TABLE", "ANSWERS", "NEW", "MISSING", "ADDED", "CHANGED")
	for _, t := range x.Tables {
		fmt.Fprintln(&text, strings.TrimRight(fmt.Sprintf("%-12s %10d %10d %10d %10d %10d  %s", t.Table, t.A, t.B, t.OnlyA, t.OnlyB, t.Changed, printable(strings.Join(t.Keys, " "))), " "))
	}
	if x.Equal() {
		return text.String() + "equal"
	}
	return text.String() + "they differ"
}

// change lets the new file answer.
func (f *rebuildFlags) change(c *cobra.Command) error {
	return f.point(c, func(ctx context.Context, d deciding, dir archive.Directory, p archive.Pointer) (archive.Pointer, *events.RebuildSet, error) {
		if p.Shadow == "" {
			return p, nil, errors.New("there is no new file: make one with `landfall rebuild run`")
		}
		fact, err := f.fact(ctx, d, dir, p, p.Shadow)
		return archive.Pointer{View: p.View, Network: p.Network, Live: p.Shadow, Previous: p.Live}, fact, err
	})
}

// rollback lets the file answer that answered before.
func (f *rebuildFlags) rollback(c *cobra.Command) error {
	return f.point(c, func(ctx context.Context, d deciding, dir archive.Directory, p archive.Pointer) (archive.Pointer, *events.RebuildSet, error) {
		if p.Previous == "" {
			return p, nil, errors.New("there is no file that answered before")
		}
		fact, err := f.fact(ctx, d, dir, p, p.Previous)
		if err == nil {
			fact.Back = true
		}
		return archive.Pointer{View: p.View, Network: p.Network, Live: p.Previous, Shadow: p.Live}, fact, err
	})
}

// fact is the decision that a file answers from now on. A file that is not whole does not.
func (f *rebuildFlags) fact(ctx context.Context, d deciding, dir archive.Directory, p archive.Pointer, file string) (*events.RebuildSet, error) {
	state, err := d.Info(ctx, events.Transfers)
	if err != nil {
		return nil, err
	}
	r, err := archive.OpenReader(ctx, dir.File(file))
	if err != nil {
		return nil, err
	}
	hash, err := r.Digest(ctx)
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	switch {
	case !r.Built:
		return nil, fmt.Errorf("%s has not caught up with the log yet: go on with `landfall rebuild run`", file)
	case r.Halted != nil:
		return nil, fmt.Errorf("%s: %s", file, r.Halted.Reason)
	case file == p.Shadow && r.Incarnation != state.Incarnation:
		return nil, fmt.Errorf("%s was made from another log: make it anew with `landfall rebuild run`", file)
	}
	return &events.RebuildSet{View: p.View, File: file, Fold: r.Fold, Was: p.Live, At: r.Positions[events.Transfers].Seq, Hash: hash, Who: f.who, Why: f.why}, nil
}

// point writes a decision into the log, and then acts on it: when this ends in between, the
// same verb again does the rest.
func (f *rebuildFlags) point(c *cobra.Command, decide func(context.Context, deciding, archive.Directory, archive.Pointer) (archive.Pointer, *events.RebuildSet, error)) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	p, err := dir.Pointer()
	if err != nil {
		return err
	}
	return f.within(c.Context(), func(d deciding) error {
		next, fact, err := decide(c.Context(), d, dir, p)
		if err != nil {
			return err
		}
		if now, err := dir.Pointer(); err != nil || now != p {
			return errors.Join(err, errors.New("another process has just changed which file answers: look again with `landfall rebuild status`"))
		}
		o := order{json: f.json}
		if err := o.write(c, d, events.RebuildKey(p.View), fact); err != nil {
			return err
		}
		if err := dir.Point(next); err != nil {
			return err
		}
		return drop(dir, p, next)
	})
}

// drop removes the file that nothing names any more.
func drop(dir archive.Directory, was, is archive.Pointer) error {
	named := files(is)
	for _, x := range files(was) {
		if !slices.ContainsFunc(named, func(y [2]string) bool { return y[1] == x[1] }) {
			if err := dir.Drop(x[1]); err != nil {
				return err
			}
		}
	}
	return nil
}
