package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
)

const (
	tokenLife    = 90 * 24 * time.Hour
	maxTokenLife = 10 * 366 * 24 * time.Hour
)

func newToken() *cobra.Command {
	c := &cobra.Command{
		Use:   "token",
		Short: "Let programs use the API: make, list and revoke its tokens",
		Long: `A token lets whoever shows it do what its scopes say, until it expires or is revoked. The log
holds only a hash: the token itself is shown once, when it is made. docs/api.md tells how it is
used.

Scopes: read (see transfers, line, fleet, events), transfer (ask for transfers, triggers,
cancel), allocate (take seats on instances), control (kill, drain, pause, evacuate).`,
		Example: `  landfall token add matchmaker --scope allocate --expires 720h
  landfall token list
  landfall token revoke 0123456789abcdef --why "left the company"`,
		Args: knownVerb,
		RunE: needsVerb,
	}
	c.SuggestionsMinimumDistance = 2
	c.AddCommand(newTokenAdd(), newTokenList(), newTokenRevoke(), newTokenLogin())
	return c
}

func newTokenAdd() *cobra.Command {
	var o order
	var scopes []string
	var life time.Duration
	c := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a token, and show it once",
		Long: `Make a token, and show it once: keep it where its user can read it and nobody else. NAME
stands in the log beside what is decided with it.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Args: exactly(1, "whose it is, such as matchmaker"),
		RunE: func(c *cobra.Command, args []string) error {
			f, err := planToken(args[0], scopes, life, time.Now())
			if err != nil {
				return err
			}
			f.Who, f.Why = o.who, o.why
			return o.makeToken(c, f)
		},
	}
	o.add(c)
	c.Flags().StringSliceVar(&scopes, "scope", nil, "what it lets its bearer do: read, transfer, allocate, control; several with commas, or again")
	c.Flags().DurationVar(&life, "expires", tokenLife, "after how long it is no longer good (1m to 87840h)")
	return c
}

// planToken checks the command line.
func planToken(name string, scopes []string, life time.Duration, now time.Time) (*events.TokenSet, error) {
	if _, err := events.ParseHostID(name); err != nil {
		return nil, usageError("token name %q: want 1 to 63 of A-Z a-z 0-9 _ -", name)
	}
	if life < time.Minute || life > maxTokenLife {
		return nil, usageError("--expires %s: want 1m to %s", life, maxTokenLife)
	}
	f := &events.TokenSet{Name: name, Scopes: []events.Scope{}, Expires: now.Add(life).Unix()}
	for _, text := range scopes {
		s, err := events.ParseScope(text)
		if err != nil {
			return nil, usageError("--scope: %w", err)
		}
		f.Scopes = append(f.Scopes, s)
	}
	slices.Sort(f.Scopes)
	if f.Scopes = slices.Compact(f.Scopes); len(f.Scopes) == 0 {
		return nil, usageError("--scope is missing: want one or more of %s", joined(events.Scopes, ", "))
	}
	return f, nil
}

// shownToken is what is shown once.
type shownToken struct {
	Token string `json:"token"`
	Seq   uint64 `json:"seq"`
	tokenRow
}

func (o *order) makeToken(c *cobra.Command, f *events.TokenSet) error {
	var random [40]byte
	_, _ = rand.Read(random[:]) // never fails: it ends the process instead
	b := events.NewBearer(random)
	f.ID, f.Hash = b.ID, b.Hash()
	return o.within(c.Context(), func(d deciding) error {
		op, err := d.operator()
		if err != nil {
			return err
		}
		seq, err := op.Decree(c.Context(), events.APITokenKey(f.ID), f)
		if err != nil {
			return err
		}
		if o.json {
			return json.NewEncoder(c.OutOrStdout()).Encode(shownToken{b.Text(), seq, rowOfToken(f, time.Now())})
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s (sequence %d of control); it is not shown again:\n", describe(f), seq)
		_, err = fmt.Fprintln(c.OutOrStdout(), b.Text())
		return err
	})
}

// tokenRow is one token as list shows it.
type tokenRow struct {
	ID      events.APITokenID `json:"id"`
	Name    string            `json:"name"`
	Scopes  []events.Scope    `json:"scopes"`
	Expires time.Time         `json:"expires"`
	Expired bool              `json:"expired"`
	Who     string            `json:"who"`
}

func rowOfToken(f *events.TokenSet, now time.Time) tokenRow {
	expires := time.Unix(f.Expires, 0).UTC()
	return tokenRow{ID: f.ID, Name: f.Name, Scopes: f.Scopes, Expires: expires, Expired: !now.Before(expires), Who: f.Who}
}

// String is one line.
func (r tokenRow) String() string {
	state := "until"
	if r.Expired {
		state = "expired"
	}
	return printable(fmt.Sprintf("%s  %-16s  %-32s  %-7s %s  by %s", r.ID, r.Name, joined(r.Scopes, ","), state, r.Expires.Format(time.RFC3339), r.Who))
}

func newTokenList() *cobra.Command {
	var f storeFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show the tokens that were not revoked",
		Long: `Show the tokens that were not revoked, by name. The tokens themselves are nowhere to be seen.

Exit status: 0 shown, 1 the log could not be read.`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.within(c.Context(), func(d deciding) error {
				rows, err := d.tokens(c.Context())
				if err != nil {
					return err
				}
				out := printer{w: c.OutOrStdout(), json: asJSON}
				for _, r := range rows {
					if err := out.print(r); err != nil {
						return err
					}
				}
				if len(rows) == 0 && !asJSON {
					fmt.Fprintln(c.ErrOrStderr(), "there are no tokens: landfall token add NAME --scope read")
				}
				return nil
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "JSON lines")
	return c
}

// tokens are those that were not revoked, by name.
func (d deciding) tokens(ctx context.Context) ([]tokenRow, error) {
	opener, err := d.opener(ctx)
	if err != nil {
		return nil, err
	}
	n, err := takeCensus(ctx, d, opener, nil)
	if err != nil {
		return nil, err
	}
	rows := make([]tokenRow, 0, len(n.controls.Tokens))
	for _, t := range n.controls.Tokens {
		rows = append(rows, rowOfToken(t, time.Now()))
	}
	slices.SortFunc(rows, func(a, b tokenRow) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(string(a.ID), string(b.ID)))
	})
	return rows, nil
}

func newTokenRevoke() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use:   "revoke ID",
		Short: "Make a token worthless, at once and for good",
		Long: `Make a token worthless: every host that serves the API obeys as soon as it sees the fact, and
ends the streams that the token holds open.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Args: exactly(1, "the id of a token, as `landfall token list` shows it"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := events.ParseAPITokenID(args[0])
			if err != nil {
				return usageError("token revoke: %w", err)
			}
			return o.within(c.Context(), func(d deciding) error { return o.revoke(c, d, id) })
		},
	}
	o.add(c)
	return c
}

func (o *order) revoke(c *cobra.Command, d deciding, id events.APITokenID) error {
	rows, err := d.tokens(c.Context())
	if err != nil {
		return err
	}
	i := slices.IndexFunc(rows, func(r tokenRow) bool { return r.ID == id })
	if i < 0 {
		return errors.New("no token " + string(id) + " is known; `landfall token list` shows them")
	}
	return o.write(c, d, events.APITokenKey(id), &events.TokenSet{
		ID: id, Name: rows[i].Name, Scopes: []events.Scope{}, Revoked: true, Who: o.who, Why: o.why,
	})
}
