package events

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
)

// MinSecret is the least length of a shared secret, in bytes.
const MinSecret = 32

// Key is a shared secret under a name. The name stands in each signature.
type Key struct {
	ID     string
	Secret []byte
}

// NewKey names a secret by the first eight hex digits of its SHA-256.
func NewKey(secret []byte) (Key, error) {
	if len(secret) < MinSecret {
		return Key{}, fmt.Errorf("shared secret has %d bytes, want at least %d", len(secret), MinSecret)
	}
	sum := sha256.Sum256(secret)
	return Key{ID: hex.EncodeToString(sum[:4]), Secret: secret}, nil
}

// hostKeyPrefix tells the id of a host's own key from that of a secret.
const hostKeyPrefix = "ed-"

// HostKeyID names the public half of a host's own key: "ed-" and its first 16 hex digits.
func HostKeyID(public ed25519.PublicKey) string {
	return hostKeyPrefix + hex.EncodeToString(public[:min(8, len(public))])
}

func signature(kid string, sig []byte) string { return "v1;kid=" + kid + ";" + hex.EncodeToString(sig) }

func parseSignature(s string) (kid string, sig []byte, err error) {
	parts := strings.Split(s, ";")
	if len(parts) != 3 || parts[0] != "v1" || !strings.HasPrefix(parts[1], "kid=") {
		return "", nil, fmt.Errorf("%s %q: want v1;kid=<key>;<hex>", HeaderSig, s)
	}
	sig, err = hex.DecodeString(parts[2])
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", HeaderSig, err)
	}
	return strings.TrimPrefix(parts[1], "kid="), sig, nil
}

func mac(key Key, subject string, h Header, body []byte) []byte {
	m := hmac.New(sha256.New, key.Secret)
	m.Write(Canonical(subject, h, body))
	return m.Sum(nil)
}

// Hide makes a name of a value that must not stand in the log, such as a player's IP address: 32 hex
// digits, the same on every host that has the network's secret, and nothing to who lacks it. A host
// without it, which has a key of its own, makes a name that only it knows.
func (k *Keyring) Hide(kind, value string) string {
	var secret []byte = k.own
	if secrets := k.known.Load().secrets; len(secrets) > 0 {
		secret = secrets[0].Secret
	}
	m := hmac.New(sha256.New, secret)
	m.Write(field(field([]byte("landfall hide v1"), kind), value))
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// Canonical is what is signed: the text "landfall-sig-v1", then the subject, the value of
// each signed header in fixed order (empty when absent) and the body, each behind its
// length as a big-endian uint32. The schema version is one of the headers.
func Canonical(subject string, h Header, body []byte) []byte {
	out := make([]byte, 0, 768+len(body))
	out = append(out, "landfall-sig-v1"...)
	out = field(out, subject)
	for _, name := range signedHeaders {
		out = field(out, h[name])
	}
	return field(out, body)
}

func field[T string | []byte](out []byte, v T) []byte {
	out = binary.BigEndian.AppendUint32(out, uint32(len(v))) //nolint:gosec // bounded by MaxBody
	return append(out, v...)
}
