package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

const (
	claimerName  = "edge-"
	storeBytes   = 8 << 30
	fillWriters  = 64
	claimTimeout = 30 * time.Second
)

// What does not differ between tokens.
var (
	secret      = []byte("a secret of thirty-two bytes, yes")
	incarnation = events.Incarnation(uuid.Must(uuid.NewV7()))
	reservation = events.Reserved{
		Attempt: 1, Server: "survival-1", Incarnation: incarnation, Promise: 4711, Region: "default",
		At: events.Position{World: "world", X: 1234.5, Y: 71, Z: -987.5}, TTLMs: 30_000,
	}
)

func nameOf(claimer int) events.HostID { return events.HostID(claimerName + strconv.Itoa(claimer)) }

func claimedBy(claimer int) *events.Claimed {
	return &events.Claimed{Attempt: 1, Dispatcher: nameOf(claimer), Incarnation: incarnation, Session: 1, From: "survival-2"}
}

// recordOf is what an audit keeps of a claim: the body of the fact.
func recordOf(claimer int) []byte {
	body, err := events.Marshal(claimedBy(claimer))
	if err != nil {
		panic(err) // a literal above
	}
	return body
}

// landfallTokens are keys of the log: a reservation is the first fact of its key, a claim the next, guarded and signed.
type landfallTokens struct {
	st   *streams.Store
	keys *events.Keyring
}

func newLandfall(ctx context.Context, e *env, c streams.Config) (system, error) {
	key, err := events.NewKey(secret)
	if err != nil {
		return nil, err
	}
	st, err := streams.Connect(ctx, c)
	if err != nil {
		return nil, err
	}
	e.onClose(st.Close)
	return &landfallTokens{st: st, keys: events.NewKeyring(key)}, st.Ensure(ctx)
}

// one is a single node in this process. The connection goes through the process, or over loopback as from another host.
type one struct {
	name   string
	config embedded.Config
	remote bool
}

func openOne(o one) func(context.Context, *env) (system, error) {
	return func(ctx context.Context, e *env) (system, error) {
		cfg := o.config
		cfg.Dir, cfg.Network, cfg.Creator, cfg.MaxBytes = filepath.Join(e.dir, "landfall-"+o.name), "bench", "up", storeBytes
		user, password := streams.Login(secret, streams.RoleDispatcher, "remote")
		cfg.Users = []embedded.User{{Role: streams.RoleDispatcher, ID: "remote", Name: user, Password: password}}
		srv, err := embedded.Open(ctx, cfg)
		if err != nil {
			return nil, err
		}
		e.onClose(srv.Close)
		s, err := newLandfall(ctx, e, srv.Connection())
		if err != nil || !o.remote {
			return s, err
		}
		return newLandfall(ctx, e, streams.Config{
			URL: srv.URL(), Role: streams.RoleDispatcher, ID: "remote", User: user, Password: password,
			Network: "bench", Creator: "up", Settings: cfg.Settings, Durability: cfg.Durability,
		})
	}
}

// openThree is a replicated log, three nodes in this process and on this disk. The connection goes to the leader.
func openThree(ctx context.Context, e *env) (system, error) {
	nodes, err := embedded.Cluster(ctx, 3, filepath.Join(e.dir, "landfall-three"), nil)
	if err != nil {
		return nil, err
	}
	e.onClose(nodes.Close)
	if _, err := newLandfall(ctx, e, nodes.Connection(0)); err != nil {
		return nil, err
	}
	return newLandfall(ctx, e, nodes.Connection(nodes.Leader(events.Transfers)))
}

func (s *landfallTokens) append(ctx context.Context, by events.HostID, t *token, prev uint64, f events.Fact) (uint64, error) {
	m, err := events.Seal(s.keys, events.Envelope{
		ID: events.EventID(uuid.Must(uuid.NewV7())), Source: events.Source{Kind: events.SourceEdge, ID: by, Incarnation: incarnation},
		Time: time.Now(), Key: events.TransferKey(t.player, t.transfer), Correlation: t.transfer, Prev: prev,
	}, f)
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	return s.st.Append(ctx, m)
}

func (s *landfallTokens) fill(ctx context.Context, tokens []*token) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(fillWriters)
	for _, t := range tokens {
		g.Go(func() (err error) {
			t.pending, err = s.append(ctx, nameOf(0), t, 0, &reservation)
			return err
		})
	}
	return g.Wait()
}

func (s *landfallTokens) claim(ctx context.Context, claimer int, t *token) (bool, error) {
	_, err := s.append(ctx, nameOf(claimer), t, t.pending, claimedBy(claimer))
	var refused *events.AppendError
	if errors.As(err, &refused) && (refused.Reason == events.Conflict || refused.Reason == events.InFlight) {
		return false, nil
	}
	return err == nil, err
}

func (s *landfallTokens) claims(ctx context.Context, seen func(id string, claimer int)) error {
	for r, err := range s.st.History(ctx, events.Transfers, streams.Range{}) {
		if err != nil {
			return err
		}
		e, refused := events.Open(s.keys, r)
		if refused != nil {
			return refused
		}
		f, ok := e.Fact.(*events.Claimed)
		if !ok {
			continue
		}
		claimer, err := strconv.Atoi(strings.TrimPrefix(string(f.Dispatcher), claimerName))
		if err != nil {
			return fmt.Errorf("dispatcher %q: %w", f.Dispatcher, err)
		}
		seen(e.Correlation.String(), claimer)
	}
	return nil
}
