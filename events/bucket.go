package events

import (
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
	Routes      Bucket = "routes"      // reconnect routes that expire
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

// ParseTransferKey is the reverse of TransferKey.
func ParseTransferKey(key string) (p PlayerID, t TransferID, err error) {
	player, transfer, ok := strings.Cut(key, ".")
	if !ok {
		return p, t, fmt.Errorf("transfer key %q: want <player>.<transfer>", key)
	}
	if p, err = ParseID[PlayerID](player); err != nil {
		return p, t, err
	}
	t, err = ParseID[TransferID](transfer)
	return p, t, err
}

// BackendKey is the heartbeat key of a backend.
func BackendKey(id HostID) string { return "backend." + string(id) }

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
