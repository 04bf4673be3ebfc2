package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

func newCredsRevoke() *cobra.Command {
	var f credsFlags
	var earlier bool
	c := &cobra.Command{
		Use:   "revoke backend|proxy|operator|auditor NAME",
		Short: "End a key: whoever bears it is cut at once, and nobody else",
		Long: `Says in the log that the keys of NAME are good no more. The carrier of the store cuts whoever is
connected with one, within a second, and nobody else; dispatchers and backends believe no request
of it from then on. Then, once it is cut, the log says up to which sequence its facts count: what it
wrote before stays good, in every host and in every later verify.

With nats-servers of your own: print their logins again (landfall config nats), have every server read
them, and run revoke again, which says up to where its facts count.

Exit status: 0 it is done, 1 otherwise, also when it is not known whether the host was cut.`,
		Example: `  landfall creds revoke backend survival-2 --why "sold"`,
		Args:    twoWords,
		RunE: func(c *cobra.Command, args []string) error {
			check := func(*network.Network) error { // also who is not in it any more can be revoked
				if args[1] == string(events.RootID) {
					return errors.New("creds: the operator's own key is that of network.yml: it ends when another stands there")
				}
				return nil
			}
			return f.within(c.Context(), check, func(r *registry) error {
				return f.revoke(c.Context(), c.OutOrStdout(), r, args, earlier)
			})
		},
	}
	f.add(c)
	c.Flags().BoolVar(&earlier, "earlier", false, "only the key before the newest one, after a renewal")
	return c
}

func (f *credsFlags) revoke(ctx context.Context, w io.Writer, r *registry, args []string, earlier bool) error {
	role, id := events.IdentityRole(args[0]), events.HostID(args[1])
	was, known := r.keys.Identities()[id]
	if !known || was.Role != role {
		return fmt.Errorf("creds: there is no %s %s: landfall creds list shows all", role, id)
	}
	before := len(openKeys(was))
	now := closing(was, earlier)
	now.Who, now.Why = f.who, f.why
	closed := before - len(openKeys(now))
	if closed == 0 && !unsealed(was) {
		return fmt.Errorf("creds: %s has no key to revoke", id)
	}
	last, _, err := r.LastOf(ctx, events.Control, events.IdentityKey(id))
	if err != nil {
		return err
	}
	seq := last.Seq
	if closed > 0 {
		if seq, err = r.write(ctx, now); err != nil {
			return err
		}
		fmt.Fprintf(w, "%s closed for %s (sequence %d of control)\n", plural(uint64(closed), "key"), id, seq) //nolint:gosec // a small count
	}
	if err := r.obeyed(ctx, seq, closed > 0); err != nil {
		return err
	}
	end, err := r.ends(ctx)
	if err != nil {
		return err
	}
	if seq, err = r.write(ctx, endSpans(now, end)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "it is cut off; its facts count up to sequence %d of transfers (sequence %d of control)\n", end[events.Transfers], seq)
	return err
}

// obeyed waits until the carrier lets in nobody whom control has revoked up to a sequence. On
// nats-servers of one's own nobody answers: the operator says so by asking again.
func (r *registry) obeyed(ctx context.Context, seq uint64, first bool) error {
	if !r.shared {
		return nil // opened here and now: nobody else is connected
	}
	_, err := r.Ask(ctx, streams.IdentitiesSubject, events.Wire{Header: events.Header{}, Body: []byte(strconv.FormatUint(seq, 10))})
	switch {
	case err == nil:
		return nil
	case r.conf.Store.Mode == "external" && errors.Is(err, events.ErrNobody) && !first:
		return nil
	case r.conf.Store.Mode == "external" && errors.Is(err, events.ErrNobody):
		return errors.New("creds: now print the logins again and have every nats-server read them (landfall config nats); then run this again, which ends what the key may have signed")
	}
	return fmt.Errorf("creds: it stands in the log, but the carrier of the store does not say that it is cut: run this again: %w", err)
}
