package network

import "time"

// Millis and Seconds keep the unit that the file uses, so that a number cannot be read in the wrong one.
type (
	Millis  int
	Seconds int
)

// Duration is the same length of time.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// Duration is the same length of time.
func (s Seconds) Duration() time.Duration { return time.Duration(s) * time.Second }

// The settings mirror network.yml key by key; docs/configuration.md lists bounds and defaults.
type (
	settings struct {
		Network      Identification   `yaml:"network"`
		Store        Store            `yaml:"store"`
		Heartbeat    Heartbeat        `yaml:"heartbeat"`
		Reservation  Reservation      `yaml:"reservation"`
		LoadBalancer LoadBalancer     `yaml:"loadBalancer"`
		Line         Line             `yaml:"line"`
		Triggers     Triggers         `yaml:"triggers"`
		Routing      Routing          `yaml:"routing"`
		Permissions  string           `yaml:"permissions"`
		Limits       map[string]Limit `yaml:"limits"`
		Allocation   Allocation       `yaml:"allocation"`
		Edge         Edge             `yaml:"edge"`
		API          API              `yaml:"api"`
		Security     Security         `yaml:"security"`
		Telemetry    Telemetry        `yaml:"telemetry"`
		Messages     string           `yaml:"messages"`
		Hosts        map[string]Host  `yaml:"hosts"`
	}

	Identification struct {
		Name          string `yaml:"name"`
		Enabled       bool   `yaml:"enabled"`
		SchemaVersion int    `yaml:"schemaVersion"`
		ServerID      string `yaml:"serverId"`
		ProxyID       string `yaml:"proxyId"`
		OperatorKey   string `yaml:"operatorKey"`
	}

	Store struct {
		Mode               string        `yaml:"mode"`
		Carrier            string        `yaml:"carrier"`
		URL                string        `yaml:"url"`
		Listen             string        `yaml:"listen"`
		Storage            string        `yaml:"storage"`
		Replicas           int           `yaml:"replicas"`
		Durability         string        `yaml:"durability"`
		Dir                string        `yaml:"dir"`
		MaxBytes           int64         `yaml:"maxBytes"`
		Retention          time.Duration `yaml:"retention"`
		TelemetryRetention time.Duration `yaml:"telemetryRetention"`
	}

	Heartbeat struct {
		IntervalMs Millis `yaml:"intervalMs"`
	}

	Reservation struct {
		TTLSeconds       Seconds `yaml:"ttlSeconds"`
		ClaimReanimateMs Millis  `yaml:"claimReanimateMs"`
		SweepIntervalMs  Millis  `yaml:"sweepIntervalMs"`
		ArrivalWindowMs  Millis  `yaml:"arrivalWindowMs"`
	}

	LoadBalancer struct {
		Policy           string             `yaml:"policy"`
		StaleAfterMs     Millis             `yaml:"staleAfterMs"`
		MaxRetries       int                `yaml:"maxRetries"`
		AttemptTimeoutMs Millis             `yaml:"attemptTimeoutMs"`
		MoveTimeoutMs    Millis             `yaml:"moveTimeoutMs"`
		CooldownMs       Millis             `yaml:"cooldownMs"`
		OnNoCandidate    string             `yaml:"onNoCandidate"`
		Terms            map[string]Term    `yaml:"terms"`
		Backends         map[string]Backend `yaml:"backends"`
	}

	// Term is one input of the score. Input is the map's key unless it names another.
	Term struct {
		Input           string     `yaml:"input"`
		Weight          float64    `yaml:"weight"`
		Normalize       *Normalize `yaml:"normalize"`
		Curve           Curve      `yaml:"curve"`
		HalfLifeSeconds float64    `yaml:"halfLifeSeconds"`
		Shared          bool       `yaml:"shared"`
	}

	Normalize struct {
		Min float64 `yaml:"min"`
		Max float64 `yaml:"max"`
	}

	// Curve has, after loading, exactly the parameters its type uses; the others are nil.
	Curve struct {
		Type      string   `yaml:"type"`
		K         *float64 `yaml:"k"`
		X0        *float64 `yaml:"x0"`
		Threshold *float64 `yaml:"threshold"`
		P         *float64 `yaml:"p"`
	}

	Backend struct {
		Weight float64 `yaml:"weight"`
	}

	Line struct {
		Enabled        bool    `yaml:"enabled"`
		MaxSize        int     `yaml:"maxSize"`
		GraceSeconds   Seconds `yaml:"graceSeconds"`
		NotifySeconds  Seconds `yaml:"notifySeconds"`
		DrainPerSecond float64 `yaml:"drainPerSecond"`
		MaxBypass      int     `yaml:"maxBypass"`
		MaxAgeSeconds  Seconds `yaml:"maxAgeSeconds"`
	}

	Triggers struct {
		Command CommandTrigger `yaml:"command"`
		Join    MappedTrigger  `yaml:"join"`
		Event   MappedTrigger  `yaml:"event"`
		API     Switch         `yaml:"api"`
	}

	CommandTrigger struct {
		Enabled bool     `yaml:"enabled"`
		Aliases []string `yaml:"aliases"`
	}

	// MappedTrigger asks for a region by what set it off: a dialled host name or an event's name.
	MappedTrigger struct {
		Enabled bool                   `yaml:"enabled"`
		Map     map[string]Destination `yaml:"map"`
	}

	Destination struct {
		Region string `yaml:"region"`
	}

	Switch struct {
		Enabled bool `yaml:"enabled"`
	}

	Routing struct {
		Prefer               string   `yaml:"prefer"`
		DispatchMode         string   `yaml:"dispatchMode"`
		Lobbies              []string `yaml:"lobbies"`
		RegionCollision      string   `yaml:"regionCollision"`
		StickyReturn         bool     `yaml:"stickyReturn"`
		CrossServerPerSecond int      `yaml:"crossServerPerSecond"`
		CrossServerBurst     int      `yaml:"crossServerBurst"`
	}

	Limit struct {
		CooldownSeconds Seconds `yaml:"cooldownSeconds"`
		PerDay          int     `yaml:"perDay"`
		Scope           string  `yaml:"scope"`
	}

	Allocation struct {
		Scenes   string `yaml:"scenes"`
		Fallback string `yaml:"fallback"`
	}

	Edge struct {
		Domain         string            `yaml:"domain"`
		Port           int               `yaml:"port"`
		Identity       string            `yaml:"identity"`
		TrustedProxies []string          `yaml:"trustedProxies"`
		Fallback       string            `yaml:"fallback"`
		Limits         DoorLimits        `yaml:"limits"`
		Backends       map[string]string `yaml:"backends"`
	}

	// API bounds what programs may ask of one host.
	API struct {
		TokenPerSecond   float64 `yaml:"tokenPerSecond"`
		TokenBurst       int     `yaml:"tokenBurst"`
		AddressPerSecond float64 `yaml:"addressPerSecond"`
		AddressBurst     int     `yaml:"addressBurst"`
		Streams          int     `yaml:"streams"`
		Connections      int     `yaml:"connections"`
	}

	// DoorLimits bound what strangers can keep an edge busy with: connections that have not logged in yet.
	DoorLimits struct {
		Opening          int `yaml:"opening"`
		OpeningPerSource int `yaml:"openingPerSource"`
		NewPerSecond     int `yaml:"newPerSecond"`
	}

	Security struct {
		SecretEnv         string `yaml:"secretEnv"`
		PreviousSecretEnv string `yaml:"previousSecretEnv"`
		SecretFile        string `yaml:"secretFile"`
		TLS               TLS    `yaml:"tls"`
	}

	TLS struct {
		Cert string `yaml:"cert"`
		Key  string `yaml:"key"`
		CA   string `yaml:"ca"`
	}

	Telemetry struct {
		OTLP string `yaml:"otlp"`
	}
)
