package main

import (
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// host is one process of a network: what network.yml says about it, and what its roles share.
type host struct {
	config string               // where network.yml is
	net    *network.Network     // as it was read at the start: what needs a restart is taken from here
	live   *live                // the rest, as it holds now
	fixed  []events.SectionBeat // of net
	self   network.Self
	log    *slog.Logger
	env    func(string) string

	secrets [][]byte // the signing one first; none where hosts have keys of their own
	creds   map[events.HostID]*streams.HostKey
	keys    *events.Keyring
}

// openHost reads network.yml and finds out who this process is in it. The secret is not
// looked at yet.
func openHost(config, id string, env func(string) string, log *slog.Logger) (*host, error) {
	n, err := network.Load(config)
	if err != nil {
		return nil, err
	}
	h := &host{config: config, net: n, env: env, log: log}
	if !n.Enabled() {
		return h, nil
	}
	if h.self, err = n.Identity(id, env); err != nil {
		return nil, err
	}
	h.warnOfNotYet(n.NotYet())
	first, err := newChangeable(n, n)
	if err != nil {
		return nil, err
	}
	h.live, h.fixed = newLive(first), sectionsOf(n.Fixed())
	return h, nil
}

// unlock reads what this host signs and logs in with, without which nothing is believed: the
// secret, or a key of its own under each of its ids.
func (h *host) unlock() error {
	operator, err := operatorKeyOf(h.net)
	if err != nil {
		return err
	}
	alone := operator != nil
	h.creds = map[events.HostID]*streams.HostKey{}
	for _, id := range h.self.IDs() {
		k, err := credsOf(h.net, id)
		if err != nil {
			return err
		}
		if k == nil {
			alone = false
			continue
		}
		h.creds[events.HostID(id)] = k
	}
	t := trust{operator: operator}
	if t.secrets, err = secretsOf(h.net, h.env); err != nil && !(alone && isMissing(err)) {
		return err
	}
	h.secrets = t.secrets
	h.keys, err = t.keyring()
	return err
}

// secretsOf are the network's secrets, the signing one first.
func secretsOf(n *network.Network, env func(string) string) ([][]byte, error) {
	secret, _, err := n.Secret(env)
	if err != nil {
		return nil, err
	}
	previous, _, err := n.PreviousSecret(env)
	if err != nil {
		return nil, err
	}
	if previous == nil {
		return [][]byte{secret}, nil
	}
	return [][]byte{secret, previous}, nil
}

// isMissing tells that a secret is not there, rather than wrong.
func isMissing(err error) bool {
	var refused *network.Error
	return errors.As(err, &refused) && refused.Code == network.CodeSecretMissing
}

// identity is a fresh life of one role of this process. Here alone the program meets the
// wall clock and makes ids.
func (h *host) identity(kind events.SourceKind, id events.HostID) actors.Identity {
	return actors.Identity{
		Source: events.Source{Kind: kind, ID: id, Incarnation: events.Incarnation(newID())},
		Keys:   h.keysOf(id), Now: time.Now, NewID: newID,
	}
}

// keysOf signs in the name of one of this process's ids.
func (h *host) keysOf(id events.HostID) *events.Keyring {
	if own := h.creds[id]; own != nil {
		return h.keys.As(own.Private)
	}
	return h.keys
}

func newID() [16]byte {
	id, err := uuid.NewV7()
	if err != nil {
		panic("make an id: " + err.Error()) // the system has no randomness: nothing can go on
	}
	return id
}

// dispatcherID is the id under which this process dispatches, and how it holds its players;
// empty when it does not dispatch.
func (h *host) dispatcherID() (events.HostID, events.SessionKind) {
	switch {
	case h.self.IsProxy() && !h.self.Proxy.IsRouter():
		return events.HostID(h.self.ProxyID), events.KindEdge
	case h.self.IsBackend() && h.net.Direct():
		return events.HostID(h.self.ServerID), events.KindDirect
	case h.self.Server.IsAPI():
		return events.HostID(h.self.ServerID), events.KindAPI
	}
	return "", ""
}

// roleOf is what a host's login may do.
func roleOf(n *network.Network, x network.Host) streams.Role {
	switch {
	case x.IsEdge() && !x.IsRouter(), x.IsRelay(), x.IsBackend() && n.Direct(), x.IsAPI():
		return streams.RoleDispatcher
	case x.IsBackend():
		return streams.RoleBackend
	case x.Archive != "":
		return streams.RoleArchivist
	}
	return streams.RoleAuditor
}

// timingOf is how long network.yml wants everybody to wait.
func timingOf(n *network.Network) actors.Timing {
	return actors.Timing{
		TTL:            n.Reservation.TTLSeconds.Duration(),
		ClaimReanimate: n.Reservation.ClaimReanimateMs.Duration(),
		Sweep:          n.Reservation.SweepIntervalMs.Duration(),
		ArrivalWindow:  atLeastNothing(n.Reservation.ArrivalWindowMs.Duration()),
		Stale:          n.LoadBalancer.StaleAfterMs.Duration(),
		AttemptTimeout: n.LoadBalancer.AttemptTimeoutMs.Duration(),
		MoveTimeout:    n.LoadBalancer.MoveTimeoutMs.Duration(),
		Cooldown:       atLeastNothing(n.LoadBalancer.CooldownMs.Duration()),
		MaxRetries:     n.LoadBalancer.MaxRetries,
		Grace:          atLeastNothing(n.Line.GraceSeconds.Duration()),
		MaxAge:         n.Line.MaxAgeSeconds.Duration(),
	}
}

// atLeastNothing keeps a 0 of the file from being taken for "not given".
func atLeastNothing(d time.Duration) time.Duration { return max(d, time.Nanosecond) }
