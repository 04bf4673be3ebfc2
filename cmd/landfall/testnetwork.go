package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
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
	network.AddCommand(newTestHeartbeat(), newTestTokens(), newTestAll())
	c.AddCommand(network)
	return c
}

func newTestHeartbeat() *cobra.Command {
	var f testFlags
	c := &cobra.Command{
		Use:   "heartbeat",
		Short: "Send heartbeats of a test host, and see how soon a fold has them",
		Long: `Sends heartbeats of a host that does not exist, test-<8 hex>, and follows the log as every
dispatcher does: how long from sending a heartbeat until it is acknowledged, and until it is
folded. The host says STARTING and accepts nobody, so no player is ever sent to it; its last
heartbeat says SHUTTING_DOWN. What it sent stays visible until store.telemetryRetention has
passed; nothing can take it out before.

Exit status: 0 every heartbeat was folded in time, 1 one was not, or nothing could be sent.`,
		Example: `  landfall test network heartbeat --config network.yml`,
		Args:    exactly(0, ""),
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c, func(ctx context.Context, p peer) testReport {
				h := heartbeatTest{peer: p}
				return h.report(h.run(ctx))
			})
		},
	}
	f.add(c, "how long a heartbeat may take")
	return c
}

// testFlags are what all tests of a network can be told.
type testFlags struct {
	storeFlags
	within time.Duration
	json   bool
}

func (f *testFlags) add(c *cobra.Command, within string) {
	f.storeFlags.add(c)
	c.Flags().DurationVar(&f.within, "within", 3*time.Second, within)
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object")
}

// peer is a host of the test's own.
type peer struct {
	log    testLog
	keys   *events.Keyring
	host   events.HostID
	life   events.Incarnation
	within time.Duration // what one step may take
}

// testReport is what a test has to say, as text and as JSON.
type testReport interface {
	fmt.Stringer
	passed() bool
}

// run runs a test on the store that the flags name.
func (f *testFlags) run(c *cobra.Command, test func(context.Context, peer) testReport) error {
	return f.storeFlags.within(c.Context(), func(d deciding) error {
		o, err := d.opener(c.Context())
		if err != nil {
			return err
		}
		id := newID()
		p := peer{log: d.Store, keys: o.keys, host: events.HostID(fmt.Sprintf("test-%x", id[12:])), life: events.Incarnation(id), within: f.within}
		return tellTest(c.OutOrStdout(), f.json, test(c.Context(), p))
	})
}

// testLog is what the tests need of the log.
type testLog interface {
	projections.Log
	Append(ctx context.Context, m events.Message) (uint64, error)
}

// heartbeatTest is one run of the test, and what it has seen.
type heartbeatTest struct {
	peer

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
	return observe(ctx, h.log, h.keys, h.within, h.send)
}

func (h *heartbeatTest) send(ctx context.Context, seen *sighting) error {
	prev := uint64(0)
	for i := range testBeats + 1 {
		state := events.Starting
		if i == testBeats {
			state = events.ShuttingDown
		}
		beat, err := h.beat(ctx, seen, prev, state)
		if err != nil {
			return fmt.Errorf("heartbeat %d of %s: %w", i+1, h.host, err)
		}
		h.beats = append(h.beats, beat)
		prev = beat.Seq
	}
	return nil
}

// sighting is a fold of the log that has caught up.
type sighting struct {
	*projections.View

	grown   chan struct{} // something was folded
	endings atomic.Pointer[endings]
}

// endings hear who ends a token, or its transfer.
type endings struct {
	of events.TransferID

	mu    sync.Mutex
	first events.HostID
}

func (e *endings) hear(c projections.Change) {
	if c.Event.Correlation != e.of {
		return
	}
	switch c.Event.Fact.(type) {
	case *events.Expired, *events.Failed, *events.Cancelled:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.first = cmp.Or(e.first, c.Event.Source.ID)
	default: // nothing ends
	}
}

func (e *endings) by() events.HostID {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.first
}

// observe follows the log as a dispatcher does, and runs do once it has caught up.
func observe(ctx context.Context, log projections.Log, keys *events.Keyring, within time.Duration, do func(context.Context, *sighting) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := &sighting{grown: make(chan struct{}, 1)}
	s.View = projections.NewView(projections.Config{
		Log: log, Keys: keys, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: func(c projections.Change) {
			if e := s.endings.Load(); e != nil {
				e.hear(c)
			}
			select {
			case s.grown <- struct{}{}:
			default: // one is enough
			}
		},
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = s.Run(ctx) // a fold that stops shows as something that is not folded
	}()
	defer func() {
		cancel()
		<-ended
	}()
	if err := s.caughtUp(ctx, within); err != nil {
		return err
	}
	return do(ctx, s)
}

func (s *sighting) caughtUp(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, max(within, 10*time.Second), errors.New("the log cannot be followed"))
	defer cancel()
	return s.WaitLive(ctx)
}

// until waits for what the fold shall come to.
func (s *sighting) until(ctx context.Context, cond func() bool) error {
	for !cond() {
		select {
		case <-s.grown:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// beat sends one heartbeat and waits until it is folded.
func (h *heartbeatTest) beat(ctx context.Context, fold *sighting, prev uint64, state events.HostState) (beatSeen, error) {
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
	if err := fold.until(ctx, func() bool {
		b := fold.Fleet().Backend(h.host)
		return b != nil && b.Seq >= seq && b.State == state
	}); err != nil {
		return seen, err
	}
	seen.Folded = milliseconds(time.Since(began))
	return seen, nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// heartbeatReport is what the test prints with --json.
type heartbeatReport struct {
	OK    bool          `json:"ok"`
	Host  events.HostID `json:"host"`
	Beats []beatSeen    `json:"beats"`
	Error string        `json:"error,omitempty"`
}

func (r heartbeatReport) passed() bool { return r.OK }

func (h *heartbeatTest) report(failed error) heartbeatReport {
	r := heartbeatReport{OK: failed == nil, Host: h.host, Beats: h.beats}
	if failed != nil {
		r.Error = oneLine(failed)
	}
	if r.Beats == nil {
		r.Beats = []beatSeen{}
	}
	return r
}

// tellTest prints what was seen. A test that failed is told there, and by the exit status.
func tellTest(w io.Writer, asJSON bool, r testReport) error {
	var err error
	if asJSON {
		err = json.NewEncoder(w).Encode(r)
	} else {
		_, err = io.WriteString(w, r.String())
	}
	if err == nil && !r.passed() {
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
