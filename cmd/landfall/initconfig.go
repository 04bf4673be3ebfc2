package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"strings"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/embedded"
)

// Where a network.yml that init makes has its files, beside it.
const (
	starterSecret = "net.secret"
	starterTLS    = "tls"
)

// starter is what the network.yml of a new network is made of.
type starter struct {
	Name, Domain      string
	Proxies, Backends []string
	Store, Edge       string // addresses, host:port
	OperatorKey       bool   // also for a network.yml that is there

	operator string // public half of the operator's key
}

// text is the file. Whether it may stand is for the rules of network.yml to say.
func (o starter) text(dir string) (string, error) {
	hosts := append(o.named(o.Proxies), o.named(o.Backends)...)
	if len(hosts) == 0 {
		return "", usageError("--proxies and --backends are both empty: name a host")
	}
	size, err := embedded.SizeFor(dir)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, `# One file, byte-identical on every host: a host learns who it is from --id, LANDFALL_SERVER_ID or LANDFALL_PROXY_ID.
# What is not here has its default: landfall config show lists every key. landfall config check tells what is wrong.
network:
  name: %s  # stands in the store; another network's store is refused
  enabled: true
  operatorKey: %s  # public half of the operator's key, which says who each host is

store:
  carrier: %s  # the host whose process keeps the log
  url: "tls://%s"  # where all others reach it
  listen: %q  # where it listens
  maxBytes: %d  # half of what was free here; set it to what the carrier's disk can give
  # durability: grouped  # as safe as always, which is the default, and faster when many move at once

security:
  secretFile: %s  # all hosts share it. Each logs in and signs with a key of its own, so it speaks for nobody
  tls:
    cert: %s/store.crt  # what the carrier shows; renewed without a restart
    key: %s/store.key
    ca: %s/ca.crt  # whom the others believe

`, o.Name, o.operator, hosts[0], o.Store, listenOf(o.Store), size, starterSecret, starterTLS, starterTLS, starterTLS)
	if len(o.named(o.Proxies)) > 0 {
		fmt.Fprintf(&b, "edge:\n  domain: %s  # what players dial, and are sent back to\n  port: %s\n\n", o.Domain, portOf(o.Edge))
	}
	b.WriteString("hosts:\n")
	for _, id := range o.named(o.Proxies) {
		fmt.Fprintf(&b, "  %s:\n    creds: %s\n    edges: [ { listen: %q } ]  # players connect here\n", id, credsPath(id), o.Edge)
	}
	for i, id := range o.named(o.Backends) {
		fmt.Fprintf(&b, `  %s:
    creds: %s
    advertise: "127.0.0.1:%d"  # the game server, as the others reach it
    rcon: { address: "127.0.0.1:%d", passwordFile: %s.rcon }  # enable-rcon, rcon.port and rcon.password of its server.properties
    regions:  # where players may be placed; none: a lobby
      default: { world: "minecraft:overworld", centre: [0, 0], minRadius: 500, maxRadius: 5000, keep: 16 }
`, id, credsPath(id), 25566+i, 25576+i, id)
	}
	return b.String(), nil
}

// listenOf is where a store that is reached at an address listens: the address other machines
// use need not be one of the machine's own.
func listenOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || host == "localhost" || ip != nil && ip.IsLoopback() {
		return address // of a wrong one the rules of network.yml speak
	}
	return net.JoinHostPort("0.0.0.0", port)
}

// named leaves out what `--proxies ""` gives.
func (o starter) named(ids []string) (out []string) {
	for _, id := range ids {
		if id != "" {
			out = append(out, id)
		}
	}
	return out
}

func randomText() string {
	secret := make([]byte, events.MinSecret)
	_, _ = rand.Read(secret) // never fails: it ends the process instead
	return base64.StdEncoding.EncodeToString(secret)
}

// randomWord is a password that server.properties takes as it stands.
func randomWord() string { return rand.Text() }
