package events

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"
)

// sample is one fact of the corpus: what it says, and who says it where.
type sample struct {
	name   string
	source Source
	key    string
	prev   uint64
	cause  string // name of the event that caused it, empty when none did
	fact   Fact
}

const (
	samplePlayer   = "069a79f4-44e9-4726-a5be-fca90e38aaf5"
	sampleOffline  = "b50ad385-829d-3141-a216-7e7d7539ba7f"
	sampleTransfer = "0193a1f0-5c00-7abc-8def-0123456789ab"
	sampleNext     = "0193a1f0-9e10-7abc-8def-0123456789ab"
)

// sampleHostKey is the public half of a key that nobody uses.
const sampleHostKey = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8"

// corpusSecret is public on purpose: testdata/events/README.md.
const corpusSecret = "landfall test secret, never used"

// corpusKeyring signs the corpus.
func corpusKeyring() *Keyring {
	key, err := NewKey([]byte(corpusSecret))
	if err != nil {
		panic(err)
	}
	return NewKeyring(key)
}

func corpusTime() time.Time { return time.Date(2026, 11, 29, 12, 0, 0, 123456789, time.UTC) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// fixed is an id that stays the same as long as its name does.
func fixed[I ~[16]byte](name string) I {
	sum := sha256.Sum256([]byte(name))
	id := I(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func host(kind SourceKind, id HostID) Source {
	return Source{Kind: kind, ID: id, Incarnation: fixed[Incarnation]("incarnation of " + string(id))}
}

func samples() []sample {
	edge, relay := host(SourceEdge, "edge-1"), host(SourceRelay, "Relay_2")
	direct, api := host(SourceDirect, "survival-1"), host(SourceAPI, "console")
	operator := host(SourceOperator, "admin")
	here := samplePlayer + "." + sampleTransfer
	there := sampleOffline + "." + sampleNext
	at := Position{World: "minecraft:overworld", X: 1200.5, Y: 71, Z: -3407.5, Yaw: 90, Pitch: -12.25}
	inc := fixed[Incarnation]("incarnation of survival-2")
	why := Decision{
		Policy: "kept/1#0a1b2c3d", Snapshot: 90210, AgeMs: 412,
		Candidates: []Candidate{
			{Server: "survival-2", Region: "wild", Score: 0.125, Terms: []Term{{Name: "kept", Raw: 12, Score: 0.125}}},
			{Server: "survival-3", Region: "", Score: 1e-3, Terms: nil},
		},
		Filtered: []Filtered{{Code: Drained, Count: 1, Examples: []string{"survival-4"}}, {Code: Stale, Count: 300, Examples: []string{}}},
	}
	scored := Decision{
		Policy: "weighted/0a1b2c3d", Snapshot: 90300, AgeMs: 7, Unreported: "queueDepth,heapUsed",
		Collision: "survival-2=minecraft:overworld,survival-3=minecraft:the_nether",
		Candidates: []Candidate{{Server: "survival-2", Region: "wild", Score: 1.25, Terms: []Term{
			{Name: "mspt", Score: 1, Missing: true}, {Name: "keptCount", Raw: 3, Score: 0.25},
		}}},
		Filtered: []Filtered{},
	}
	session := Session{
		Number: 0, Holder: "edge-1", HolderIncarnation: edge.Incarnation, Kind: KindEdge,
		Server: "survival-1", Join: fixed[JoinID]("join"), Name: "Notch", Protocol: 767,
	}
	open := session
	open.Number = 4711
	bare := Session{Holder: "survival-1", HolderIncarnation: direct.Incarnation, Kind: KindDirect}
	return []sample{
		{"command", edge, here, 0, "", &Requested{Trigger: TriggerCommand, Origin: "survival-1", Name: "Notch"}},
		{"pinned", api, there, 88, "earlier", &Requested{
			Trigger: TriggerAPI, Wish: Wish{Region: "wild", World: "minecraft:the_nether", Pin: "survival-2"},
			Origin: "lobby", Name: "Zoë Ω", NativeID: "xuid:2535400000000000", Bypass: true, Wait: true,
		}},
		{"edge", edge, here, 101, "command", &Reserved{
			Attempt: 1, Server: "survival-2", Incarnation: inc, Promise: 70000, Region: "wild", At: at, TTLMs: 30000,
			Answer: "v1;kid=0011223344556677;00ff", Decision: why,
		}},
		{"bare", direct, there, 1 << 40, "", &Reserved{Attempt: 64, Server: "s", Promise: 1, TTLMs: 1}},
		{"edge", edge, here, 102, "", &Claimed{Attempt: 1, Dispatcher: "edge-1", Incarnation: edge.Incarnation, Session: 4711, From: "survival-1"}},
		{"direct", direct, there, 1<<40 + 1, "", &Claimed{Attempt: 64, Dispatcher: "survival-1", Incarnation: direct.Incarnation}},
		{"origin", edge, here, 102, "", &Claimed{
			Attempt: 1, Dispatcher: "edge-1", Incarnation: edge.Incarnation, Session: 4711, From: "survival-1", FromIncarnation: &inc,
		}},
		{"sent", edge, here, 103, "", &Transferred{Attempt: 1, How: HowTransfer, Result: MoveSent}},
		{"unknown", relay, there, 9, "", &Transferred{Attempt: 2, How: HowConnect, Result: MoveUnknown}},
		{"joined", relay, here, 104, "", &Consumed{Attempt: 1, Server: "survival-2", Incarnation: inc, Join: fixed[JoinID]("arrival")}},
		{"bare", edge, there, 10, "", &Consumed{Attempt: 300}},
		{"placed", edge, here, 105, "", &Completed{Attempt: 1, At: at}},
		{"extremes", edge, there, 11, "", &Completed{Attempt: 1, At: Position{World: "", X: -29999984, Y: -64, Z: 0.1, Yaw: -180, Pitch: 1e-300}}},
		{"refused", edge, here, 103, "", &Released{Attempt: 1, Reason: MoveRefused, Detail: "NOT_HERE"}},
		{"bare", edge, there, 12, "", &Released{Attempt: 2, Reason: PlayerDetached}},
		{"ttl", edge, here, 103, "", &Expired{Attempt: 1, Reason: TTLPassed}},
		{"reborn", edge, there, 13, "", &Expired{Attempt: 2, Reason: NewIncarnation}},
		{"silent", edge, here, 103, "", &Reopened{Attempt: 1, Claim: 103, Evidence: Stale, LastBeat: 5_000_000_000, SilenceMs: 4100}},
		{"reborn", edge, there, 14, "", &Reopened{Attempt: 2, Claim: 14, Evidence: NewIncarnation}},
		{"decided", edge, here, 101, "", &Waitlisted{Decision: why}},
		{"bare", edge, there, 15, "", &Waitlisted{Decision: Decision{Candidates: []Candidate{}}}},
		{"decided", edge, here, 101, "", &Failed{Code: NoCandidate, Detail: "nobody offers wild", Decision: &why}},
		{"bare", edge, there, 16, "", &Failed{Code: NotArrived}},
		{"grace", edge, here, 101, "", &Cancelled{Code: GraceOver, Detail: "absent for 60 s"}},
		{"bare", edge, there, 17, "", &Cancelled{Code: Cancel}},
		{"another", edge, here, 101, "", &Superseded{By: must(ParseID[TransferID](sampleNext))}},
		{"edge", edge, samplePlayer, 0, "", &SessionOpened{Session: session}},
		{"direct", direct, sampleOffline, 70, "", &SessionOpened{Session: bare}},
		{"edge", edge, samplePlayer, 4711, "", &SessionRefreshed{Session: open}},
		{"left", edge, samplePlayer, 4712, "", &SessionClosed{Session: open, Reason: "left the game"}},
		{"bare", relay, sampleOffline, 71, "", &SessionClosed{Session: bare}},
		{"on", operator, "kill", 0, "", &KillSet{On: true, Who: "ada", Why: "maintenance"}},
		{"off", operator, "kill", 3, "", &KillSet{}},
		{"on", operator, "drain.survival-2", 0, "", &DrainSet{Host: "survival-2", On: true, Who: "ada", Why: "new disk"}},
		{"off", operator, "drain.survival-2", 5, "", &DrainSet{Host: "survival-2"}},
		{"line", operator, "pause.line", 0, "", &PauseSet{What: PauseLine, On: true, Who: "ada", Why: "event"}},
		{"region", operator, "pause.region.wild", 5, "", &PauseSet{What: PauseRegion, Name: "wild"}},
		{"on", operator, "evacuate.survival-2", 0, "", &EvacuateSet{Host: "survival-2", On: true, PerSecond: 2.5, Who: "ada", Why: "new disk"}},
		{"off", operator, "evacuate.survival-2", 5, "", &EvacuateSet{Host: "survival-2"}},
		{"renewed", operator, "identity.proxy-1", 0, "", &IdentitySet{
			Host: "proxy-1", Role: IdentityProxy, Alone: []Span{{Bucket: Transfers, From: 100}}, Who: "ada", Why: "new disk", Keys: []HostKey{
				{Key: sampleHostKey, Closed: true, Spans: []Span{{Bucket: Transfers, From: 100, Until: 250}}},
				{Key: sampleHostKey, Spans: []Span{{Bucket: Transfers, From: 240}}},
			},
		}},
		{"shared", operator, "identity.survival-1", 3, "", &IdentitySet{Host: "survival-1", Role: IdentityBackend, Keys: []HostKey{{Key: sampleHostKey, Spans: []Span{}}}, Alone: []Span{}}},
		{"pushed", operator, "config", 0, "", &ConfigSet{Text: "line: { maxSize: 64 }\n", Who: "ada", Why: "weekend"}},
		{"back", operator, "config", 5, "", &ConfigSet{}},
		{"switched", operator, "rebuild.archive.edge-1", 0, "", &RebuildSet{
			View: "archive.edge-1", File: "archive-2-0b5a0d1f-1.db", Fold: 2, Was: "archive-1-0b5a0d1f-1.db", At: 81234,
			Hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", Who: "ada", Why: "upgrade",
		}},
		{"back", operator, "rebuild.archive.edge-1", 7, "", &RebuildSet{View: "archive.edge-1", File: "archive-1-0b5a0d1f-1.db", Fold: 1, Was: "archive-2-0b5a0d1f-1.db", Back: true}},
		{"full", host(SourceBackend, "zone-1"), "instance.zone-1." + fixed[Incarnation]("incarnation of zone-1").String(), 0, "", &InstanceBeat{
			Placement: "zone-1", Incarnation: fixed[Incarnation]("incarnation of zone-1"), First: 4, State: Ready, Draining: true, Version: "1.2.3", Schema: 1,
			Realm: "eu", Region: "west", Players: 3, MaxPlayers: 20, Outstanding: 2, Promise: 9,
			Bootstrap: EndpointBeat{Address: "10.0.0.9:80", Health: EndpointHealthy}, Gameplay: EndpointBeat{Address: "10.0.0.9:4433", Health: EndpointDegraded},
			Zones: []ZoneBeat{{Name: "harbor", Players: 2, MaxPlayers: 8, Unavailable: true, Overloaded: true}, {Name: "moor"}},
		}},
		{"bare", host(SourceBackend, "zone-1"), "instance.zone-1." + fixed[Incarnation]("incarnation of zone-1").String(), 5, "", &InstanceBeat{
			Placement: "zone-1", Incarnation: fixed[Incarnation]("incarnation of zone-1"), Zones: []ZoneBeat{},
		}},
		{"made", operator, "token.0123456789abcdef", 0, "", &TokenSet{
			ID: "0123456789abcdef", Name: "matchmaker", Hash: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
			Scopes: []Scope{ScopeAllocate, ScopeRead}, Expires: 1798761600, Who: "ada", Why: "new lobby",
		}},
		{"revoked", operator, "token.0123456789abcdef", 6, "", &TokenSet{ID: "0123456789abcdef", Revoked: true}},
		{"network", edge, samplePlayer + ".rest.rtp", 0, "", &CooldownSet{Limit: "rtp", Seconds: 300, Transfer: must(ParseID[TransferID](sampleTransfer))}},
		{"server", edge, samplePlayer + ".rest.rtp.survival-1", 4, "", &CooldownSet{
			Limit: "rtp", Server: "survival-1", Seconds: 1, Transfer: must(ParseID[TransferID](sampleTransfer)),
		}},
		{"third", edge, samplePlayer + ".uses.rtp.survival-1", 2, "", &UsesCounted{
			Limit: "rtp", Server: "survival-1", Count: 3, Until: 1_796_083_200, Transfer: must(ParseID[TransferID](sampleTransfer)),
		}},
		{"first", edge, sampleOffline + ".uses.arena-end", 0, "", &UsesCounted{
			Limit: "arena-end", Count: 1, Until: 1_796_083_200, Transfer: must(ParseID[TransferID](sampleNext)),
		}},
		{"two", edge, samplePlayer + ".perm", 0, "", &PermitsKept{Server: "survival-1", Permits: Permits{Nodes: []Permit{{Node: "rtp.regions.wild"}, {Node: "rtp.unqueued", Granted: true}}}}},
		{"bare", edge, sampleOffline + ".perm", 1, "", &PermitsKept{Permits: Permits{Nodes: []Permit{}}}},
		{"first", edge, samplePlayer + ".seen", 0, "", &PlayerSeen{Name: "Notch", Server: "lobby"}},
		{"first", edge, RouteKey(RouteName([16]byte{1})), 0, "", &RouteStaged{
			Player: must(ParseID[PlayerID](samplePlayer)), Server: "survival-2", Token: Token{Transfer: must(ParseID[TransferID](sampleTransfer)), Attempt: 1}, Hops: 1, Until: 1_796_083_200,
		}},
		{"bare", edge, RouteKey(RouteName([16]byte{2})), 3, "", &RouteStaged{Server: "creative-1", Hops: 3}},
		{"marker", edge, RouteKey(RouteName([16]byte{1})), 1, "", &RouteUsed{Player: must(ParseID[PlayerID](samplePlayer)), Server: "survival-2", How: ByMarker, Until: 1_796_083_200}},
		{"player", edge, PlayerRoutesKey(must(ParseID[PlayerID](samplePlayer))), 0, "", &RoutesListed{Routes: []RouteEntry{{Route: RouteName([16]byte{1}), Until: 1_796_083_200, Hops: 1}}}},
		{"address", edge, AddressRoutesKey("00112233445566778899aabbccddeeff"), 7, "", &RoutesListed{Routes: []RouteEntry{
			{Route: RouteName([16]byte{1}), Until: 1_796_083_200, Token: Token{Transfer: must(ParseID[TransferID](sampleTransfer)), Attempt: 2}, Hops: 2}, {Route: RouteName([16]byte{2}), Hops: 1},
		}}},
		{"waits", edge, samplePlayer + ".held", 0, "", &LoginHeld{Transfer: must(ParseID[TransferID](sampleTransfer))}},
		{"join", edge, there, 107, "", &Requested{Trigger: TriggerJoin, Via: "play.example.net", Name: "Notch"}},
		{"first", edge, "1", 0, "", &Checkpoint{Number: 1, From: 1, To: 10_000, Count: 10_000, Hash: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}},
		{"second", edge, "2", 0, "", &Checkpoint{
			Number: 2, From: 10_001, To: 10_057, Count: 57, Hash: "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752",
			Prev: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		}},
		{"signature", edge, "edge-1.rejected", 0, "", &Rejected{Source: "/edge/edge-9/x", Code: BadSignature, Subject: "$KV.transfers.x", At: 77, Detail: "does not match"}},
		{"bare", operator, "admin.rejected", 7, "", &Rejected{Code: WrongPrev}},
		{"full", host(SourceBackend, "survival-2"), "backend.survival-2", 12, "", &BackendBeat{
			Server: "survival-2", Incarnation: inc, State: Ready, Accepting: true, Adapter: "rcon", Version: "0.1.0", Schema: 1,
			Game: "minecraft 1.21.1", ProtocolMin: 767, ProtocolMax: 774, Advertise: "10.0.0.2:25565", Public: "play2.example.org:25565",
			Players: 40, MaxPlayers: 100, Promise: 70000, Outstanding: 3,
			Regions:    []RegionBeat{{Name: "mesa", World: "minecraft:overworld", Kept: 0, Size: 16}, {Name: "wild", World: "minecraft:overworld", Kept: 12, Size: 16}},
			QueueDepth: new(7), SoftCap: new(90), MSPT: new(48.25), TPS: new(19.9), HeapUsed: new(int64(3 << 30)), HeapMax: new(int64(8 << 30)), PipelineMs: new(812.5),
		}},
		{"lobby", host(SourceBackend, "lobby"), "backend.lobby", 0, "", &BackendBeat{
			Server: "lobby", Incarnation: host(SourceBackend, "lobby").Incarnation, State: Starting, Regions: []RegionBeat{}, Players: 0, MSPT: new(0.0),
		}},
		{"unmeasured", host(SourceBackend, "survival-3"), "backend.survival-3", 1, "", &BackendBeat{
			Server: "survival-3", Incarnation: host(SourceBackend, "survival-3").Incarnation, State: Degraded, Adapter: "sdk", Schema: 1,
		}},
		{"edge", edge, "proxy.edge-1", 99, "", &ProxyBeat{
			Proxy: "edge-1", Incarnation: edge.Incarnation, State: Ready, Version: "0.1.0", Schema: 1, Kinds: []SessionKind{KindEdge, KindRelay},
			Players: 40, InFlight: 2, Folded: 1 << 33,
		}},
		{"configured", edge, "proxy.edge-1", 100, "", &ProxyBeat{
			Proxy: "edge-1", Incarnation: edge.Incarnation, State: Ready, Version: "0.1.0", Schema: 1, Kinds: []SessionKind{KindEdge}, Players: 1, Folded: 9,
			Config: &ConfigBeat{Fixed: []SectionBeat{{Name: "edge", Hash: "0a1b2c3d"}, {Name: "hosts", Hash: "4e5f6071"}}, Live: []SectionBeat{{Name: "line", Hash: "8293a4b5"}}, Pushed: 12},
		}},
		{"configured", host(SourceBackend, "lobby"), "backend.lobby", 1, "", &BackendBeat{
			Server: "lobby", Incarnation: host(SourceBackend, "lobby").Incarnation, State: Ready, Regions: []RegionBeat{}, MaxPlayers: 20,
			Config: &ConfigBeat{Refused: 12, Fault: "line.hurry: unknown key"},
		}},
		{"drained", edge, "proxy.edge-1", 0, "", &ProxyBeat{Proxy: "edge-1", Incarnation: edge.Incarnation, State: Ready, Version: "0.1.0", Schema: 1, Kinds: []SessionKind{KindEdge}, Drained: true}},
		{"bare", direct, "proxy.survival-1", 0, "", &ProxyBeat{Proxy: "survival-1", Incarnation: direct.Incarnation, State: ShuttingDown}},
		{"scored", edge, here, 106, "", &Reserved{
			Attempt: 2, Server: "survival-2", Incarnation: inc, Promise: 70001, Region: "wild", At: at, TTLMs: 30000, Decision: scored,
		}},
	}
}

func (s sample) envelope() Envelope {
	kind := must(KindOf(s.fact))
	e := Envelope{ID: fixed[EventID](kind.Type + "/" + s.name), Source: s.source, Time: corpusTime(), Key: s.key, Schema: SchemaVersion, Prev: s.prev}
	if kind.Bucket == Transfers {
		_, e.Correlation, _ = ParseTransferKey(s.key)
	}
	if s.cause != "" {
		e.Causation = fixed[EventID](s.cause)
	}
	return e
}

func (s sample) seal(t testing.TB, k *Keyring) Message {
	t.Helper()
	m, err := Seal(k, s.envelope(), s.fact)
	if err != nil {
		t.Fatalf("seal sample %s: %v", s.name, err)
	}
	return m
}

// record is a message as the log would hold it.
func record(m Message, seq uint64) Record {
	return Record{Bucket: m.Bucket, Key: m.Key, Seq: seq, Stored: corpusTime(), Header: m.Header, Body: bytes.Clone(m.Body)}
}

// requireRefusal fails unless r carries the code.
func requireRefusal(t testing.TB, what string, r *Refusal, code Code) {
	t.Helper()
	if r == nil || r.Code != code {
		t.Errorf("%s: got %v, want %s", what, refusalText(r), code)
	}
}

func refusalText(r *Refusal) string {
	if r == nil {
		return "no refusal"
	}
	return r.Error()
}

func (s sample) String() string { return fmt.Sprintf("%s/%s", TypeName(s.fact), s.name) }
