package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// whatifFlags are the command line of whatif.
type whatifFlags struct {
	storeFlags
	policy       string
	since, until string
	all, json    bool
}

func newWhatif() *cobra.Command {
	var f whatifFlags
	c := &cobra.Command{
		Use:   "whatif --policy FILE",
		Short: "Choose again, under another policy, what was chosen in the past",
		Long: `Scores the choices in the log again under the policy of another network.yml (its loadBalancer
and routing.prefer are all that counts, and all it need hold), and tells what would have changed:
how many players would have been sent elsewhere, and how many each server would have got.

It sees what was recorded: the best candidates as they were under the policy of that time (at
most 8), and of their values only those that had a weight then. What the new policy wants to know
and the record does not tell counts for nothing, and is named.

Exit status: 0 told, 1 failed, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall whatif --policy new.yml --since 24h
  landfall whatif --policy new.yml --from-file november.landfall --json`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			w, err := f.plan()
			if err != nil {
				return err
			}
			return f.reading(c.Context(), func(log history, o *opener) error {
				out := bufio.NewWriter(c.OutOrStdout())
				return errors.Join(w.run(c.Context(), log, o, printer{w: out, json: f.json}, c.ErrOrStderr()), out.Flush())
			})
		},
	}
	f.add(c)
	f.addFile(c)
	f.addTo(c)
	return c
}

func (f *whatifFlags) addTo(c *cobra.Command) {
	c.Flags().StringVar(&f.policy, "policy", "", "`FILE` with the policy to try: a network.yml, or its loadBalancer part")
	c.Flags().StringVar(&f.since, "since", "", "begin `AT`: a length before now (10m), a sequence, or an RFC 3339 time")
	c.Flags().StringVar(&f.until, "until", "", "end `AT`: a length before now, a sequence (included), or an RFC 3339 time (excluded)")
	c.Flags().BoolVar(&f.all, "all", false, "also list the choices that stay as they were")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
}

func (f *whatifFlags) plan() (*whatif, error) {
	if f.policy == "" {
		return nil, usageError("--policy FILE is missing: a network.yml, or a file with its loadBalancer part alone")
	}
	w := &whatif{all: f.all, sum: whatifSum{Kind: "end", From: map[events.HostID]int{}, To: map[events.HostID]int{}}, unknown: map[string]bool{}}
	var err error
	if w.policy, err = readPolicy(f.policy); err != nil {
		return nil, err
	}
	if w.window.since, err = parseBound("--since", f.since); err != nil {
		return nil, err
	}
	w.window.until, err = parseBound("--until", f.until)
	return w, err
}

func readPolicy(path string) (actors.Policy, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return actors.Policy{}, fmt.Errorf("--policy: %w", err)
	}
	n, err := network.Parse(path, text)
	if err != nil {
		return actors.Policy{}, err
	}
	return policyOf(n)
}

// whatif scores recorded choices again.
type whatif struct {
	policy  actors.Policy
	window  window
	all     bool
	unknown map[string]bool
	sum     whatifSum
}

// whatifSum is what would have changed.
type whatifSum struct {
	Kind    string                `json:"kind"`
	Policy  string                `json:"policy"`
	Choices int                   `json:"choices"`
	Changed int                   `json:"changed"`
	From    map[events.HostID]int `json:"from"`    // how often each server was chosen
	To      map[events.HostID]int `json:"to"`      // how often it would have been
	Unknown []string              `json:"unknown"` // inputs that the policy weighs and the log does not tell
}

// String is the sum as lines.
func (s whatifSum) String() string {
	rows := [][]string{{"SERVER", "WAS", "WOULD BE"}}
	servers := maps.Clone(s.From)
	maps.Copy(servers, s.To)
	for _, id := range slices.Sorted(maps.Keys(servers)) {
		rows = append(rows, []string{string(id), fmt.Sprint(s.From[id]), fmt.Sprint(s.To[id])})
	}
	text := fmt.Sprintf("%d of %s would have been another one under %s\n%s", s.Changed, plural(s.Choices, "choice"), s.Policy, strings.Join(aligned(rows), "\n"))
	if len(s.Unknown) > 0 {
		text += "\nnot recorded, and left out: " + strings.Join(s.Unknown, ", ")
	}
	return text
}

// whatifRow is one choice that was made again.
type whatifRow struct {
	Kind     string             `json:"kind"`
	Seq      uint64             `json:"seq"`
	Transfer events.TransferID  `json:"transfer"`
	Was      events.Candidate   `json:"was"`
	Would    events.Candidate   `json:"would"`
	Scores   []events.Candidate `json:"scores"` // of all candidates, best first
}

func (r whatifRow) String() string {
	return printable(fmt.Sprintf("%8d  %s  %-20s -> %-20s  (%.4f against %.4f)", r.Seq, r.Transfer, place(r.Was), place(r.Would), r.Would.Score, r.scoreOf(r.Was)))
}

func place(c events.Candidate) string { return string(c.Server) + " " + c.Region }

// scoreOf is what the choice of that time scores now.
func (r whatifRow) scoreOf(was events.Candidate) float64 {
	i := slices.IndexFunc(r.Scores, func(c events.Candidate) bool { return place(c) == place(was) })
	if i < 0 {
		return 0
	}
	return r.Scores[i].Score
}

func (w *whatif) run(ctx context.Context, log history, o *opener, out printer, notes io.Writer) error {
	state, err := log.Info(ctx, events.Transfers)
	if err != nil {
		return err
	}
	if gone := w.window.gone(events.Transfers, state); gone != "" {
		fmt.Fprintln(notes, gone)
	}
	span := w.window.span(state)
	reserved := events.TypeName(&events.Reserved{})
	for rec, err := range log.History(ctx, events.Transfers, span) {
		if err != nil {
			return err
		}
		if rec.Header[events.HeaderType] != reserved {
			continue
		}
		if r := o.open(rec); r.verified != forged && !r.undecodable() {
			if err := w.again(r, out); err != nil {
				return err
			}
		}
	}
	w.sum.Policy, w.sum.Unknown = w.policy.Name(), append([]string{}, slices.Sorted(maps.Keys(w.unknown))...)
	return out.print(w.sum)
}

// again makes one choice again, and shows it when it comes out differently.
func (w *whatif) again(r reading, out printer) error {
	f, ok := r.event.Fact.(*events.Reserved)
	if !ok || len(f.Decision.Candidates) == 0 {
		return nil
	}
	scored := w.policy.Rescore(f.Decision)
	for _, name := range scored.Unknown {
		w.unknown[name] = true
	}
	was, would := f.Decision.Candidates[0], scored.Candidates[0]
	w.sum.Choices++
	w.sum.From[was.Server]++
	w.sum.To[would.Server]++
	same := place(was) == place(would)
	if !same {
		w.sum.Changed++
	}
	if same && !w.all {
		return nil
	}
	return out.print(whatifRow{Kind: "choice", Seq: r.Seq, Transfer: r.transfer(), Was: was, Would: would, Scores: scored.Candidates})
}
