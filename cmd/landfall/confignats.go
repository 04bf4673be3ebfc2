package main

import (
	"fmt"
	"os"

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
			secret, _, err := n.Secret(os.Getenv)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "# The logins of network %s, printed by `landfall config nats`. They give the store away: keep them from others.\n%s",
				n.Network.Name, embedded.Logins(n.Network.Name, loginsOf(n, secret)))
			return err
		},
	}
}

// loginsOf are those of all hosts of the file, by their roles, and those of the verbs.
func loginsOf(n *network.Network, secret []byte) []embedded.User {
	users := []embedded.User{readerLogin(secret), operatorLogin(secret)}
	if n.HasAPI() {
		users = append(users, programLogin(secret))
	}
	for id, x := range n.Hosts {
		role := roleOf(n, x)
		name, password := streams.Login(secret, role, events.HostID(id))
		users = append(users, embedded.User{Role: role, ID: events.HostID(id), Name: name, Password: password})
		if x.IsAPI() { // it writes down what is decided over it
			name, password := streams.Login(secret, streams.RoleOperator, events.HostID(id))
			users = append(users, embedded.User{Role: streams.RoleOperator, ID: events.HostID(id), Name: name, Password: password})
		}
	}
	return users
}
