package embedded

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

const (
	readyTimeout = 60 * time.Second
	maxPayload   = 256 << 10 // a fact has 32 KiB at most, the filters of a tail 64
	memoryBytes  = 1 << 30
	minBytes     = 1 << 30
	lazySync     = 2 * time.Minute

	// A host has two connections with some dozens of subscriptions, and says who it is at once. The
	// bounds leave room for a thousand hosts and keep a stranger, or a host gone wild, from taking
	// the memory and the files of all.
	maxConnections   = 8192
	maxSubscriptions = 1024 // of one connection
	loginSeconds     = 2    // from accept to a login
	holderID         = "holder"
)

// User is a login that the carrier accepts.
type User struct {
	Role     streams.Role
	ID       events.HostID
	Name     string // see streams.Login
	Password string
	Key      string // public half of an nkey, in place of name and password
}

// Config is one embedded server.
type Config struct {
	Dir     string
	Network string
	Creator string // up or demo

	streams.Settings // of the streams that the carrier makes

	// Listen is where other hosts connect (host:port). Empty: a random port on loopback, for
	// this machine's CLI alone.
	Listen string
	TLS    *tls.Config // of Listen; required away from loopback
	Users  []User      // logins of the other hosts
	// Durability: "" is streams.Always.
	Durability streams.Durability
	// MaxBytes of the whole store; 0: half of what is free on the disk now.
	MaxBytes int64
	// Denied hears what logins were denied; it must not block. May be nil.
	Denied func(Denial)
	// NoListener opens no socket at all: nobody else can look in. For simulations inside a
	// testing/synctest bubble, which a socket would hold up.
	NoListener bool

	Logger *slog.Logger // nil: nothing is logged
}

// Server is a running store. Close must be called.
type Server struct {
	cfg     Config
	ns      *server.Server
	log     *logger
	lock    *lock
	holder  Holder
	url     string
	door    *door           // nil: who has read holder.json comes over the listener
	disk    *disk           // nil: lazy
	durable *durableService // nil: not grouped

	mu   sync.Mutex
	opts *server.Options // as they hold now
}

// Open locks the directory for the life of this process, checks whose it is, and starts
// the store in it. It returns when the store is ready, at most after 60 s. It fails with
// ErrLocked when another process has the directory.
func Open(ctx context.Context, cfg Config) (*Server, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Durability == "" {
		cfg.Durability = streams.Always
	}
	if cfg.Durability == streams.Grouped && cfg.Storage == streams.Memory {
		return nil, errors.New("store.durability grouped: a store in memory has no disk: set store.storage to file")
	}
	if err := cfg.checkListener(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	l, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, lock: l, log: newLogger(cfg.Logger)}
	s.log.denied = cfg.Denied
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) open(ctx context.Context) error {
	own, err := claimDir(s.cfg.Dir, owner{Network: s.cfg.Network, Creator: s.cfg.Creator})
	if err != nil {
		return err
	}
	s.cfg.Network, s.cfg.Creator = own.Network, own.Creator
	if err := removeHolder(s.cfg.Dir); err != nil { // left by a process that was killed
		return fmt.Errorf("open store: %w", err)
	}
	if s.cfg.MaxBytes, err = s.cfg.size(); err != nil {
		return err
	}
	opts, err := s.options()
	if err != nil {
		return err
	}
	s.opts = opts.Clone()
	if err := s.start(ctx, opts); err != nil {
		return err
	}
	if err := s.makeDurable(ctx); err != nil {
		return fmt.Errorf("open store %s: %w", s.cfg.Dir, err)
	}
	if s.cfg.NoListener {
		return nil
	}
	s.url = "nats://" + s.ns.Addr().String()
	s.holder.URL = s.url
	if s.cfg.TLS != nil {
		s.url = "tls://" + s.ns.Addr().String()
		if s.door, err = openDoor(s.ns); err != nil {
			return fmt.Errorf("open store %s: %w", s.cfg.Dir, err)
		}
		s.holder.URL = s.door.url()
	}
	s.holder.Network, s.holder.Durability, s.holder.PID = own.Network, s.cfg.Durability, os.Getpid()
	return writeHolder(s.cfg.Dir, s.holder)
}

// makeDurable: a process that was killed, or was lazy, may have left facts in memory only.
func (s *Server) makeDurable(ctx context.Context) error {
	if s.cfg.Durability == streams.Lazy {
		return nil
	}
	s.disk = newDisk(s.cfg.Dir, s.cfg.Logger)
	if err := s.disk.settle(ctx); err != nil || s.cfg.Durability != streams.Grouped {
		return err
	}
	var err error
	s.durable, err = serveDurable(s.Connection(), s.disk)
	return err
}

// checkListener tries the address: the server itself would only say in its log that it
// cannot listen.
func (c Config) checkListener() error {
	if c.Listen == "" || c.NoListener {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("store.listen %q: want host:port: %w", c.Listen, err)
	}
	if ip := net.ParseIP(host); c.TLS == nil && (ip == nil || !ip.IsLoopback()) && host != "localhost" {
		return fmt.Errorf("store.listen %s: a store reached from other machines needs TLS: set security.tls, or listen on 127.0.0.1", c.Listen)
	}
	probe, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("store.listen %s: cannot listen: %w: stop what uses the port, or change store.listen", c.Listen, err)
	}
	return probe.Close()
}

// SizeFor is how large a store in a directory may become when nobody says: half of what is
// free on the disk now, in bytes.
func SizeFor(dir string) (int64, error) {
	free, err := freeBytes(dir)
	return free / 2, err
}

func (c Config) size() (int64, error) {
	if c.MaxBytes == 0 {
		half, err := SizeFor(c.Dir)
		if err != nil {
			return 0, err
		}
		c.MaxBytes = half
		c.Logger.Info("store size settled", "maxBytes", c.MaxBytes)
	}
	if c.MaxBytes < minBytes {
		return 0, fmt.Errorf("store.maxBytes: %d is too small, want at least %d: free some disk, or put store.dir elsewhere", c.MaxBytes, minBytes)
	}
	return c.MaxBytes, nil
}

func (s *Server) options() (*server.Options, error) {
	host, port := "127.0.0.1", server.RANDOM_PORT
	if s.cfg.Listen != "" {
		h, p, err := net.SplitHostPort(s.cfg.Listen)
		if err != nil {
			return nil, err
		}
		host = h
		if port, err = strconv.Atoi(p); err != nil {
			return nil, fmt.Errorf("store.listen %q: %w", s.cfg.Listen, err)
		}
		if port == 0 {
			port = server.RANDOM_PORT
		}
	}
	secret := make([]byte, 24)
	if _, err := rand.Read(secret); err != nil {
		return nil, err
	}
	s.holder.User, s.holder.Password = string(streams.RoleOperator)+"."+holderID, base64.RawURLEncoding.EncodeToString(secret)
	o := baseOptions(s.cfg.Dir, s.cfg.MaxBytes, s.cfg.Durability)
	o.ServerName, o.Host, o.Port = "landfall", host, port
	o.DontListen, o.TLSConfig = s.cfg.NoListener, s.cfg.TLS
	return o, s.admit(o, s.cfg.Users)
}

// baseOptions leaves nothing to a default that might move.
func baseOptions(dir string, maxBytes int64, d streams.Durability) *server.Options {
	return &server.Options{
		NoSigs:                 true,
		JetStream:              true,
		StoreDir:               dir,
		JetStreamMaxStore:      maxBytes,
		JetStreamMaxMemory:     memoryBytes,
		MaxPayload:             maxPayload,
		SyncAlways:             d == streams.Always,
		SyncInterval:           lazySync,
		DisableJetStreamBanner: true,
		MaxControlLine:         4096,
		MaxConn:                maxConnections,
		MaxSubs:                maxSubscriptions,
		AuthTimeout:            loginSeconds,
		PingInterval:           20 * time.Second,
		MaxPingsOut:            2,
		WriteDeadline:          10 * time.Second,
	}
}

// admit puts the hosts' logins into the options, and one made for this life of the store: for
// this process itself and, over holder.json, the CLI of whoever may read the directory.
func (s *Server) admit(o *server.Options, users []User) (err error) {
	all := append([]User{{Role: streams.RoleOperator, ID: holderID, Name: s.holder.User, Password: s.holder.Password}}, users...)
	s.log.know(all)
	o.Users, o.Nkeys, err = serverUsers(all)
	return err
}

// SetUsers replaces the logins of the hosts while the store runs: whoever has none any more is
// cut at once, and nobody else notices.
func (s *Server) SetUsers(users []User) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.opts.Clone()
	if err := s.admit(o, users); err != nil {
		return err
	}
	if err := s.ns.ReloadOptions(o.Clone()); err != nil {
		return fmt.Errorf("change the logins of store %s: %w", s.cfg.Dir, err)
	}
	s.opts = o
	return nil
}

func serverUsers(all []User) (users []*server.User, keys []*server.NkeyUser, err error) {
	seen := map[string]bool{}
	for _, u := range all {
		name := u.Name + u.Key
		if seen[name] || name == "" || (u.Password == "") == (u.Key == "") {
			return nil, nil, fmt.Errorf("login %q: want a name of its own and a password, or a key", name)
		}
		seen[name] = true
		may := permissions(streams.PermissionsOf(u.Role, u.ID))
		if u.Key != "" {
			keys = append(keys, &server.NkeyUser{Nkey: u.Key, Permissions: may})
		} else {
			users = append(users, &server.User{Username: u.Name, Password: u.Password, Permissions: may})
		}
	}
	return users, keys, nil
}

func permissions(p streams.Permissions) *server.Permissions {
	out := &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: p.Publish},
		Subscribe: &server.SubjectPermission{Allow: p.Subscribe},
	}
	if p.AnswerFor > 0 {
		out.Response = &server.ResponsePermission{MaxMsgs: 1, Expires: p.AnswerFor}
	}
	return out
}

// start runs the server and waits until it is ready, has failed, or ctx ends.
func (s *Server) start(ctx context.Context, opts *server.Options) error {
	var err error
	if s.ns, err = launch(ctx, opts, s.log); err != nil {
		return fmt.Errorf("open store %s: %w", s.cfg.Dir, err)
	}
	return nil
}

// launch gives a server also when it fails, as soon as there is one to shut down.
func launch(ctx context.Context, opts *server.Options, log *logger) (*server.Server, error) {
	ns, err := server.NewServer(opts)
	if err != nil {
		return nil, err
	}
	ns.SetLoggerV2(log, false, false, false)
	began := time.Now()
	started := make(chan struct{})
	go func() {
		defer close(started)
		ns.Start()
	}()
	if err := awaitReady(ctx, ns, log, started); err != nil {
		ns.Shutdown()
		<-started
		return ns, err
	}
	log.log.Debug("store: ready", "after", time.Since(began))
	return ns, nil
}

// awaitReady: a large store is read again before it is ready, so it says now and then that
// it is still at it.
func awaitReady(ctx context.Context, ns *server.Server, log *logger, started <-chan struct{}) error {
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready after %s", readyTimeout))
	defer cancel()
	remark := time.NewTicker(5 * time.Second)
	defer remark.Stop()
	for {
		select {
		case err := <-log.fatal:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-remark.C:
			log.log.Info("store: still starting")
			continue
		case <-started:
		}
		if ns.ReadyForConnections(readyPoll) {
			return nil
		}
	}
}

// readyPoll is how long one look for a ready server takes.
const readyPoll = 100 * time.Millisecond

// URL is where the store listens; "" with NoListener.
func (s *Server) URL() string { return s.url }

// Dir is the store's directory.
func (s *Server) Dir() string { return s.cfg.Dir }

// Connection is how this process itself connects: inside the process, as the host that
// makes the streams. Role and ID may be set by the caller to name the host.
func (s *Server) Connection() streams.Config {
	c := streams.Config{
		InProcess:  s.ns,
		Role:       streams.RoleOperator,
		ID:         holderID,
		User:       s.holder.User,
		Password:   s.holder.Password,
		Network:    s.cfg.Network,
		Creator:    s.cfg.Creator,
		Settings:   s.cfg.Settings,
		Durability: s.cfg.Durability,
		Carrier:    true,
		Logger:     s.cfg.Logger,
	}
	if s.cfg.Durability == streams.Grouped {
		c.Durable = s.disk.sync
	}
	return c
}

// Close stops the store, waits for it, and gives the directory free. Connections to it
// must be closed before.
func (s *Server) Close() error {
	var err error
	if s.durable != nil {
		s.durable.close()
	}
	if s.disk != nil {
		s.disk.close()
	}
	if s.door != nil {
		s.door.close()
	}
	if s.ns != nil {
		s.ns.Shutdown()
		s.ns.WaitForShutdown()
		err = removeHolder(s.cfg.Dir)
	}
	return errors.Join(err, s.lock.release())
}
