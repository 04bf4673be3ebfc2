package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

// diffFlags are the command line of diff.
type diffFlags struct {
	storeFlags
	of   []string
	json bool
}

func newDiff() *cobra.Command {
	var f diffFlags
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what changed in the network between two moments",
		Long: `Shows what differs between the states of the log at A and at B, as "landfall state" shows them:
+ what is there at B alone, - what was there at A alone, ~ what changed, field by field. A and B
are each a length before now (10m), a sequence of transfers, or an RFC 3339 time; "now" is the end.
Ages are left out: they differ always.

Exit status: 0 the two are equal, 1 they differ, 2 failed, 3 a sequence is not held,
64 wrong command line, 130 interrupted.`,
		Example: `  landfall diff 10m now
  landfall diff 81234 81300 --of transfers,line --json
  landfall diff 2026-01-31T15:00:00Z 2026-01-31T15:05:00Z --from-file january.landfall`,
		Args: exactly(2, "two moments"),
		RunE: func(c *cobra.Command, args []string) error {
			return troubled(f.reading(c.Context(), func(log history, o *opener) error {
				out := bufio.NewWriter(c.OutOrStdout())
				return errors.Join(f.show(c.Context(), log, o, args, out), out.Flush())
			}))
		},
	}
	f.add(c)
	f.addFile(c)
	f.addTo(c)
	return c
}

func (f *diffFlags) addTo(c *cobra.Command) {
	c.Flags().StringSliceVar(&f.of, "of", []string{"transfers", "line", "sessions", "control"}, "which `STATES`: of "+topicNames()+" (repeatable)")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
}

func topicNames() string {
	var names []string
	for _, t := range topics() {
		names = append(names, t.name)
	}
	return strings.Join(names, ", ")
}

func topicOf(name string) (topic, error) {
	for _, t := range topics() {
		if t.name == name {
			return t, nil
		}
	}
	return topic{}, usageError("there is no state %q: want one of %s", name, topicNames())
}

func (f *diffFlags) show(ctx context.Context, log history, o *opener, args []string, stdout io.Writer) error {
	var chosen []topic
	for _, name := range f.of {
		t, err := topicOf(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, t)
	}
	var at [2]*frozen
	for i, arg := range args {
		m, err := parseMoment([]string{"A", "B"}[i], strings.TrimPrefix(arg, "now"), events.Transfers)
		if err != nil {
			return err
		}
		if at[i], err = freeze(ctx, log, o, m); err != nil {
			return err
		}
	}
	out, count := printer{w: stdout, json: f.json}, 0
	for _, t := range chosen {
		changes, err := compare(t, at[0], at[1])
		if err != nil {
			return err
		}
		count += len(changes)
		for _, c := range changes {
			if err := out.print(c); err != nil {
				return err
			}
		}
	}
	if err := out.print(diffEnd{Kind: "end", Changes: count, A: at[0].At, B: at[1].At}); err != nil || count == 0 {
		return err
	}
	return exitWith(statusDifferent, nil) // what differs stands on the screen
}

// troubled gives a failure without a status of its own the one that diff(1) has for it.
func troubled(err error) error {
	if statusOf(err) != statusFailed || errors.As(err, new(*exitError)) {
		return err
	}
	return exitWith(statusTrouble, err)
}

// stateChange is one entity that differs between two states.
type stateChange struct {
	Kind   string        `json:"kind"` // appeared, vanished or changed
	State  string        `json:"state"`
	Entity string        `json:"entity"`
	Fields []fieldChange `json:"fields,omitempty"` // of a change, by name

	row string
}

// fieldChange is one value that differs.
type fieldChange struct {
	Name string          `json:"name"`
	A    json.RawMessage `json:"a"` // null: not there
	B    json.RawMessage `json:"b"`
}

func (c stateChange) String() string {
	switch c.Kind {
	case "appeared":
		return "+ " + c.State + "  " + c.row
	case "vanished":
		return "- " + c.State + "  " + c.row
	}
	parts := make([]string, len(c.Fields))
	for i, f := range c.Fields {
		parts[i] = fmt.Sprintf("%s %s -> %s", f.Name, f.A, f.B)
	}
	return printable("~ " + c.State + "  " + c.Entity + ": " + strings.Join(parts, ", "))
}

type diffEnd struct {
	Kind    string                       `json:"kind"`
	Changes int                          `json:"changes"`
	A       map[events.Bucket]standpoint `json:"a"`
	B       map[events.Bucket]standpoint `json:"b"`
}

func (e diffEnd) String() string {
	text := "no difference"
	if e.Changes > 0 {
		text = plural(e.Changes, "difference")
	}
	return fmt.Sprintf("%s between transfers %d and %d", text, e.A[events.Transfers].Seq, e.B[events.Transfers].Seq)
}

// compare lists what differs in one topic, by entity.
func compare(t topic, a, b *frozen) ([]stateChange, error) {
	was, is := byEntity(t.rows(a)), byEntity(t.rows(b))
	entities := map[string]bool{}
	for _, side := range []map[string]stateRow{was, is} {
		for name := range side {
			entities[name] = true
		}
	}
	var out []stateChange
	for _, name := range slices.Sorted(maps.Keys(entities)) {
		c := stateChange{State: t.name, Entity: name}
		x, before := was[name]
		y, after := is[name]
		switch {
		case !before:
			c.Kind, c.row = "appeared", strings.TrimSpace(y.String())
		case !after:
			c.Kind, c.row = "vanished", strings.TrimSpace(x.String())
		default:
			fields, err := compareFields(x, y)
			if err != nil {
				return nil, err
			}
			if c.Kind, c.Fields = "changed", fields; len(fields) == 0 {
				continue
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func byEntity(rows []stateRow) map[string]stateRow {
	out := make(map[string]stateRow, len(rows))
	for _, r := range rows {
		out[r.entity()] = r
	}
	return out
}

// aging are the fields that differ between any two moments.
var aging = []string{"ageMs", "waitedMs", "etaMs"}

func compareFields(x, y stateRow) ([]fieldChange, error) {
	a, err := fieldsOf(x)
	if err != nil {
		return nil, err
	}
	b, err := fieldsOf(y)
	if err != nil {
		return nil, err
	}
	names := a
	for name := range b {
		if _, ok := names[name]; !ok {
			names[name] = json.RawMessage("null")
		}
	}
	var out []fieldChange
	for _, name := range slices.Sorted(maps.Keys(names)) {
		now, ok := b[name]
		if !ok {
			now = json.RawMessage("null")
		}
		if string(a[name]) != string(now) && !slices.Contains(aging, name) {
			out = append(out, fieldChange{Name: name, A: a[name], B: now})
		}
	}
	return out, nil
}

// fieldsOf are the fields of a row as its JSON has them; those of an object inside it are
// named "<object>.<field>".
func fieldsOf(r stateRow) (map[string]json.RawMessage, error) {
	raw, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	out := map[string]json.RawMessage{}
	return out, flatten(out, "", raw)
}

func flatten(out map[string]json.RawMessage, name string, raw json.RawMessage) error {
	if raw[0] != '{' {
		out[name] = raw
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}
	for field, value := range fields {
		if err := flatten(out, strings.TrimPrefix(name+"."+field, "."), value); err != nil {
			return err
		}
	}
	return nil
}
