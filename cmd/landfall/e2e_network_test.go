package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/landfall/landfall/events"
)

// domain is what the players of every network here dial. Nobody looks it up: the clients
// are told where to dial.
const domain = "play.example.test"

// testNetwork is a directory with one network.yml, the hosts that run after it, and the
// witness of their log.
type testNetwork struct {
	binary string
	dir    string
	secret string // as the hosts' environment has it
	key    []byte
	keys   *events.Keyring
	hosts  map[string]*process
	*witness
}

// fast are deadlines short enough for a test that waits for them; all within the bounds of
// network.yml.
const fast = `
heartbeat: { intervalMs: 250 }
reservation: { ttlSeconds: 8, claimReanimateMs: 1000, sweepIntervalMs: 200 }
loadBalancer: { staleAfterMs: 2000, moveTimeoutMs: 1000 }
`

const testNetworkHead = "network: { name: e2e, enabled: true }\n"

func newTestNetwork(t *testing.T, binary, config string) *testNetwork {
	t.Helper()
	secret := make([]byte, 32)
	if _, err := rand.Read(secret); err != nil {
		t.Fatal(err)
	}
	key, err := events.NewKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	n := &testNetwork{
		binary: binary, dir: t.TempDir(), secret: base64.StdEncoding.EncodeToString(secret), key: secret,
		keys: events.NewKeyring(key), hosts: map[string]*process{},
	}
	n.write(t, "network.yml", testNetworkHead+config)
	n.write(t, "rcon.secret", rconPassword+"\n")
	return n
}

func (n *testNetwork) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(n.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// up starts hosts, the first of which carries the store, and the witness.
func (n *testNetwork) up(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		n.hosts[id] = n.host(t, id)
	}
	n.hosts[ids[0]].says(t, "store opened")
	n.witness = watchLog(t, filepath.Join(n.dir, "landfall-data"), n.keys)
	for _, id := range ids {
		n.hosts[id].says(t, "msg=ready proxy=")
	}
}

func (n *testNetwork) host(t *testing.T, id string) *process {
	t.Helper()
	return launch(t, "host "+id, n.dir, []string{"RTP_NET_SECRET=" + n.secret}, terminate(t), n.binary, "up", "--id", id)
}

// landfall is what a verb prints for an operator of the network.
func (n *testNetwork) landfall(t *testing.T, args ...string) string {
	t.Helper()
	return output(t, n.dir, "env", append([]string{"RTP_NET_SECRET=" + n.secret, n.binary}, args...)...)
}

// replay is what `landfall replay` tells about a player.
func (n *testNetwork) replay(t *testing.T, name string) string {
	t.Helper()
	return n.landfall(t, "replay", "player", events.OfflinePlayer(name).String(), "--store", "landfall-data", "--config", "network.yml")
}

var ports struct {
	sync.Mutex
	given map[int]bool
}

// freePort gives a port that nobody listens on, and never the same twice.
func freePort(t *testing.T) int {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if !ports.given[port] {
			if ports.given == nil {
				ports.given = map[int]bool{}
			}
			ports.given[port] = true
			return port
		}
	}
}

// backendYAML is a host of network.yml for a game server; regions as in the file, "" for a lobby.
func backendYAML(s *gameServer, id, regions, more string) string {
	return fmt.Sprintf("  %s: { advertise: \"127.0.0.1:%d\", rcon: { address: \"127.0.0.1:%d\", passwordFile: rcon.secret }, regions: { %s } %s }\n",
		id, s.port, s.rcon, regions, more)
}

func carriedYAML(carrier string, port int) string {
	return fmt.Sprintf("store: { carrier: %s, url: \"nats://127.0.0.1:%d\", listen: \"127.0.0.1:%d\", maxBytes: 1073741824 }\n", carrier, port, port)
}

func edgeYAML(id string, port int) string {
	return fmt.Sprintf("  %s: { edges: [ { listen: \"127.0.0.1:%d\" } ] }\n", id, port)
}

// tokenHost is the host name a client is sent to with a token.
func tokenHost(token events.Token) string { return strings.ToLower(token.Label()) + "." + domain }

// exchange replaces pairs of old and new text, in turn; each old one must be there.
func exchange(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("no %q in:\n%s", pairs[i], text)
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}
