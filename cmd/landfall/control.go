package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// operatorID is the login of the verbs that decide, beside those of the hosts.
const operatorID events.HostID = "cli"

// operatorLogin derives the login of the deciding verbs from the network's secret.
func operatorLogin(secret []byte) embedded.User {
	name, password := streams.Login(secret, streams.RoleOperator, operatorID)
	return embedded.User{Role: streams.RoleOperator, ID: operatorID, Name: name, Password: password}
}

// order is an operator's decision on its way into the log.
type order struct {
	storeFlags
	who, why string
	json     bool
}

func (o *order) add(c *cobra.Command) {
	o.storeFlags.add(c)
	f := c.Flags()
	f.StringVar(&o.who, "who", userName(), "who decides, the user of this machine when left out; stands in the log")
	f.Lookup("who").DefValue = "" // the help says the same on every machine
	f.StringVar(&o.why, "why", "", "why; stands in the log, and is shown to operators")
	f.BoolVar(&o.json, "json", false, "one JSON object")
}

func userName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "unknown"
}

func newKill() *cobra.Command {
	var o order
	c := &cobra.Command{
		Use:   "kill on|off",
		Short: "Stop new transfers on the whole network, or allow them again",
		Long: `With "on", every dispatcher refuses new transfers (KILL_SWITCH) as soon as it sees the fact, and
gives back what is reserved and not yet claimed. Transfers already claimed finish. Players in
line keep their place, and go on with "off". Who joins is still let in.

Exit status: 0 it stands in the log, 1 otherwise.`,
		Example: `  landfall kill on --why "duplicated items"
  landfall kill off`,
		Args: exactly(1, "on or off"),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != "on" && args[0] != "off" {
				return usageError("kill %q: want on or off", args[0])
			}
			return o.give(c, events.KillKey, &events.KillSet{On: args[0] == "on", Who: o.who, Why: o.why})
		},
	}
	o.add(c)
	return c
}

// deciding is an open store that a decision is written to.
type deciding struct {
	*reader
	source
}

// openToDecide opens the store that decisions go to.
func (f storeFlags) openToDecide(ctx context.Context) (deciding, error) {
	src, err := f.find(os.Getenv)
	if err != nil {
		return deciding{}, err
	}
	if !src.decides() || src.operator != nil && src.own == nil {
		return deciding{}, src.cannotDecide()
	}
	r, err := src.openToDecide(ctx)
	if err != nil {
		return deciding{}, err
	}
	d := deciding{r, src}
	if _, keyed, err := r.LastOf(ctx, events.Control, events.IdentityKey(events.RootID)); err != nil || keyed && src.own == nil {
		return deciding{}, errors.Join(cmp.Or(err, src.cannotDecide()), r.Close())
	}
	return d, nil
}

// cannotDecide says what a decision would have to be signed with.
func (s source) cannotDecide() error {
	switch {
	case s.own != nil:
		return fmt.Errorf("a decision must be signed by an operator, and --key is that of the %s %s", s.own.Role, s.own.ID)
	case s.operator != nil || len(s.secrets) > 0:
		return fmt.Errorf("a decision must be signed with an operator's key in this network: give --key, or keep %s beside the network.yml of --config", operatorFile)
	}
	return errors.New("a decision must be signed, and no secret is at hand: give --config network.yml, or set RTP_NET_SECRET")
}

// opener verifies with what is trusted, and with what the log says of the hosts.
func (d deciding) opener(ctx context.Context) (*opener, error) {
	o, err := newOpener(d.trust)
	if err == nil {
		err = o.know(ctx, d.Store)
	}
	return o, err
}

// within runs a verb on the open store.
func (f storeFlags) within(ctx context.Context, run func(d deciding) error) error {
	d, err := f.openToDecide(ctx)
	if err != nil {
		return err
	}
	return errors.Join(run(d), d.Close())
}

// give writes a decision that needs no look at the network.
func (o *order) give(c *cobra.Command, key string, f events.Fact) error {
	return o.within(c.Context(), func(d deciding) error { return o.write(c, d, key, f) })
}

// write writes the decision and says where it stands.
func (o *order) write(c *cobra.Command, d deciding, key string, f events.Fact) error {
	op, err := d.operator()
	if err != nil {
		return err
	}
	seq, err := op.Decree(c.Context(), key, f)
	if err != nil {
		return err
	}
	if o.json {
		return json.NewEncoder(c.OutOrStdout()).Encode(map[string]any{"seq": seq, "key": key, "fact": f})
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "%s (sequence %d of control)\n", describe(f), seq)
	return err
}

// operator is who decides with this store, for as long as the verb runs.
func (d deciding) operator() (actors.Operator, error) {
	who, err := d.speaker()
	return actors.Operator{Identity: who, Log: d.Store}, err
}

// openToDecide is open for who may also write control.
func (s source) openToDecide(ctx context.Context) (*reader, error) {
	if s.dir != "" {
		return s.open(ctx, nil)
	}
	cfg := streams.Config{URL: s.url, CA: s.ca, Role: streams.RoleOperator, ID: operatorID, AnySettings: true}
	if s.own != nil {
		cfg.ID, cfg.Key = s.own.ID, s.own
	} else {
		u := operatorLogin(s.secrets[0])
		cfg.User, cfg.Password = u.Name, u.Password
	}
	st, err := streams.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &reader{Store: st, shared: true, end: st.Close}, nil
}
