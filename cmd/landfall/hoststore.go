package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// createdByUp stands in the store; a demo's store is another thing.
const createdByUp = "up"

// startPatience is how long a host waits for a store that nobody serves yet: hosts of a
// network start in any order.
const startPatience = 365 * 24 * time.Hour

// hostStore is this process's way to the log: the store itself when it is the carrier, and a
// connection for each id it speaks under.
type hostStore struct {
	h      *host
	server *embedded.Server // nil: somebody else carries the store
	shared *streams.Store   // of the carrier, for all its roles
	keeper *gatekeeper      // nil: the logins are what they are
	byID   map[events.HostID]*streams.Store
	denied atomic.Pointer[func(embedded.Denial)] // hears what the carried store denied to logins; nil: nobody
}

// openStore opens the store if this process carries it. Close must be called.
func (h *host) openStore(ctx context.Context) (*hostStore, error) {
	s := &hostStore{h: h, byID: map[events.HostID]*streams.Store{}}
	if !h.self.Carrier {
		return s, nil
	}
	cfg, err := h.embeddedConfig()
	if err != nil {
		return nil, err
	}
	cfg.Denied = s.hearDenial
	if s.server, err = embedded.Open(ctx, cfg); err != nil {
		return nil, h.storeError(err)
	}
	if s.shared, err = connectReady(ctx, s.server.Connection(), h.log); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if h.keys.Keyed() {
		brought, err := introduceSealed(ctx, s.shared, h.keys, h.net.File(sealedFile))
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		if len(brought) > 0 {
			h.log.Info("identities brought into the log", "file", h.net.File(sealedFile), "keys", brought)
		}
		if err := h.meet(ctx, s.shared); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.keeper = newGatekeeper(h, s)
	}
	h.log.Info("store opened", "dir", s.server.Dir(), "url", s.server.URL(), "durability", h.net.Store.Durability)
	return s, nil
}

// hearDenial passes on what a login was denied, but not what the doctor tried.
func (s *hostStore) hearDenial(d embedded.Denial) {
	if hear := s.denied.Load(); hear != nil && !strings.Contains(d.Subject, streams.ProbeName) {
		(*hear)(d)
	}
}

func (h *host) storeError(err error) error {
	if errors.Is(err, embedded.ErrLocked) {
		return fmt.Errorf("store.dir %s: another process has it open: stop that one, or give this network a store.dir of its own", h.net.File(h.net.Store.Dir))
	}
	return err
}

func (h *host) embeddedConfig() (embedded.Config, error) {
	n := h.net
	c := embedded.Config{
		Dir: n.File(n.Store.Dir), Network: n.Network.Name, Creator: createdByUp, Settings: settingsOf(h.net),
		Durability: streams.Durability(n.Store.Durability), MaxBytes: n.Store.MaxBytes, Users: loginsOf(h.net, h.secrets, h.keys), Logger: h.log.With("store", "embedded"),
	}
	if h.keys.Keyed() {
		c.Users = c.Users[:1] // the operator's; of the others the log must speak first
	}
	if n.Store.Carrier != "" {
		c.Listen = n.Store.Listen
	}
	if n.Store.Carrier != "" && n.Security.TLS.Cert != "" {
		shown, err := listenerCertificate(n, h.log)
		if err != nil {
			return c, err
		}
		c.TLS = shown.tls()
	}
	if c.Durability == streams.Lazy {
		h.log.Warn("store.durability lazy: facts that were acknowledged can be lost in a power cut")
	}
	return c, nil
}

// settingsOf is how network.yml wants the streams.
func settingsOf(n *network.Network) streams.Settings {
	s := n.Store
	return streams.Settings{Replicas: s.Replicas, Storage: streams.StorageKind(s.Storage), Retention: s.Retention, TelemetryRetention: s.TelemetryRetention}
}

// as gives the connection of one of this process's ids. It waits until the store can be
// reached and is as network.yml says.
func (s *hostStore) as(ctx context.Context, id events.HostID, x network.Host) (*streams.Store, error) {
	if s.shared != nil {
		return s.shared, nil
	}
	if st, ok := s.byID[id]; ok {
		return st, nil
	}
	h := s.h
	role := roleOf(h.net, x)
	if h.net.Store.Mode == "external" && role == streams.RoleDispatcher && !h.keys.Keyed() { // else the operator makes them
		if err := h.prepare(ctx); err != nil {
			return nil, err
		}
	}
	ca, err := authorities(h.net)
	if err != nil {
		return nil, err
	}
	user, password, key := "", "", h.creds[id]
	if key == nil {
		user, password = streams.Login(h.secrets[0], role, id)
	}
	st, err := connectReady(ctx, streams.Config{
		URL: h.net.Store.URL, CA: ca, Role: role, ID: id, User: user, Password: password, Key: key,
		Network: h.net.Network.Name, Creator: createdByUp, Settings: settingsOf(h.net), Durability: streams.Durability(h.net.Store.Durability),
		NoRead: role == streams.RoleBackend, Patience: startPatience, Logger: h.log,
	}, h.log)
	if err != nil {
		return nil, err
	}
	if role != streams.RoleBackend {
		if err := h.meet(ctx, st); err != nil {
			return nil, errors.Join(err, st.Close())
		}
	}
	h.log.Info("store connected", "url", h.net.Store.URL, "as", string(role)+"."+string(id))
	s.byID[id] = st
	return st, nil
}

// meet learns who the hosts are, as the log has it now. Who comes later is introduced.
func (h *host) meet(ctx context.Context, st *streams.Store) error {
	if !h.keys.Keyed() {
		return nil
	}
	for r, err := range st.History(ctx, events.Control, streams.Range{Newest: true}) {
		if err != nil {
			return err
		}
		if strings.HasPrefix(r.Key, events.IdentityKey("")) {
			_ = h.keys.Learn(r) // what is refused says nothing; the fold of control reports it
		}
	}
	return nil
}

// operator gives a connection of this process that may write what operators decide.
func (s *hostStore) operator(ctx context.Context, id events.HostID) (*streams.Store, error) {
	if s.shared != nil {
		return s.shared, nil
	}
	h := s.h
	ca, err := authorities(h.net)
	if err != nil {
		return nil, err
	}
	user, password := streams.Login(h.secrets[0], streams.RoleOperator, id)
	st, err := connectReady(ctx, streams.Config{
		URL: h.net.Store.URL, CA: ca, Role: streams.RoleOperator, ID: id, User: user, Password: password,
		Network: h.net.Network.Name, Creator: createdByUp, Settings: settingsOf(h.net), Durability: streams.Durability(h.net.Store.Durability),
		Patience: startPatience, Logger: h.log,
	}, h.log)
	if err == nil {
		s.byID["operator."+id] = st
	}
	return st, err
}

// connectReady connects and holds the streams against network.yml. A backend may not look
// at them: its first heartbeat shows whether they are there.
func connectReady(ctx context.Context, c streams.Config, log *slog.Logger) (*streams.Store, error) {
	remark := time.AfterFunc(3*time.Second, func() {
		log.Warn("the store does not answer yet, trying on: is whoever carries it up?", "url", c.URL)
	})
	defer remark.Stop()
	st, err := streams.Connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.NoRead {
		return st, nil
	}
	if err := st.Ensure(ctx); err != nil {
		return nil, errors.Join(err, st.Close())
	}
	return st, nil
}

// Close ends the connections, and then the store. Callers have ended all that uses them.
func (s *hostStore) Close() error {
	var err error
	for _, st := range s.byID {
		err = errors.Join(err, st.Close())
	}
	if s.shared != nil {
		err = errors.Join(err, s.shared.Close())
	}
	if s.server != nil {
		err = errors.Join(err, s.server.Close())
	}
	return err
}
