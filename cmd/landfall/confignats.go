package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

func newConfigNATS() *cobra.Command {
	return &cobra.Command{
		Use:   "nats [FILE]",
		Short: "Print the logins that nats-servers of your own need to be the store (store.mode: external)",
		Long: `Prints a part of a nats-server's configuration, to be included in that of every server: an
account of this network's own, a login for each host of FILE (network.yml when left out) and for
the verbs, and what each of them may do. The passwords follow from the network's secret: keep
what is printed as you keep the secret. docs/external.md shows the whole of it.

Print it again, and have the servers read it, when hosts come, go or change their role, and when
the secret changes.

Exit status: 0 printed, 1 the file or the secret cannot be used.`,
		Example: `  landfall config nats network.yml > nats-logins.conf`,
		Args:    upToOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			n, err := network.Load(fileOf(args))
			if err != nil {
				return err
			}
			if n.Store.Mode != "external" {
				return n.At(network.CodeContradiction, "store.mode", "%s: the host that carries the store has these logins itself; allowed: external", n.Store.Mode)
			}
			users, err := natsLogins(c.Context(), n, fileOf(args))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "# The logins of network %s, printed by `landfall config nats`. They give the store away: keep them from others.\n%s",
				n.Network.Name, embedded.Logins(n.Network.Name, users))
			return err
		},
	}
}

// natsLogins are the logins of a network. Of hosts with keys of their own the log tells, as far
// as it can be read by now, and else the file that init made.
func natsLogins(ctx context.Context, n *network.Network, file string) ([]embedded.User, error) {
	t, err := trustOf(n, os.Getenv)
	if err != nil {
		return nil, err
	}
	if t.operator == nil {
		t.secrets, err = secretsOf(n, os.Getenv)
	}
	if err != nil {
		return nil, err
	}
	keys, err := t.keyring()
	if err != nil || t.operator == nil {
		return loginsOf(n, t.secrets, keys), err
	}
	facts, err := readSealed(n.File(sealedFile))
	if err != nil {
		return nil, err
	}
	for _, f := range facts {
		r, err := f.Record()
		if err != nil {
			return nil, err
		}
		if refusal := keys.Learn(r); refusal != nil {
			return nil, fmt.Errorf("%s: %s: %w", n.File(sealedFile), f.Key, refusal)
		}
	}
	flags := storeFlags{config: file}
	unread := flags.reading(ctx, func(log history, o *opener) error {
		for r, err := range log.History(ctx, events.Control, streams.Range{Newest: true}) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(r.Key, events.IdentityKey("")) {
				if refusal := keys.Learn(r); refusal != nil {
					return fmt.Errorf("sequence %d of control: %w", r.Seq, refusal)
				}
			}
		}
		return nil
	})
	if unread != nil && len(facts) == 0 {
		return nil, fmt.Errorf("who has which key stands in the log, which cannot be read: %w", unread)
	}
	return loginsOf(n, t.secrets, keys), nil
}
