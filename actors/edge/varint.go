package edge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unicode/utf8"
)

// errMalformed is wrapped by every error about bytes that no Minecraft client
// sends. Such a connection is closed without a word.
var errMalformed = errors.New("malformed")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// varInt decodes the VarInt at the start of b: the value and its length in bytes,
// 0 when b ends too early, -1 when it is longer than the five bytes of an int32.
func varInt(b []byte) (int32, int) {
	var v uint32
	for i := range min(len(b), 5) {
		v |= uint32(b[i]&0x7F) << (7 * i)
		if b[i] < 0x80 {
			return int32(v), i + 1
		}
	}
	if len(b) < 5 {
		return 0, 0
	}
	return 0, -1
}

// appendVarInt appends v in its shortest form.
func appendVarInt(dst []byte, v int32) []byte {
	return binary.AppendUvarint(dst, uint64(uint32(v)))
}

// appendString appends s with its VarInt byte length.
func appendString(dst []byte, s string) []byte {
	return append(appendVarInt(dst, int32(len(s))), s...)
}

// appendFrame appends a whole packet: length, id, payload.
func appendFrame(dst []byte, id byte, payload []byte) []byte {
	dst = appendVarInt(dst, int32(len(payload)+1))
	return append(append(dst, id), payload...)
}

// cursor reads a packet body. The first failure sticks: later reads return zero
// values, and the caller looks at err once.
type cursor struct {
	b   []byte
	off int
	err error
}

func (c *cursor) rest() []byte { return c.b[c.off:] }

func (c *cursor) fail(what string) {
	if c.err == nil {
		c.err = malformed("%s at byte %d of %d", what, c.off, len(c.b))
	}
}

func (c *cursor) varInt(what string) int32 {
	if c.err != nil {
		return 0
	}
	v, n := varInt(c.rest())
	if n <= 0 {
		c.fail(what)
		return 0
	}
	c.off += n
	return v
}

// bytes returns the next n bytes, a part of the packet and not a copy.
func (c *cursor) bytes(n int, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.rest()) {
		c.fail(what)
		return nil
	}
	c.off += n
	return c.b[c.off-n : c.off]
}

// string reads a string of at most limit characters.
func (c *cursor) string(limit int, what string) string {
	s := c.bytes(int(c.varInt(what)), what)
	if c.err == nil && (!utf8.Valid(s) || utf8.RuneCount(s) > limit) {
		c.fail(what)
		return ""
	}
	return string(s)
}
