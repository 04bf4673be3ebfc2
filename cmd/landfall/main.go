// Command landfall is the whole program: it runs the hosts of a network, shows one in a
// demo, and reads the log. One file per verb; wiring and nothing else.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit statuses. A verb documents what it adds a meaning to.
const (
	statusOK           = 0
	statusFailed       = 1   // it could not be done; of replay: not found; of demo: something was lost or doubled
	statusInconsistent = 2   // the log contradicts itself
	statusIncomplete   = 3   // retention has removed what was asked for
	statusUsage        = 64  // the command line is wrong (EX_USAGE)
	statusInterrupted  = 130 // ended by a signal before it was done (128 + SIGINT)
)

// exitError is an error that knows its exit status. One without a text was explained
// already, on the screen.
type exitError struct {
	status int
	err    error // may be nil
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitWith makes an error that ends the program with a status.
func exitWith(status int, err error) error { return &exitError{status: status, err: err} }

// usageError is about the command line itself.
func usageError(format string, args ...any) error {
	return exitWith(statusUsage, fmt.Errorf(format, args...))
}

func main() {
	// The first signal asks everything to end in order; after it the default is back, so a
	// second one ends the process at once.
	ctx, restore := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, restore)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	restore()
	os.Exit(status)
}

// run is main without the process: it returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if text := oneLine(err); text != "" {
		fmt.Fprintln(stderr, "landfall:", text)
	}
	return statusOf(err)
}

func statusOf(err error) int {
	var exit *exitError
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, &exit):
		return exit.status
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	}
	return statusFailed
}

// oneLine is an error as one line: joined errors stand behind each other.
func oneLine(err error) string {
	if err == nil || errors.Is(err, context.Canceled) {
		return "" // whoever interrupts knows it
	}
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// single are the errors that were joined into one.
func single(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	var out []error
	for _, e := range joined.Unwrap() {
		out = append(out, single(e)...)
	}
	return out
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "landfall",
		Short: "Moves players between the servers of a game network, exactly once",
		Long: `Landfall moves players between the servers of a game network: exactly once, to a place
that is ready before they leave, and every move can be replayed afterwards.

Exit status: 0 done, 1 failed, 64 wrong command line, 130 interrupted; a verb's help names others.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE:          needsVerb,
	}
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError("%w; see `%s --help`", err, c.CommandPath())
	})
	for _, verb := range verbs() {
		root.AddCommand(verb())
	}
	if err := addHints(root, hints()); err != nil {
		panic("completion: " + err.Error()) // a hint names a verb or a flag that is not there
	}
	return root
}

// knownVerb refuses what stands where a verb belongs.
func knownVerb(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	hint := ""
	if near := c.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf(", did you mean %q?", near[0])
	}
	return usageError("there is no verb %q%s; see `%s --help`", args[0], hint, c.CommandPath())
}

// needsVerb shows what there is when nothing was asked for.
func needsVerb(c *cobra.Command, _ []string) error {
	return errors.Join(c.Help(), exitWith(statusUsage, nil))
}

// exactly wants n arguments, which what names.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		if n == 0 {
			return usageError("takes no arguments, got %q; see `%s --help`", args[0], c.CommandPath())
		}
		return usageError("want %s, got %d arguments; see `%s --help`", what, len(args), c.CommandPath())
	}
}
