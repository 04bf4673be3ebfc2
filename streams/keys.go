package streams

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/landfall/landfall/events"
)

// HostKey is a host's own key: an nkey of a user, with which it logs in and signs.
type HostKey struct {
	Role    Role          // as its file says; "" when it does not
	ID      events.HostID // as its file says; "" when it does not
	Private ed25519.PrivateKey
}

// NewHostKey makes a key.
func NewHostKey(role Role, id events.HostID) (HostKey, error) {
	_, private, err := ed25519.GenerateKey(nil)
	return HostKey{Role: role, ID: id, Private: private}, err
}

// keyLine is how the file of a key says whose it is.
const keyLine = "# landfall key:"

// ReadHostKey reads a file that Text made, or any that holds the seed of a user's nkey. No error
// holds any of it.
func ReadHostKey(path string) (HostKey, error) {
	text, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	if err != nil {
		return HostKey{}, err
	}
	pair, err := nkeys.ParseDecoratedNKey(text)
	if err != nil {
		return HostKey{}, fmt.Errorf("%s: holds no nkey: want a seed that begins with SU", path)
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return HostKey{}, fmt.Errorf("%s: %w", path, err)
	}
	kind, raw, err := nkeys.DecodeSeed(seed)
	if err != nil || kind != nkeys.PrefixByteUser {
		return HostKey{}, fmt.Errorf("%s: holds an nkey that is not a user's: want a seed that begins with SU", path)
	}
	k := HostKey{Private: ed25519.NewKeyFromSeed(raw)}
	for line := range bytes.Lines(text) {
		rest, ok := strings.CutPrefix(string(line), keyLine)
		if fields := strings.Fields(rest); ok && len(fields) == 2 {
			k.Role, k.ID = Role(fields[0]), events.HostID(fields[1])
		}
	}
	return k, nil
}

// Text is the file of the key. Whoever has it is the host.
func (k HostKey) Text() ([]byte, error) {
	seed, err := nkeys.EncodeSeed(nkeys.PrefixByteUser, k.Private.Seed())
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, "%s %s %s\n# Whoever has it is taken for this one. Copy it there, and nowhere else.\n%s\n", keyLine, k.Role, k.ID, seed), nil
}

// Raw is the public half.
func (k HostKey) Raw() ed25519.PublicKey {
	public, _ := k.Private.Public().(ed25519.PublicKey)
	return public
}

// Public is the public half as an nkey: U and 55 more letters and digits.
func (k HostKey) Public() string { return EncodePublic(k.Raw()) }

// EncodePublic writes a public key as an nkey.
func EncodePublic(key ed25519.PublicKey) string {
	text, err := nkeys.Encode(nkeys.PrefixByteUser, key)
	if err != nil {
		return ""
	}
	return string(text)
}

// ErrNotPublic is returned for what is not the public half of a user's nkey.
var ErrNotPublic = errors.New("not the public half of a user's nkey, which begins with U")

// DecodePublic is the reverse of EncodePublic.
func DecodePublic(text string) (ed25519.PublicKey, error) {
	raw, err := nkeys.Decode(nkeys.PrefixByteUser, []byte(text))
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("%.8q…: %w", text, ErrNotPublic)
	}
	return raw, nil
}

// nonce signs what a server asks a login to sign.
func (k HostKey) nonce(nonce []byte) ([]byte, error) { return ed25519.Sign(k.Private, nonce), nil }
