package edge

import (
	"bufio"
	"io"
)

// maxFrame bounds the length a client may announce before it is spliced; the
// longest legal packet is a 1.19 Login Start with key and signature, 850 bytes.
const maxFrame = 2048

// frame is one packet exactly as it arrived, so it can be forwarded untouched.
type frame struct {
	raw  []byte // length, id, payload
	head int    // bytes of the length
}

func (f frame) id() byte        { return f.raw[f.head] }
func (f frame) payload() []byte { return f.raw[f.head+1:] }

// readFrame reads the next packet, blocking until it is complete or the deadline
// of the connection under r has passed. Packet ids above maxID are refused as soon
// as that byte is there: an HTTP request looks like a frame of 71 bytes and would
// otherwise be waited for.
func readFrame(r *bufio.Reader, maxID byte) (frame, error) {
	raw := make([]byte, 0, 3)
	for {
		b, err := r.ReadByte()
		if err != nil {
			return frame{}, err
		}
		raw = append(raw, b)
		if b < 0x80 {
			break
		}
		if len(raw) == 3 {
			return frame{}, malformed("packet length is over 3 bytes")
		}
	}
	length, head := varInt(raw)
	if length < 1 || length > maxFrame {
		return frame{}, malformed("packet length %d is not in 1..%d", length, maxFrame)
	}
	id, err := r.Peek(1)
	if err != nil {
		return frame{}, err
	}
	if id[0] > maxID {
		return frame{}, malformed("packet id %#x, expected at most %#x", id[0], maxID)
	}
	raw = append(raw, make([]byte, length)...)
	_, err = io.ReadFull(r, raw[head:])
	return frame{raw: raw, head: head}, err
}
