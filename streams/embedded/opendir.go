package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/landfall/landfall/streams"
)

// holderPatience is how long a process that has just locked a directory may take until it
// can be reached.
const holderPatience = 10 * time.Second

// Opened is a store reached through its directory.
type Opened struct {
	*streams.Store
	server *Server // nil when another process has the directory
}

// OpenDir reaches the store in a directory: through the process that has it open, or, when
// none has, by opening it here and now, which keeps others out until Close. Network and
// Creator of cfg may be empty; what the store says of itself is then accepted, and a
// directory without a store is refused.
func OpenDir(ctx context.Context, cfg Config) (*Opened, error) {
	if _, err := os.Stat(cfg.Dir); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	var out *Opened
	err := backoff.Retry(func() (err error) {
		out, err = openOrConnect(ctx, cfg)
		return err
	}, backoff.WithContext(backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(20*time.Millisecond), backoff.WithMaxInterval(500*time.Millisecond), backoff.WithMaxElapsedTime(holderPatience)), ctx))
	return out, err
}

func openOrConnect(ctx context.Context, cfg Config) (*Opened, error) {
	srv, err := Open(ctx, cfg)
	switch {
	case err == nil:
		return openHere(ctx, srv)
	case errors.Is(err, ErrLocked):
		return connectToHolder(ctx, cfg)
	}
	return nil, backoff.Permanent(err)
}

func openHere(ctx context.Context, srv *Server) (*Opened, error) {
	c := srv.Connection()
	c.AnySettings, c.Carrier = true, srv.cfg.Settings != streams.Settings{}
	st, err := streams.Connect(ctx, c)
	if err != nil {
		return nil, backoff.Permanent(errors.Join(err, srv.Close()))
	}
	return &Opened{Store: st, server: srv}, nil
}

// connectToHolder: without a holder file the other process is starting, or ending.
func connectToHolder(ctx context.Context, cfg Config) (*Opened, error) {
	var own owner
	h, err := readHolder(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("open store %s: %w, and cannot be reached yet: %w", cfg.Dir, ErrLocked, err)
	}
	if own, err = claimDir(cfg.Dir, owner{Network: cfg.Network, Creator: cfg.Creator}); err != nil {
		return nil, backoff.Permanent(err)
	}
	st, err := streams.Connect(ctx, streams.Config{
		URL: h.URL, User: h.User, Password: h.Password, Role: streams.RoleOperator, ID: holderID,
		Network: own.Network, Creator: own.Creator, Durability: h.Durability, AnySettings: true, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, fmt.Errorf("open store %s (process %d has it): %w", cfg.Dir, h.PID, err)
	}
	return &Opened{Store: st}, nil
}

// Shared tells that another process has the store open.
func (o *Opened) Shared() bool { return o.server == nil }

// Close ends the connection, and then the store when it was opened here.
func (o *Opened) Close() error {
	err := o.Store.Close()
	if o.server != nil {
		err = errors.Join(err, o.server.Close())
	}
	return err
}
