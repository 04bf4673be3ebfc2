package events

import (
	"crypto/md5" //nolint:gosec // the offline-mode UUID of Minecraft is defined by MD5; nothing is protected by it
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/vmihailenco/msgpack/v5"
)

// ID is 16 bytes that name one thing of kind K. Distinct kinds are distinct types:
// a player id cannot be passed where a transfer id is meant.
type ID[K any] [16]byte

type (
	playerKind      struct{}
	transferKind    struct{}
	eventKind       struct{}
	joinKind        struct{}
	incarnationKind struct{}
	requestKind     struct{}

	// PlayerID is the Minecraft UUID (v4 online, v3 offline), else a UUIDv5 of game and native id.
	PlayerID = ID[playerKind]
	// TransferID is the caller's request id (UUIDv7) and names one journey of one player.
	TransferID = ID[transferKind]
	// EventID is the UUIDv7 of one fact. It survives retries of the same fact.
	EventID = ID[eventKind]
	// JoinID names one arrival of a player at a backend, as that backend counts it.
	JoinID = ID[joinKind]
	// Incarnation is one life of a host.
	Incarnation = ID[incarnationKind]
	// RequestID is the id of one request between hosts.
	RequestID = ID[requestKind]
)

// ParseID reads the canonical UUID form, or 32 hex digits without dashes.
func ParseID[I ~[16]byte](s string) (I, error) {
	u, err := uuid.Parse(s)
	if err != nil || (len(s) != 36 && len(s) != 32) {
		return I{}, fmt.Errorf("parse id %q: want a UUID such as 0190c5b2-7d5e-7c3a-9d53-0b5a0d1f2e3c", s)
	}
	return I(u), nil
}

// String is the canonical UUID form.
func (i ID[K]) String() string { return uuid.UUID(i).String() }

// Hex is the 32 hex digits without dashes.
func (i ID[K]) Hex() string { return hex.EncodeToString(i[:]) }

// Short is the last eight hex digits: enough for a person to tell ids apart in one screen.
// (UUIDv7 ids made together share their head.)
func (i ID[K]) Short() string { return hex.EncodeToString(i[12:]) }

// IsZero tells that no id was given.
func (i ID[K]) IsZero() bool { return i == ID[K]{} }

// MarshalText makes ids readable in JSON.
func (i ID[K]) MarshalText() ([]byte, error) {
	if i.IsZero() {
		return nil, nil
	}
	return []byte(i.String()), nil
}

// UnmarshalText accepts what MarshalText wrote; empty text is the zero id.
func (i *ID[K]) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*i = ID[K]{}
		return nil
	}
	*i, err = ParseID[ID[K]](string(text))
	return err
}

// EncodeMsgpack writes the 16 bytes as bin 8.
func (i ID[K]) EncodeMsgpack(e *msgpack.Encoder) error { return e.EncodeBytes(i[:]) }

// DecodeMsgpack reads 16 bytes, or refuses.
func (i *ID[K]) DecodeMsgpack(d *msgpack.Decoder) error {
	b, err := d.DecodeBytes()
	if err != nil {
		return err
	}
	if len(b) != 16 {
		return fmt.Errorf("decode id: got %d bytes, want 16", len(b))
	}
	copy(i[:], b)
	return nil
}

// OfflinePlayer is the id a Minecraft server in offline mode gives to a name: the
// version 3 UUID of "OfflinePlayer:<name>". The name is case-sensitive.
func OfflinePlayer(name string) PlayerID {
	sum := PlayerID(md5.Sum([]byte("OfflinePlayer:" + name))) //nolint:gosec // see the import
	sum[6] = sum[6]&0x0f | 0x30
	sum[8] = sum[8]&0x3f | 0x80
	return sum
}

// NativePlayer is the id of a player of a game that has its own, non-UUID ids.
func NativePlayer(game, native string) PlayerID {
	return PlayerID(uuid.NewSHA1(uuid.NameSpaceURL, []byte("landfall:"+game+":"+native)))
}

// HostID names a backend or a proxy: [A-Za-z0-9_-]{1,63}, so that it fits a subject
// token, a file name and a command.
type HostID string

var hostPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,63}$`)

// ParseHostID refuses what could not be a subject token.
func ParseHostID(s string) (HostID, error) {
	if !hostPattern.MatchString(s) {
		return "", fmt.Errorf("host id %q: want 1 to 63 of A-Z a-z 0-9 _ -", s)
	}
	return HostID(s), nil
}

// Token is one attempt inside a transfer: a coordinate on one backend, promised to one player.
// It travels as text, "<transferId>-<n>", empty when there is none.
type Token struct {
	Transfer TransferID
	Attempt  int
}

// String is "<transferId>-<n>".
func (t Token) String() string { return t.Transfer.String() + "-" + strconv.Itoa(t.Attempt) }

// Label is the token as one DNS label, "r-<32 hex>-<n>": what a client carries in the
// host name of its reconnect.
func (t Token) Label() string { return "r-" + t.Transfer.Hex() + "-" + strconv.Itoa(t.Attempt) }

// IsZero tells that there is no token.
func (t Token) IsZero() bool { return t == Token{} }

// MarshalText makes tokens readable in JSON.
func (t Token) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return []byte(t.String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (t *Token) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*t = Token{}
		return nil
	}
	*t, err = ParseToken(string(text))
	return err
}

// EncodeMsgpack writes the text form as str.
func (t Token) EncodeMsgpack(e *msgpack.Encoder) error {
	text, err := t.MarshalText()
	if err != nil {
		return err
	}
	return e.EncodeString(string(text))
}

// DecodeMsgpack reads what EncodeMsgpack wrote.
func (t *Token) DecodeMsgpack(d *msgpack.Decoder) error {
	text, err := d.DecodeString()
	if err != nil {
		return err
	}
	return t.UnmarshalText([]byte(text))
}

// ParseToken reads either form, "<transferId>-<n>" or "r-<32 hex>-<n>".
func ParseToken(s string) (Token, error) {
	id, n, ok := cutLast(strings.TrimPrefix(s, "r-"), '-')
	attempt, err := strconv.Atoi(n)
	if !ok || err != nil || attempt < 1 || attempt > MaxAttempts || strconv.Itoa(attempt) != n {
		return Token{}, fmt.Errorf("parse token %q: want <transfer id>-<attempt>", s)
	}
	transfer, err := ParseID[TransferID](id)
	if err != nil {
		return Token{}, fmt.Errorf("parse token %q: %w", s, err)
	}
	return Token{Transfer: transfer, Attempt: attempt}, nil
}

func cutLast(s string, sep byte) (before, after string, found bool) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}
