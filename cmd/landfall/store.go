package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// Where the verbs that make a store put it when nobody says otherwise.
const (
	defaultDataDir = "landfall-data"
	defaultDemoDir = "landfall-demo"
	demoSecretFile = "secret" // in the demo's directory: Base64, readable by its owner alone
	envSecret      = "RTP_NET_SECRET"
)

// readerID is the login of the verbs that only read, beside those of the hosts: a carrier
// must accept readerLogin.
const readerID events.HostID = "cli"

// readerSize keeps a nearly full disk readable: what only reads need not fit.
const readerSize = 1 << 40

// readerLogin derives the login of the reading verbs from the network's secret.
func readerLogin(secret []byte) embedded.User {
	name, password := streams.Login(secret, streams.RoleAuditor, readerID)
	return embedded.User{Role: streams.RoleAuditor, ID: readerID, Name: name, Password: password}
}

// storeFlags say which store a reading verb looks at.
type storeFlags struct {
	store  string // URL or directory
	config string // network.yml
	file   string // written by export, instead of a store
	key    string // of an operator or auditor
}

func (f *storeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.store, "store", "", "NATS URL, or directory of a store, running or stopped (default: as --config says, else ./"+defaultDataDir+", else ./"+defaultDemoDir+")")
	c.Flags().StringVar(&f.config, "config", "", "network.yml that names the store and the secret")
	c.Flags().StringVar(&f.key, "key", "", "`FILE` with the key of an operator or auditor, where hosts have keys of their own (default: "+operatorFile+" beside network.yml, if it is there)")
}

// addFile lets a verb read an exported file instead of a store.
func (f *storeFlags) addFile(c *cobra.Command) {
	c.Flags().StringVar(&f.file, "from-file", "", "read this `FILE`, which export wrote, instead of a store")
}

// source is a store that was found, and what may verify it.
type source struct {
	url   string // one of url, dir and file is set; without a login
	dir   string
	file  string
	ca    string        // who may have signed the certificate of url; "": whom the system trusts
	login *url.Userinfo // as the URL gave it; nil: none
	trust
}

// String is the store as a person would name it, without a password.
func (s source) String() string { return s.dir + s.url + s.file }

// remote reads a URL, or several separated by commas, and takes the login out, so that no
// message can show it. The first login counts.
func remote(text string) (s source, err error) {
	var plain []string
	for one := range strings.SplitSeq(text, ",") {
		u, err := url.Parse(strings.TrimSpace(one))
		if err != nil || u.Host == "" {
			return s, usageError("--store: not a URL such as nats://127.0.0.1:4222, nor a directory")
		}
		if s.login == nil {
			s.login = u.User
		}
		u.User = nil
		plain = append(plain, u.String())
	}
	s.url = strings.Join(plain, ",")
	return s, nil
}

// find settles where the store is. env is os.Getenv.
func (f storeFlags) find(env func(string) string) (source, error) {
	var conf *network.Network
	if f.config != "" {
		var err error
		if conf, err = network.Load(f.config); err != nil {
			return source{}, err
		}
	}
	s, err := f.locate(conf)
	if err != nil {
		return source{}, err
	}
	if s.url != "" && conf != nil {
		if s.ca, err = authorities(conf); err != nil {
			return source{}, err
		}
	}
	if conf != nil {
		if s.operator, err = operatorKeyOf(conf); err != nil {
			return source{}, err
		}
	}
	if s.own, err = ownKey(f.key, conf); err != nil {
		return source{}, err
	}
	s.secrets, err = secretsFor(s, conf, env)
	return s, err
}

func (f storeFlags) locate(conf *network.Network) (source, error) {
	switch {
	case f.file != "" && f.store != "":
		return source{}, usageError("--from-file and --store both say what to read: give one")
	case f.file != "":
		return source{file: f.file}, nil
	case strings.Contains(f.store, "://"):
		return remote(f.store)
	case f.store != "":
		return directory(f.store)
	case conf != nil:
		return configured(conf)
	}
	for _, dir := range []string{defaultDataDir, defaultDemoDir} {
		if s, err := directory(dir); err == nil {
			return s, nil
		}
	}
	return source{}, fmt.Errorf("there is no store here (neither ./%s nor ./%s): name one with --store DIR, --store nats://HOST:PORT or --config network.yml", defaultDataDir, defaultDemoDir)
}

// configured is the store of a network.yml: the directory on the carrier's own machine,
// else what the other hosts connect to.
func configured(conf *network.Network) (source, error) {
	if conf.Store.Mode == "external" {
		return remote(conf.Store.URL)
	}
	s, err := directory(conf.File(conf.Store.Dir))
	if errors.Is(err, fs.ErrNotExist) && conf.Store.URL != "" {
		return remote(conf.Store.URL)
	}
	return s, err
}

func directory(dir string) (source, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return source{}, fmt.Errorf("store %s: %w: name the directory of a store, or a URL such as nats://127.0.0.1:4222", dir, fs.ErrNotExist)
	case err != nil:
		return source{}, fmt.Errorf("store: %w", err)
	case !info.IsDir():
		return source{}, fmt.Errorf("store %s: is a file: name the directory it lies in", dir)
	}
	return source{dir: dir}, nil
}

// secretsFor gathers every secret at hand: signatures name their key, so one too many does
// no harm. A missing one only means that nothing can be verified, a bad one is refused.
func secretsFor(s source, conf *network.Network, env func(string) string) ([][]byte, error) {
	var found [][]byte
	add := func(secret []byte, _ string, err error) error {
		var refused *network.Error
		if errors.As(err, &refused) && refused.Code == network.CodeSecretMissing {
			return nil
		}
		if secret != nil {
			found = append(found, secret)
		}
		return err
	}
	sources := []func() ([]byte, string, error){}
	if conf != nil {
		sources = append(sources, func() ([]byte, string, error) { return conf.Secret(env) }, func() ([]byte, string, error) { return conf.PreviousSecret(env) })
	}
	if conf == nil || conf.Security.SecretEnv != envSecret {
		sources = append(sources, func() ([]byte, string, error) { return secretFrom("network.yml", "", env) })
	}
	if s.dir != "" {
		sources = append(sources, func() ([]byte, string, error) {
			return secretFrom(filepath.Join(s.dir, "network.yml"), demoSecretFile, func(string) string { return "" })
		})
	}
	for _, read := range sources {
		if err := add(read()); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// secretFrom reads a secret as a network.yml at path would that names nothing but the file.
func secretFrom(path, file string, env func(string) string) ([]byte, string, error) {
	text := "{}"
	if file != "" {
		text = "security: { secretFile: " + file + " }"
	}
	n, err := network.Parse(path, []byte(text))
	if err != nil {
		return nil, "", err
	}
	return n.Secret(env)
}

// reader is an open store that is only read. Close must be called.
type reader struct {
	*streams.Store
	shared bool // another process has the store open, and may write on
	end    func() error
}

// Close ends the connection, and the store when it was opened here.
func (r *reader) Close() error { return r.end() }

// readable is what a reading verb reads: a store, or a file that was exported.
type readable interface {
	history
	Close() error
}

// read opens a store or an exported file.
func (s source) read(ctx context.Context) (readable, error) {
	if s.file != "" {
		return openExport(s.file)
	}
	return s.open(ctx, nil)
}

// open connects to the store, or opens its directory when no process has it. log may be nil.
func (s source) open(ctx context.Context, log *slog.Logger) (*reader, error) {
	if s.dir == "" {
		return s.connect(ctx, log)
	}
	o, err := embedded.OpenDir(ctx, embedded.Config{Dir: s.dir, MaxBytes: readerSize, Logger: log})
	if err != nil {
		return nil, err
	}
	return &reader{Store: o.Store, shared: o.Shared(), end: o.Close}, nil
}

// connect logs in as the URL says, else as the network's secret does.
func (s source) connect(ctx context.Context, log *slog.Logger) (*reader, error) {
	cfg := streams.Config{URL: s.url, CA: s.ca, Role: streams.RoleAuditor, ID: readerID, AnySettings: true, Logger: log}
	if s.login != nil {
		cfg.User = s.login.Username()
		cfg.Password, _ = s.login.Password()
	} else if s.own != nil {
		cfg.Role, cfg.ID, cfg.Key = s.own.Role, s.own.ID, s.own
	} else if len(s.secrets) > 0 {
		u := readerLogin(s.secrets[0])
		cfg.User, cfg.Password = u.Name, u.Password
	}
	st, err := streams.Connect(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if _, err := st.Info(ctx, events.Transfers); err != nil {
		return nil, errors.Join(fmt.Errorf("store %s: %w: is it the store of a Landfall network?", s, err), st.Close())
	}
	return &reader{Store: st, shared: true, end: st.Close}, nil
}

// reading opens what the flags name, and closes it again.
func (f *storeFlags) reading(ctx context.Context, use func(log history, o *opener) error) error {
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	o, err := newOpener(src.trust)
	if err != nil {
		return err
	}
	log, err := src.read(ctx)
	if err != nil {
		return err
	}
	if err := o.know(ctx, log); err != nil {
		return errors.Join(err, log.Close())
	}
	return errors.Join(use(log, o), log.Close())
}
