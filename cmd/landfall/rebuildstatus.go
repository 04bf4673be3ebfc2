package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/projections/archive"
)

// planSample is how many facts a plan folds to know the rate.
const planSample = 20_000

// plan says what a rebuild would do, and does none of it.
func (f *rebuildFlags) plan(c *cobra.Command) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	o, err := newOpener(src.trust)
	if err != nil {
		return err
	}
	if o.keys == nil {
		return errors.New("facts are verified when they are folded, and no secret is at hand: give --config network.yml, or set RTP_NET_SECRET")
	}
	store, err := src.open(c.Context(), nil)
	if err != nil {
		return err
	}
	if err := o.know(c.Context(), store); err != nil {
		return errors.Join(err, store.Close())
	}
	p, err := f.measure(c.Context(), dir, store, o)
	if err = errors.Join(err, store.Close()); err != nil {
		return err
	}
	return printer{w: c.OutOrStdout(), json: f.json}.print(p)
}

// rebuildPlan is what a rebuild would read and write.
type rebuildPlan struct {
	Kind      string `json:"kind"`
	Answers   string `json:"answers,omitempty"` // the file that answers now
	Fold      int    `json:"fold"`              // of the file that would be made
	Resumes   string `json:"resumes,omitempty"` // the file that it would go on with
	From      uint64 `json:"from"`
	To        uint64 `json:"to"`
	Facts     uint64 `json:"facts"`
	Bytes     uint64 `json:"bytes"`     // of records, about
	PerSecond uint64 `json:"perSecond"` // measured, 0: nothing to measure
	EtaMs     int64  `json:"etaMs"`
	Effects   string `json:"sideEffects"`
}

func (p rebuildPlan) String() string {
	var text strings.Builder
	if p.Answers == "" {
		fmt.Fprintln(&text, "no archive yet: the new file would answer at once")
	} else {
		fmt.Fprintf(&text, "%s answers, and goes on answering until `landfall rebuild switch`\n", p.Answers)
	}
	if p.Resumes != "" {
		fmt.Fprintf(&text, "goes on with %s\n", p.Resumes)
	}
	fmt.Fprintf(&text, "fold %d, transfers %d to %d: %s, about %d bytes\n", p.Fold, p.From, p.To, plural(p.Facts, "fact"), p.Bytes)
	if p.PerSecond > 0 {
		fmt.Fprintf(&text, "about %s (%d facts a second, measured)\n", millis(p.EtaMs), p.PerSecond)
	}
	return text.String() + "side effects: " + p.Effects
}

func (f *rebuildFlags) measure(ctx context.Context, dir archive.Directory, store *reader, o *opener) (rebuildPlan, error) {
	plan := rebuildPlan{Kind: "plan", Fold: f.version().Version, Effects: "none: it writes its own file, its lease, and what is quarantined into audit"}
	state, err := store.Info(ctx, events.Transfers)
	if err != nil {
		return plan, err
	}
	plan.From, plan.To = max(state.First, 1), state.Last
	id := archive.Identity{Network: state.Network, Incarnation: state.Incarnation, Fold: plan.Fold}
	p, err := dir.Pointer()
	if err != nil && !errors.Is(err, archive.ErrNone) {
		return plan, err
	}
	plan.Answers = p.Live
	if p.Shadow != "" {
		r, err := archive.OpenReader(ctx, dir.File(p.Shadow))
		if err != nil {
			return plan, err
		}
		if r.Identity == id {
			plan.Resumes, plan.From = p.Shadow, r.Positions[events.Transfers].Seq+1
		}
		if err := r.Close(); err != nil {
			return plan, err
		}
	}
	if plan.To >= plan.From {
		plan.Facts = plan.To - plan.From + 1
	}
	if plan.Facts == 0 {
		return plan, nil
	}
	return plan, f.sample(ctx, &plan, id, state, store, o)
}

// sample folds the first facts into a file that is thrown away.
func (f *rebuildFlags) sample(ctx context.Context, plan *rebuildPlan, id archive.Identity, state events.StreamState, store *reader, o *opener) error {
	temp, err := os.MkdirTemp("", "landfall-plan-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	path := filepath.Join(temp, "sample.db")
	if err := archive.Create(ctx, path, id); err != nil {
		return err
	}
	file, err := archive.Open(ctx, path, "plan")
	if err != nil {
		return err
	}
	weighed := &weighing{Tailer: store}
	upTo := min(state.Last, max(state.First, 1)+planSample-1)
	p := archive.NewProjector(file, archive.Config{Log: weighed, Keys: o.keys, Folding: f.folding, UpTo: upTo})
	began := time.Now()
	err = errors.Join(p.Run(ctx), file.Close())
	var h *archive.Halt
	if errors.As(err, &h) {
		err = nil // the run will say it
	}
	if n := p.Progress().Facts; err == nil && n > 0 {
		plan.PerSecond = uint64(float64(n) / max(time.Since(began).Seconds(), 1e-6))
		plan.EtaMs = int64(float64(plan.Facts) / float64(max(plan.PerSecond, 1)) * 1000)
		plan.Bytes = weighed.bytes.Load() / max(weighed.records.Load(), 1) * plan.Facts
	}
	return err
}

// weighing counts what a tail delivers.
type weighing struct {
	projections.Tailer
	records, bytes atomic.Uint64
}

func (w *weighing) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	return w.Tailer.Tail(ctx, b, from, weighed{f, w})
}

type weighed struct {
	events.Follower
	by *weighing
}

func (w weighed) Record(r events.Record) error {
	n := len(r.Body) + len(r.Key)
	for k, v := range r.Header {
		n += len(k) + len(v) + 4
	}
	w.by.records.Add(1)
	w.by.bytes.Add(uint64(n)) //nolint:gosec // a length
	return w.Follower.Record(r)
}

// rebuildStatus is how a directory stands.
type rebuildStatus struct {
	Kind  string       `json:"kind"`
	View  string       `json:"view"`
	Files []fileStatus `json:"files"`
	Log   string       `json:"log,omitempty"` // why the log could not be asked
}

// fileStatus is how one file stands.
type fileStatus struct {
	Role string `json:"role"` // answers, new, before
	File string `json:"file"`

	archive.About
	Log    logEnd `json:"log"`
	Holder string `json:"holder,omitempty"` // who writes it now
}

func (s rebuildStatus) String() string {
	var text strings.Builder
	text.WriteString(s.View)
	for _, f := range s.Files {
		text.WriteString(fmt.Sprintf("\n%-8s %s\n         %s", f.Role, f.File, strings.ReplaceAll(standOf(f.About, f.Log), "\n", "\n         ")))
		switch {
		case f.Holder != "":
			text.WriteString("\n         written by " + f.Holder)
		case f.Log.Error == "":
			text.WriteString("\n         nobody writes it")
		}
		if !f.Built {
			text.WriteString("\n         has not caught up with the log yet")
		}
	}
	return printableLines(text.String())
}

// printableLines is printable, line by line.
func printableLines(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return strings.Join(lines, "\n")
}

func (f *rebuildFlags) status(c *cobra.Command) error {
	dir, err := f.directory()
	if err != nil {
		return err
	}
	p, err := dir.Pointer()
	if err != nil {
		return err
	}
	s := rebuildStatus{Kind: "status", View: p.View}
	state, holders, why := f.ask(c.Context(), p)
	s.Log = why
	for _, x := range files(p) {
		r, err := archive.OpenReader(c.Context(), dir.File(x[1]))
		if err != nil {
			return err
		}
		st := fileStatus{Role: x[0], File: x[1], About: r.About, Log: logEnd{Error: why}, Holder: holders[x[1]]}
		if why == "" {
			st.Log = behind(r.About, state)
		}
		s.Files = append(s.Files, st)
		if err := r.Close(); err != nil {
			return err
		}
	}
	return printer{w: c.OutOrStdout(), json: f.json}.print(s)
}

// ask asks the log where it ends, and who writes which file. why: it could not be asked.
func (f *rebuildFlags) ask(ctx context.Context, p archive.Pointer) (state events.StreamState, holders map[string]string, why string) {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	store, err := f.running(ctx)
	if err != nil {
		return state, nil, oneLine(err)
	}
	holders = map[string]string{}
	state, err = store.Info(ctx, events.Transfers)
	for _, x := range files(p) {
		if err == nil {
			holders[x[1]], err = archive.Held(ctx, store, archive.LeaseKey(p.View, x[1]))
		}
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return state, nil, oneLine(err)
	}
	return state, holders, ""
}

// recordAudit appends a finding to the bucket audit.
func recordAudit(ctx context.Context, op actors.Operator, key string, f *events.Rejected) error {
	last, _, err := op.Log.Last(ctx, events.Audit, key)
	if err != nil {
		return err
	}
	m, err := events.Seal(op.Keys, events.Envelope{ID: op.NewID(), Source: op.Source, Time: op.Now(), Key: key, Prev: last.Seq}, f)
	if err != nil {
		return err
	}
	_, err = op.Log.Append(ctx, m)
	return err
}
