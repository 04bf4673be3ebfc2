package main

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

func newCreds() *cobra.Command {
	c := &cobra.Command{
		Use:   "creds",
		Short: "Give hosts, operators and auditors keys of their own, list and revoke them",
		Long: `Gives hosts, operators and auditors keys of their own (nkeys: Ed25519), with which they log in and
sign, in place of the secret that all share. What is believed of whom stands in the log, signed
with the operator's key; network.yml has the public half of that one (network.operatorKey). A
network that init made has all of it from the start.

Exit status: see each verb.`,
		Args: knownVerb, RunE: needsVerb,
	}
	c.AddCommand(newCredsAdd(), newCredsList(), newCredsRevoke(), newCredsPublish())
	return c
}

// registry is an open store in which the operator says who is who.
type registry struct {
	deciding
	conf *network.Network
	keys *events.Keyring
}

// credsFlags are those of the verbs that write.
type credsFlags struct {
	order
}

func (f *credsFlags) add(c *cobra.Command) {
	f.order.add(c)
	c.Flags().Lookup("config").DefValue = defaultConfig
	f.config = defaultConfig
}

// within runs a verb with the operator's own key on an open store, if check finds nothing
// against it in network.yml.
func (f *credsFlags) within(ctx context.Context, check func(*network.Network) error, run func(r *registry) error) error {
	conf, err := network.Load(f.config)
	if err != nil {
		return err
	}
	if err := check(conf); err != nil {
		return err
	}
	if conf.Network.OperatorKey == "" {
		return conf.At(network.CodeBadKey, "network.operatorKey", "is empty, so nobody could believe what the operator says; allowed: what `landfall init --operator-key` makes")
	}
	return f.order.within(ctx, func(d deciding) error {
		if d.own == nil || d.own.ID != events.RootID || !d.own.Raw().Equal(d.trust.operator) {
			return fmt.Errorf("creds: only the operator's own key says who is who, the one whose public half is network.operatorKey of %s: give it with --key", f.config)
		}
		o, err := d.opener(ctx)
		if err != nil {
			return err
		}
		return run(&registry{deciding: d, conf: conf, keys: o.keys})
	})
}

// ends reads how far the log is.
func (r *registry) ends(ctx context.Context) (ends, error) {
	out := ends{}
	for _, b := range events.SpannedBuckets {
		state, err := r.Info(ctx, b)
		if err != nil {
			return nil, err
		}
		out[b] = state.Last
	}
	return out, nil
}

// write puts an identity in place of the one that is known, if nobody was faster.
func (r *registry) write(ctx context.Context, f events.IdentitySet) (uint64, error) {
	last, _, err := r.LastOf(ctx, events.Control, events.IdentityKey(f.Host))
	if err != nil {
		return 0, err
	}
	op, err := r.deciding.operator()
	if err != nil {
		return 0, err
	}
	seq, err := op.DecreeAfter(ctx, events.IdentityKey(f.Host), last.Seq, &f)
	if actors.Overtaken(err) {
		return 0, fmt.Errorf("creds: somebody else has just changed %s: look at `landfall creds list`, and try again", f.Host)
	}
	return seq, err
}

// subject is whom a verb is about.
type subject struct {
	role events.IdentityRole
	id   events.HostID
}

// subjectOf reads the two arguments of a verb, and holds them against network.yml.
func subjectOf(args []string, conf *network.Network) (s subject, err error) {
	s = subject{events.IdentityRole(args[0]), events.HostID(args[1])}
	if !slices.Contains(events.IdentityRoles, s.role) {
		return s, usageError("creds: %q is no role: want backend, proxy, operator or auditor", args[0])
	}
	if _, err := events.ParseHostID(args[1]); err != nil {
		return s, usageError("creds: %w", err)
	}
	x, host := conf.Hosts[args[1]]
	switch {
	case s.id == events.RootID:
		return s, fmt.Errorf("creds: %q is the operator's own key, which init makes: choose another name", s.id)
	case s.role == events.IdentityOperator || s.role == events.IdentityAuditor:
		if host {
			return s, fmt.Errorf("creds: %s is a host of network.yml: choose another name for the %s", s.id, s.role)
		}
		return s, nil
	case !host:
		return s, fmt.Errorf("creds: %s is not under hosts of network.yml: put it there first, on every host", s.id)
	}
	want := events.IdentityBackend
	if role := roleOf(conf, x); role == streams.RoleDispatcher {
		want = events.IdentityProxy
	} else if role == streams.RoleAuditor { // a router reads, and signs nothing
		want = events.IdentityAuditor
	}
	if want != s.role {
		why := "it is a game server's host, and writes no facts"
		if want == events.IdentityProxy {
			why = "it moves players (an edge, or a game server's host in direct mode)"
		}
		if want == events.IdentityAuditor {
			why = "it routes, and signs nothing"
		}
		return s, fmt.Errorf("creds: %s is to be %s: %s", s.id, article(want), why)
	}
	return s, nil
}

// file is where the key of a host is, as network.yml says or would.
func (s subject) file(conf *network.Network) string {
	if named := conf.Hosts[string(s.id)].Creds; named != "" {
		return conf.File(named)
	}
	return conf.File(credsPath(string(s.id)))
}

func credsPath(id string) string { return filepath.Join("creds", id+".nk") }

// streamsRole is what the bearer may do in the store.
func (s subject) streamsRole() streams.Role { return roleOfIdentity(s.role) }

func twoWords(c *cobra.Command, args []string) error {
	if len(args) != 2 {
		return usageError("want a role (backend, proxy, operator, auditor) and a name, got %d arguments; see `%s --help`", len(args), c.CommandPath())
	}
	return nil
}

func newCredsList() *cobra.Command {
	f := storeFlags{}
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Show who has which key, and for whom the shared secret still speaks",
		Long: `Shows the identities that the log has and that the operator has signed: each key with what it may
do, when it was closed, and whether the shared secret speaks for the host as well.

Exit status: 0 shown, 1 the log cannot be read.`,
		Example: `  landfall creds list --config network.yml`,
		Args:    exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.reading(c.Context(), func(_ history, o *opener) error {
				if o.keys == nil || !o.keys.Keyed() {
					return errors.New("creds: without network.operatorKey nothing that the log says of a host can be believed: give --config network.yml")
				}
				return listIdentities(c.OutOrStdout(), o.keys.Identities(), asJSON)
			})
		},
	}
	f.add(c)
	c.Flags().Lookup("config").DefValue = defaultConfig
	f.config = defaultConfig
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object a line")
	return c
}

// credsRow is one key of an identity.
type credsRow struct {
	Host   events.HostID       `json:"host"`
	Role   events.IdentityRole `json:"role"`
	Key    string              `json:"key"`   // its id in signatures; empty: none
	NKey   string              `json:"nkey"`  // its public half
	State  string              `json:"state"` // open, closed
	Secret bool                `json:"secret"`
	From   uint64              `json:"from"`            // first sequence of transfers
	Until  uint64              `json:"until,omitempty"` // last one
}

func listIdentities(w io.Writer, known map[events.HostID]events.IdentitySet, asJSON bool) error {
	var rows []credsRow
	for _, id := range slices.Sorted(maps.Keys(known)) {
		rows = append(rows, rowsOfIdentity(known[id])...)
	}
	if asJSON {
		out := json.NewEncoder(w)
		for _, r := range rows {
			if err := out.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-20s %-9s %-19s %-7s %-7s %s\n", "NAME", "ROLE", "KEY", "STATE", "SECRET", "TRANSFERS")
	for _, r := range rows {
		fmt.Fprintf(&b, "%-20s %-9s %-19s %-7s %-7s %s\n", r.Host, r.Role, r.Key, r.State, map[bool]string{true: "too", false: "no"}[r.Secret], r.span())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// span is what of transfers the key may have signed.
func (r credsRow) span() string {
	switch {
	case r.Until == 0:
		return fmt.Sprintf("from %d", r.From)
	case r.Until < r.From:
		return "none"
	}
	return fmt.Sprintf("%d to %d", r.From, r.Until)
}

// describeIdentity is an identity fact for people.
func describeIdentity(f *events.IdentitySet) string {
	var keys []string
	for _, k := range rowsOfIdentity(*f) {
		keys = append(keys, k.Key+" "+k.State)
	}
	secret := ""
	if len(f.Alone) == 0 {
		secret = ", and the shared secret"
	}
	return fmt.Sprintf("%s is %s: %s%s, by %s%s", f.Host, article(f.Role), strings.Join(keys, ", "), secret, f.Who, reason(": ", f.Why))
}

// article puts "a" or "an" before a role.
func article(r events.IdentityRole) string {
	if r == events.IdentityOperator || r == events.IdentityAuditor {
		return "an " + string(r)
	}
	return "a " + string(r)
}

func rowsOfIdentity(f events.IdentitySet) (rows []credsRow) {
	for _, k := range f.Keys {
		r := credsRow{Host: f.Host, Role: f.Role, State: "open", Secret: len(f.Alone) == 0}
		if k.Closed {
			r.State = "closed"
		}
		if raw, err := hex.DecodeString(k.Key); err == nil {
			r.Key, r.NKey = events.HostKeyID(raw), streams.EncodePublic(raw)
		}
		for _, s := range k.Spans {
			if s.Bucket == events.Transfers {
				r.From, r.Until = s.From, s.Until
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func newCredsPublish() *cobra.Command {
	var f credsFlags
	c := &cobra.Command{
		Use:   "publish",
		Short: "Make the streams of a store on nats-servers of your own, and bring in the identities that init made",
		Long: `Prepares a store on nats-servers of your own (store.mode: external) whose hosts have keys: makes
the streams that are missing, which no host may, looks whether the servers write to the disk before
they acknowledge, and brings the identities of ` + sealedFile + ` into the log. An embedded store's carrier
does this by itself.

Exit status: 0 all is there, 1 otherwise.`,
		Example: `  landfall creds publish --config network.yml --key operator.nk`,
		Args:    exactly(0, ""),
		RunE:    func(c *cobra.Command, _ []string) error { return f.publish(c) },
	}
	f.add(c)
	return c
}

func (f *credsFlags) publish(c *cobra.Command) error {
	ctx := c.Context()
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	conf, err := network.Load(f.config)
	if err != nil {
		return err
	}
	if conf.Store.Mode != "external" || src.own == nil || src.own.ID != events.RootID {
		return conf.At(network.CodeContradiction, "store.mode", "%s: publish prepares a store on servers of your own, with the operator's key (--key); allowed: external", conf.Store.Mode)
	}
	keys, err := src.keyring()
	if err != nil {
		return err
	}
	h := &host{net: conf, keys: keys, log: slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil))}
	cfg := streams.Config{URL: src.url, CA: src.ca, Role: streams.RoleOperator, ID: events.RootID, Key: src.own}
	if err := h.prepareAs(ctx, cfg); err != nil {
		return err
	}
	st, err := streams.Connect(ctx, cfg)
	if err != nil {
		return err
	}
	brought, err := introduceSealed(ctx, st, keys, conf.File(sealedFile))
	if err = errors.Join(err, st.Close()); err != nil {
		return err
	}
	_, err = fmt.Fprintf(c.OutOrStdout(), "the streams are there; %s brought into the log\n", plural(uint64(len(brought)), "identity fact"))
	return err
}
