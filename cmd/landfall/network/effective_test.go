package network

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/landfall/landfall/docs"
)

// TestInspectFindsEveryFault: one look names all, in the order of the file.
func TestInspectFindsEveryFault(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       []string
	}{
		{"forms", `netwrk: {}
heartbeat: { intervalMs: 5 }
loadBalancer:
  policy: random
  terms: { mspt: { curve: { type: cubic } } }
hosts:
  a: { rcon: { address: nowhere } }
  b: { regions: { r: { keep: 0, world: x } } }
`, []string{"1: netwrk", "2: heartbeat.intervalMs", "4: loadBalancer.policy", "5: loadBalancer.terms.mspt.curve.type",
			"7: hosts.a.rcon.address", "7: hosts.a.rcon.passwordFile", "8: hosts.b.regions.r.keep", "8: hosts.b.regions.r.world"}},
		{"contradictions", `network: { enabled: true }
store: { mode: external, carrier: a }
loadBalancer:
  staleAfterMs: 500
  terms: { mspt: { curve: { type: step, k: 3 } } }
reservation: { ttlSeconds: 2 }
triggers: { join: { enabled: true }, event: { enabled: true } }
hosts:
  a: { rcon: { address: "10.0.0.1:1", passwordFile: p } }
`, []string{"1: network.name", "2: store.carrier", "4: loadBalancer.staleAfterMs", "5: loadBalancer.terms.mspt.curve.k",
			"6: reservation.ttlSeconds", "7: triggers.join.enabled", "9: hosts.a.advertise", "9: hosts.a.rcon.address"}},
		{"not yaml", "network: [\n", []string{"1: not YAML"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "network.yml")
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			n, faults := Inspect(path)
			if n != nil {
				t.Error("a network with faults")
			}
			var got []string
			for _, f := range faults {
				_, rest, _ := strings.Cut(f.Error(), "network.yml:")
				got = append(got, strings.Join(strings.SplitN(rest, ": ", 3)[:2], ": "))
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	if _, faults := Inspect(filepath.Join(t.TempDir(), "none.yml")); len(faults) != 1 || faults[0].Code != CodeMissing {
		t.Errorf("of a missing file: %v", faults)
	}
}

// TestSettingsAreTheWholeFile: every key that the example has is listed with its line, and every other one of the
// table with its default.
func TestSettingsAreTheWholeFile(t *testing.T) {
	n := parse(t, string(docs.ExampleNetwork))
	listed := map[string]Setting{}
	for _, s := range n.Settings() {
		listed[s.Key] = s
	}
	for path, p := range n.checked.places {
		if k := keyOf(path); k != nil && k.Kind != Map && listed[path].Line != p.line {
			t.Errorf("%s: line %d, want %d", path, listed[path].Line, p.line)
		}
	}
	for _, s := range parse(t, small).Settings() {
		if keyOf(s.Key) == nil {
			t.Errorf("%s is no key of the table", s.Key)
		}
	}
	of := map[string]string{}
	for _, s := range parse(t, small).Settings() {
		of[s.Key] = fmt.Sprint(s.Value, " ", s.Line)
	}
	for key, want := range map[string]string{
		"network.name": "test 1", "store.retention": "720h 0", "line.maxSize": "1024 0", "hosts.survival-1.publicAddress": "10.0.0.5:25566 0",
		"hosts.survival-1.regions.default.centre": "[0 0] 0", "loadBalancer.terms.mspt.curve.x0": "0.6 0", "loadBalancer.backends": "map[] 0",
		"hosts.proxy-1.edges[0].listen": ":25565 6", "security.secretEnv": "RTP_NET_SECRET 0",
	} {
		if of[key] != want {
			t.Errorf("%s: %q, want %q", key, of[key], want)
		}
	}
}

func keyOf(path string) *Key {
	for i := range keys {
		if pathPattern(keys[i].Path).MatchString(path) {
			return &keys[i]
		}
	}
	return nil
}

func TestSettingsShowNoLogin(t *testing.T) {
	for _, s := range parse(t, "telemetry: { otlp: \"https://ann:hunter2@collector:4318/v1\" }\n").Settings() {
		if strings.Contains(fmt.Sprint(s.Value), "hunter2") || s.Key == "telemetry.otlp" && s.Value != "https://…@collector:4318/v1" {
			t.Errorf("%s: %v", s.Key, s.Value)
		}
	}
}

// TestDiff: what differs, as it holds, and which of it a running host takes on.
func TestDiff(t *testing.T) {
	for _, c := range []struct {
		name, from, to string
		want           []string
	}{
		{"nothing", small, small, nil},
		{"a default written out", small, small + "line: { maxSize: 1024 }\nloadBalancer: { terms: { mspt: { weight: 1 } } }\n", nil},
		{"another form", "line: { maxSize: 5 }", "line:\n  maxSize: 5\n", nil},
		{"live", small, small + "loadBalancer: { policy: leastPlayers }\n", []string{"changed loadBalancer.policy: weighted -> leastPlayers live"}},
		{"restart", small, small + "heartbeat: { intervalMs: 500 }\n", []string{"changed heartbeat.intervalMs: 1000 -> 500"}},
		{"a curve of another type", small, small + "loadBalancer: { terms: { mspt: { curve: { type: power } } } }\n", []string{
			"removed loadBalancer.terms.mspt.curve.k: 8 -> <nil> live", "added loadBalancer.terms.mspt.curve.p: <nil> -> 2 live",
			"changed loadBalancer.terms.mspt.curve.type: sigmoid -> power live", "removed loadBalancer.terms.mspt.curve.x0: 0.6 -> <nil> live",
		}},
		{"an entry more", small, small + "loadBalancer: { backends: { survival-1: { weight: 2 } } }\n", []string{"added loadBalancer.backends.survival-1: <nil> -> <nil> live"}},
		{"a term less", "loadBalancer: { terms: { lag: { input: mspt, weight: 2 } } }", "", []string{"removed loadBalancer.terms.lag: <nil> -> <nil> live"}},
		{"a host more", small, small + "  hub: { advertise: \"10.0.0.6:25566\" }\n", []string{"added hosts.hub: <nil> -> <nil>"}},
		{"an edge more", small, strings.Replace(small, "{ listen:", "{ listen: \":1\" }, { listen:", 1),
			[]string{"changed hosts.proxy-1.edges[0].listen: :25565 -> :1", "added hosts.proxy-1.edges[1]: <nil> -> <nil>"}},
		{"names within names", "triggers: { join: { map: { play: {} } } }", "triggers: { join: { map: { play.a: {}, play: {} } } }",
			[]string{"added triggers.join.map.play.a: <nil> -> <nil> live"}},
		{"an address more", "", "edge: { backends: { a: \"10.0.0.5:1\" } }", []string{"added edge.backends.a: <nil> -> 10.0.0.5:1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, x := range Diff(parse(t, c.from), parse(t, c.to)) {
				line := fmt.Sprintf("%s %s: %v -> %v", x.What, x.Key, x.From, x.To)
				if x.Live {
					line += " live"
				}
				got = append(got, line)
			}
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// TestEverythingUnderALiveMapIsLive: an entry is adopted or not as a whole.
func TestEverythingUnderALiveMapIsLive(t *testing.T) {
	for _, k := range keys {
		for _, inner := range keys {
			if k.Kind == Map && strings.HasPrefix(inner.Path, k.Path+".") && inner.Live != k.Live {
				t.Errorf("%s: live %v, %s: live %v", k.Path, k.Live, inner.Path, inner.Live)
			}
		}
	}
}
