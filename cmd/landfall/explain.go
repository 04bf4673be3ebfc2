package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

func newExplain() *cobra.Command {
	var f replayFlags
	c := &cobra.Command{
		Use:   "explain ID",
		Short: "Tell why a player was sent where: every choice of a transfer, with its scores",
		Long: `Shows the choices of one transfer (an id, or a token of it) as they stand in the log: the
candidates with each term's raw value and share, those that were filtered out and why, the
policy, and the age of the snapshot that was chosen on. "landfall replay" tells the rest of the
story, "landfall whatif" chooses again under another policy.

Exit status: 0 shown, 1 not found, 3 incomplete because of retention, 64 wrong command line.`,
		Example: `  landfall explain 0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c
  landfall explain r-0190c5b27d5e7c3a9d530b5a0d1f2e3c-1 --json`,
		Args: exactly(1, "the id of a transfer, or a token"),
		RunE: func(c *cobra.Command, args []string) error {
			tell, err := tellChoices(args[0])
			if err != nil {
				return err
			}
			return f.run(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), view{explain: true}, tell)
		},
	}
	f.add(c)
	f.addFile(c)
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object a line; the last one has kind \"end\"")
	return c
}

func tellChoices(arg string) (telling, error) {
	id, attempt, err := parseTokenOrTransfer(arg)
	if err != nil {
		return nil, usageError("explain: %w", err)
	}
	return func(ctx context.Context, r *replay) (int, error) {
		t, err := r.find(ctx, id)
		if err != nil {
			return 0, err
		}
		if attempt > 0 {
			if err := t.hasToken(events.Token{Transfer: id, Attempt: attempt}); err != nil {
				return 0, err
			}
		}
		return r.choices(t, attempt)
	}, nil
}

// choices shows those that led to one attempt, or all of them.
func (r *replay) choices(t *tale, attempt int) (int, error) {
	for _, e := range t.entries {
		d := decisionOf(e.event.Fact)
		n, _ := attemptOf(e.event.Fact)
		if d == nil || attempt > 0 && n != attempt {
			continue
		}
		s := stepOf(stepDecision, e.reading)
		s.AgeMs, s.Attempt, s.Decision, s.explain = ms(e.Stored.Sub(t.entries[0].Stored)), n, d, true
		s.Text = choiceText(e.event.Fact, *d)
		if err := r.out.print(s); err != nil {
			return 0, err
		}
	}
	end := t.end()
	return end.Status, r.out.print(end)
}

// choiceText is what came of a choice, and the choice.
func choiceText(f events.Fact, d events.Decision) string {
	came := describe(f)
	if reserved, ok := f.(*events.Reserved); ok {
		came = fmt.Sprintf("token %d: %s %s", reserved.Attempt, reserved.Server, reserved.Region)
	}
	return came + " -- " + describeDecision(d)
}
