package events

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Bucket is a key-value bucket of the log. A key is an entity, each revision of it the
// next fact about it.
type Bucket string

// The buckets of the log.
const (
	Transfers   Bucket = "transfers"   // <player>.<transfer>: the journeys
	Sessions    Bucket = "sessions"    // <player>: who holds the player's connection, and where the player is
	Control     Bucket = "control"     // kill, drain.<host>, …: what operators decided
	Audit       Bucket = "audit"       // <source>.<kind>: rejections and findings
	Checkpoints Bucket = "checkpoints" // <n>: chained, signed segments of transfers
	Fleet       Bucket = "fleet"       // backend.<id>, proxy.<id>: heartbeats
	Limits      Bucket = "limits"      // <player>.<name>: cooldowns and answers that expire
	Routes      Bucket = "routes"      // marker.<name>, player.<id>, address.<hash>: reconnect routes that expire
	Leases      Bucket = "leases"      // <name>: who does a job now
)

// Buckets lists all of them in the order they are created and backed up: truth first.
var Buckets = []Bucket{Transfers, Sessions, Control, Audit, Checkpoints, Fleet, Limits, Routes, Leases}

// MaxKeyFacts is how many facts one key of transfers holds; the server refuses the next one.
const MaxKeyFacts = 64

// TerminalOnlyFrom is the first message of a transfer's key from which only a terminal fact is decided.
const TerminalOnlyFrom = 56

// MaxTransferFacts is where a transfer fails with ATTEMPTS_EXHAUSTED, well before its key is full.
const MaxTransferFacts = 48

// MaxAttempts bounds the attempt number of a token: no key could hold more.
const MaxAttempts = MaxKeyFacts

// TransferKey is the key of one journey.
func TransferKey(p PlayerID, t TransferID) string { return p.String() + "." + t.String() }

// ParseTransferKey is the reverse of TransferKey. It refuses every other spelling of the
// same ids: that would be another subject, behind another guard.
func ParseTransferKey(key string) (PlayerID, TransferID, error) {
	player, transfer, _ := strings.Cut(key, ".")
	p, errP := ParseID[PlayerID](player)
	t, errT := ParseID[TransferID](transfer)
	if errP != nil || errT != nil || TransferKey(p, t) != key {
		return PlayerID{}, TransferID{}, fmt.Errorf("transfer key %q: want <player>.<transfer>, two lower-case UUIDs", key)
	}
	return p, t, nil
}

// PlayerKey is the key of a player in sessions.
func PlayerKey(p PlayerID) string { return p.String() }

// ParsePlayerKey is the reverse of PlayerKey, and as strict as ParseTransferKey.
func ParsePlayerKey(key string) (PlayerID, error) {
	p, err := ParseID[PlayerID](key)
	if err != nil || PlayerKey(p) != key {
		return PlayerID{}, fmt.Errorf("session key %q: want a lower-case UUID", key)
	}
	return p, nil
}

// KillKey is the key of the kill switch in control.
const KillKey = "kill"

// DrainKey is the key in control that takes one host out of selection.
func DrainKey(id HostID) string { return "drain." + string(id) }

// PauseKey is the key in control that stops grants. name is empty for the line.
func PauseKey(what PauseWhat, name string) string {
	if what == PauseLine {
		return "pause." + string(what)
	}
	return "pause." + string(what) + "." + name
}

// EvacuateKey is the key in control that empties one backend.
func EvacuateKey(id HostID) string { return "evacuate." + string(id) }

// RebuildKey is the key in control that says which file of an archive answers.
func RebuildKey(view string) string { return "rebuild." + view }

// ConfigKey is the key in control of the configuration that operators pushed.
const ConfigKey = "config"

// APITokenKey is the key in control of one token of the API.
func APITokenKey(id APITokenID) string { return "token." + string(id) }

// CooldownKey is where a player's rest after a transfer stands in limits. server is empty
// when it counts everywhere.
func CooldownKey(p PlayerID, limit string, server HostID) string {
	return limitKey(p, "rest", limit, server)
}

// UsesKey is where a player's transfers of a day are counted in limits.
func UsesKey(p PlayerID, limit string, server HostID) string {
	return limitKey(p, "uses", limit, server)
}

func limitKey(p PlayerID, what, limit string, server HostID) string {
	key := p.String() + "." + what + "." + limit
	if server != "" {
		key += "." + string(server)
	}
	return key
}

// PermitsKey is where a game server's last answer about a player's permissions stands in limits.
func PermitsKey(p PlayerID) string { return p.String() + ".perm" }

// SeenKey is where it stands in limits that a player has been on the network before.
func SeenKey(p PlayerID) string { return p.String() + ".seen" }

// RouteName is what a route is called in the log: a hash of the marker's id, since what stands in a
// log must not lead anybody anywhere.
func RouteName(id [16]byte) string {
	sum := sha256.Sum256(append([]byte("landfall route v1 "), id[:]...))
	return hex.EncodeToString(sum[:16])
}

// RouteKey is where a route stands in routes.
func RouteKey(name string) string { return "marker." + name }

// PlayerRoutesKey is where it stands in routes which route is a player's.
func PlayerRoutesKey(p PlayerID) string { return "player." + p.String() }

// AddressRoutesKey is where it stands in routes which routes belong to clients of one address.
// hash is what Keyring.Hide makes of it.
func AddressRoutesKey(hash string) string { return "address." + hash }

// HeldKey is where it stands in limits that a login of a player waits in line.
func HeldKey(p PlayerID) string { return p.String() + ".held" }

// BackendKey is the heartbeat key of a backend.
func BackendKey(id HostID) string { return "backend." + string(id) }

// InstanceKey is the heartbeat key of one life of an instance.
func InstanceKey(placement HostID, i Incarnation) string {
	return "instance." + string(placement) + "." + i.String()
}

// InstanceKeys are those of all lives of an instance, as a pattern.
func InstanceKeys(placement HostID) string { return "instance." + string(placement) + ".*" }

// ProxyKey is the heartbeat key of a proxy.
func ProxyKey(id HostID) string { return "proxy." + string(id) }

// Subject is where a fact about key is published.
func (b Bucket) Subject(key string) string { return "$KV." + string(b) + "." + key }

// Guard is the subject whose last sequence an append of key must expect. It is the one
// place where the boundary of a compare-and-swap is drawn: on a replicated store two
// appends inside one boundary that name different guards can both win.
func (b Bucket) Guard(key string) string {
	if b == Transfers {
		player, _, _ := strings.Cut(key, ".")
		return b.Subject(player + ".>")
	}
	return b.Subject(key)
}

// ParseSubject is the reverse of Subject.
func ParseSubject(subject string) (Bucket, string, error) {
	rest, ok := strings.CutPrefix(subject, "$KV.")
	bucket, key, ok2 := strings.Cut(rest, ".")
	if !ok || !ok2 || key == "" {
		return "", "", fmt.Errorf("subject %q is not a key of a bucket", subject)
	}
	return Bucket(bucket), key, nil
}
