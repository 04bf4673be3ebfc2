package streams

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// defaultTimeout bounds a call whose context has no deadline.
const defaultTimeout = 5 * time.Second

// flushTimeout bounds how long Close waits for what is still to be sent.
const flushTimeout = 5 * time.Second

// Config says where the store is and who connects.
type Config struct {
	// URL of the store, several separated by commas. Ignored when InProcess is given.
	URL       string
	InProcess nats.InProcessConnProvider // the own process's server
	// CA is a file with the authorities that may have signed the certificate of a tls:// store;
	// "": the system's. It is read again for each connection.
	CA string

	// Role and ID name the host; its reply inbox and its permissions follow from them.
	Role     Role
	ID       events.HostID
	User     string // see Login
	Password string
	Key      *HostKey // logs in in place of user and password

	Network  string // "" accepts any network's store (a reader's right)
	Creator  string // up or demo; "" accepts either
	Settings        // compared with the store's own, unless AnySettings
	// AnySettings compares only whose the store is, not how it is set up: for readers that
	// have no network.yml.
	AnySettings bool

	// Durability is what the network's file says. Grouped: an append returns only once the carrier says that it
	// is on the disk; a carrier that does not offer that is found out by Ensure. "": as the carrier does.
	Durability Durability
	// Durable asks the carrier in the own process; nil asks over the connection.
	Durable func(ctx context.Context, b events.Bucket) error

	// Carrier says that this host makes the streams; the others wait until they exist.
	Carrier bool
	// NoRead says that this host may not read the log (a backend): whether an append has
	// landed it learns from the store's memory of ids, which reaches back some minutes.
	NoRead bool
	// Patience is how long Connect keeps trying when nobody answers; 0 tries once.
	Patience time.Duration

	Logger *slog.Logger // nil: nothing is logged
}

// Store is a host's way to the log and to the other hosts. Safe for concurrent use.
type Store struct {
	cfg    Config
	log    *slog.Logger
	append *link // fails fast: what is given up must not land later
	read   *link // tails, reads, requests
	js     jetstream.JetStream

	doubt   doubts
	barrier *barrier // nil: what is acknowledged is as durable as it will be
	closing sync.Once
}

// Connect logs in, on two connections: a slow tail must not delay an acknowledgement. It
// does not look at the streams yet; see Ensure. Close must be called.
func Connect(ctx context.Context, cfg Config) (*Store, error) {
	cfg.Settings = cfg.Settings.withDefaults()
	if err := cfg.Settings.validate(); err != nil {
		return nil, err
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{cfg: cfg, log: cfg.Logger}
	if cfg.Durable == nil && (cfg.Durability == Grouped || cfg.Durability == "") {
		s.barrier = newBarrier(s.askDurable)
	}
	var err error
	if s.append, err = dial(ctx, cfg, "append"); err != nil {
		return nil, err
	}
	if s.read, err = dial(ctx, cfg, "read"); err != nil {
		s.append.close()
		return nil, err
	}
	s.js, err = jetstream.New(s.read.nc, jetstream.WithDefaultTimeout(defaultTimeout))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to store: %w", err), s.Close())
	}
	return s, nil
}

// Close ends the connections, first the one that reads. It waits, at most 10 s. Callers
// end their Tail, Serve and Listen before; the server, where it is ours, is closed after.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.read.flushAndClose()
		s.append.flushAndClose()
		if s.barrier != nil {
			s.barrier.running.Wait()
		}
	})
	return nil
}

// Connected tells that the store can be reached now, as far as this host knows.
func (s *Store) Connected() bool { return s.append.nc.IsConnected() && s.read.nc.IsConnected() }

// Reconnects is how often a connection of this host broke and stood again.
func (s *Store) Reconnects() uint64 {
	return s.append.nc.Stats().Reconnects + s.read.nc.Stats().Reconnects
}

// within gives a call the default deadline when it has none.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, defaultTimeout)
}
