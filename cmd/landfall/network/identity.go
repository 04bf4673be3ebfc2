package network

import (
	"fmt"
	"slices"
)

// Self is who this process is in the network. A process may be a proxy and a backend at once.
type Self struct {
	ServerID string // empty: no backend here; also the id of a host that only carries the store
	ProxyID  string // empty: no proxy here
	Server   Host   // hosts.<ServerID>, completed
	Proxy    Host   // hosts.<ProxyID>, completed
	Carrier  bool   // this process opens the store; all others connect to store.url
}

// IsBackend tells whether this process answers for a game server.
func (s Self) IsBackend() bool { return s.Server.IsBackend() }

// IsProxy tells whether players connect to this process.
func (s Self) IsProxy() bool { return s.Proxy.IsEdge() || s.Proxy.IsRelay() }

// IDs are the ids of this process, each once.
func (s Self) IDs() (ids []string) {
	for _, id := range []string{s.ProxyID, s.ServerID} {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// The environment variables a host may learn its id from.
const (
	EnvServerID = "LANDFALL_SERVER_ID"
	EnvProxyID  = "LANDFALL_PROXY_ID"
)

// claim is one source's word about who this host is.
type claim struct{ source, id string }

// Identity finds out who this process is: from the flag --id, the environment (env is os.Getenv) and the file.
// The sources may agree or name the two roles of one process; two ids for one role are refused.
func (n *Network) Identity(flagID string, env func(string) string) (Self, error) {
	var servers, proxies []claim
	servers = claimed(servers, EnvServerID, env(EnvServerID))
	servers = claimed(servers, "network.serverId", n.Network.ServerID)
	proxies = claimed(proxies, EnvProxyID, env(EnvProxyID))
	proxies = claimed(proxies, "network.proxyId", n.Network.ProxyID)
	if flagID != "" {
		flag := claim{"--id", flagID}
		host, err := n.host(flag)
		if err != nil {
			return Self{}, err
		}
		if host.IsEdge() || host.IsRelay() {
			proxies = append(proxies, flag)
		}
		if host.IsBackend() || !host.IsEdge() && !host.IsRelay() {
			servers = append(servers, flag)
		}
	}
	return n.self(servers, proxies)
}

func claimed(claims []claim, source, id string) []claim {
	if id == "" {
		return claims
	}
	return append(claims, claim{source, id})
}

func (n *Network) self(servers, proxies []claim) (Self, error) {
	if len(servers)+len(proxies) == 0 {
		return Self{}, &Error{Code: CodeNoID, Msg: fmt.Sprintf(
			"this host has no id; allowed: --id, %s or %s naming one of %s", EnvServerID, EnvProxyID, n.hostList())}
	}
	var s Self
	var err error
	if s.ServerID, s.Server, err = n.agreed(servers); err != nil {
		return Self{}, err
	}
	if s.ProxyID, s.Proxy, err = n.agreed(proxies); err != nil {
		return Self{}, err
	}
	if s.ProxyID != "" && !s.Proxy.IsEdge() && !s.Proxy.IsRelay() {
		return Self{}, n.At(CodeIDConflict, "hosts."+s.ProxyID, "%s names it as a proxy, but it lists no edges; allowed: edges, or %s", proxies[0].source, EnvServerID)
	}
	if s.ServerID != "" && s.Server.IsEdge() && !s.Server.IsBackend() {
		return Self{}, n.At(CodeIDConflict, "hosts."+s.ServerID, "%s names it as a backend, but it only lists edges; allowed: rcon or regions, or %s", servers[0].source, EnvProxyID)
	}
	return n.withStore(s)
}

// agreed is the one host that all sources name for a role.
func (n *Network) agreed(claims []claim) (string, Host, error) {
	var host Host
	var id string
	for i, c := range claims {
		h, err := n.host(c)
		if err != nil {
			return "", Host{}, err
		}
		if i > 0 && c.id != id {
			return "", Host{}, &Error{Code: CodeIDConflict, Msg: fmt.Sprintf(
				"this host has two ids: %s says %s, %s says %s; allowed: one of them", claims[0].source, id, c.source, c.id)}
		}
		id, host = c.id, h
	}
	return id, host, nil
}

func (n *Network) host(c claim) (Host, error) {
	if !idForm.MatchString(c.id) {
		return Host{}, &Error{Code: CodeBadID, Msg: fmt.Sprintf("%s: %q is not an id; allowed: %s", c.source, cut(c.id), idPattern)}
	}
	h, known := n.Hosts[c.id]
	if !known {
		return Host{}, &Error{Code: CodeUnknownHost, File: n.file, Line: n.LineOf("hosts"), Key: "hosts",
			Msg: fmt.Sprintf("does not list %q, which %s names%s; allowed: %s", c.id, c.source, Meant(Nearest(c.id, n.HostIDs())), n.hostList())}
	}
	return h, nil
}

// withStore decides who opens the store. Without a carrier each process has a log of its own: two of them would
// be two networks that never meet, so a process that needs another one is refused.
func (n *Network) withStore(s Self) (Self, error) {
	if n.Store.Mode == "external" {
		return s, nil
	}
	if n.Store.Carrier != "" {
		s.Carrier = n.Store.Carrier == s.ServerID || n.Store.Carrier == s.ProxyID
		return s, nil
	}
	if !s.IsBackend() || !s.IsProxy() {
		return Self{}, n.At(CodeStoreAlone, "store.carrier", "STORE_ALONE: empty, so this process would open a store nobody else sees, and it is %s only; allowed: the id of the host that carries the store for all (with store.url), or one process that is both proxy and backend", s.role())
	}
	s.Carrier = true
	return s, nil
}

func (s Self) role() string {
	if s.IsProxy() {
		return "the proxy " + s.ProxyID
	}
	if s.IsBackend() {
		return "the backend " + s.ServerID
	}
	return s.ServerID + ", without a role,"
}
