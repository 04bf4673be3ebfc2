package main

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	faultsPage = "../../docs/operations.md"
	carriesIt  = "store: { carrier: all }"
)

// refused is a fault with which nothing starts. The whole of it happens here: the files are
// written, the command is typed, and what comes back is the row of docs/operations.md.
type refused struct {
	what    string
	command string            // up --id all unless given
	more    string            // what network.yml has in its ninth line
	backend bool              // the host has no edge
	files   map[string]string // others beside network.yml; "" takes one away
	secret  string            // a good one unless given; "-" is none
	status  int
	says    string // all of it
}

var refusedFaults = []refused{
	{what: "there is no network.yml", files: map[string]string{"network.yml": ""}, status: 1,
		says: "network.yml: no such file; allowed: one written after docs/network.yml"},
	{what: "the file is not YAML", more: "line: [", status: 1,
		says: "network.yml:9: not YAML: sequence end token ']' not found"},
	{what: "a key that nobody knows", more: "lin: {}", status: 1,
		says: `network.yml:9: lin: unknown key, did you mean "line"?; allowed: network, store, heartbeat, reservation, loadBalancer, line, triggers, routing, permissions, limits, allocation, edge, api, security, telemetry, messages, hosts`},
	{what: "a key that stands twice", more: "edge: {}", status: 1,
		says: "network.yml:9: edge: is given twice; allowed: once"},
	{what: "a schema of another version", files: map[string]string{"network.yml": "network: { enabled: true, schemaVersion: 2 }\n"}, status: 1,
		says: "network.yml:1: network.schemaVersion: 2 is not allowed; allowed: 1"},
	{what: "a value out of bounds", more: "line: { maxSize: 0 }", status: 1,
		says: "network.yml:9: line.maxSize: 0 is not allowed; allowed: 1..1000000 players"},
	{what: "two values that contradict each other", more: "reservation: { ttlSeconds: 2 }", status: 1,
		says: "network.yml:9: reservation.ttlSeconds: 2 s leave no time for a claim, which needs more than loadBalancer.moveTimeoutMs + 2 s = 7000 ms; allowed: 8 or more"},
	{what: "a table of scores that is none", more: "loadBalancer: { terms: { mspt: { curve: { type: sigmoyd } } } }", status: 1,
		says: `network.yml:9: loadBalancer.terms.mspt.curve.type: "sigmoyd" is not allowed, did you mean "sigmoid"?; allowed: linear, exponential, logarithmic, sigmoid, step, power`},
	{what: "a lobby that is no host", more: "routing: { lobbies: [hub] }", status: 1,
		says: `network.yml:9: routing.lobbies: "hub" is not under hosts; allowed: all`},
	{what: "servers of your own without an address", more: "store: { mode: external }", status: 1,
		says: "network.yml:9: store.url: is empty while store.mode is external; allowed: nats://host:port or tls://host:port, several separated by commas"},
	{what: "a store that is open to other machines without TLS", more: `store: { carrier: all, listen: "0.0.0.0:4222" }`, status: 1,
		says: "network.yml:9: store.listen: \"0.0.0.0:4222\" is open to other machines without TLS; allowed: security.tls, as `landfall init` makes it, or a loopback address, such as 127.0.0.1:4222"},
	{what: "a certificate that is none", more: `store: { carrier: all, listen: "0.0.0.0:0" }` + "\nsecurity: { tls: { cert: a.crt, key: a.key } }", files: map[string]string{"a.crt": "no certificate", "a.key": "no key"}, status: 1,
		says: "network.yml:10: security.tls.cert: tls: failed to find any PEM data in certificate input; allowed: a certificate in PEM and its key, as `landfall init` makes them"},
	{what: "an RCON without its password", files: map[string]string{"rcon.secret": ""}, status: 1,
		says: "network.yml:7: hosts.all.rcon.passwordFile: open rcon.secret: no such file or directory; allowed: a file that holds the value of rcon.password of server.properties"},
	{what: "texts that are none", files: map[string]string{"messages.yml": "\nlogin.down: [a, b]\n"}, status: 1,
		says: "messages.yml:2: want a flat list of key: text: login.down has no text"},
	{what: "permissions that are none", files: map[string]string{"permissions.yml": "groups:\n  a: { grants: [] }\n"}, status: 1,
		says: `permissions.yml:2: groups.a.grants: unknown key, did you mean "grant"?; allowed: grant, deny, players`},
	{what: "the secret of a host without an edge is missing", backend: true, more: carriesIt, secret: "-", status: 1,
		says: "secret $RTP_NET_SECRET: is not set, and security.secretFile is empty; allowed: Base64 of 32 bytes or more; make one with: head -c 32 /dev/urandom | base64"},
	{what: "it is too short", backend: true, more: carriesIt, secret: "c2hvcnQ=", status: 1,
		says: "secret $RTP_NET_SECRET: has only 5 bytes; allowed: Base64 of 32 bytes or more; make one with: head -c 32 /dev/urandom | base64"},
	{what: "it is the one of an example", backend: true, more: carriesIt, secret: "changeme", status: 1,
		says: "secret $RTP_NET_SECRET: is a placeholder, which everybody knows; allowed: Base64 of 32 bytes or more; make one with: head -c 32 /dev/urandom | base64"},
	{what: "nobody said who this host is", command: "up", status: 1,
		says: "this host has no id; allowed: --id, LANDFALL_SERVER_ID or LANDFALL_PROXY_ID naming one of all"},
	{what: "the file does not know this host", command: "up --id hub", status: 1,
		says: `network.yml:3: hosts: does not list "hub", which --id names; allowed: all`},
	{what: "the store is another network's", files: map[string]string{"landfall-data/landfall.json": `{"network":"other","format":1,"creator":"up"}`}, status: 1,
		says: "store landfall-data: belongs to network \"other\", not \"test\": set network.name or use another directory"},
	{what: "the store is of a newer version", files: map[string]string{"landfall-data/landfall.json": `{"network":"test","format":2,"creator":"up"}`}, status: 1,
		says: "store landfall-data: has format version 2, this Landfall reads 1: use the matching version or another directory"},
	{what: "a flag that nobody knows", command: "up --idd all", status: 64,
		says: "unknown flag: --idd; see `landfall up --help`"},
	{what: "a word too many", command: "up all", status: 64,
		says: "takes no arguments, got \"all\"; see `landfall up --help`"},
}

// tolerated is a fault that a running host lives with: what it does meanwhile, how that ends,
// and the tests that show both.
type tolerated struct{ what, meanwhile, ends, shown string }

var toleratedFaults = []tolerated{
	{"an edge has no secret", "players are let in, to the advertised servers in turn; nobody is moved; not ready", "with the next start", "`cmd/landfall`: TestUpWithoutASecretLetsPlayersIn"},
	{"the store does not answer at the start", "the host waits and says so; edges let players in; what is read again is adopted all the same", "by itself", "`cmd/landfall`: TestUpIsToldWhileItWaitsForTheStore, TestUpIsStoppedWhileItWaitsForTheStore"},
	{"the connection to the store breaks, or the store restarts", "not ready; what was known stays known, and is never taken for an empty network", "by itself, without a gap or a repeat", "`cmd/landfall`: TestReadinessDipsWhenTheStoreRestarts, TestReadinessDipsWhenTheConnectionBreaks; `actors/sim`: TestCase049_AnOutageEmptiesNothing; `streams`: TestCase082_TheStoreIsAway"},
	{"a command while the store is away", "refused with `TRANSPORT_DOWN`; nothing is kept back to land later", "by itself", "`actors/sim`: TestStoreOutageRefusesRequests; `actors`: TestLimitsInAnOutage; `streams`: TestAppendFailsAtOnceWithoutAConnection"},
	{"a program while the store is away", "answered with `TRANSPORT_DOWN` and status 503", "by itself", "`actors/api`: TestAStoreThatIsAway"},
	{"the store is away at any step of a transfer", "the step waits; no deadline runs", "by itself: the player arrives once", "`actors/sim`: TestStoreOutageAtEachStep, TestWhoArrivesDuringAnOutageIsPlaced, TestRecoveryIsNoStampede"},
	{"the log is full", "what would be written is refused with `LOG_FULL` and not tried again", "when there is room", "`actors`: TestWriteRefusals"},
	{"the carrier's disk fails to sync", "nothing counts as acknowledged any more; what was written is unknown, not failed", "when the carrier is started again, on a disk that works", "`streams`: TestDiskThatFailsIsNoRefusal; `streams/embedded`: TestFailedSyncIsTheLast"},
	{"a job that one host at a time does, while the store is away", "its holder keeps it for as long as nobody else can have it", "by itself: the same host goes on, or another one", "`actors`: TestLeaseWhileTheLogIsAway, TestSealerGoesOnAfterAnOutage"},
	{"a game server or its process dies, or comes back as another life", "it is left out; its promises end with their time", "by itself, with its first heartbeat", "`actors/sim`: TestReservedDestinationDies, TestCase043_ARestartedServer"},
	{"RCON is not reachable", "the host beats `DEGRADED` and says what helps, once", "by itself", "`cmd/landfall`: TestUpWithAnUnreachableRCON; `actors/rcon`: TestClientFindsAClosedIdleConnectionBeforeWriting"},
	{"RCON refuses the password", "the host ends with status 1", "with the right password", "`cmd/landfall`: TestUpWithAWrongRCONPassword"},
	{"a file that is read again is wrong", "refused as a whole, with the line; what held goes on", "with the next reload", "`cmd/landfall`: TestReload, TestMessagesAreReloaded, TestPermissionsAreReloaded"},
	{"a pushed configuration does not fit a host", "refused as a whole by that host, which says so in its heartbeat", "with the next version", "`cmd/landfall`: TestAVersionThatDoesNotFitIsRefusedWhole"},
	{"the new certificate cannot be read", "the old one is shown", "with the next file", "`cmd/landfall`: TestCertificateIsReadAgain"},
	{"something in the log that nobody signed", "dropped, counted, audited; it changes nothing", "needs nothing", "`projections`: TestCase115_GarbageChangesNothing; `cmd/landfall`: TestHostileBackend"},
	{"a fact of a newer version, or by a key that is not known", "the fold stops before it, names it, and is not ready", "when the host is upgraded, or has the key, and is started again", "`projections`: TestCase113_AFoldThatStopsSaysWhere; `cmd/landfall`: TestAnOlderVersionStopsAtWhatItDoesNotKnow"},
	{"an archive meets a record that it cannot judge", "the archive stops and names it; the network goes on", "with the next version, or when an operator leaves it out", "`projections/archive`: TestAHaltNamesTheRecord, TestAnInterruptedProjectionGoesOn"},
	{"two processes bear one id", "the older ends with status 78", "with ids of their own", "`cmd/landfall`: TestUpTwiceUnderOneID"},
	{"the kill switch", "is no fault: requests are refused with `KILL_SWITCH`, who waits keeps the place", "`landfall kill off`", "`actors/sim`: TestKillSwitch"},
}

// TestWhatIsRefused: one line that says where, what and what is allowed, its status, and nothing runs.
func TestWhatIsRefused(t *testing.T) {
	for _, f := range refusedFaults {
		t.Run(f.what, func(t *testing.T) {
			t.Chdir(t.TempDir())
			f.lay(t)
			o := typed(t, strings.Fields(f.typed())...)
			_, last, _ := strings.Cut("\n"+o.stderr, "\nlandfall: ")
			if got := strings.TrimSuffix(last, "\n"); o.status != f.status || got != f.says || o.stdout != "" {
				t.Errorf("status %d, %q\nwant   %d, %q\n%s", o.status, got, f.status, f.says, o.stdout)
			}
		})
	}
}

// lay writes the files of a host, all of them good but for the fault.
func (f refused) lay(t *testing.T) {
	t.Helper()
	config := strings.Replace(oneHost("127.0.0.1:1"), "store: { maxBytes: 1073741824 }\n", "", 1) + f.more + "\n"
	if f.backend {
		config = strings.Replace(config, "    edges: [ { listen: \"127.0.0.1:0\" } ]\n", "", 1)
	}
	files := map[string]string{"network.yml": config, "rcon.secret": rconPassword}
	maps.Copy(files, f.files)
	for name, text := range files {
		if text == "" {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, name, text)
	}
	t.Setenv(envSecret, strings.TrimPrefix(cmp.Or(f.secret, encoded(realSecret)), "-"))
}

func (f refused) typed() string { return cmp.Or(f.command, "up --id all") }

// TestFaultsPage keeps docs/operations.md equal to the two tables. After a change:
//
//	go test ./cmd/landfall -run FaultsPage -update
func TestFaultsPage(t *testing.T) {
	const begin, end = "<!-- faults: begin -->\n", "<!-- faults: end -->\n"
	page, err := os.ReadFile(faultsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begun := strings.Cut(string(page), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		t.Fatalf("%s has no %q and %q", faultsPage, begin, end)
	}
	want := before + begin + theFaults() + end + after
	if *updateTranscripts {
		if err := os.WriteFile(faultsPage, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(page) != want {
		t.Errorf("%s differs from the tables of faults; write it with: go test ./cmd/landfall -run FaultsPage -update", faultsPage)
	}
}

func theFaults() string {
	var b strings.Builder
	cell := strings.NewReplacer("|", `\|`, "`", "")
	b.WriteString("| refused at the start | status | what the one line says |\n|---|---|---|\n")
	for _, f := range refusedFaults {
		fmt.Fprintf(&b, "| %s | %d | `%s` |\n", f.what, f.status, cell.Replace(f.says))
	}
	b.WriteString("\n| | goes wrong while it runs | meanwhile | it ends | shown by |\n|---|---|---|---|---|\n")
	for i, f := range toleratedFaults {
		fmt.Fprintf(&b, "| F%d | %s | %s | %s | %s |\n", i+1, f.what, f.meanwhile, f.ends, f.shown)
	}
	return b.String()
}
