package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/landfall/landfall/cmd/landfall/doctor"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// gatherer collects what the doctor judges by.
type gatherer struct {
	flags storeFlags
	id    string
	env   func(string) string

	net     *network.Network // nil: none, or refused
	self    network.Self
	secrets [][]byte
	facts   doctor.Facts
}

func (g *gatherer) unseen(what, format string, args ...any) {
	g.facts.Unseen = append(g.facts.Unseen, doctor.Unseen{What: what, Why: fmt.Sprintf(format, args...)})
}

// readConfig reads network.yml as `config check` does, and who this host is in it.
func (g *gatherer) readConfig() {
	file := g.flags.config
	if file == "" {
		g.unseen("network.yml", "it was not named: what the network should be is not known")
		return
	}
	v := examine(file, "", g.env)
	c := &doctor.Config{File: file}
	g.facts.Config = c
	for _, p := range v.Problems {
		c.Faults = append(c.Faults, doctor.Fault{Where: placeOf(p), Text: p.Text})
	}
	if v.net == nil {
		return
	}
	g.net = v.net
	n := g.net
	c.Disabled = !n.Enabled()
	c.Mode, c.Storage, c.Durability, c.URL, c.OnMachine = n.Store.Mode, n.Store.Storage, n.Store.Durability, n.Store.URL, n.Store.OnThisMachine()
	c.Retention, c.MaxBytes, c.Stale = n.Store.Retention, n.Store.MaxBytes, n.LoadBalancer.StaleAfterMs.Duration()
	for _, id := range slices.Sorted(maps.Keys(n.Hosts)) {
		c.Hosts = append(c.Hosts, g.listed(id, n.Hosts[id]))
	}
	self, err := n.Identity(g.id, g.env)
	var fault *network.Error
	switch {
	case err == nil:
		g.self = self
	case errors.As(err, &fault) && fault.Code == network.CodeNoID:
		g.unseen("what only one host has", "who this host is was not said: give --id")
	default:
		v.problem(err)
		p := v.Problems[len(v.Problems)-1]
		c.Faults = append(c.Faults, doctor.Fault{Where: placeOf(p), Text: p.Text})
	}
}

func placeOf(r remark) string {
	where := cmp.Or(r.File, defaultConfig)
	if r.Line > 0 {
		where = fmt.Sprintf("%s:%d", where, r.Line)
	}
	if r.Key != "" {
		where += " " + r.Key
	}
	return where
}

func (g *gatherer) listed(id string, x network.Host) doctor.Listed {
	role := roleOf(g.net, x)
	l := doctor.Listed{
		ID: events.HostID(id), Backend: x.IsBackend(), Dispatcher: role == streams.RoleDispatcher, Advertise: x.Advertise,
		Readers: []string{streams.ReadsAs(role, events.HostID(id))},
	}
	if g.net.Store.Mode == "embedded" && (g.net.Store.Carrier == "" || g.net.Store.Carrier == id) {
		l.Readers = append(l.Readers, streams.ReadsAs(streams.RoleOperator, readsInCarrier))
	}
	return l
}

// readsInCarrier is the id under which the process that carries the store reads it.
const readsInCarrier events.HostID = "holder"

// readSecrets tells how the secret is kept, and keeps those that are good.
func (g *gatherer) readSecrets(src source) {
	if g.net == nil {
		g.secrets, _ = secretsFor(src, nil, g.env) // a bad one shows as heartbeats that nobody can verify
		return
	}
	s := &doctor.Secret{}
	g.facts.Secret = s
	for _, read := range []func(func(string) string) ([]byte, string, error){g.net.Secret, g.net.PreviousSecret} {
		secret, _, err := read(g.env)
		var fault *network.Error
		switch {
		case errors.As(err, &fault):
			s.Code, s.Text = fault.Code, oneLine(err)
		case secret != nil:
			g.secrets = append(g.secrets, secret)
		}
	}
	if file := g.net.Security.SecretFile; file != "" && g.env(g.net.Security.SecretEnv) == "" {
		if k, err := kept(g.net.File(file)); err == nil {
			s.Files = append(s.Files, k)
		}
	}
	g.readCertificate()
}

// readCertificate looks at what the listeners here show.
func (g *gatherer) readCertificate() {
	t := g.net.Security.TLS
	if t.Cert == "" {
		return
	}
	cert, key := g.net.File(t.Cert), g.net.File(t.Key)
	if _, err := os.Stat(cert); errors.Is(err, fs.ErrNotExist) && !g.self.Carrier {
		return // it is the carrier's
	}
	c := doctor.Certificate{Path: cert}
	pair, err := tls.LoadX509KeyPair(cert, key)
	switch {
	case err != nil:
		c.Fault = oneLine(err)
	default:
		if c.Left = time.Until(pair.Leaf.NotAfter); c.Left <= 0 {
			c.Fault = "expired on " + pair.Leaf.NotAfter.Format(time.DateOnly)
		}
		if k, err := kept(key); err == nil {
			g.facts.Secret.Files = append(g.facts.Secret.Files, k)
		}
	}
	g.facts.Secret.Certificates = append(g.facts.Secret.Certificates, c)
}

// kept tells who may read a file.
func kept(path string) (doctor.Kept, error) {
	info, err := os.Stat(path)
	if err != nil {
		return doctor.Kept{}, err
	}
	return doctor.Kept{Path: path, Others: info.Mode().Perm()&0o077 != 0}, nil
}

// lookAtMachine tells what the store lies on, and what a process may use.
func (g *gatherer) lookAtMachine(src source) {
	m := &doctor.Machine{Edge: g.self.Proxy.IsEdge()}
	g.facts.Machine = m
	m.FilesNow, m.FilesMost = fileLimits()
	switch {
	case src.dir != "":
		m.Dir, m.Carries = src.dir, true
	case g.self.Carrier:
		m.Dir, m.Carries = g.net.File(g.net.Store.Dir), true
	default:
		return
	}
	var err error
	if m.Filesystem, m.Free, err = diskOf(existing(m.Dir)); err != nil {
		m.Carries = false
		g.unseen("the disk of the store", "%s", oneLine(err))
	}
}

// existing is a directory, or the nearest one above it that exists.
func existing(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// reachWithin is how long a dialled address of this machine may take.
const reachWithin = time.Second

// lookAtRCON tells where the game server beside this host listens for commands.
func (g *gatherer) lookAtRCON(ctx context.Context) {
	x := g.self.Server.RCON
	if x == nil {
		return
	}
	r := &doctor.RCON{Host: events.HostID(g.self.ServerID), Address: x.Address, Answers: answersAt(ctx, x.Address)}
	g.facts.RCON = r
	if _, err := readPassword(g.net, g.self.ServerID); err != nil {
		r.Fault = oneLine(err)
	} else if k, err := kept(g.net.File(x.PasswordFile)); err == nil {
		r.Password = &k
	}
	_, port, err := net.SplitHostPort(x.Address)
	if err != nil || !r.Answers {
		return
	}
	for _, ip := range ownAddresses() {
		if address := net.JoinHostPort(ip, port); answersAt(ctx, address) {
			r.Reached = append(r.Reached, address)
		}
	}
}

// ownAddresses are this machine's, those of loopback left out.
func ownAddresses() (out []string) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && !n.IP.IsLinkLocalUnicast() {
			out = append(out, n.IP.String())
		}
	}
	return out
}

func answersAt(ctx context.Context, address string) bool {
	c, err := (&net.Dialer{Timeout: reachWithin}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	return c.Close() == nil
}
