package network

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/docs"
)

// small is the least file of an enabled network; the tables below append to it, so their lines begin at 11.
const small = `network: { name: test, enabled: true }
store: { carrier: proxy-1, url: "nats://127.0.0.1:4222" }
edge: { domain: play.example.net }
hosts:
  proxy-1:
    edges: [ { listen: ":25565" } ]
  survival-1:
    advertise: "10.0.0.5:25566"
    rcon: { address: "127.0.0.1:25575", passwordFile: rcon.secret }
    regions: { default: {} }
`

func parse(t *testing.T, text string) *Network {
	t.Helper()
	n, err := Parse("network.yml", []byte(text))
	if err != nil {
		t.Fatalf("parse: %v", err)
	}
	return n
}

func TestTheExampleLoads(t *testing.T) {
	n := parse(t, string(docs.ExampleNetwork))
	if !n.Enabled() || n.Network.Name != "my-network" || n.Direct() {
		t.Errorf("enabled %v, name %q, direct %v", n.Enabled(), n.Network.Name, n.Direct())
	}
	b := n.Hosts["survival-1"]
	if b.PublicAddress != "10.0.0.5:25566" || b.RCON.Address != "127.0.0.1:25575" || b.Regions["default"].Keep != 16 {
		t.Errorf("survival-1 = %+v", b)
	}
	if b.Relay.Proxy != "auto" || b.IsRelay() || b.IsEdge() || n.IsLobby("survival-1") || !n.Hosts["proxy-1"].IsEdge() {
		t.Errorf("roles of survival-1 = %+v", b)
	}
	if n.Store.Retention != 720*time.Hour || n.Heartbeat.IntervalMs.Duration() != time.Second {
		t.Errorf("retention %v, interval %v", n.Store.Retention, n.Heartbeat.IntervalMs.Duration())
	}
}

// TestLobbies: without regions, or by name; what a named one has in the file it does not offer.
func TestLobbies(t *testing.T) {
	n := parse(t, small+"  hub: { advertise: \"127.0.0.1:2\" }\n")
	if !n.IsLobby("hub") || n.IsLobby("survival-1") || n.IsLobby("proxy-1") || len(n.RegionsOf("survival-1")) != 1 {
		t.Errorf("hub %v, survival-1 %v, proxy-1 %v", n.IsLobby("hub"), n.IsLobby("survival-1"), n.IsLobby("proxy-1"))
	}
	n = parse(t, small+"routing: { lobbies: [survival-1] }\n")
	if !n.IsLobby("survival-1") || len(n.RegionsOf("survival-1")) != 0 || len(n.NotYet()) != 0 {
		t.Errorf("survival-1 %v with %v, not yet: %v", n.IsLobby("survival-1"), n.RegionsOf("survival-1"), n.NotYet())
	}
}

// TestTheQuickStartLoads: the network.yml of the README is one that works.
func TestTheQuickStartLoads(t *testing.T) {
	readme, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(readme), "```yaml\n")
	text, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("README.md has no yaml block")
	}
	n := parse(t, text)
	for _, id := range []string{"survival-1", "survival-2"} {
		self, err := n.Identity(id, environment())
		if err != nil || !self.IsBackend() || !n.Direct() || self.Carrier != (id == "survival-1") {
			t.Errorf("%s: %+v, direct %v, %v", id, self, n.Direct(), err)
		}
	}
}

// TestTheExampleIsTheDefaults: what the file leaves out is what the example shows, but for the samples.
func TestTheExampleIsTheDefaults(t *testing.T) {
	top, fault := root.document("network.yml", docs.ExampleNetwork)
	if fault != nil {
		t.Fatal(fault)
	}
	c := &checker{places: map[string]place{}}
	if c.value(root, "", top, 1); len(c.faults) > 0 {
		t.Fatal(c.faults)
	}
	for _, k := range keys {
		row := pathPattern(k.Path)
		for path, p := range c.places {
			if !row.MatchString(path) || strings.HasPrefix(path, "loadBalancer.terms.") || k.Sample || k.Required {
				continue
			}
			// A map is compared by what it becomes once both sides are complete.
			def := root.at(k.Path).defaultNode()
			root.at(k.Path).fillValue(p.value)
			if def == nil || !reflect.DeepEqual(plainValue(p.value), plainValue(def)) {
				t.Errorf("%s: the example has %v, the table %q", path, plainValue(p.value), k.Default)
			}
		}
	}
}

// TestEveryKeyIsShown: the example is the reference operators copy from, so it names all but a few keys.
func TestEveryKeyIsShown(t *testing.T) {
	n := parse(t, string(docs.ExampleNetwork))
	hidden := map[string]bool{
		"loadBalancer.terms.<term>.input": true, "loadBalancer.terms.<term>.curve.p": true,
		"loadBalancer.backends.<id>.weight": true, "triggers.event.map.<id>.region": true,
		"edge.backends.<id>": true, "hosts.<id>.edges[].redirectAddress": true, "hosts.<id>.edges[].dialled.<address>": true,
		"hosts.<id>.regions.<id>.exclude[].min": true, "hosts.<id>.regions.<id>.exclude[].max": true,
	}
	for _, k := range keys {
		shown := false
		for path := range n.checked.places {
			shown = shown || pathPattern(k.Path).MatchString(path)
		}
		if shown == hidden[k.Path] {
			t.Errorf("%s: shown by the example %v, listed as hidden %v", k.Path, shown, hidden[k.Path])
		}
	}
}

func TestALeftOutKeyTakesTheDefault(t *testing.T) {
	n := parse(t, small)
	full := parse(t, string(docs.ExampleNetwork))
	for name, pair := range map[string][2]any{
		"heartbeat":    {n.Heartbeat, full.Heartbeat},
		"reservation":  {n.Reservation, full.Reservation},
		"loadBalancer": {n.LoadBalancer, full.LoadBalancer},
		"line":         {n.Line, full.Line},
		"triggers":     {n.Triggers, full.Triggers},
		"routing":      {n.Routing, full.Routing},
		"limits":       {n.Limits, full.Limits},
		"region":       {n.Hosts["survival-1"].Regions["default"].MaxRadius, full.Hosts["survival-1"].Regions["default"].MaxRadius},
		"security":     {n.Security, full.Security},
		"edge.port":    {n.Edge.Port, full.Edge.Port},
		"game":         {n.Hosts["proxy-1"].Edges[0].Game, full.Hosts["proxy-1"].Edges[0].Game},
		"messages":     {n.Messages, full.Messages},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s: %+v, the example has %+v", name, pair[0], pair[1])
		}
	}
}

func TestATermKeepsWhatTheFileLeavesOut(t *testing.T) {
	n := parse(t, small+`loadBalancer:
  terms:
    mspt: { weight: 2 }
    heapUsed: { curve: { type: power } }
    lag: { input: tps, weight: 3 }
`)
	terms := n.LoadBalancer.Terms
	if c := terms["mspt"].Curve; terms["mspt"].Weight != 2 || c.Type != "sigmoid" || *c.X0 != 0.6 {
		t.Errorf("mspt = %+v", terms["mspt"])
	}
	if c := terms["heapUsed"].Curve; terms["heapUsed"].Weight != 5 || c.Threshold != nil || *c.P != 2 {
		t.Errorf("heapUsed = %+v: a given curve must replace the shipped one whole", terms["heapUsed"])
	}
	if terms["lag"].Input != "tps" || terms["lag"].Curve.Type != "linear" || terms["keptRegion"].Weight != 5 {
		t.Errorf("lag = %+v, keptRegion = %+v", terms["lag"], terms["keptRegion"])
	}
}

func TestAMapOfTheFileReplacesTheDefault(t *testing.T) {
	n := parse(t, small+`triggers: { join: { map: { play.example.net: { region: default } } } }
limits: { join: { perDay: 3 } }
`)
	if want := map[string]Destination{"play.example.net": {Region: "default"}}; !reflect.DeepEqual(n.Triggers.Join.Map, want) {
		t.Errorf("join map = %v", n.Triggers.Join.Map)
	}
	if want := map[string]Limit{"join": {PerDay: 3, Scope: "network"}}; !reflect.DeepEqual(n.Limits, want) {
		t.Errorf("limits = %v", n.Limits)
	}
}

func TestAbsentMeansOff(t *testing.T) {
	for name, text := range map[string]string{
		"empty file": "", "comments": "# nothing yet\n", "no key": "network: { name: a }\n", "false": "network: { enabled: false }\n",
	} {
		t.Run(name, func(t *testing.T) {
			if parse(t, text).Enabled() {
				t.Error("enabled")
			}
		})
	}
}

func TestDispatchMode(t *testing.T) {
	direct := `network: { name: test, enabled: true }
hosts: { a: { advertise: "127.0.0.1:1", regions: { default: {} } } }
`
	for _, c := range []struct {
		name, text string
		direct     bool
	}{
		{"auto with an edge", small, false},
		{"direct with an edge", small + "routing: { dispatchMode: direct }\n", true},
		{"a router beside", small + "  hub: { mode: router, edges: [ { listen: \":1\" } ] }\n", false},
		{"proxy with an edge", small + "routing: { dispatchMode: proxy }\n", false},
		{"auto without", direct, true},
		{"direct without", direct + "routing: { dispatchMode: direct }\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := parse(t, c.text).Direct(); got != c.direct {
				t.Errorf("direct = %v, want %v", got, c.direct)
			}
		})
	}
}

func TestNotYetListsWhatTheFileChanges(t *testing.T) {
	if got := parse(t, small).NotYet(); len(got) != 0 {
		t.Errorf("of a file that changes nothing: %v", got)
	}
	if got, want := parse(t, string(docs.ExampleNetwork)).NotYet(), []string(nil); !reflect.DeepEqual(got, want) {
		t.Errorf("of the example: %v, want %v", got, want)
	}
	got := parse(t, small+`  hub: { log: latest.log }
routing: { prefer: local, stickyReturn: false }
loadBalancer: { policy: leastPlayers, terms: { mspt: { weight: 3 } } }
`).NotYet()
	want := []string{"hosts.hub.log"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestEveryFeatureNamesAKey(t *testing.T) {
	for _, f := range append(append([]feature(nil), refused...), later...) {
		if root.at(f.Key) == nil {
			t.Errorf("%s is not in the table of keys", f.Key)
		}
	}
}

func TestLoadSaysThatTheFileIsMissing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "network.yml")
	_, err := Load(path)
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeMissing || !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v", err)
	}
	if want := path + ": no such file; allowed: one written after docs/network.yml"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// at follows a row of the table; nil when there is none.
func (s *schema) at(row string) *schema {
	for part := range strings.SplitSeq(row, ".") {
		name, list := strings.CutSuffix(part, "[]")
		if _, open := keyForms[name]; open {
			s = s.any
		} else {
			s = s.fields[name]
		}
		if s != nil && list {
			s = s.items
		}
		if s == nil {
			return nil
		}
	}
	return s
}
