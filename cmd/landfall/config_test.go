package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// configs are files that the transcripts are about.
var configs = map[string]string{
	"network.yml": `network: { name: my-network, enabled: true }
store: { carrier: proxy-1, url: "nats://127.0.0.1:4222" }
loadBalancer:
  terms: { mspt: { weight: 2 } }
line: { maxAgeSeconds: 600 }
permissions: rules.yml
edge: { domain: play.example.net }
hosts:
  proxy-1: { edges: [ { listen: ":25565" } ] }
  survival-1:
    { advertise: "10.0.0.5:25566", rcon: { address: "127.0.0.1:25576", passwordFile: rcon.secret }, regions: { default: {}, nether: {} } }
  hub: { advertise: "10.0.0.6:25566" }
`,
	"direct.yml": `network: { name: my-network, enabled: true }
store: { mode: external, url: "tls://nats.example.net:4222" }
hosts:
  a: { advertise: "10.0.0.5:25566", rcon: { address: "127.0.0.1:25576", passwordFile: rcon.secret }, regions: { default: {} } }
  empty: {}
`,
	"plain.yml": `network: { name: my-network, enabled: true }
store: { mode: external, url: "nats://10.0.0.11:4222,nats://10.0.0.12:4222", replicas: 3 }
hosts: { empty: {} }
`,
	"alone.yml": `network: { name: my-network, enabled: true }
edge: { domain: play.example.net }
hosts: { p: { edges: [ { listen: ":25565" } ] }, s: { advertise: "10.0.0.5:25566" } }
`,
	"off.yml": "# nothing yet\n",
	"typos.yml": `network: { name: my network, enabled: yes }
store: { carrier: proxy-1, uri: "nats://127.0.0.1:4222" }
loadBalancer: { policy: random, maxRetries: 0 }
hosts:
  proxy-1: { edges: [ { game: minecraft } ] }
`,
	"contradictions.yml": `network: { name: my-network, enabled: true }
store: { carrier: proxy-9, url: "nats://127.0.0.1:4222" }
loadBalancer: { staleAfterMs: 1000 }
hosts:
  proxy-1: { edges: [ { listen: ":25565" } ] }
  survival-1: { rcon: { address: "10.0.0.5:25576", passwordFile: rcon.secret } }
`,
	"words.yml": "network: { name: my-network, enabled: true }\nmessages: texts.yml\n",
	"texts.yml": "- hello\n",
	"rights.yml": `network: { name: my-network, enabled: true }
permissions: may.yml
hosts: { survival-1: { advertise: "10.0.0.5:25566" }, survival-2: { advertise: "10.0.0.6:25566" } }
store: { mode: external, url: "nats://127.0.0.1:4222" }
`,
	"may.yml": `defaults:
  rtp.region.end: false
groups:
  staff:
    grant: [rtp.servers.*, rtp.unqueued.*]
    players: Ada
`,
	"languages.yml":    "network: { name: my-network, enabled: true }\nmessages: talk.yml\n",
	"talk.yml":         "transfer.arrived: hello\n" + `failed.NO_CANDIDAT: "full"` + "\n" + `transfer.position: "number {positon} of {total}"` + "\n",
	"talk.de.yml":      `login.none: "kein Platz für {player}"` + "\nrefused.KILL_SWITCH:\n",
	"talk.pt-BR.yml":   `transfer.active: "{state"` + "\n",
	"talk.pt_br.yml":   "",
	"talk.deutsch.yml": "",
	"tuned.yml": `network: { name: my-network, enabled: true }
store: { carrier: proxy-1, url: "nats://127.0.0.1:4222" }
heartbeat: { intervalMs: 500 }
loadBalancer:
  policy: leastPlayers
  terms: { mspt: { weight: 2, curve: { type: power } } }
  backends: { survival-1: { weight: 2 } }
line: { maxAgeSeconds: 600, maxSize: 1024 }
permissions: rules.yml
messages: texts.yml
edge: { domain: play.example.net }
hosts:
  proxy-1: { edges: [ { listen: ":25565" } ] }
  survival-1:
    { advertise: "10.0.0.5:25566", rcon: { address: "127.0.0.1:25576", passwordFile: rcon.secret }, regions: { default: {}, nether: { keep: 4 } } }
`,
	"copy.yml": `hosts:
  proxy-1:
    edges:
      - listen: ":25565"
network:
  name: my-network
`,
	"same.yml": `network: { name: my-network, enabled: false, schemaVersion: 1 }
line: { maxSize: 1024 } # the default
hosts: { proxy-1: { edges: [ { listen: ":25565", game: minecraft } ] } }
`,
}

// typedAmong runs the program in a directory with the configs.
func typedAmong(t *testing.T, got *transcript, commands ...string) {
	t.Helper()
	t.Run("in a directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		t.Setenv(envSecret, "")
		for name, text := range configs {
			write(t, name, text)
		}
		for _, command := range commands {
			o := typed(t, strings.Fields("config "+command)...)
			got.add("config "+command, o.stdout, o.stderr, o.status)
		}
	})
}

func TestConfigCheck(t *testing.T) {
	var got transcript
	typedAmong(t, &got,
		"check", "check direct.yml", "check plain.yml", "check alone.yml", "check off.yml", "check typos.yml", "check contradictions.yml", "check words.yml", "check languages.yml", "check rights.yml", "check none.yml",
		"check --id survival-1", "check --id hub", "check --id nobody", "check --json", "check typos.yml --json", "check a.yml b.yml",
	)
	got.matches(t, "config-check")
}

func TestConfigShow(t *testing.T) {
	var got transcript
	typedAmong(t, &got, "show", "show --id hub", "show --id nobody", "show typos.yml", "show off.yml --json")
	got.matches(t, "config-show")
}

func TestConfigDiff(t *testing.T) {
	var got transcript
	typedAmong(t, &got,
		"diff network.yml tuned.yml", "diff tuned.yml network.yml", "diff copy.yml same.yml", "diff network.yml tuned.yml --json", "diff copy.yml same.yml --json",
		"diff network.yml typos.yml", "diff network.yml",
	)
	got.matches(t, "config-diff")
}

func TestConfigHelp(t *testing.T) {
	var got transcript
	typedAmong(t, &got, "--help", "check --help", "show --help", "diff --help", "push")
	got.matches(t, "config-help")
}

// TestConfigCheckOfAWholeHost: with its secret and its password nothing is wrong.
func TestConfigCheckOfAWholeHost(t *testing.T) {
	dir := t.TempDir()
	for name, text := range configs {
		write(t, filepath.Join(dir, name), text)
	}
	write(t, filepath.Join(dir, "rcon.secret"), rconPassword)
	t.Setenv(envSecret, encoded(realSecret))
	o := typed(t, "config", "check", filepath.Join(dir, "network.yml"), "--id", "survival-1")
	if o.status != statusOK || strings.Contains(o.stdout, rconPassword) || strings.Contains(o.stdout, encoded(realSecret)) {
		t.Errorf("status %d\n%s", o.status, o.stdout)
	}
}

// TestTheExampleIsChecked and shown, each key with its place.
func TestTheExampleIsChecked(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "network.yml")
	if o := typed(t, "config", "check", file); o.status != statusOK {
		t.Errorf("%+v", o)
	}
	for line := range strings.Lines(typed(t, "config", "show", file, "--json").stdout) {
		var row settingRow
		if err := json.Unmarshal([]byte(line), &row); err != nil || row.Key == "" || (row.Source == "file") != (row.Line > 0 && row.File == file) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
