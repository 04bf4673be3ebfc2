package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// topFlags are the command line of top.
type topFlags struct {
	storeFlags
	once, json bool
	every      time.Duration
}

// Size of a screen that cannot be asked for its own.
const (
	topWidth  = 80
	topHeight = 24
)

func newTop() *cobra.Command {
	var f topFlags
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch the network: hosts, line, transfers under way, rates, last failures",
		Long: `Shows the network as the log has it, anew every second, until q, Ctrl-C or SIGTERM: every host
with the age of its last heartbeat, who waits in line, the transfers under way, how many facts,
requests, arrivals and failures a second, and what failed last. It only reads.

A store that cannot be reached shows as LOST, with what was seen last, and comes back by itself.
Rates are of the last 10 seconds. The screen wants 80 columns and 24 lines to be useful, and no
colour: NO_COLOR is obeyed, and with TERM=dumb one screen is written below the other.

--once writes one screen and ends; it is what to use where nobody watches.

Exit status: 0 it was ended, 1 it could not begin, 64 wrong command line, or no terminal.`,
		Example: `  landfall top --config network.yml
  landfall top --store nats://127.0.0.1:4222 --once --json`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), c.OutOrStdout(), os.Getenv)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.once, "once", false, "write one screen and end")
	c.Flags().BoolVar(&f.json, "json", false, "with --once: one JSON object")
	c.Flags().DurationVar(&f.every, "every", time.Second, "how often it is shown anew (100ms to 1h)")
	return c
}

func (f *topFlags) run(ctx context.Context, stdout io.Writer, env func(string) string) error {
	screen, isFile := stdout.(*os.File)
	watched := isFile && term.IsTerminal(screen.Fd())
	switch {
	case f.json && !f.once:
		return usageError("--json is one answer: give --once too, or use `landfall tail --follow --json`")
	case f.every < 100*time.Millisecond || f.every > time.Hour:
		return usageError("--every %s: want 100ms to 1h", f.every)
	case !f.once && !watched:
		return usageError("stdout is no terminal: for one screen give --once, for a program --once --json")
	}
	w, store, err := f.watcher(ctx, env)
	if err != nil {
		return err
	}
	if f.once {
		return errors.Join(f.showOnce(stdout, w.frame(time.Now()), env), store.Close())
	}
	return ignore(w.onScreen(ctx, store, screen, env("TERM"), f.every), ctx.Err()) // a signal is a way to end it
}

// watcher opens the store and looks at it once.
func (f *topFlags) watcher(ctx context.Context, env func(string) string) (*watcher, *reader, error) {
	src, err := f.find(env)
	if err != nil {
		return nil, nil, err
	}
	o, err := newOpener(src.trust)
	if err != nil {
		return nil, nil, err
	}
	store, err := src.open(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	if err := o.know(ctx, store); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	w := newWatcher(src, o)
	if err := w.look(ctx, store); err != nil {
		return nil, nil, errors.Join(err, store.Close())
	}
	return w, store, nil
}

// showOnce writes a frame: all of it, at the width of the screen.
func (f *topFlags) showOnce(stdout io.Writer, frame topFrame, env func(string) string) error {
	out := bufio.NewWriter(stdout)
	if f.json {
		return errors.Join(printer{w: out, json: true}.print(frame), out.Flush())
	}
	width, err := strconv.Atoi(env("COLUMNS"))
	if err != nil || width < topWidth {
		width = topWidth
	}
	_, err = out.WriteString(topView(frame, topScreen{width: width}) + "\n")
	return errors.Join(err, out.Flush())
}
