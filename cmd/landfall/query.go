package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections/archive"
)

// defaultArchive is where an archive is looked for when nobody says otherwise.
const defaultArchive = "landfall-archive"

// storePatience is how long a question about the archive waits for the log to say how far it is.
const storePatience = 2 * time.Second

// archiveFlags say which archive a verb looks at, and which log it was made from.
type archiveFlags struct {
	storeFlags
	db string
}

func (f *archiveFlags) add(c *cobra.Command) {
	f.storeFlags.add(c)
	c.Flags().StringVar(&f.db, "db", "", "`DIR` of the archive (default: hosts.<id>.archive of --config, else ./"+defaultArchive+")")
}

// find is the directory of the archive.
func (f *archiveFlags) directory() (archive.Directory, error) {
	if f.db != "" {
		return archive.Directory(f.db), nil
	}
	if f.config == "" {
		return defaultArchive, nil
	}
	n, err := network.Load(f.config)
	if err != nil {
		return "", err
	}
	return archiveOf(n)
}

// archiveOf is the one archive that a network.yml names.
func archiveOf(n *network.Network) (archive.Directory, error) {
	var hosts []string
	for id, x := range n.Hosts {
		if x.Archive != "" {
			hosts = append(hosts, id)
		}
	}
	slices.Sort(hosts)
	switch len(hosts) {
	case 0:
		return "", errors.New("no host of this network.yml has an archive: set hosts.<id>.archive, or name a directory with --db")
	case 1:
		return archive.Directory(n.File(n.Hosts[hosts[0]].Archive)), nil
	}
	return "", usageError("the hosts %s each keep an archive: name the directory of one with --db", strings.Join(hosts, ", "))
}

// queryFlags are the command line of query.
type queryFlags struct {
	archiveFlags
	server, region string
	since, until   string
	limit          int
	timeout        time.Duration
	json           bool
}

func newQuery() *cobra.Command {
	var f queryFlags
	c := &cobra.Command{
		Use:   "query",
		Short: "Ask the archive: named reports, or SQL that only reads",
		Long: `Asks the archive, the SQLite file that a host with hosts.<id>.archive keeps up with the log
(docs/archive.md): one of the reports below, or any SQL that only reads. Times are of the request
unless a report says otherwise. On stderr stands how far the archive is, and how far behind the log
when the log can be asked.

Exit status: 0 done, 1 failed, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall query failures --since 24h
  landfall query servers --region spawn --json
  landfall query player Steve
  landfall query sql "SELECT origin, count(*) FROM transfers GROUP BY origin"
  landfall query schema`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	for _, r := range archive.Reports {
		c.AddCommand(f.report(r))
	}
	c.AddCommand(f.sql(), f.schema())
	return c
}

func (f *queryFlags) bounds(c *cobra.Command) {
	f.add(c)
	c.Flags().IntVar(&f.limit, "limit", 1000, "at most so many rows, up to 100000")
	c.Flags().DurationVar(&f.timeout, "timeout", 10*time.Second, "give up after this time, up to 10m")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
}

// report is the verb of one named report.
func (f *queryFlags) report(r archive.Report) *cobra.Command {
	c := &cobra.Command{
		Use: strings.TrimSpace(r.Name + " " + r.Who), Short: "Show " + r.Short,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, func(about archive.About) (archive.Question, error) {
				filter := archive.Filter{Who: strings.Join(args, ""), Server: f.server, Region: f.region}
				err := f.window(&filter, about)
				return archive.Question{SQL: r.SQL, Args: filter.Args()}, err
			})
		},
	}
	c.Args = exactly(0, "")
	if r.Who != "" {
		c.Args = exactly(1, r.Who)
	}
	f.bounds(c)
	c.Flags().StringVar(&f.server, "server", "", "only this server")
	c.Flags().StringVar(&f.region, "region", "", "only this region")
	c.Flags().StringVar(&f.since, "since", "", "from a length before the newest fact in the archive (24h), or an RFC 3339 time")
	c.Flags().StringVar(&f.until, "until", "", "up to such a time, which is not included")
	return c
}

// window puts the bounds of the command line into a filter.
func (f *queryFlags) window(filter *archive.Filter, about archive.About) error {
	for _, end := range []struct {
		flag, text string
		of         *time.Time
	}{{"since", f.since, &filter.Since}, {"until", f.until, &filter.Until}} {
		b, err := parseBound(end.flag, end.text)
		switch {
		case err != nil:
			return err
		case b.bySeq():
			return usageError("--%s %s: want a length such as 24h, or an RFC 3339 time", end.flag, end.text)
		case b.set:
			*end.of = b.time(events.StreamState{Clock: about.Positions[events.Transfers].Stored.UnixNano()})
		}
	}
	return nil
}

func (f *queryFlags) sql() *cobra.Command {
	c := &cobra.Command{
		Use: "sql STATEMENT", Short: "Run one SQL statement that only reads", Args: exactly(1, "one SQL statement"),
		Long: `Runs one SQL statement on the archive, in SQLite's dialect. Nothing but reading is possible.
"landfall query schema" shows the tables; times are Unix milliseconds.`,
		Example: `  landfall query sql "SELECT code, count(*) FROM transfers GROUP BY code" --json`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c, func(archive.About) (archive.Question, error) { return archive.Question{SQL: args[0]}, nil })
		},
	}
	f.bounds(c)
	return c
}

func (f *queryFlags) schema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Show the tables of the archive, and what their columns mean", Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(c.OutOrStdout(), archive.Schema())
			return err
		},
	}
}

// run asks one question of the archive that answers.
func (f *queryFlags) run(c *cobra.Command, question func(archive.About) (archive.Question, error)) error {
	if f.limit < 1 || f.limit > 100_000 {
		return usageError("--limit %d: want 1 to 100000", f.limit)
	}
	if f.timeout <= 0 || f.timeout > 10*time.Minute {
		return usageError("--timeout %s: want more than 0, up to 10m", f.timeout)
	}
	dir, err := f.directory()
	if err != nil {
		return err
	}
	ctx := c.Context()
	r, _, err := dir.Open(ctx)
	if errors.Is(err, archive.ErrNone) {
		return fmt.Errorf("%w: a host with hosts.<id>.archive keeps one (docs/archive.md); name its directory with --db", err)
	}
	if err != nil {
		return err
	}
	q, err := question(r.About)
	if err != nil {
		return errors.Join(err, r.Close())
	}
	q.Rows, q.Time = f.limit, f.timeout
	out := bufio.NewWriter(c.OutOrStdout())
	err = errors.Join(f.answer(ctx, r, q, out, c.ErrOrStderr()), out.Flush())
	return errors.Join(err, r.Close())
}

func (f *queryFlags) answer(ctx context.Context, r *archive.Reader, q archive.Question, out, notes io.Writer) error {
	t := &table{}
	row := t.add
	if f.json {
		row = func(values []any) error { return t.json(out, values) }
	}
	more, err := r.Ask(ctx, q, func(names []string) error { t.columns = names; return nil }, row)
	if err != nil {
		return fmt.Errorf("query: %w", err)
	}
	end := queryEnd{Kind: "end", Rows: t.count, More: more, Archive: r.About, Log: f.logEnd(ctx, r.About)}
	if f.json {
		return printer{w: out, json: true}.print(end)
	}
	if err := t.print(out); err != nil {
		return err
	}
	fmt.Fprintln(notes, end)
	return nil
}

// queryEnd says what the rows are worth.
type queryEnd struct {
	Kind    string        `json:"kind"`
	Rows    int           `json:"rows"`
	More    bool          `json:"more"` // there were more than --limit
	Archive archive.About `json:"archive"`
	Log     logEnd        `json:"log"`
}

// logEnd is where the log ends, as far as it could be asked.
type logEnd struct {
	Seq      uint64 `json:"seq,omitempty"`
	Behind   uint64 `json:"behind"`   // how many sequences the archive is behind
	BehindMs int64  `json:"behindMs"` // how long ago the log held no more than the archive does; 0 when nothing is missing
	Error    string `json:"error,omitempty"`
}

func (e queryEnd) String() string {
	text := plural(e.Rows, "row")
	if e.More {
		text += ", and more than --limit lets through"
	}
	return text + "\n" + standOf(e.Archive, e.Log)
}

// standOf says how far an archive is.
func standOf(a archive.About, log logEnd) string {
	at := a.Positions[events.Transfers]
	var text strings.Builder
	text.WriteString(fmt.Sprintf("archive: fold %d, transfers up to sequence %d", a.Fold, at.Seq))
	if !at.Stored.IsZero() {
		text.WriteString(" (stored " + at.Stored.Format(timeForm) + ")")
	}
	switch {
	case log.Error != "":
		text.WriteString("; the log was not asked: " + log.Error)
	case log.Behind > 0:
		text.WriteString(fmt.Sprintf("; %s behind the log", plural(log.Behind, "fact")))
		if log.BehindMs > 0 {
			text.WriteString(", by " + millis(log.BehindMs))
		}
	default:
		text.WriteString("; as far as the log")
	}
	if a.Halted != nil {
		text.WriteString("\n" + a.Halted.Reason)
	}
	for _, g := range a.Gaps {
		text.WriteString(fmt.Sprintf("\nhistory missing: sequences %d to %d of %s (retention had removed them before they were read)", g.First, g.Last, g.Bucket))
	}
	return text.String()
}

// logEnd asks the log where it ends. Whatever is in the way is said, and no failure.
func (f *archiveFlags) logEnd(ctx context.Context, a archive.About) logEnd {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	store, err := f.running(ctx)
	if err != nil {
		return logEnd{Error: oneLine(err)}
	}
	state, err := store.Info(ctx, events.Transfers)
	if err = errors.Join(err, store.Close()); err != nil {
		return logEnd{Error: oneLine(err)}
	}
	return behind(a, state)
}

// running connects to the store, if anybody serves it.
func (f *archiveFlags) running(ctx context.Context) (*reader, error) {
	src, err := f.find(os.Getenv)
	if err != nil {
		return nil, err
	}
	if src.dir != "" && src.holder() == nil {
		return nil, fmt.Errorf("store %s is not running", src)
	}
	return src.open(ctx, nil)
}

// behind holds an archive against its log.
func behind(a archive.About, s events.StreamState) logEnd {
	if s.Incarnation != a.Incarnation {
		return logEnd{Error: "the log is not the one that this archive was made from: see landfall rebuild"}
	}
	at := a.Positions[events.Transfers]
	end := logEnd{Seq: s.Last}
	if s.Last > at.Seq {
		end.Behind = s.Last - at.Seq
		if !at.Stored.IsZero() {
			end.BehindMs = max(clockOf(s).Sub(at.Stored).Milliseconds(), 0)
		}
	}
	return end
}
