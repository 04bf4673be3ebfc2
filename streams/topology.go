package streams

import (
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// FormatVersion is the layout of the store. A store of another one is refused.
const FormatVersion = 1

// Keys of the metadata that each stream carries.
const (
	metaIncarnation = "landfall.incarnation"
	metaNetwork     = "landfall.network"
	metaFormat      = "landfall.format"
	metaCreator     = "landfall.creator"
)

// Defaults of Settings.
const (
	DefaultRetention = 720 * time.Hour
	DefaultTelemetry = time.Hour
	auditRetention   = 30 * 24 * time.Hour
	checkpointsExtra = 24 * time.Hour
)

const (
	unbounded   = 1 << 40 // the KV client refuses "no limit", and takes this
	fleetBytes  = 256 << 20
	auditBytes  = 64 << 20
	maxFactSize = events.MaxBody + 16<<10 // with its headers
	markerTTL   = time.Minute
	dedupe      = 2 * time.Minute
)

// StorageKind is where the facts lie.
type StorageKind string

// Kinds of storage.
const (
	File   StorageKind = "file"
	Memory StorageKind = "memory" // forgets when the store restarts
)

// Settings are the part of the topology that an operator chooses.
type Settings struct {
	Replicas           int           // 1 or 3; 0 is 1
	Storage            StorageKind   // "" is File
	Retention          time.Duration // of transfers and sessions; 0 is DefaultRetention
	TelemetryRetention time.Duration // of fleet; 0 is DefaultTelemetry
}

func (s Settings) withDefaults() Settings {
	if s.Replicas == 0 {
		s.Replicas = 1
	}
	if s.Storage == "" {
		s.Storage = File
	}
	if s.Retention == 0 {
		s.Retention = DefaultRetention
	}
	if s.TelemetryRetention == 0 {
		s.TelemetryRetention = DefaultTelemetry
	}
	return s
}

func (s Settings) validate() error {
	if s.Replicas != 1 && s.Replicas != 3 {
		return fmt.Errorf("store.replicas %d: want 1 or 3", s.Replicas)
	}
	if s.Storage != File && s.Storage != Memory {
		return fmt.Errorf("store.storage %q: want file or memory", s.Storage)
	}
	if s.Retention < 2*time.Minute || s.TelemetryRetention < 2*time.Minute {
		return fmt.Errorf("store.retention %s, telemetryRetention %s: want at least 2m", s.Retention, s.TelemetryRetention)
	}
	return nil
}

// kind is how a bucket's stream behaves.
type kind uint8

const (
	durable   kind = iota // nothing that was acknowledged can be taken out but by retention
	telemetry             // heartbeats: fast, bounded by bytes, may forget its end in a crash
	expiring              // one message a key, which may carry its own time to live
)

// row is one bucket of the topology.
type row struct {
	bucket  events.Bucket
	kind    kind
	history int64                        // messages a key; expiring buckets have one
	refuse  bool                         // a full key refuses the next fact instead of dropping its oldest
	maxAge  func(Settings) time.Duration // nil: for ever
	bytes   int64                        // 0: bounded by the store alone, so that a refusal for size means one thing
}

// topology is the one table of buckets, in the order they are made.
var topology = []row{
	{bucket: events.Transfers, history: events.MaxKeyFacts, refuse: true, maxAge: retention},
	{bucket: events.Sessions, history: 64, maxAge: retention},
	{bucket: events.Control, history: 64},
	{bucket: events.Audit, history: unbounded, maxAge: always(auditRetention), bytes: auditBytes},
	{bucket: events.Checkpoints, history: 1, refuse: true, maxAge: func(s Settings) time.Duration { return s.Retention + checkpointsExtra }},
	{bucket: events.Fleet, kind: telemetry, history: unbounded, maxAge: func(s Settings) time.Duration { return s.TelemetryRetention }, bytes: fleetBytes},
	{bucket: events.Limits, kind: expiring, history: 1},
	{bucket: events.Routes, kind: expiring, history: 1},
	{bucket: events.Leases, kind: expiring, history: 1},
}

func retention(s Settings) time.Duration { return s.Retention }

func always(d time.Duration) func(Settings) time.Duration {
	return func(Settings) time.Duration { return d }
}

func rowOf(b events.Bucket) (row, bool) {
	for _, r := range topology {
		if r.bucket == b {
			return r, true
		}
	}
	return row{}, false
}

// mayHaveHoles tells that a record inside the stream can be gone although nobody tampered:
// its key has newer ones, or it expired.
func (r row) mayHaveHoles() bool { return r.kind == expiring || !r.refuse && r.history < unbounded }

// lastPerKey tells that a tail of the bucket never resumes by position: after a crash the
// store may have used a sequence again.
func lastPerKey(b events.Bucket) bool { return b == events.Fleet || b == events.Leases }

// StreamName is the stream of a bucket, as the KV client expects it.
func StreamName(b events.Bucket) string { return "KV_" + string(b) }

// Topology gives the streams of the store, without their identity.
func Topology(s Settings) []jetstream.StreamConfig {
	s = s.withDefaults()
	out := make([]jetstream.StreamConfig, 0, len(topology))
	for _, r := range topology {
		out = append(out, r.config(s))
	}
	return out
}

// config is the stream of a bucket. Durable ones are made as streams, not the KV way:
// without rollup, TTL and schedules no publish can take out what was acknowledged.
func (r row) config(s Settings) jetstream.StreamConfig {
	c := jetstream.StreamConfig{
		Name:              StreamName(r.bucket),
		Subjects:          []string{r.bucket.Subject(">")},
		Retention:         jetstream.LimitsPolicy,
		Storage:           storageOf(s.Storage),
		Replicas:          s.Replicas,
		Discard:           jetstream.DiscardNew,
		MaxConsumers:      -1,
		MaxMsgs:           -1,
		MaxBytes:          -1,
		MaxMsgSize:        maxFactSize,
		MaxMsgsPerSubject: r.history,
		Duplicates:        dedupe,
		DenyDelete:        true,
		DenyPurge:         true,
	}
	c.DiscardNewPerSubject = r.refuse
	if r.maxAge != nil {
		c.MaxAge = r.maxAge(s)
	}
	if r.bytes > 0 {
		c.MaxBytes, c.Discard = r.bytes, jetstream.DiscardOld
	}
	switch r.kind {
	case durable:
	case telemetry:
		telemetryConfig(&c, s)
	case expiring:
		c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, markerTTL
		c.AllowRollup, c.DenyPurge = true, false // what the server makes of a TTL anyway
	}
	return c
}

// telemetryConfig: losing a second of heartbeats in a crash is nothing, waiting for the
// disk a thousand times a second is. Replicated streams cannot persist lazily; memory can.
func telemetryConfig(c *jetstream.StreamConfig, s Settings) {
	if s.Replicas > 1 {
		c.Storage = jetstream.MemoryStorage
	}
	if c.Storage == jetstream.FileStorage {
		c.PersistMode = jetstream.AsyncPersistMode
	}
}

func storageOf(k StorageKind) jetstream.StorageType {
	if k == Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

// identity is what a stream says about whose it is.
type identity struct {
	network string
	creator string
}

func (i identity) metadata(incarnation string) map[string]string {
	return map[string]string{
		metaIncarnation: incarnation,
		metaNetwork:     i.network,
		metaCreator:     i.creator,
		metaFormat:      fmt.Sprint(FormatVersion),
	}
}

// check holds the identity a stream carries against ours. An empty field of ours is not checked.
func (i identity) check(stream string, meta map[string]string) error {
	if meta[metaIncarnation] == "" {
		return fmt.Errorf("stream %s was not made by Landfall: use another store", stream)
	}
	if got := meta[metaFormat]; got != fmt.Sprint(FormatVersion) {
		return fmt.Errorf("store has format version %s, this Landfall reads %d: use the matching version or another store", got, FormatVersion)
	}
	if got := meta[metaNetwork]; i.network != "" && got != i.network {
		return fmt.Errorf("store belongs to network %q, not %q: set network.name or use another store", got, i.network)
	}
	if got := meta[metaCreator]; i.creator != "" && got != i.creator {
		return fmt.Errorf("store was made by `landfall %s`, not by `landfall %s`: use another store", got, i.creator)
	}
	return nil
}

// drift names the settings in which a stream is not what it should be.
func drift(want, got jetstream.StreamConfig) []string {
	a, b := settingsOf(want), settingsOf(got)
	var out []string
	for _, name := range settingNames {
		if a[name] != b[name] {
			out = append(out, fmt.Sprintf("%s is %s, want %s", name, b[name], a[name]))
		}
	}
	return out
}

var settingNames = []string{
	"subjects", "retention", "storage", "replicas", "discard", "discardNewPerSubject", "maxMsgs", "maxBytes", "maxMsgSize",
	"maxMsgsPerSubject", "maxAge", "duplicates", "denyDelete", "denyPurge", "allowRollup", "allowMsgTTL", "markerTTL",
	"allowDirect", "persistMode", "schedules", "atomicPublish", "counter", "sealed", "noAck", "copies",
}

func settingsOf(c jetstream.StreamConfig) map[string]string {
	out := map[string]string{
		"subjects":          fmt.Sprint(c.Subjects),
		"retention":         c.Retention.String(),
		"storage":           c.Storage.String(),
		"discard":           c.Discard.String(),
		"persistMode":       c.PersistMode.String(),
		"maxAge":            c.MaxAge.String(),
		"duplicates":        c.Duplicates.String(),
		"markerTTL":         c.SubjectDeleteMarkerTTL.String(),
		"copies":            fmt.Sprint(c.Mirror != nil, len(c.Sources), c.RePublish != nil, c.SubjectTransform != nil),
		"replicas":          fmt.Sprint(c.Replicas),
		"maxMsgs":           fmt.Sprint(c.MaxMsgs),
		"maxBytes":          fmt.Sprint(c.MaxBytes),
		"maxMsgSize":        fmt.Sprint(c.MaxMsgSize),
		"maxMsgsPerSubject": fmt.Sprint(c.MaxMsgsPerSubject),
	}
	maps.Copy(out, flagsOf(c))
	return out
}

func flagsOf(c jetstream.StreamConfig) map[string]string {
	return map[string]string{
		"discardNewPerSubject": fmt.Sprint(c.DiscardNewPerSubject),
		"denyDelete":           fmt.Sprint(c.DenyDelete),
		"denyPurge":            fmt.Sprint(c.DenyPurge),
		"allowRollup":          fmt.Sprint(c.AllowRollup),
		"allowMsgTTL":          fmt.Sprint(c.AllowMsgTTL),
		"allowDirect":          fmt.Sprint(c.AllowDirect),
		"schedules":            fmt.Sprint(c.AllowMsgSchedules),
		"atomicPublish":        fmt.Sprint(c.AllowAtomicPublish),
		"counter":              fmt.Sprint(c.AllowMsgCounter),
		"sealed":               fmt.Sprint(c.Sealed),
		"noAck":                fmt.Sprint(c.NoAck),
	}
}
