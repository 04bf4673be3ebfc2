package events

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Codes of MessagePack.
const (
	codeMaxFixint   = 0x7f
	codeNil         = 0xc0
	codeFalse       = 0xc2
	codeTrue        = 0xc3
	codeFloat32     = 0xca
	codeFloat64     = 0xcb
	codeUint8       = 0xcc
	codeUint64      = 0xcf
	codeInt8        = 0xd0
	codeInt64       = 0xd3
	codeMinNegative = 0xe0
)

// scalarSize says how many bytes follow a code. Extensions carry one more for their kind.
var scalarSize = map[byte]int{
	codeNil: 0, codeFalse: 0, codeTrue: 0,
	codeFloat32: 4, codeFloat64: 8,
	codeUint8: 1, 0xcd: 2, 0xce: 4, codeUint64: 8,
	codeInt8: 1, 0xd1: 2, 0xd2: 4, codeInt64: 8,
	0xd4: 2, 0xd5: 3, 0xd6: 5, 0xd7: 9, 0xd8: 17,
}

// form is one family of codes that begin with a length.
type form struct {
	fixLow, fixHigh byte  // the length lies in the code; none when both are 0
	codes           byte  // the first of the codes with a length behind them
	sizes           []int // how many bytes that length has, for each of these codes
	values          int   // how many values stand behind, for each unit of length; 0: bytes
	extra           int   // bytes behind the length that it does not count
}

var (
	formMap   = form{fixLow: 0x80, fixHigh: 0x8f, codes: 0xde, sizes: []int{2, 4}, values: 2}
	formArray = form{fixLow: 0x90, fixHigh: 0x9f, codes: 0xdc, sizes: []int{2, 4}, values: 1}
	formStr   = form{fixLow: 0xa0, fixHigh: 0xbf, codes: 0xd9, sizes: []int{1, 2, 4}}
	formBin   = form{codes: 0xc4, sizes: []int{1, 2, 4}}
	formExt   = form{codes: 0xc7, sizes: []int{1, 2, 4}, extra: 1}
	forms     = []form{formMap, formArray, formStr, formBin, formExt}
)

func (f form) fixed(c byte) bool { return f.fixLow != 0 && c >= f.fixLow && c <= f.fixHigh }

func (f form) begins(c byte) bool {
	return f.fixed(c) || c >= f.codes && int(c) < int(f.codes)+len(f.sizes)
}

var errShort = errors.New("the body ends in the middle")

func (s *strict) take(n int) ([]byte, error) {
	if n < 0 || n > len(s.rest) {
		return nil, errShort
	}
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b, nil
}

// scalar takes a code and the bytes of its value. A number that lies in its code is its
// own only byte.
func (s *strict) scalar() (code byte, b []byte, err error) {
	if len(s.rest) == 0 {
		return 0, nil, errShort
	}
	code = s.rest[0]
	n, ok := scalarSize[code]
	if code <= codeMaxFixint || code >= codeMinNegative {
		b, err = s.take(1)
		return code, b, err
	}
	if !ok {
		return code, nil, fmt.Errorf("code %#x is not used here", code)
	}
	s.rest = s.rest[1:]
	b, err = s.take(n)
	return code, b, err
}

// length takes the head of a map, list, text or byte string.
func (s *strict) length(f form, want string) (int, error) {
	if len(s.rest) == 0 {
		return 0, errShort
	}
	c := s.rest[0]
	if !f.begins(c) {
		return 0, fmt.Errorf("got code %#x, want %s", c, want)
	}
	s.rest = s.rest[1:]
	if f.fixed(c) {
		return int(c - f.fixLow), nil
	}
	size := f.sizes[c-f.codes]
	b, err := s.take(size)
	if err != nil {
		return 0, err
	}
	return int(bits(b)), nil //nolint:gosec // at most four bytes
}

func bits(b []byte) uint64 {
	var wide [8]byte
	copy(wide[8-len(b):], b)
	return binary.BigEndian.Uint64(wide[:])
}
