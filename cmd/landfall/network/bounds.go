package network

// Key is one row of the table that checks, fills and documents network.yml.
//
// A path names map keys that the operator chooses as <id>, <host>, <address> or <term>, and list items as [].
// A key that the file leaves out takes Default (YAML); without one it stays empty. Sample marks the keys where
// the example shows a value of its own instead of the default. Live marks the keys that a running host takes on
// when it reads the file again; a change of any other key needs a restart.
type Key struct {
	Path     string
	Kind     Kind
	Min, Max float64  // of numbers, in Unit; of lengths of time, in seconds
	Choices  []string // of words
	Default  string
	Unit     string
	Doc      string
	Sample   bool
	Required bool // wherever the map around it stands
	Live     bool
}

const (
	world = 30_000_000 // blocks from the middle of a Minecraft world to its border
	day   = 24 * 60 * 60
)

// shippedTerms is how backends are scored unless the file says otherwise.
const shippedTerms = `{
  mspt: { weight: 1.0, curve: { type: sigmoid, k: 8, x0: 0.6 } },
  queueDepth: { weight: 1.0, curve: { type: exponential, k: 3 } },
  heapUsed: { weight: 5.0, curve: { type: step, threshold: 0.85 } },
  keptRegion: { weight: 5.0, curve: { type: step, threshold: 0.95 } },
  keptCount: { weight: 0.25, curve: { type: logarithmic, k: 9 } },
  recentPicks: { weight: 0.5, curve: { type: linear }, halfLifeSeconds: 10, shared: false },
  playerCount: { weight: 0 },
  pipelineMs: { weight: 0, normalize: { min: 0, max: 2000 }, curve: { type: sigmoid, k: 8 } },
  proxyRtt: { weight: 0, normalize: { min: 0, max: 200 } },
  stickyRegion: { weight: 0, curve: { type: step, threshold: 0.5 } } }`

var termInputs = []string{
	"mspt", "tps", "queueDepth", "heapUsed", "heapFree", "keptRegion", "keptCount",
	"recentPicks", "playerCount", "pipelineMs", "proxyRtt", "stickyRegion",
}

// Keys returns the table, in the order of the example.
func Keys() []Key { return append([]Key(nil), keys...) }

var keys = []Key{
	{Path: "network.name", Kind: ID, Sample: true, Doc: "stands in the store; another network's store is refused; required when enabled"},
	{Path: "network.enabled", Kind: Bool, Default: "false", Sample: true, Doc: "absent means off: no socket, no goroutine, no file"},
	{Path: "network.schemaVersion", Kind: Int, Min: 1, Max: 1, Default: "1", Doc: "version of this file's form"},
	{Path: "network.serverId", Kind: ID, Default: `""`, Doc: "who this host is, as a backend"},
	{Path: "network.proxyId", Kind: ID, Default: `""`, Doc: "who this host is, as a proxy; a host may have both"},
	{Path: "network.operatorKey", Kind: Text, Default: `""`, Doc: "public half of the operator's key"},

	{Path: "store.mode", Kind: Choice, Choices: []string{"embedded", "external"}, Default: "embedded", Doc: "whether one of the hosts carries the store"},
	{Path: "store.carrier", Kind: ID, Default: `""`, Doc: "embedded: the host that opens the directory; empty: a network in one process"},
	{Path: "store.url", Kind: StoreURL, Default: `""`, Doc: "what all others connect to"},
	{Path: "store.listen", Kind: Address, Default: "127.0.0.1:4222", Doc: "the carrier's listener; beyond loopback it needs TLS"},
	{Path: "store.storage", Kind: Choice, Choices: []string{"file", "memory"}, Default: "file", Doc: "memory forgets on restart"},
	{Path: "store.replicas", Kind: Choice, Choices: []string{"1", "3"}, Default: "1", Doc: "copies of the log"},
	{Path: "store.durability", Kind: Choice, Choices: []string{"always", "grouped", "lazy"}, Default: "always", Doc: "when an acknowledged fact is on the disk: always, before, each by itself; grouped, before, together with others; lazy, within minutes; external: whether servers that are lazy are refused or accepted"},
	{Path: "store.dir", Kind: Path, Default: "./landfall-data", Doc: "directory of the embedded store"},
	{Path: "store.maxBytes", Kind: Int, Min: 0, Max: 1 << 50, Default: "0", Unit: "bytes", Doc: "size of the store; 0: sized from the machine"},
	{Path: "store.retention", Kind: Length, Min: 60, Max: 3660 * day, Default: "720h", Doc: "how long a transfer can be replayed"},
	{Path: "store.telemetryRetention", Kind: Length, Min: 60, Max: 366 * day, Default: "1h", Doc: "how long heartbeats can be looked back on"},

	{Path: "heartbeat.intervalMs", Kind: Int, Min: 100, Max: 30_000, Default: "1000", Unit: "ms", Doc: "time between two heartbeats of a host"},

	{Path: "reservation.ttlSeconds", Kind: Int, Min: 1, Max: 3600, Default: "30", Unit: "s", Live: true, Doc: "how long a promised coordinate is held"},
	{Path: "reservation.claimReanimateMs", Kind: Int, Min: 100, Max: 600_000, Default: "5000", Unit: "ms", Live: true, Doc: "age of a claim before a survivor may reopen it"},
	{Path: "reservation.sweepIntervalMs", Kind: Int, Min: 50, Max: 60_000, Default: "1000", Unit: "ms", Live: true, Doc: "time between two looks for overdue transfers"},
	{Path: "reservation.arrivalWindowMs", Kind: Int, Min: 0, Max: 30_000, Default: "2000", Unit: "ms", Live: true, Doc: "how long an arrival waits for a claim not seen yet"},

	{Path: "loadBalancer.policy", Kind: Policy, Default: "weighted", Live: true, Doc: "how a backend is chosen"},
	{Path: "loadBalancer.staleAfterMs", Kind: Int, Min: 200, Max: 600_000, Default: "3000", Unit: "ms", Live: true, Doc: "silence after which a host counts as absent; at least two heartbeats"},
	{Path: "loadBalancer.maxRetries", Kind: Int, Min: 1, Max: 10, Default: "3", Unit: "attempts", Live: true, Doc: "attempts per dispatch"},
	{Path: "loadBalancer.attemptTimeoutMs", Kind: Int, Min: 50, Max: 60_000, Default: "1500", Unit: "ms", Live: true, Doc: "wait for the answer to a reserve request"},
	{Path: "loadBalancer.moveTimeoutMs", Kind: Int, Min: 100, Max: 60_000, Default: "5000", Unit: "ms", Live: true, Doc: "wait for the answer to a move; after it the outcome is unknown"},
	{Path: "loadBalancer.cooldownMs", Kind: Int, Min: 0, Max: 600_000, Default: "2000", Unit: "ms", Live: true, Doc: "rest of a backend after a fault of its own"},
	{Path: "loadBalancer.onNoCandidate", Kind: Choice, Choices: []string{"queue", "disconnect"}, Default: "queue", Live: true, Doc: "what becomes of a login for which no server has a place: it waits, in line or in the login, or is turned away, see [joins](joins.md)"},
	{Path: "loadBalancer.terms", Kind: Map, Default: shippedTerms, Live: true, Doc: "the score: the sum of weight × curve, lowest wins; a term the file leaves out keeps its shipped value, weight 0 switches it off, and without any weight the policy is roundRobin"},
	{Path: "loadBalancer.terms.<term>.input", Kind: Choice, Choices: termInputs, Live: true, Doc: "what is measured; left out: the term's name. queueDepth and heapUsed are shares of their limits; heapFree is another name of heapUsed"},
	{Path: "loadBalancer.terms.<term>.weight", Kind: Number, Min: 0, Max: 1000, Default: "0", Live: true, Doc: "share in the score; 0: left out"},
	{Path: "loadBalancer.terms.<term>.normalize.min", Kind: Number, Min: -1e9, Max: 1e9, Required: true, Live: true, Doc: "input that counts as the best; as the worst where more is better (tps, keptCount, keptRegion, stickyRegion)"},
	{Path: "loadBalancer.terms.<term>.normalize.max", Kind: Number, Min: -1e9, Max: 1e9, Required: true, Live: true, Doc: "input that counts as the worst; as the best where more is better"},
	{Path: "loadBalancer.terms.<term>.curve.type", Kind: Choice, Choices: curveTypes, Default: "linear", Live: true, Doc: "shape"},
	{Path: "loadBalancer.terms.<term>.curve.k", Kind: Number, Min: 0.1, Max: 20, Live: true, Doc: "steepness; left out: exponential 3, logarithmic 9, sigmoid 8"},
	{Path: "loadBalancer.terms.<term>.curve.x0", Kind: Number, Min: 0, Max: 1, Live: true, Doc: "middle of a sigmoid; left out: 0.5"},
	{Path: "loadBalancer.terms.<term>.curve.threshold", Kind: Number, Min: 0, Max: 1, Live: true, Doc: "where a step rises"},
	{Path: "loadBalancer.terms.<term>.curve.p", Kind: Number, Min: 0.1, Max: 8, Live: true, Doc: "exponent of a power; left out: 2"},
	{Path: "loadBalancer.terms.<term>.halfLifeSeconds", Kind: Number, Min: 0.1, Max: 3600, Default: "10", Unit: "s", Live: true, Doc: "recentPicks: time in which a pick loses half its weight"},
	{Path: "loadBalancer.terms.<term>.shared", Kind: Bool, Default: "false", Live: true, Doc: "recentPicks: count the picks of all dispatchers"},
	{Path: "loadBalancer.backends", Kind: Map, Default: "{}", Live: true, Doc: "settings by backend"},
	{Path: "loadBalancer.backends.<id>.weight", Kind: Number, Min: 0.01, Max: 1000, Default: "1", Live: true, Doc: "divides the score of weighted and leastPlayers; larger is preferred"},

	{Path: "line.enabled", Kind: Bool, Default: "true", Live: true, Doc: "whether players may wait"},
	{Path: "line.maxSize", Kind: Int, Min: 1, Max: 1_000_000, Default: "1024", Unit: "players", Live: true, Doc: "length of the line"},
	{Path: "line.graceSeconds", Kind: Int, Min: 0, Max: 3600, Default: "60", Unit: "s", Live: true, Doc: "how long an absent player keeps the place"},
	{Path: "line.notifySeconds", Kind: Int, Min: 1, Max: 3600, Default: "5", Unit: "s", Live: true, Doc: "how often a waiting player hears the position"},
	{Path: "line.drainPerSecond", Kind: Number, Min: 0.01, Max: 1000, Default: "10", Unit: "per s", Live: true, Doc: "pace of a destination"},
	{Path: "line.maxBypass", Kind: Int, Min: 0, Max: 1000, Default: "3", Unit: "bypasses", Live: true, Doc: "how many may pass a waiting player"},
	{Path: "line.maxAgeSeconds", Kind: Int, Min: 0, Max: 7 * day, Default: "0", Unit: "s", Live: true, Doc: "longest wait; 0: no end"},

	{Path: "triggers.command.enabled", Kind: Bool, Default: "true", Live: true, Doc: "players may ask by command"},
	{Path: "triggers.command.aliases", Kind: Words, Default: "[rtp]", Doc: "names of the command: /trigger NAME on a stock server"},
	{Path: "triggers.join.enabled", Kind: Bool, Default: "false", Live: true, Doc: "whoever joins and may be moved by that is let in at a place of the own, see [joins](joins.md)"},
	{Path: "triggers.join.map", Kind: Map, Default: `{ "": { region: "" } }`, Live: true, Doc: "by the host name that the player dialled; the empty name is any other"},
	{Path: "triggers.join.map.<host>.region", Kind: ID, Default: `""`, Live: true, Doc: "region asked for; empty: any"},
	{Path: "triggers.event.enabled", Kind: Bool, Default: "false", Live: true, Doc: "a named event asks for a transfer, see [triggers](triggers.md)"},
	{Path: "triggers.event.map", Kind: Map, Default: "{}", Live: true, Doc: "by the event's name"},
	{Path: "triggers.event.map.<id>.region", Kind: ID, Default: `""`, Live: true, Doc: "region asked for; empty: any"},
	{Path: "triggers.api.enabled", Kind: Bool, Default: "true", Doc: "the HTTP API may ask for a transfer"},

	{Path: "routing.prefer", Kind: Choice, Choices: []string{"network", "local"}, Default: "network", Live: true, Doc: "a request that names no server: network goes to another server and home only if no other has room; local stays at home if there is room"},
	{Path: "routing.dispatchMode", Kind: Choice, Choices: []string{"auto", "direct", "proxy"}, Default: "auto", Doc: "who dispatches: proxy: the edges and relays; direct: beside them the host of each backend, for players who connect straight to it; auto is direct exactly when the file lists no edge and no relay; see [hosts](hosts.md)"},
	{Path: "routing.lobbies", Kind: IDs, Default: "[]", Doc: "hosts that only ask, although they have regions: players come there first, and no transfer leads there"},
	{Path: "routing.regionCollision", Kind: Choice, Choices: []string{"warn", "refuse"}, Default: "warn", Live: true, Doc: "a region name on several backends with different worlds: told in the log, or refused in this file"},
	{Path: "routing.stickyReturn", Kind: Bool, Default: "false", Live: true, Doc: "a returning player is routed to the last server, if it can take the player; else as loadBalancer.policy says"},
	{Path: "routing.crossServerPerSecond", Kind: Int, Min: 1, Max: 10_000, Default: "5", Unit: "per s", Live: true, Doc: "requests of its players that a backend passes on, see [limits](limits.md)"},
	{Path: "routing.crossServerBurst", Kind: Int, Min: 1, Max: 10_000, Default: "10", Unit: "requests", Live: true, Doc: "requests that it passes on at once"},

	{Path: "permissions", Kind: Path, Default: "permissions.yml", Live: true, Doc: "file of what players may do, see [permissions](permissions.md); absent: each node has its default"},
	{Path: "limits", Kind: Map, Default: "{ rtp: {} }", Live: true, Doc: "how often a player may be moved, see [limits](limits.md): by rtp (the command), join, api, or an event's name"},
	{Path: "limits.<id>.cooldownSeconds", Kind: Int, Min: 0, Max: 366 * day, Default: "0", Unit: "s", Live: true, Doc: "rest of a player after an arrival; 0: none"},
	{Path: "limits.<id>.perDay", Kind: Int, Min: 0, Max: 100_000, Default: "0", Unit: "transfers", Live: true, Doc: "arrivals of a player in a day of UTC; 0: no limit"},
	{Path: "limits.<id>.scope", Kind: Choice, Choices: []string{"network", "server"}, Default: "network", Live: true, Doc: "counted on the whole network, or apart for each server where the player asks"},
	{Path: "allocation.scenes", Kind: Path, Default: `""`, Live: true, Doc: "file of scenes that zone transfers lead to, see [allocation](allocation.md); empty: none"},
	{Path: "allocation.fallback", Kind: ID, Default: `""`, Live: true, Doc: "placement that is asked for a seat when none fits; empty: none"},

	{Path: "edge.domain", Kind: Domain, Default: `""`, Sample: true, Doc: "host name that players dial; required where an edge listens"},
	{Path: "edge.port", Kind: Int, Min: 1, Max: 65_535, Default: "25565", Doc: "port that players dial"},
	{Path: "edge.identity", Kind: Choice, Choices: []string{"online", "offline"}, Default: "online", Doc: "whether the backends check accounts; players of a backend of the other mode ask for nothing"},
	{Path: "edge.trustedProxies", Kind: CIDRs, Default: "[]", Doc: "whose PROXY headers are believed"},
	{Path: "edge.fallback", Kind: ID, Default: `""`, Doc: "backend for players whom nobody else accepts"},
	{Path: "edge.limits.opening", Kind: Int, Min: 16, Max: 1_000_000, Default: "2048", Unit: "connections", Doc: "connections to an edge that have not logged in yet; more are closed at once"},
	{Path: "edge.limits.openingPerSource", Kind: Int, Min: 1, Max: 1_000_000, Default: "64", Unit: "connections", Doc: "those of one address (IPv6: one /64)"},
	{Path: "edge.limits.newPerSecond", Kind: Int, Min: 1, Max: 1_000_000, Default: "50", Unit: "per s", Doc: "new connections of one address (IPv6: one /64), four seconds' worth at once"},
	{Path: "edge.backends", Kind: Map, Default: "{}", Doc: "overrides by backend"},
	{Path: "edge.backends.<id>", Kind: Address, Doc: "dialled instead of the backend's advertised address"},

	{Path: "api.tokenPerSecond", Kind: Number, Min: 0.1, Max: 1_000_000, Default: "500", Unit: "per s", Live: true, Doc: "requests with one token, on each host that serves the API, see [api](api.md)"},
	{Path: "api.tokenBurst", Kind: Int, Min: 1, Max: 1_000_000, Default: "1000", Unit: "requests", Live: true, Doc: "of them at once"},
	{Path: "api.addressPerSecond", Kind: Number, Min: 0.1, Max: 1_000_000, Default: "500", Unit: "per s", Live: true, Doc: "requests from one address, with a token or without"},
	{Path: "api.addressBurst", Kind: Int, Min: 1, Max: 1_000_000, Default: "1000", Unit: "requests", Live: true, Doc: "of them at once"},
	{Path: "api.streams", Kind: Int, Min: 1, Max: 100_000, Default: "256", Unit: "streams", Live: true, Doc: "event streams and long polls that are open at once on a host"},
	{Path: "api.connections", Kind: Int, Min: 1, Max: 100_000, Default: "1024", Unit: "connections", Doc: "connections that are open at once on a host; more wait"},

	{Path: "security.secretEnv", Kind: EnvName, Default: "RTP_NET_SECRET", Doc: "environment variable with the network's secret"},
	{Path: "security.previousSecretEnv", Kind: EnvName, Default: `""`, Doc: "the one before, while a rotation runs"},
	{Path: "security.secretFile", Kind: Path, Default: `""`, Doc: "file with the secret, read when the variable is unset"},
	{Path: "security.tls.cert", Kind: Path, Default: `""`, Doc: "certificate of the API's listeners, PEM"},
	{Path: "security.tls.key", Kind: Path, Default: `""`, Doc: "its key, PEM"},
	{Path: "security.tls.ca", Kind: Path, Default: `""`, Doc: "authority that signed the others'"},

	{Path: "telemetry.otlp", Kind: Text, Default: `""`, Doc: "endpoint for traces"},
	{Path: "messages", Kind: Path, Default: "messages.yml", Live: true, Doc: "file of the texts that players read; translations lie beside it as messages.<locale>.yml, see messages.md"},

	{Path: "hosts.<id>.api", Kind: Address, Default: `""`, Sample: true, Doc: "listener of the HTTP API, see [api](api.md); beyond loopback it needs security.tls; empty: none"},
	{Path: "hosts.<id>.mode", Kind: Choice, Choices: []string{"participant", "router"}, Default: "participant", Doc: "what the edges of this host do: a router leads who comes with a token where it leads, everybody else to edge.fallback or the servers in turn; it does not dispatch; see [hosts](hosts.md)"},
	{Path: "hosts.<id>.creds", Kind: Path, Default: `""`, Doc: "this host's own key"},
	{Path: "hosts.<id>.edges[].game", Kind: Choice, Choices: []string{"minecraft", "vintagestory", "tcp"}, Default: "minecraft", Doc: "protocol of the players"},
	{Path: "hosts.<id>.edges[].listen", Kind: Listen, Required: true, Doc: "address that players reach"},
	{Path: "hosts.<id>.edges[].redirectAddress", Kind: Address, Default: `""`, Doc: "vintagestory, tcp: where a player who is moved dials again, as players know this edge; empty: edge.domain and the port of listen; see [vintagestory](vintagestory.md)"},
	{Path: "hosts.<id>.edges[].dialled.<address>", Kind: ID, Doc: "vintagestory, tcp: a backend's own address on this host, such as \":42430\": who dials it is led to that backend, by a client that knows no markers too"},
	{Path: "hosts.<id>.game", Kind: Choice, Choices: []string{"minecraft", "vintagestory", "tcp"}, Default: "minecraft", Doc: "what a backend speaks: only edges of that game lead there"},
	{Path: "hosts.<id>.advertise", Kind: Address, Default: `""`, Sample: true, Doc: "what edges dial; required on a backend"},
	{Path: "hosts.<id>.publicAddress", Kind: Address, Default: `""`, Doc: "what direct moves name; empty: advertise"},
	{Path: "hosts.<id>.proxyProtocol", Kind: Choice, Choices: []string{"none", "v2"}, Default: "none", Doc: "header sent to this backend"},
	{Path: "hosts.<id>.rewriteTransferIntent", Kind: Bool, Default: "false", Doc: "show this backend a login instead of a transfer"},
	{Path: "hosts.<id>.rcon.address", Kind: Address, Required: true, Doc: "the game server's RCON; loopback only"},
	{Path: "hosts.<id>.rcon.passwordFile", Kind: Path, Required: true, Doc: "file with its password"},
	{Path: "hosts.<id>.log", Kind: Path, Default: `""`, Doc: "the game server's latest.log, if readable here"},
	{Path: "hosts.<id>.archive", Kind: Path, Default: `""`, Doc: "directory of the archive that this host keeps for landfall query, see [archive](archive.md); empty: none"},
	{Path: "hosts.<id>.relay.listen", Kind: Listen, Default: `""`, Doc: "where Velocity or BungeeCord dials us; empty: no relay"},
	{Path: "hosts.<id>.relay.backend", Kind: Address, Default: `""`, Sample: true, Doc: "the game server behind the relay"},
	{Path: "hosts.<id>.relay.proxy", Kind: Choice, Choices: []string{"auto", "velocity", "bungeecord"}, Default: "auto", Doc: "kind of the proxy in front"},
	{Path: "hosts.<id>.regions.<id>.world", Kind: World, Default: "minecraft:overworld", Doc: "dimension"},
	{Path: "hosts.<id>.regions.<id>.centre", Kind: Column, Min: -world, Max: world, Default: "[0, 0]", Unit: "blocks", Doc: "x and z of the middle"},
	{Path: "hosts.<id>.regions.<id>.minRadius", Kind: Int, Min: 0, Max: world, Default: "500", Unit: "blocks", Doc: "nobody is placed nearer"},
	{Path: "hosts.<id>.regions.<id>.maxRadius", Kind: Int, Min: 1, Max: world, Default: "5000", Unit: "blocks", Doc: "nobody is placed farther"},
	{Path: "hosts.<id>.regions.<id>.keep", Kind: Int, Min: 1, Max: 1024, Default: "16", Unit: "coordinates", Doc: "coordinates held ready"},
	{Path: "hosts.<id>.regions.<id>.exclude[].min", Kind: Column, Min: -world, Max: world, Required: true, Unit: "blocks", Doc: "x and z of one corner of an area where nobody is placed"},
	{Path: "hosts.<id>.regions.<id>.exclude[].max", Kind: Column, Min: -world, Max: world, Required: true, Unit: "blocks", Doc: "x and z of the opposite corner"},
}
