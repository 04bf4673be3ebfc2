package edge

// What a client wants, the last field of the handshake.
const (
	intentStatus   = 1
	intentLogin    = 2
	intentTransfer = 3
)

// handshake is the first packet of every client since 1.7.
type handshake struct {
	protocol  int32
	host      string // as sent, with whatever mods and proxies appended
	port      uint16
	intent    int
	intentPos int // of the intent byte in the payload
}

// parseHandshake reads the payload of a handshake. Bytes after the intent are
// tolerated: some mod loaders have put things there.
func parseHandshake(payload []byte) (handshake, error) {
	c := cursor{b: payload}
	h := handshake{
		protocol: c.varInt("handshake protocol version"),
		host:     c.string(255, "handshake host"),
	}
	if p := c.bytes(2, "handshake port"); p != nil {
		h.port = uint16(p[0])<<8 | uint16(p[1])
	}
	h.intentPos = c.off
	// One byte, so that it can be rewritten in place.
	if b := c.bytes(1, "handshake intent"); b != nil {
		h.intent = int(b[0])
		if h.intent < intentStatus || h.intent > intentTransfer {
			c.fail("handshake intent")
		}
	}
	return h, c.err
}

// withIntent returns the packet f with another intent; f keeps its own bytes.
func (h handshake) withIntent(f frame, intent byte) []byte {
	raw := append([]byte(nil), f.raw...)
	raw[f.head+1+h.intentPos] = intent
	return raw
}
