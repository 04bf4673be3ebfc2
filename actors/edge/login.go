package edge

import "encoding/json"

// loginStart is the first packet of a login, as every version wrote it.
type loginStart struct {
	name    string
	uuid    [16]byte
	hasUUID bool
}

// parseLoginStart reads the payload of a Login Start. What follows the name
// depends on the version, and the numbers of snapshots do not tell it, so the
// length of the rest decides and the version only breaks ties.
func parseLoginStart(payload []byte, protocol int32) (loginStart, error) {
	c := cursor{b: payload}
	l := loginStart{name: c.string(16, "player name")}
	if c.err == nil && l.name == "" {
		c.fail("player name")
	}
	if c.err != nil {
		return loginStart{}, c.err
	}
	id, ok := loginUUID(c.rest(), protocol)
	if !ok {
		return loginStart{}, malformed("login start of protocol %d has %d odd bytes after the name", protocol, len(c.rest()))
	}
	if id != nil {
		l.hasUUID = true
		copy(l.uuid[:], id)
	}
	return l, nil
}

// Protocol numbers at which Login Start changed.
const (
	protocol1_19   = 759 // optional signature
	protocol1_19_3 = 761 // optional UUID only
	protocol1_20_2 = 764 // UUID always
	snapshotBit    = 0x40000000
)

// loginUUID finds the UUID in what follows the name: nil when there is none.
//
//	≤ 1.18.2     nothing
//	1.19         bool [signature]
//	1.19.1, .2   bool [signature], bool [UUID]
//	1.19.3–1.20.1                  bool [UUID]
//	≥ 1.20.2                       UUID
func loginUUID(rest []byte, protocol int32) (uuid []byte, ok bool) {
	release := protocol&snapshotBit == 0
	always := release && protocol >= protocol1_20_2
	n := len(rest)
	switch {
	case n == 0 || release && protocol < protocol1_19:
		return nil, true
	case n == 16 || n > 16 && always: // a later release may append fields
		return rest[:16], true
	case n == 1:
		return nil, rest[0] == 0
	case n == 2:
		return nil, rest[0] == 0 && rest[1] == 0
	case n == 17 && rest[0] == 1:
		return rest[1:], true
	case n == 18 && rest[0] == 0 && rest[1] == 1:
		return rest[2:], true
	}
	if uuid, ok = signedUUID(rest); ok {
		return uuid, true
	}
	if !release && n > 16 {
		return rest[:16], true
	}
	return nil, false
}

// signedUUID skips the signature of 1.19–1.19.2 and reads what may follow it.
func signedUUID(rest []byte) (uuid []byte, ok bool) {
	c := cursor{b: rest}
	signed := c.bytes(1, "signature flag")
	c.bytes(8, "key expiry")
	c.bytes(int(c.varInt("key")), "key")
	c.bytes(int(c.varInt("signature")), "signature")
	if c.err != nil || signed[0] != 1 {
		return nil, false
	}
	tail := c.rest()
	switch {
	case len(tail) == 0, len(tail) == 1 && tail[0] == 0:
		return nil, true
	case len(tail) == 17 && tail[0] == 1:
		return tail[1:], true
	}
	return nil, false
}

// validName holds for names that are safe in every command and key built later.
func validName(name string) bool {
	if len(name) < 1 || len(name) > 16 {
		return false
	}
	for i := range len(name) {
		if !isWord(name[i]) {
			return false
		}
	}
	return true
}

func isWord(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

// appendDisconnect appends the packet that ends a login with a text. All versions
// read it as JSON, before and after the text format of play changed.
func appendDisconnect(dst []byte, text string) []byte {
	return appendFrame(dst, 0, appendString(nil, textJSON(text)))
}

func textJSON(text string) string {
	b, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return `{"text":""}` // strings always marshal
	}
	return string(b)
}
