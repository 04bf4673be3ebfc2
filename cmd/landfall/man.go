package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// newMan makes the man pages. It is for those who build packages, and not in the list of verbs.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIR",
		Short:  "Write the man pages, one for each verb",
		Hidden: true,
		Long: `Writes a man page for each verb into DIR: landfall.1, landfall-up.1, landfall-config-check.1 and so
on, from the texts that --help shows. DIR is made when it is not there; pages of that name are
written anew.`,
		Example: `  landfall man ~/.local/share/man/man1`,
		Args:    exactly(1, "one directory"),
		RunE: func(c *cobra.Command, args []string) error {
			return writeManPages(c.Root(), args[0], buildInfo())
		},
	}
}

// writeManPages writes the page of c and those of every verb below it that is shown.
func writeManPages(c *cobra.Command, dir string, v versionInfo) error {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // everybody may read a manual
		return fmt.Errorf("man: %w", err)
	}
	path := filepath.Join(dir, manName(c)+".1")
	if err := os.WriteFile(path, []byte(manPage(c, v)), 0o644); err != nil { //nolint:gosec // as above
		return fmt.Errorf("man: %w", err)
	}
	for _, sub := range shownVerbs(c) {
		if err := writeManPages(sub, dir, v); err != nil {
			return err
		}
	}
	return nil
}

// manName is the page of a verb: landfall-config-check.
func manName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "-") }

func shownVerbs(c *cobra.Command) []*cobra.Command {
	var shown []*cobra.Command
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			shown = append(shown, sub)
		}
	}
	return shown
}

// manPage is the page of a verb in the man macros of roff. The texts are shown as --help shows them, in their own lines.
func manPage(c *cobra.Command, v versionInfo) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	day := ""
	if t, err := time.Parse(time.RFC3339, v.Built); err == nil {
		day = t.UTC().Format(time.DateOnly)
	}
	fmt.Fprintf(&b, ".TH %q 1 %q %q %q\n", strings.ToUpper(manName(c)), day, manFooter(v), "Landfall")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(c)), roff(c.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(c.UseLine()))
	text := c.Long
	if text == "" {
		text = c.Short
	}
	asItStands(&b, "DESCRIPTION", text)
	manOptions(&b, c.NonInheritedFlags())
	asItStands(&b, "EXAMPLES", c.Example)
	manSeeAlso(&b, c)
	return b.String()
}

// manFooter is the version, or the commit of a build between two of them, whose version would fill the line.
func manFooter(v versionInfo) string {
	if len(v.Version) > 20 && v.Commit != "" {
		return "landfall " + v.Commit[:min(12, len(v.Commit))]
	}
	return "landfall " + v.Version
}

// asItStands is a section whose lines are not filled: what stands in columns stays in them.
func asItStands(b *strings.Builder, title, text string) {
	if text != "" {
		fmt.Fprintf(b, ".SH %s\n.nf\n%s\n.fi\n", title, roff(text))
	}
}

func manOptions(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString(".SH OPTIONS\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		names := "--" + f.Name
		if f.Shorthand != "" {
			names = "-" + f.Shorthand + ", " + names
		}
		value, usage := pflag.UnquoteUsage(f)
		if preset := f.DefValue; preset != "" && preset != "false" && preset != "[]" && preset != "0" && preset != "0s" {
			usage += " (default " + preset + ")"
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(names+" "+value)), roff(usage))
	})
}

func manSeeAlso(b *strings.Builder, c *cobra.Command) {
	var pages []string
	if c.HasParent() {
		pages = append(pages, manName(c.Parent()))
	}
	for _, sub := range shownVerbs(c) {
		pages = append(pages, manName(sub))
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, page := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(page), comma)
	}
}

// roff escapes what the formatter would take for a request or another character.
func roff(text string) string {
	lines := strings.Split(strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
