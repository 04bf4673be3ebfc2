package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge"
)

// statusDuplicateID says that another process has this host's id. A supervisor must not
// start this one again (EX_CONFIG; systemd: RestartPreventExitStatus=78).
const statusDuplicateID = 78

// upOptions are the command line of `landfall up`.
type upOptions struct {
	config string
	id     string
	debug  bool
	// again asks to read the configuration again; nil: nobody does.
	again <-chan os.Signal
}

func newUp() *cobra.Command {
	var o upOptions
	c := &cobra.Command{
		Use:   "up",
		Short: "Run this host of the network: its edges, its sidecar, the store if it carries it",
		Long: `Run this host of the network, until SIGINT or SIGTERM: whatever hosts.<id> of network.yml
says, and the store, if store.carrier names this host. A second signal ends the process at once.

SIGHUP reads network.yml and the messages again, as one: what can change while a host runs is
adopted at once and named in the log, what cannot is named as needing a restart, and a file with
a fault changes nothing. "landfall config diff" tells beforehand.

Exit status: 0 ended by a signal, 1 failed, 78 another process has this id (DUPLICATE_ID):
a supervisor must not start it again.`,
		Example: `  landfall up --id survival-1
  landfall up --config /etc/landfall/network.yml --id proxy-1`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			again := make(chan os.Signal, 1)
			signal.Notify(again, syscall.SIGHUP)
			defer signal.Stop(again)
			o.again = again
			return up(c.Context(), o, os.Getenv, c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&o.config, "config", "network.yml", "the network's file")
	c.Flags().StringVar(&o.id, "id", "", "who this host is in it (default: LANDFALL_SERVER_ID, LANDFALL_PROXY_ID, or the file's serverId, proxyId)")
	c.Flags().BoolVar(&o.debug, "debug", false, "log more")
	return c
}

// up runs a host until ctx ends, then stops it in order and returns nil.
func up(ctx context.Context, o upOptions, env func(string) string, stderr io.Writer) error {
	h, err := openHost(o.config, o.id, env, logTo(stderr, o.debug))
	if err != nil {
		return err
	}
	if !h.net.Enabled() {
		h.log.Info("network.enabled is false: nothing is opened", "config", o.config)
		return nil
	}
	readers := newGang(ctx)
	readers.start(func(ctx context.Context) error { return h.heed(ctx, o.again) })
	err = h.run(ctx)
	if err = errors.Join(err, readers.stop()); errors.Is(err, actors.ErrDuplicateID) {
		return exitWith(statusDuplicateID, fmt.Errorf("host %s: %w", h.name(), err))
	}
	return err
}

func logTo(w io.Writer, debug bool) *slog.Logger {
	level := slog.LevelInfo
	if debug {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

// name is this process in messages.
func (h *host) name() string {
	if h.self.ProxyID != "" {
		return h.self.ProxyID
	}
	return h.self.ServerID
}

// run opens what this host needs, serves, and closes it again: what was opened last is
// closed first, the store at the end.
func (h *host) run(ctx context.Context) error {
	locked := h.unlock()
	if locked != nil && !h.self.Proxy.IsEdge() {
		return locked
	}
	h.sayWired()
	f := newFront(h)
	edges, err := h.listen(f)
	if err != nil {
		return err
	}
	defer closeAll(edges)
	programs, err := h.listenAPI()
	if err != nil {
		return err
	}
	defer programs.close()
	if locked != nil {
		return h.shelter(ctx, edges, locked)
	}
	store, err := h.openStore(ctx)
	if err != nil {
		return err
	}
	crew := &crew{host: h, front: f, edges: edges, store: store, api: programs}
	return crew.run(ctx)
}

// shelter lets players in without a secret: every login goes to the next advertised server.
// Nobody is transferred, and the host is not ready.
func (h *host) shelter(ctx context.Context, edges []*edge.Server, locked error) error {
	h.log.Error("no secret: players are let in to the advertised servers in turn, nobody is transferred", "error", locked, "ready", false)
	fronts := newGang(ctx)
	for _, e := range edges {
		fronts.start(e.Run)
	}
	select {
	case <-ctx.Done():
	case <-fronts.ended():
	}
	return fronts.stop()
}
