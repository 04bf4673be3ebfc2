package main

import (
	"context"
	"errors"
	"time"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/streams"
)

// prepare makes what is missing in a store that no host carries, and looks at the servers
// that keep it. Every host that dispatches does so before anything else, under the
// operator's login, which it gives up again. When several start at once, each stream is
// made by one of them.
func (h *host) prepare(ctx context.Context) error {
	ca, err := authorities(h.net)
	if err != nil {
		return err
	}
	u := operatorLogin(h.secrets[0])
	return h.prepareAs(ctx, streams.Config{URL: h.net.Store.URL, CA: ca, Role: u.Role, ID: u.ID, User: u.Name, Password: u.Password, Patience: startPatience})
}

// prepareAs does it with a login of an operator.
func (h *host) prepareAs(ctx context.Context, c streams.Config) error {
	c.Network, c.Creator, c.Settings, c.Carrier, c.Logger = h.net.Network.Name, createdByUp, settingsOf(h.net), true, h.log
	st, err := connectReady(ctx, c, h.log)
	if err != nil {
		return err
	}
	servers, err := st.Servers(ctx)
	if err == nil {
		err = h.judgeServers(servers, st.Guarded())
	}
	return errors.Join(err, st.Close())
}

// judgeServers refuses servers to which the log had better not be given. What they did not
// tell is only remarked upon.
func (h *host) judgeServers(servers []streams.ServerInfo, guarded bool) error {
	const page = "docs/external.md"
	n := h.net
	if !guarded && !n.Store.OnThisMachine() {
		return n.At(network.CodeStoreOpen, "store.url",
			"the servers at %s let in anybody, who may then empty the log; allowed: servers that know the logins which `landfall config nats` prints, see %s", n.Store.URL, page)
	}
	if !guarded {
		h.log.Warn("the store lets in anybody on this machine: give its servers the logins which `landfall config nats` prints", "url", n.Store.URL, "see", page)
	}
	if n.Store.Storage == string(streams.Memory) {
		return nil
	}
	if len(servers) == 0 {
		h.log.Warn("the servers of the store do not tell whether they write to the disk before they acknowledge (sync_interval: always)", "url", n.Store.URL, "see", page)
	}
	for _, s := range servers {
		h.log.Info("store server", "name", s.Name, "version", s.Version, "synced", s.Synced)
		if s.Synced {
			continue
		}
		if n.Store.Durability != "lazy" {
			return n.At(network.CodeStoreLazy, "store.durability",
				"%s, but the server %s writes to the disk every %s only, and what it acknowledged since is lost in a power cut; allowed: sync_interval: always on every server, or lazy here, which accepts that",
				n.Store.Durability, s.Name, s.SyncEvery.Round(time.Second))
		}
		h.log.Warn("store.durability lazy: facts that were acknowledged can be lost in a power cut", "server", s.Name, "syncEvery", s.SyncEvery)
	}
	return nil
}
