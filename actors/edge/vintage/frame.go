// Package vintage is the wire format of Vintage Story, as far as a proxy in front of its servers needs
// it: frames, the few packets it reads, and those it forges. It is made of functions of bytes; sockets
// and decisions are its callers'.
//
// A frame is four bytes, big endian, then a payload: bit 31 says that the payload is compressed, the others
// how long it is. A payload is one protobuf message with an id and a body that stands in a field of its own:
// field numbers and ids are two numberings. Nothing is inflated here: what must be read is never
// compressed, and the rest passes as it came.
//
// The facts are those that proxies of the field rely on (StratumServer/Nimbus and RedirectFix); see
// docs/vintagestory.md. No code of theirs is used.
package vintage

import (
	"encoding/binary"
	"fmt"
)

const (
	headSize = 4
	// MaxFrame is the longest payload that anybody sends.
	MaxFrame = 128 << 20
	// MaxFirst is the longest payload of a client that has not said who it is.
	MaxFirst = 64 << 10

	compressed = 1 << 31
)

// DefaultPort is dialled where an address names none.
const DefaultPort = 42420

// FrameError says that a stream is not one of frames.
type FrameError struct{ Length, Max int }

func (e *FrameError) Error() string {
	return fmt.Sprintf("a frame of %d bytes, want at most %d", e.Length, e.Max)
}

// Frame is one frame of a client, whole.
type Frame struct {
	Raw        []byte // header and payload
	Compressed bool
}

// Payload is the message; of a compressed frame it is not to be read.
func (f Frame) Payload() []byte { return f.Raw[headSize:] }

// Frames makes frames of a stream of bytes, however it was cut. The zero value is ready.
type Frames struct{ buf []byte }

// Add takes the next bytes of the stream.
func (f *Frames) Add(b []byte) { f.buf = append(f.buf, b...) }

// Next gives the next whole frame; ok is false when more bytes are needed. A frame above limit is refused as
// soon as its header is there: nothing is kept ready for it.
func (f *Frames) Next(limit int) (frame Frame, ok bool, err error) {
	if len(f.buf) < headSize {
		return Frame{}, false, nil
	}
	head := binary.BigEndian.Uint32(f.buf)
	length := int(head &^ compressed)
	if length > limit {
		return Frame{}, false, &FrameError{length, limit}
	}
	if len(f.buf) < headSize+length {
		return Frame{}, false, nil
	}
	frame = Frame{Raw: f.buf[: headSize+length : headSize+length], Compressed: head&compressed != 0}
	f.buf = f.buf[headSize+length:]
	return frame, true, nil
}

// Rest gives what is left of the stream, and forgets it.
func (f *Frames) Rest() []byte {
	rest := f.buf
	f.buf = nil
	return rest
}

// peekSize is how much of a payload a Walker keeps: enough for an id in front of its body.
const peekSize = 16

// Walker follows a stream of frames that passes by, so that it is known where one ends: only there may
// something be put in between. The zero value stands before the first frame.
type Walker struct {
	// Begins is called with the first bytes of each payload, as soon as they, or all of it, have passed. nil: nobody is.
	Begins func(first []byte, compressed bool)

	head [headSize]byte
	have int // bytes of the header that have passed
	left int // of the payload
	size int
	peek []byte
}

// AtBoundary tells that the stream stands between two frames.
func (w *Walker) AtBoundary() bool { return w.have == 0 }

// Walk passes bytes by, and gives how many of them end at the last boundary among them; -1: at none. It fails
// with a *FrameError on what is no stream of frames; from then on there are no boundaries.
func (w *Walker) Walk(b []byte) (boundary int, err error) {
	boundary = -1
	for i := 0; i < len(b); {
		if w.have < headSize {
			n := copy(w.head[w.have:], b[i:])
			w.have, i = w.have+n, i+n
			if w.have < headSize {
				break
			}
			if err := w.begin(); err != nil {
				return boundary, err
			}
		} else {
			n := min(w.left, len(b)-i)
			w.look(b[i : i+n])
			w.left, i = w.left-n, i+n
		}
		if w.left == 0 {
			w.have, boundary = 0, i
		}
	}
	return boundary, nil
}

func (w *Walker) begin() error {
	w.size = int(binary.BigEndian.Uint32(w.head[:]) &^ compressed)
	w.left, w.peek = w.size, w.peek[:0]
	if w.size > MaxFrame {
		return &FrameError{w.size, MaxFrame}
	}
	return nil
}

func (w *Walker) look(b []byte) {
	want := min(w.size, peekSize) - len(w.peek)
	if w.Begins == nil || want <= 0 {
		return
	}
	w.peek = append(w.peek, b[:min(want, len(b))]...)
	if len(w.peek) == min(w.size, peekSize) {
		w.Begins(w.peek, w.head[0]&0x80 != 0)
	}
}

// appendFrame appends a payload behind its header.
func appendFrame(dst, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(dst, uint32(len(payload))), payload...) //nolint:gosec // callers bound it
}
