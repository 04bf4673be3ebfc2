package events

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// APITokenID names one API token in `control`; it is no secret.
type APITokenID string

// Scope is one thing that an API token lets its bearer do.
type Scope string

// Scopes of API tokens.
const (
	ScopeRead     Scope = "read"     // see transfers, the line, the fleet, instances, and the event stream
	ScopeTransfer Scope = "transfer" // ask for transfers, say that events happened, cancel
	ScopeAllocate Scope = "allocate" // take seats on instances, give them back
	ScopeControl  Scope = "control"  // decide as an operator: kill, drain, pause, evacuate
)

// Scopes lists all of them.
var Scopes = []Scope{ScopeRead, ScopeTransfer, ScopeAllocate, ScopeControl}

// ParseScope refuses what is no scope.
func ParseScope(text string) (Scope, error) {
	if s := Scope(text); slices.Contains(Scopes, s) {
		return s, nil
	}
	return "", fmt.Errorf("scope %q: want one of %v", text, Scopes)
}

// bearerPrefix lets people and secret scanners see what a string is.
const bearerPrefix = "landfall_"

// Bearer is an API token as its bearer shows it: "landfall_<id>_<secret>". Whoever has it is its
// bearer; the log holds only its hash.
type Bearer struct {
	ID     APITokenID
	secret string
}

// NewBearer makes one of random bytes.
func NewBearer(random [40]byte) Bearer {
	return Bearer{ID: APITokenID(hex.EncodeToString(random[:8])), secret: base64.RawURLEncoding.EncodeToString(random[8:])}
}

// ParseBearer reads what Text wrote.
func ParseBearer(text string) (Bearer, error) {
	rest, ours := strings.CutPrefix(text, bearerPrefix)
	id, secret, two := strings.Cut(rest, "_")
	raw, err := base64.RawURLEncoding.DecodeString(secret)
	if !ours || !two || err != nil || len(raw) != 32 || !isAPITokenID(id) {
		return Bearer{}, fmt.Errorf("not an API token: want %s<id>_<secret>, as `landfall token add` showed it", bearerPrefix)
	}
	return Bearer{ID: APITokenID(id), secret: secret}, nil
}

func isAPITokenID(text string) bool {
	raw, err := hex.DecodeString(text)
	return err == nil && len(raw) == 8 && strings.ToLower(text) == text
}

// ParseAPITokenID refuses what names no token.
func ParseAPITokenID(text string) (APITokenID, error) {
	if !isAPITokenID(text) {
		return "", fmt.Errorf("token id %q: want 16 hexadecimal digits", text)
	}
	return APITokenID(text), nil
}

// Text is the whole token. It is shown once, and never logged.
func (b Bearer) Text() string { return bearerPrefix + string(b.ID) + "_" + b.secret }

// String hides the secret.
func (b Bearer) String() string { return bearerPrefix + string(b.ID) + "_…" }

// Hash is what the log holds. The secret has 256 random bits, so that a plain hash protects it.
func (b Bearer) Hash() string {
	sum := sha256.Sum256([]byte(b.Text()))
	return hex.EncodeToString(sum[:])
}
