package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
)

func newInit() *cobra.Command {
	o := starter{}
	c := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Make what a new network needs: network.yml, secret, certificates, passwords",
		Long: `Makes in DIR (here when left out) a commented network.yml, and every file that it names: the secret, the
passwords of the game servers' RCON, a certificate authority of the network's own and the
certificate of the store, the operator's key and one for each host, all readable by their owner
alone; then says what to copy where. The network of the defaults runs on one machine; network.yml
is yours to edit before the first start.

What is there already is kept, never overwritten: with a network.yml in DIR, init makes what that
one names and lacks. To renew the store's certificate, remove it and its key and run init again;
a running carrier shows the new one to the next that connects. A secret that is a placeholder is
refused.

Exit status: 0 all is there, 1 something cannot be made, or what is there cannot be used.`,
		Example: `  landfall init my-network`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usageError("want one directory, got %d arguments; see `%s --help`", len(args), c.CommandPath())
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return initialise(c.OutOrStdout(), dir, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Name, "name", "my-network", "the network's name; stands in its store")
	f.StringVar(&o.Domain, "domain", "localhost", "host name that players dial")
	f.StringSliceVar(&o.Proxies, "proxies", []string{"proxy-1"}, "hosts that players connect to; \"\" for none: the game servers' hosts move their players themselves")
	f.StringSliceVar(&o.Backends, "backends", []string{"survival-1", "survival-2"}, "hosts of game servers")
	f.StringVar(&o.Store, "store-address", "127.0.0.1:4222", "host:port at which all hosts reach the store, which the first host carries")
	f.BoolVar(&o.OperatorKey, "operator-key", false, "make an operator's key for the network.yml that is there, and say what to write into it")
	f.StringVar(&o.Edge, "edge-listen", ":25565", "where the proxies listen for players")
	return c
}

// kit is what init makes, file by file.
type kit struct {
	dir   string
	net   *network.Network
	lines []string // what was made and what was kept, in the order of it
}

func initialise(w io.Writer, dir string, o starter) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	k := &kit{dir: dir}
	for _, step := range []func() error{func() error { return k.config(o) }, k.secret, k.certificates, k.passwords, func() error { return k.identities(o.OperatorKey) }} {
		if err := step(); err != nil {
			return fmt.Errorf("init: %w", err)
		}
	}
	_, err := io.WriteString(w, strings.Join(k.lines, "\n")+"\n\n"+k.instructions())
	return err
}

// config reads the network.yml that is there, or makes one.
func (k *kit) config(o starter) (err error) {
	path := filepath.Join(k.dir, defaultConfig)
	if k.net, err = network.Load(path); err == nil {
		k.kept(path)
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	operator, keep, err := k.operatorKey(filepath.Join(k.dir, operatorFile))
	if err != nil {
		return err
	}
	o.operator = operator.Public()
	text, err := o.text(k.dir)
	if err != nil {
		return err
	}
	if k.net, err = network.Parse(path, []byte(text)); err != nil {
		return err
	}
	if err := keep(); err != nil {
		return err
	}
	return k.make(path, []byte(text))
}

// secret makes the network's secret, or refuses the one that is there if it protects nothing.
func (k *kit) secret() error {
	if k.net.Security.SecretFile == "" {
		return nil
	}
	path := k.net.File(k.net.Security.SecretFile)
	if exists(path) {
		k.kept(path)
		_, _, err := k.net.Secret(func(string) string { return "" })
		return err
	}
	return k.make(path, []byte(randomText()+"\n"))
}

// passwords makes the RCON passwords that are lacking.
func (k *kit) passwords() error {
	for _, id := range k.net.HostIDs() {
		h := k.net.Hosts[id]
		if h.RCON == nil {
			continue
		}
		path := k.net.File(h.RCON.PasswordFile)
		if exists(path) {
			k.kept(path)
		} else if err := k.make(path, []byte(randomWord()+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// make writes a file that is not there yet, for its owner alone.
func (k *kit) make(path string, content []byte) error {
	if err := makeFile(path, content); err != nil {
		return err
	}
	k.lines = append(k.lines, "made  "+path)
	return nil
}

func (k *kit) kept(path string) { k.lines = append(k.lines, "kept  "+path) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// instructions say what to copy where.
func (k *kit) instructions() string {
	n, carrier := k.net, k.net.Store.Carrier
	var b strings.Builder
	for _, id := range n.HostIDs() {
		files := []string{defaultConfig}
		add := func(path string) {
			if path != "" {
				files = append(files, path)
			}
		}
		add(n.Security.SecretFile)
		add(n.Security.TLS.CA)
		add(n.Hosts[id].Creds)
		if id == carrier {
			add(n.Security.TLS.Cert)
			add(n.Security.TLS.Key)
			if exists(filepath.Join(k.dir, sealedFile)) {
				add(sealedFile)
			}
		}
		if h := n.Hosts[id]; h.RCON != nil {
			add(h.RCON.PasswordFile)
		}
		fmt.Fprintf(&b, "%s needs %s\n", id, strings.Join(files, ", "))
	}
	if key := k.authorityKey(); key != "" {
		fmt.Fprintf(&b, "%s goes to no host: whoever has it can pass for the store. Keep it where you run init.\n", filepath.Base(key))
	}
	if exists(filepath.Join(k.dir, operatorFile)) {
		fmt.Fprintf(&b, "%s goes to no host: whoever has it says who is who, and decides. Keep it where you type landfall kill, creds, …\n", operatorFile)
	}
	for _, id := range n.HostIDs() {
		if h := n.Hosts[id]; h.RCON != nil {
			fmt.Fprintf(&b, "In server.properties of %s: enable-rcon=true, rcon.port=%s, rcon.password as in %s, accepts-transfers=true\n", id, portOf(h.RCON.Address), h.RCON.PasswordFile)
		}
	}
	fmt.Fprintf(&b, "Then, on each host: landfall up --id ID, where network.yml lies; landfall config check --id ID tells beforehand.\n")
	return b.String()
}

func portOf(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }
