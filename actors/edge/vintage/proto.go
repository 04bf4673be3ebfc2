package vintage

import (
	"encoding/binary"
	"errors"
	"math"
)

// Wire types of protobuf. Groups (3 and 4) have no place here.
const (
	varintType = 0
	fixed64    = 1
	bytesType  = 2
	fixed32    = 5
)

var errProto = errors.New("not a protobuf message")

// field is one field of a message.
type field struct {
	number int
	kind   int
	value  uint64 // of a varint
	data   []byte // of bytes
}

// nextField reads the field that b begins with, and gives what follows it.
func nextField(b []byte) (f field, rest []byte, err error) {
	tag, n := binary.Uvarint(b)
	if n <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
		return field{}, nil, errProto
	}
	f, b = field{number: int(tag >> 3), kind: int(tag & 7)}, b[n:] //nolint:gosec // bounded above
	switch f.kind {
	case varintType:
		if f.value, n = binary.Uvarint(b); n <= 0 {
			return field{}, nil, errProto
		}
		return f, b[n:], nil
	case fixed64, fixed32:
		size := map[int]int{fixed64: 8, fixed32: 4}[f.kind]
		if len(b) < size {
			return field{}, nil, errProto
		}
		return f, b[size:], nil
	case bytesType:
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return field{}, nil, errProto
		}
		end := n + int(size) //nolint:gosec // not above len(b)
		f.data = b[n:end]
		return f, b[end:], nil
	}
	return field{}, nil, errProto
}

// fieldsOf calls each with the fields of a message, in order.
func fieldsOf(message []byte, each func(field)) error {
	for len(message) > 0 {
		f, rest, err := nextField(message)
		if err != nil {
			return err
		}
		each(f)
		message = rest
	}
	return nil
}

func appendVarint(dst []byte, number int, v uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, uint64(number)<<3|varintType), v) //nolint:gosec // a literal
}

func appendBytes(dst []byte, number int, data []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(number)<<3|bytesType) //nolint:gosec // a literal
	return append(binary.AppendUvarint(dst, uint64(len(data))), data...)
}

// appendText leaves an empty text out.
func appendText(dst []byte, number int, text string) []byte {
	if text == "" {
		return dst
	}
	return appendBytes(dst, number, []byte(text))
}

// appendNumber leaves a zero out.
func appendNumber(dst []byte, number, v int) []byte {
	if v <= 0 {
		return dst
	}
	return appendVarint(dst, number, uint64(v))
}
