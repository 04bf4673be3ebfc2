package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/doctor"
)

// Exit statuses of doctor, by the worst finding.
const (
	statusWarned = 1
	statusAiling = 2
)

func newDoctor() *cobra.Command {
	g := &gatherer{env: os.Getenv}
	var asJSON bool
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Say what is wrong with the network, its store and this machine, and what helps",
		Long: `Looks at network.yml, the secret, this machine, the store and the hosts that beat, changes nothing,
and says what is wrong: a stable code, how bad it is, and what helps; docs/doctor.md lists all codes.
What it could not look at it names. When the store is down it still looks at all the rest.

Permissions are tried under the logins of the hosts that network.yml lists, by requests that
leave nothing behind. With --id it also looks at what only that host has: its RCON and its limits.
A store that no process has open is opened for the look, which keeps its host out meanwhile.

Exit status: 0 nothing, or notes only, 1 a warning is the worst, 2 an error is, 64 wrong command line.`,
		Example: `  landfall doctor --config network.yml --id survival-1
  landfall doctor --store landfall-demo --json`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			facts, err := g.gather(c.Context())
			if err != nil {
				return err
			}
			out := bufio.NewWriter(c.OutOrStdout())
			return errors.Join(diagnose(facts, printer{w: out, json: asJSON}), out.Flush())
		},
	}
	g.flags.add(c)
	c.Flags().StringVar(&g.id, "id", "", "look as this host: its RCON and its limits too (default: as up)")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line; the last one has kind \"end\"")
	return c
}

// diagnosis is a finding as it is printed.
type diagnosis struct {
	Kind     string          `json:"kind"` // "finding"
	Code     doctor.Code     `json:"code"`
	Severity doctor.Severity `json:"severity"`
	Where    string          `json:"where"`
	Text     string          `json:"text"`
	Remedy   string          `json:"remedy"`
}

func (d diagnosis) String() string {
	return printable(fmt.Sprintf("%-7s  %-22s  %s: %s", d.Severity, d.Code, d.Where, d.Text)) + "\n" + printable("         "+d.Remedy)
}

// unseenRow is something that was not looked at.
type unseenRow struct {
	Kind string `json:"kind"` // "unseen"
	What string `json:"what"`
	Why  string `json:"why"`
}

func (u unseenRow) String() string {
	return printable(fmt.Sprintf("not seen: %s: %s", u.What, u.Why))
}

// doctorEnd is the sum of all.
type doctorEnd struct {
	Kind     string          `json:"kind"` // "end"
	Worst    doctor.Severity `json:"worst,omitempty"`
	Errors   int             `json:"errors"`
	Warnings int             `json:"warnings"`
	Notes    int             `json:"notes"`
	Unseen   int             `json:"unseen"`
}

func (e doctorEnd) String() string {
	text := "nothing is wrong"
	if e.Errors+e.Warnings+e.Notes > 0 {
		text = fmt.Sprintf("%s, %s, %s", plural(e.Errors, "error"), plural(e.Warnings, "warning"), plural(e.Notes, "note"))
	}
	if e.Unseen > 0 {
		text += ", as far as could be seen"
	}
	return text
}

// diagnose prints what is wrong. The worst of it is the exit status.
func diagnose(f *doctor.Facts, out printer) error {
	found := doctor.Examine(f)
	end := doctorEnd{Kind: "end", Worst: doctor.Worst(found), Unseen: len(f.Unseen)}
	for _, x := range found {
		switch x.Severity {
		case doctor.Error:
			end.Errors++
		case doctor.Warning:
			end.Warnings++
		case doctor.Note:
			end.Notes++
		}
		if err := out.print(diagnosis{Kind: "finding", Code: x.Code, Severity: x.Severity, Where: x.Where, Text: x.Text, Remedy: x.Remedy}); err != nil {
			return err
		}
	}
	for _, u := range f.Unseen {
		if err := out.print(unseenRow{Kind: "unseen", What: u.What, Why: u.Why}); err != nil {
			return err
		}
	}
	if err := out.print(end); err != nil {
		return err
	}
	switch {
	case end.Errors > 0:
		return exitWith(statusAiling, nil)
	case end.Warnings > 0:
		return exitWith(statusWarned, nil)
	}
	return nil
}

// gather finds out all there is to know. It fails only when nobody said what to look at.
func (g *gatherer) gather(ctx context.Context) (*doctor.Facts, error) {
	if g.flags.config == "" && g.flags.store == "" {
		if _, err := os.Stat(defaultConfig); err == nil {
			g.flags.config = defaultConfig
		}
	}
	g.readConfig()
	src, err := g.flags.locate(g.net)
	switch {
	case err == nil:
	case g.facts.Config == nil:
		return nil, err
	case g.net == nil && g.flags.store == "":
		g.unseen("the store", "network.yml, which would name it, is refused")
	case g.facts.Config.Disabled && g.flags.store == "":
		g.unseen("the store", "the network is not enabled")
	default:
		g.facts.Store = &doctor.Store{Where: cmp.Or(g.flags.store, g.facts.Config.URL, g.facts.Config.File), Down: oneLine(err)}
	}
	g.readSecrets(src)
	g.lookAtMachine(src)
	g.lookAtRCON(ctx)
	if err == nil {
		g.lookAtStore(ctx, src)
	}
	return &g.facts, nil
}
