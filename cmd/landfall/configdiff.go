package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
)

// Exit statuses of `config diff` and `diff`, as of diff(1).
const (
	statusDifferent = 1
	statusTrouble   = 2
)

func newConfigDiff() *cobra.Command {
	var asJSON bool
	var live networkFlags
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two files: what a running host takes on at SIGHUP, and what needs a restart",
		Long: `Compares two files as they hold: how they are written, and defaults that one of them spells out,
are no difference. The files of messages and permissions are not read.

With --network there is one file (network.yml when left out), and the other is the network: the
keys in which what operators pushed differs from the file, and the hosts that go by something
else than the file and what was pushed.

Exit status: 0 no difference, 1 they differ, 2 one of them cannot be used.`,
		Example: `  landfall config diff network.yml network.new.yml
  landfall config diff network.yml --network`,
		Args: func(c *cobra.Command, args []string) error {
			if live.network {
				return upToOneFile(c, args)
			}
			return exactly(2, "two files")(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			if live.network {
				return diffNetwork(c, fileOf(args), live.store, asJSON)
			}
			from, err := network.Load(args[0])
			if err != nil {
				return exitWith(statusTrouble, err)
			}
			to, err := network.Load(args[1])
			if err != nil {
				return exitWith(statusTrouble, err)
			}
			d := differenceOf(network.Diff(from, to))
			if err := d.print(c.OutOrStdout(), asJSON); err != nil {
				return exitWith(statusTrouble, err)
			}
			if !d.Same {
				return exitWith(statusDifferent, nil)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	live.add(c)
	return c
}

func diffNetwork(c *cobra.Command, file, store string, asJSON bool) error {
	v, err := lookAtNetwork(c.Context(), file, store)
	if err != nil {
		return exitWith(statusTrouble, err)
	}
	v.onlyDifferences()
	if err := v.print(c.OutOrStdout(), asJSON); err != nil {
		return exitWith(statusTrouble, err)
	}
	if len(v.Keys)+len(v.Hosts) > 0 {
		return exitWith(statusDifferent, nil)
	}
	return nil
}

// difference is what `config diff` prints.
type difference struct {
	Same    bool        `json:"same"`
	Reload  []changeRow `json:"reload"`  // a running host takes it on
	Restart []changeRow `json:"restart"` // it does not
}

type changeRow struct {
	Key    string `json:"key"`
	Change string `json:"change"`         // "changed", "added" or "removed"
	From   any    `json:"from,omitempty"` // left out: not there, or an entry with keys of its own
	To     any    `json:"to,omitempty"`
}

func differenceOf(changes []network.Change) difference {
	d := difference{Same: len(changes) == 0, Reload: []changeRow{}, Restart: []changeRow{}}
	for _, x := range changes {
		row := changeRow{Key: x.Key, Change: x.What, From: x.From, To: x.To}
		if x.Live {
			d.Reload = append(d.Reload, row)
		} else {
			d.Restart = append(d.Restart, row)
		}
	}
	return d
}

func (d difference) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(d)
	}
	if d.Same {
		_, err := fmt.Fprintln(w, "no difference")
		return err
	}
	for _, group := range []struct {
		title string
		rows  []changeRow
	}{{"can be reloaded, by SIGHUP:", d.Reload}, {"needs a restart:", d.Restart}} {
		if len(group.rows) == 0 {
			continue
		}
		if _, err := fmt.Fprintln(w, group.title); err != nil {
			return err
		}
		for _, r := range group.rows {
			if _, err := fmt.Fprintf(w, "  %s\n", r); err != nil {
				return err
			}
		}
	}
	return nil
}

// String is the change in words.
func (r changeRow) String() string {
	switch {
	case r.Change == network.Changed:
		return fmt.Sprintf("%s: %s -> %s", r.Key, valueText(r.From), valueText(r.To))
	case r.From != nil:
		return fmt.Sprintf("%s: removed, was %s", r.Key, valueText(r.From))
	case r.To != nil:
		return fmt.Sprintf("%s: added, %s", r.Key, valueText(r.To))
	}
	return r.Key + ": " + r.Change
}
