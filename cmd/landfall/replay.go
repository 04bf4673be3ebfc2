package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

// replayFlags are the command line of replay.
type replayFlags struct {
	storeFlags
	viewFlags
	json     bool
	sessions bool
}

func newReplay() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "replay",
		Short: "Tell the story of one transfer: what was decided, why, and how it ended",
		Long: `Tells the story of one transfer as the log has it, folded exactly as the dispatchers fold it:
request, choice, reservation, claim, move, arrival, end; what did not happen where it belongs;
audit entries that name the transfer; the player's sessions meanwhile. Ages are counted from
the request by the stream's clock; lines of different buckets are merged by stored time.
Nothing is written, nobody is moved.

Exit status: 0 the log is consistent, 1 not found (or it could not be read), 2 the log is
inconsistent: it holds facts that the fold refuses, each named with its sequence,
3 incomplete because of retention, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall replay player steve
  landfall replay token r-0190c5b27d5e7c3a9d530b5a0d1f2e3c-1 --explain
  landfall replay player steve --only failures
  landfall replay transfer 0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c --json`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(
		f.verb("token", "the token's transfer: <transfer>-<n>, or r-<32 hex>-<n> as in a host name", "one token", tellToken),
		f.verb("player", "all transfers of a player (name or UUID), and the newest one's story", "one player", tellPlayer),
		f.verb("transfer", "one transfer, by its id", "one transfer id", tellTransfer),
	)
	return c
}

// telling is one of the verbs: the exit status of what was told, or why it could not be told.
type telling func(ctx context.Context, r *replay) (int, error)

func (f *replayFlags) verb(name, short, what string, prepare func(arg string) (telling, error)) *cobra.Command {
	c := &cobra.Command{
		Use: name + " ID", Short: "Replay " + short, Args: exactly(1, what),
		RunE: func(c *cobra.Command, args []string) error {
			tell, err := prepare(args[0]) // no store is opened for what cannot be an id
			if err != nil {
				return err
			}
			v, err := f.view()
			if err != nil {
				return err
			}
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), v, tell)
		},
	}
	f.add(c)
	f.addFile(c)
	c.Flags().BoolVar(&f.explain, "explain", false, "name the rule of each step, and show the scores of each choice")
	c.Flags().StringVar(&f.form, "view", viewTimeline, "how to show it, as a `VIEW`: timeline, compact (the transfer's own facts alone) or raw (each record in full under its line)")
	c.Flags().StringVar(&f.only, "only", "", "show only `WHAT`: failures is what went wrong, and of a player the transfers in which something did")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
	c.Flags().BoolVar(&f.sessions, "sessions", true, "show the player's sessions between the steps")
	return c
}

func (f *replayFlags) run(ctx context.Context, stdout, stderr io.Writer, v view, tell telling) error {
	out, status := bufio.NewWriter(stdout), statusOK
	err := f.reading(ctx, func(log history, o *opener) (err error) {
		r := &replay{log: log, opener: o, out: printer{w: out, json: f.json}, notes: stderr, view: v, sessions: f.sessions}
		status, err = tell(ctx, r)
		return errors.Join(err, out.Flush())
	})
	if err == nil && status != statusOK {
		err = exitWith(status, nil) // what is wrong stands on the screen
	}
	return err
}

// replay tells stories from a log that it only reads.
type replay struct {
	log      history
	opener   *opener
	out      printer
	notes    io.Writer // for people, beside the rows
	view     view
	sessions bool
}

func tellToken(arg string) (telling, error) {
	token, err := events.ParseToken(arg)
	if err != nil {
		return nil, usageError("%w; for a whole transfer: landfall replay transfer ID", err)
	}
	return func(ctx context.Context, r *replay) (int, error) {
		t, err := r.find(ctx, token.Transfer)
		if err != nil {
			return 0, err
		}
		if err := t.hasToken(token); err != nil {
			return 0, err
		}
		return r.story(ctx, t)
	}, nil
}

func tellTransfer(arg string) (telling, error) {
	id, err := events.ParseID[events.TransferID](arg)
	if err != nil {
		return nil, usageError("transfer: %w", err)
	}
	return func(ctx context.Context, r *replay) (int, error) {
		t, err := r.find(ctx, id)
		if err != nil {
			return 0, err
		}
		return r.story(ctx, t)
	}, nil
}

func tellPlayer(arg string) (telling, error) {
	if err := checkPlayer(arg); err != nil {
		return nil, err
	}
	return func(ctx context.Context, r *replay) (int, error) {
		ids, note, err := findPlayer(ctx, r.log, r.opener, arg)
		if err != nil {
			return 0, err
		}
		r.note(note)
		if len(ids) > 1 {
			r.note(fmt.Sprintf("showing %s, who was seen last; for another one give the UUID", ids[0]))
		}
		return r.stories(ctx, ids[0])
	}, nil
}

// stories lists a player's transfers, the newest last, and tells that one's story.
func (r *replay) stories(ctx context.Context, player events.PlayerID) (int, error) {
	tales, err := r.tales(ctx, player)
	if err != nil {
		return 0, err
	}
	if len(tales) == 0 {
		return 0, exitWith(statusFailed, fmt.Errorf("player %s: no transfer in this store", player))
	}
	all, broken := len(tales), false
	tales = slices.DeleteFunc(tales, func(t *tale) bool { return !r.view.picks(t) })
	if len(tales) == 0 {
		r.note(fmt.Sprintf("player %s: nothing went wrong in %s", player, plural(all, "transfer")))
		return statusOK, nil
	}
	for _, t := range tales {
		broken = broken || len(t.problems()) > 0
		if err := r.out.print(t.listed()); err != nil {
			return 0, err
		}
	}
	if !r.out.json {
		fmt.Fprintln(r.out.w)
	}
	status, err := r.story(ctx, tales[len(tales)-1])
	if broken { // in another one: whoever asks for the player wants to know
		status = statusInconsistent
	}
	return status, err
}

// story prints one transfer's timeline and end, and gives the status it deserves.
func (r *replay) story(ctx context.Context, t *tale) (int, error) {
	a, err := r.asides(ctx, t)
	if err != nil {
		return 0, err
	}
	end := t.end()
	if !r.out.json {
		fmt.Fprint(r.out.w, end.headline(), "\n\n", timelineHeader, "\n")
	}
	for _, s := range t.timeline(a) {
		s, shown := r.view.shows(s)
		if !shown {
			continue
		}
		if err := r.out.print(s); err != nil {
			return 0, err
		}
	}
	return end.Status, r.out.print(end)
}

func (r *replay) note(text string) {
	if text != "" {
		fmt.Fprintln(r.notes, printable(text))
	}
}
