package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

// topic is one of the states that can be looked at.
type topic struct {
	name   string
	short  string
	bucket events.Bucket // whose sequences --as-of counts
	header string
	rows   func(f *frozen) []stateRow
}

// stateRow is one entity of a state.
type stateRow interface {
	fmt.Stringer
	// entity names it, the same in every state.
	entity() string
}

func topics() []topic {
	return []topic{
		{"fleet", "the last heartbeat of every host", events.Fleet, fleetHeader, fleetRows},
		{"line", "who waits, in the order of their places", events.Transfers, lineHeader, lineRows},
		{"sessions", "who is connected, where, and who holds them", events.Sessions, sessionsHeader, sessionRows},
		{"transfers", "the transfers under way", events.Transfers, transfersHeader, transferRows},
		{"control", "what operators decided that holds", events.Control, controlHeader, controlRows},
	}
}

// stateFlags are the command line of state.
type stateFlags struct {
	storeFlags
	asOf string
	json bool
}

func newState() *cobra.Command {
	var f stateFlags
	c := &cobra.Command{
		Use:   "state",
		Short: "Show the network as the log has it, now or at a moment of the past",
		Long: `Shows one part of the network's state: the log folded as every dispatcher folds it, up to its
end, or with --as-of up to a sequence or a time. A sequence is one of the bucket that the part
comes from (fleet, sessions and control have their own, line and transfers are of transfers);
a time is UTC unless it says otherwise, on the streams' clocks. On stderr stands which sequence
of each bucket was taken. Ages are counted back from that moment.

The state now is read as a host begins: the newest fact of each key, and the history of what is
not over. How fast the line moves is not in there, so ETA is unknown until a moment is asked for,
--as-of 0s for the last one: that reads everything before it.

Retention bounds how far back it goes: what began before the first fact held is not there.

Exit status: 0 done, 1 failed, 3 that sequence is not held, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall state line
  landfall state transfers --as-of 81234 --json
  landfall state fleet --as-of 2026-01-31T15:04:05Z
  landfall state sessions --from-file november.landfall`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	for _, t := range topics() {
		c.AddCommand(f.verb(t))
	}
	return c
}

func (f *stateFlags) verb(t topic) *cobra.Command {
	c := &cobra.Command{
		Use: t.name, Short: "Show " + t.short, Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), t, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f.add(c)
	f.addFile(c)
	c.Flags().StringVar(&f.asOf, "as-of", "", "the state `AT`: a length before now (10m), a sequence, or an RFC 3339 time")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
	return c
}

func (f *stateFlags) run(ctx context.Context, t topic, stdout, stderr io.Writer) error {
	m, err := parseMoment("--as-of", f.asOf, t.bucket)
	if err != nil {
		return err
	}
	return f.reading(ctx, func(log history, o *opener) error {
		out := bufio.NewWriter(stdout)
		return errors.Join(showState(ctx, log, o, t, m, printer{w: out, json: f.json}, stderr), out.Flush())
	})
}

func parseMoment(name, text string, b events.Bucket) (moment, error) {
	at, err := parseBound(name, text)
	return moment{bucket: b, bound: at}, err
}

func showState(ctx context.Context, log history, o *opener, t topic, m moment, out printer, notes io.Writer) error {
	f, err := freeze(ctx, log, o, m)
	if err != nil {
		return err
	}
	fmt.Fprintln(notes, f.taken(t.bucket))
	if !out.json {
		fmt.Fprintln(out.w, t.header)
	}
	rows := t.rows(f)
	for _, r := range rows {
		if err := out.print(r); err != nil {
			return err
		}
	}
	if !out.json {
		return nil
	}
	return out.print(stateEnd{Kind: "end", State: t.name, Count: len(rows), At: f.At})
}

// taken says which state was shown.
func (f *frozen) taken(first events.Bucket) string {
	buckets := slices.Clone(viewBuckets)
	slices.SortStableFunc(buckets, func(a, b events.Bucket) int {
		return cmp.Compare(b2i(a != first), b2i(b != first))
	})
	parts := make([]string, len(buckets))
	for i, b := range buckets {
		parts[i] = fmt.Sprintf("%s %d", b, f.At[b].Seq)
	}
	return fmt.Sprintf("as of %s: %s", f.At[first].Time.UTC().Format(timeForm), strings.Join(parts, ", "))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

type stateEnd struct {
	Kind  string                       `json:"kind"`
	State string                       `json:"state"`
	Count int                          `json:"count"`
	At    map[events.Bucket]standpoint `json:"at"`
}

func (e stateEnd) String() string { return plural(e.Count, "row") }
