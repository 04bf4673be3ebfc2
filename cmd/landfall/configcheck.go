package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
)

func newConfigCheck() *cobra.Command {
	var id string
	var asJSON bool
	c := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check network.yml, and say what each host is in it",
		Long: `Checks FILE (network.yml when left out) with the messages and permissions it names, as a host would
at its start, and says what each host is in it. Every fault is one line FILE:LINE: KEY: what is
wrong and what is allowed. Whether keys contradict each other is looked at once each of them is
right by itself.

With --id it also looks at what only that host has: its secret, its certificates and the password
of its RCON.

Exit status: 0 it can be used, 1 it cannot.`,
		Example: `  landfall config check
  landfall config check network.yml --json`,
		Args: upToOneFile,
		RunE: func(c *cobra.Command, args []string) error {
			v := examine(fileOf(args), id, os.Getenv)
			if err := v.print(c.OutOrStdout(), asJSON); err != nil {
				return err
			}
			if !v.OK {
				return exitWith(statusFailed, nil)
			}
			return nil
		},
	}
	c.Flags().StringVar(&id, "id", "", "check as this host: its secret and its files too")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

// examination is what `config check` prints.
type examination struct {
	OK       bool      `json:"ok"`
	File     string    `json:"file"`
	Network  string    `json:"network,omitempty"`
	Enabled  bool      `json:"enabled"`
	Store    string    `json:"store,omitempty"`
	Hosts    []hostRow `json:"hosts"`
	Warnings []remark  `json:"warnings"`
	Problems []remark  `json:"problems"`

	net *network.Network
}

// hostRow is what one host is.
type hostRow struct {
	ID    string   `json:"id"`
	Roles []string `json:"roles"`
}

// remark is one line about one key.
type remark struct {
	File string `json:"file,omitempty"`
	Line int    `json:"line,omitempty"`
	Key  string `json:"key,omitempty"`
	Code string `json:"code,omitempty"`
	Text string `json:"text"`
}

func (r remark) String() string {
	return printable((&network.Error{File: r.File, Line: r.Line, Key: r.Key, Msg: r.Text}).Error())
}

// examine looks at a file, and with an id at what that host needs beside it.
func examine(file, id string, env func(string) string) *examination {
	v := &examination{File: file, Hosts: []hostRow{}, Warnings: []remark{}, Problems: []remark{}}
	n, faults := network.Inspect(file)
	for _, f := range faults {
		v.problem(f)
	}
	if n != nil {
		v.look(n, id, env)
	}
	v.OK = len(v.Problems) == 0
	return v
}

func (v *examination) look(n *network.Network, id string, env func(string) string) {
	v.net, v.Network, v.Enabled, v.Store = n, n.Network.Name, n.Enabled(), storeText(n)
	for _, host := range slices.Sorted(maps.Keys(n.Hosts)) {
		v.Hosts = append(v.Hosts, hostRow{host, rolesOf(n, host)})
	}
	_, err := readMessages(n.File(n.Messages))
	for _, fault := range single(err) {
		v.problem(fault)
	}
	_, err = readPermissions(n)
	for _, fault := range single(err) {
		v.problem(fault)
	}
	if !v.Enabled {
		v.Warnings = append(v.Warnings, v.about("network.enabled", "false: a host opens nothing, and contradictions are not looked for"))
		return
	}
	if _, err := os.Stat(n.File(n.Permissions)); errors.Is(err, fs.ErrNotExist) && v.names("permissions") {
		v.Warnings = append(v.Warnings, v.about("permissions", fmt.Sprintf("there is no %s: each permission has its default", n.Permissions)))
	}
	for _, key := range n.NotYet() {
		v.Warnings = append(v.Warnings, v.about(key, "accepted, but not acted on in this version"))
	}
	if n.Store.Mode == "embedded" && n.Store.Carrier == "" && len(n.Hosts) > 1 {
		v.Warnings = append(v.Warnings, v.about("store.carrier", fmt.Sprintf("empty: all this is one process, which gets its ids from %s and %s", network.EnvProxyID, network.EnvServerID)))
	}
	if n.Store.Mode == "external" && strings.Contains(n.Store.URL, "nats://") && !n.Store.OnThisMachine() {
		v.Warnings = append(v.Warnings, v.about("store.url", "nats:// carries logins and facts in plain text: use tls://, or a private network"))
	}
	if id != "" {
		v.lookAs(id, env)
	}
}

// lookAs checks what one host needs beside the file.
func (v *examination) lookAs(id string, env func(string) string) {
	self, err := v.net.Identity(id, env)
	if err != nil {
		v.problem(err)
		return
	}
	own := &host{net: v.net, self: self, env: env}
	if err := own.unlock(); err != nil {
		v.problem(err)
	}
	v.lookAtTLS(self)
	if self.Server.RCON == nil {
		return
	}
	if _, err := readPassword(v.net, self.ServerID); err != nil {
		v.problem(err)
	}
}

// lookAtTLS checks what the carrier shows, and whom the others believe.
func (v *examination) lookAtTLS(self network.Self) {
	var err error
	switch {
	case self.Carrier && v.net.Store.Carrier != "" && v.net.Security.TLS.Cert != "":
		_, err = listenerCertificate(v.net, slog.New(slog.DiscardHandler))
	case !self.Carrier:
		_, err = authorities(v.net)
	}
	if err != nil {
		v.problem(err)
	}
}

func (v *examination) problem(err error) {
	var e *network.Error
	if !errors.As(err, &e) {
		e = &network.Error{Msg: oneLine(err)}
	}
	v.Problems = append(v.Problems, remark{File: e.File, Line: e.Line, Key: e.Key, Code: e.Code, Text: e.Msg})
}

// names tells that the file itself has a key.
func (v *examination) names(key string) bool {
	return slices.ContainsFunc(v.net.Settings(), func(s network.Setting) bool { return s.Key == key && s.Line > 0 })
}

// about is a remark on a key, with its line if the file has it.
func (v *examination) about(key, text string) remark {
	return remark{File: v.File, Line: v.net.LineOf(key), Key: key, Text: text}
}

func (v *examination) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(v)
	}
	var b strings.Builder
	for _, p := range v.Problems {
		fmt.Fprintln(&b, p)
	}
	if v.OK {
		v.summarise(&b)
	}
	for _, x := range v.Warnings {
		fmt.Fprintln(&b, "warning:", x)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (v *examination) summarise(b *strings.Builder) {
	fmt.Fprintf(b, "%s: ok\n", v.File)
	if !v.Enabled {
		return
	}
	fmt.Fprintf(b, "network %s, store %s\n", v.Network, v.Store)
	wide := 0
	for _, h := range v.Hosts {
		wide = max(wide, len(h.ID))
	}
	for _, h := range v.Hosts {
		fmt.Fprintf(b, "  %-*s  %s\n", wide, h.ID, strings.Join(h.Roles, ", "))
	}
}

func storeText(n *network.Network) string {
	switch {
	case n.Store.Mode == "external":
		return "external at " + n.Store.URL
	case n.Store.Carrier == "":
		return "in the one process of the network"
	}
	return "carried by " + n.Store.Carrier
}

// rolesOf says in words what a host does.
func rolesOf(n *network.Network, id string) []string {
	x := n.Hosts[id]
	var roles []string
	if n.Store.Mode == "embedded" && n.Store.Carrier == id {
		roles = append(roles, "carries the store")
	}
	for _, e := range x.Edges {
		roles = append(roles, fmt.Sprintf("%s for %s on %s", edgeName(x), e.Game, e.Listen))
	}
	if x.IsRelay() {
		roles = append(roles, "relay on "+x.Relay.Listen)
	}
	switch {
	case n.IsLobby(id):
		roles = append(roles, "lobby at "+x.Advertise)
	case x.IsBackend():
		roles = append(roles, fmt.Sprintf("backend at %s with %s", x.Advertise, strings.Join(slices.Sorted(maps.Keys(x.Regions)), ", ")))
	}
	if x.IsBackend() && n.Direct() {
		roles = append(roles, directRole(n))
	}
	if x.IsAPI() {
		roles = append(roles, "API on "+x.API)
	}
	if len(roles) == 0 {
		roles = append(roles, "no role")
	}
	return roles
}

func edgeName(x network.Host) string {
	if x.IsRouter() {
		return "router"
	}
	return "edge"
}

func directRole(n *network.Network) string {
	if n.HasFront() {
		return "moves the players who connect straight to it"
	}
	return "moves its own players"
}
