package network

import (
	"errors"
	"strings"
	"testing"
)

const twins = `network: { name: test, enabled: true }
edge: { domain: play.example.net }
hosts:
  both: { advertise: "127.0.0.1:1", regions: { default: {} }, edges: [ { listen: ":25565" } ] }
  front: { edges: [ { listen: ":25565" } ] }
  back: { advertise: "127.0.0.1:2", regions: { default: {} } }
  disk: {}
`

func carried(by string) string {
	return twins + `store: { carrier: ` + by + `, url: "nats://127.0.0.1:4222" }` + "\n"
}

func environment(pairs ...string) func(string) string {
	return func(name string) string {
		for _, p := range pairs {
			if value, found := strings.CutPrefix(p, name+"="); found {
				return value
			}
		}
		return ""
	}
}

func TestIdentity(t *testing.T) {
	for _, c := range []struct {
		name, text, flag string
		env              []string
		server, proxy    string
		carrier          bool
	}{
		{"flag, a proxy", carried("front"), "front", nil, "", "front", true},
		{"flag, a backend", carried("front"), "back", nil, "back", "", false},
		{"flag, a host of both roles", twins, "both", nil, "both", "both", true},
		{"flag, a carrier alone", carried("disk"), "disk", nil, "disk", "", true},
		{"environment", carried("back"), "", []string{"LANDFALL_SERVER_ID=back"}, "back", "", true},
		{"environment, both", twins, "", []string{"LANDFALL_SERVER_ID=back", "LANDFALL_PROXY_ID=front"}, "back", "front", true},
		{"flag and environment agree", carried("front"), "back", []string{"LANDFALL_SERVER_ID=back"}, "back", "", false},
		{"file", strings.Replace(carried("front"), "enabled: true", "enabled: true, proxyId: front", 1), "", nil, "", "front", true},
		{"external store", twins + `store: { mode: external, url: "nats://10.0.0.1:4222" }` + "\n", "back", nil, "back", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			self, err := parse(t, c.text).Identity(c.flag, environment(c.env...))
			if err != nil {
				t.Fatal(err)
			}
			if self.ServerID != c.server || self.ProxyID != c.proxy || self.Carrier != c.carrier {
				t.Errorf("got %q, %q, carrier %v", self.ServerID, self.ProxyID, self.Carrier)
			}
			if self.IsBackend() != (c.server != "" && c.server != "disk") || self.IsProxy() != (c.proxy != "") {
				t.Errorf("roles: backend %v, proxy %v", self.IsBackend(), self.IsProxy())
			}
		})
	}
}

func TestIdentityRefuses(t *testing.T) {
	alone := "network.yml:1: store.carrier: STORE_ALONE: empty, so this process would open a store nobody else sees, and it is %s only; allowed: the id of the host that carries the store for all (with store.url), or one process that is both proxy and backend"
	for _, c := range []struct {
		name, text, flag string
		env              []string
		code, want       string
	}{
		{"nobody says", twins, "", nil, CodeNoID,
			"this host has no id; allowed: --id, LANDFALL_SERVER_ID or LANDFALL_PROXY_ID naming one of back, both, disk, front"},
		{"ill-formed flag", twins, "a b", nil, CodeBadID, `--id: "a b" is not an id; allowed: [A-Za-z0-9_-]{1,63}`},
		{"ill-formed environment", twins, "", []string{"LANDFALL_PROXY_ID=../x"}, CodeBadID, `LANDFALL_PROXY_ID: "../x" is not an id; allowed: [A-Za-z0-9_-]{1,63}`},
		{"unknown", twins, "survival-9", nil, CodeUnknownHost, `network.yml:3: hosts: does not list "survival-9", which --id names; allowed: back, both, disk, front`},
		{"two ids", carried("front"), "back", []string{"LANDFALL_SERVER_ID=both"}, CodeIDConflict,
			"this host has two ids: LANDFALL_SERVER_ID says both, --id says back; allowed: one of them"},
		{"a proxy named as a backend", carried("front"), "", []string{"LANDFALL_SERVER_ID=front"}, CodeIDConflict,
			"network.yml:5: hosts.front: LANDFALL_SERVER_ID names it as a backend, but it only lists edges; allowed: rcon or regions, or LANDFALL_PROXY_ID"},
		{"a backend named as a proxy", carried("front"), "", []string{"LANDFALL_PROXY_ID=back"}, CodeIDConflict,
			"network.yml:6: hosts.back: LANDFALL_PROXY_ID names it as a proxy, but it lists no edges; allowed: edges, or LANDFALL_SERVER_ID"},
		{"a backend alone", twins, "back", nil, CodeStoreAlone, strings.Replace(alone, "%s", "the backend back", 1)},
		{"a proxy alone", twins, "front", nil, CodeStoreAlone, strings.Replace(alone, "%s", "the proxy front", 1)},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := parse(t, c.text).Identity(c.flag, environment(c.env...))
			var e *Error
			if !errors.As(err, &e) || e.Code != c.code || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s %s", err, c.code, c.want)
			}
		})
	}
}
