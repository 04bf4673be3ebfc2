package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// testBeats is how many heartbeats a test host sends before its last one.
const testBeats = 5

func newTest() *cobra.Command {
	c := &cobra.Command{
		Use:   "test",
		Short: "Try a running network with hosts of the test's own",
		Long:  "Tries a running network.\n\nExit status: see each verb.",
		Args:  knownVerb, RunE: needsVerb,
	}
	network := &cobra.Command{
		Use:   "network",
		Short: "Try the log of a running network, end to end",
		Long:  "Tries the log of a running network, end to end.\n\nExit status: see each verb.",
		Args:  knownVerb, RunE: needsVerb,
	}
	network.AddCommand(newTestHeartbeat())
	c.AddCommand(network)
	return c
}

func newTestHeartbeat() *cobra.Command {
	var f storeFlags
	var within time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "heartbeat",
		Short: "Send heartbeats of a test host, and see how soon a fold has them",
		Long: `Sends heartbeats of a host that does not exist, test-<8 hex>, and follows the log as every
dispatcher does: how long from sending a heartbeat until it is acknowledged, and until it is
folded. The host says STARTING and accepts nobody, so no player is ever sent to it; its last
heartbeat says SHUTTING_DOWN. What it sent stays visible until store.telemetryRetention has
passed; nothing can take it out before.

Exit status: 0 every heartbeat was folded in time, 1 one was not, or nothing could be sent.`,
		Args: exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.within(c.Context(), func(d deciding) error {
				keys, err := keyringOf(d.secrets)
				if err != nil {
					return err
				}
				id := newID()
				h := heartbeatTest{
					log: d.Store, keys: keys, host: events.HostID(fmt.Sprintf("test-%x", id[12:])),
					life: events.Incarnation(id), within: within,
				}
				return h.tell(c.OutOrStdout(), asJSON, h.run(c.Context()))
			})
		},
	}
	f.add(c)
	c.Flags().DurationVar(&within, "within", 3*time.Second, "how long a heartbeat may take")
	c.Flags().BoolVar(&asJSON, "json", false, "one JSON object")
	return c
}

// keyringOf signs with the first secret, and believes all of them.
func keyringOf(secrets [][]byte) (*events.Keyring, error) {
	var all []events.Key
	for _, secret := range secrets {
		k, err := events.NewKey(secret)
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return events.NewKeyring(all[0], all[1:]...), nil
}

// beatLog is what the test needs of the log.
type beatLog interface {
	projections.Tailer
	Append(ctx context.Context, m events.Message) (uint64, error)
}

// heartbeatTest is one run of the test, and what it has seen.
type heartbeatTest struct {
	log    beatLog
	keys   *events.Keyring
	host   events.HostID
	life   events.Incarnation
	within time.Duration

	beats []beatSeen
}

// beatSeen is how long one heartbeat took, in milliseconds.
type beatSeen struct {
	Seq          uint64           `json:"seq"`
	State        events.HostState `json:"state"`
	Acknowledged float64          `json:"acknowledgedMs"`
	Folded       float64          `json:"foldedMs"`
}

// run sends the heartbeats, each on top of the one before it, and waits for each of them.
func (h *heartbeatTest) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	grown := make(chan struct{}, 1)
	view := projections.NewView(projections.Config{
		Log: h.log, Keys: h.keys, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: func(projections.Change) {
			select {
			case grown <- struct{}{}:
			default: // one is enough
			}
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = view.Run(ctx) // a fold that stops shows as a heartbeat that is not folded
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := h.sighted(ctx, view); err != nil {
		return err
	}
	prev := uint64(0)
	for i := range testBeats + 1 {
		state := events.Starting
		if i == testBeats {
			state = events.ShuttingDown
		}
		seen, err := h.beat(ctx, view, grown, prev, state)
		if err != nil {
			return fmt.Errorf("heartbeat %d of %s: %w", i+1, h.host, err)
		}
		h.beats = append(h.beats, seen)
		prev = seen.Seq
	}
	return nil
}

// sighted waits until the fold has caught up with the log.
func (h *heartbeatTest) sighted(ctx context.Context, view *projections.View) error {
	ctx, cancel := context.WithTimeoutCause(ctx, max(h.within, 10*time.Second), errors.New("the log cannot be followed"))
	defer cancel()
	return view.WaitLive(ctx)
}

// beat sends one heartbeat and waits until it is folded.
func (h *heartbeatTest) beat(ctx context.Context, view *projections.View, grown <-chan struct{}, prev uint64, state events.HostState) (beatSeen, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, h.within, fmt.Errorf("not folded within %s", h.within))
	defer cancel()
	f := &events.BackendBeat{
		Server: h.host, Incarnation: h.life, State: state, Adapter: "test", Version: buildInfo().Version, Schema: events.SchemaVersion, Regions: []events.RegionBeat{},
	}
	began := time.Now()
	m, err := events.Seal(h.keys, events.Envelope{
		ID: newID(), Source: events.Source{Kind: events.SourceBackend, ID: h.host, Incarnation: h.life}, Time: began, Key: events.BackendKey(h.host), Prev: prev,
	}, f)
	if err != nil {
		return beatSeen{}, err
	}
	seq, err := h.log.Append(ctx, m)
	if err != nil {
		return beatSeen{}, err
	}
	seen := beatSeen{Seq: seq, State: state, Acknowledged: milliseconds(time.Since(began))}
	for {
		if b := view.Fleet().Backend(h.host); b != nil && b.Seq >= seq && b.State == state {
			seen.Folded = milliseconds(time.Since(began))
			return seen, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return seen, context.Cause(ctx)
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// heartbeatReport is what the test prints with --json.
type heartbeatReport struct {
	OK    bool          `json:"ok"`
	Host  events.HostID `json:"host"`
	Beats []beatSeen    `json:"beats"`
	Error string        `json:"error,omitempty"`
}

// tell prints what was seen. A test that failed is told there, and by the exit status.
func (h *heartbeatTest) tell(w io.Writer, asJSON bool, failed error) error {
	r := heartbeatReport{OK: failed == nil, Host: h.host, Beats: h.beats}
	if failed != nil {
		r.Error = oneLine(failed)
	}
	if r.Beats == nil {
		r.Beats = []beatSeen{}
	}
	var err error
	if asJSON {
		err = json.NewEncoder(w).Encode(r)
	} else {
		_, err = io.WriteString(w, r.String())
	}
	if err == nil && failed != nil {
		return exitWith(statusFailed, nil)
	}
	return err
}

// String is one line for each heartbeat, and one for the whole.
func (r heartbeatReport) String() string {
	var b strings.Builder
	for _, x := range r.Beats {
		fmt.Fprintf(&b, "%s  %-13s sequence %d of fleet, acknowledged after %.1f ms, folded after %.1f ms\n", r.Host, x.State, x.Seq, x.Acknowledged, x.Folded)
	}
	if r.OK {
		fmt.Fprintf(&b, "ok: all %d heartbeats were folded\n", len(r.Beats))
	} else {
		fmt.Fprintf(&b, "failed: %s\n", printable(r.Error))
	}
	return b.String()
}
