package events

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

// maxDepth bounds how deep values may lie inside each other.
const maxDepth = 16

var tokenType = reflect.TypeFor[Token]()

// strict walks a MessagePack body along the type it is to be decoded into. The decoder
// behind it is lenient: it takes nil for anything, wraps numbers around and keeps the last
// of two equal fields.
type strict struct {
	rest    []byte
	unknown bool // some map, at any depth, holds a field that its struct does not know
}

// checkBody tells whether body is one map of the form of t, a struct, with nothing behind it.
func checkBody(body []byte, t reflect.Type) (unknown bool, err error) {
	s := &strict{rest: body}
	if err := s.value(t, 0); err != nil {
		return s.unknown, err
	}
	if len(s.rest) != 0 {
		return s.unknown, errors.New("bytes behind the body")
	}
	return s.unknown, nil
}

func (s *strict) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return errors.New("too deep")
	}
	if t == tokenType {
		_, err := s.text()
		return err
	}
	switch t.Kind() { //nolint:exhaustive // the kinds that wire structs are made of; a test holds them to these
	case reflect.Pointer:
		return s.value(t.Elem(), depth)
	case reflect.Struct:
		return s.structure(shapeOf(t), depth)
	case reflect.Slice:
		return s.list(t.Elem(), depth)
	case reflect.Array:
		return s.id(t.Len())
	case reflect.String:
		_, err := s.text()
		return err
	case reflect.Bool:
		return s.boolean()
	case reflect.Int, reflect.Int64:
		return s.integer(math.MinInt64, math.MaxInt64)
	case reflect.Uint64:
		return s.integer(0, math.MaxUint64)
	case reflect.Float64:
		return s.float()
	}
	return fmt.Errorf("a %s does not travel", t)
}

func (s *strict) structure(sh *shape, depth int) error {
	n, err := s.length(formMap, "a map")
	if err != nil {
		return err
	}
	seen := make([]bool, len(sh.fields))
	var others map[string]bool
	for range n {
		name, err := s.text()
		if err != nil {
			return fmt.Errorf("name of a field: %w", err)
		}
		i, known := sh.wire[string(name)]
		if known && seen[i] || others[string(name)] {
			return fmt.Errorf("field %q stands twice", name)
		}
		if known {
			seen[i] = true
			err = s.field(sh.fields[i], depth)
		} else {
			if others == nil {
				others = map[string]bool{}
			}
			others[string(name)], s.unknown = true, true
			err = s.skip(depth + 1)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	if f, found := sh.missing(seen); found {
		return fmt.Errorf("field %q is missing", f.wire)
	}
	return nil
}

// field takes nil for an optional field as "not there".
func (s *strict) field(f shapeField, depth int) error {
	if f.optional && len(s.rest) > 0 && s.rest[0] == codeNil {
		s.rest = s.rest[1:]
		return nil
	}
	return s.value(f.typ, depth+1)
}

// list takes nil for an empty list.
func (s *strict) list(elem reflect.Type, depth int) error {
	if len(s.rest) > 0 && s.rest[0] == codeNil {
		s.rest = s.rest[1:]
		return nil
	}
	n, err := s.length(formArray, "a list")
	if err != nil {
		return err
	}
	for i := range n {
		if err := s.value(elem, depth+1); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	return nil
}

func (s *strict) id(size int) error {
	n, err := s.length(formBin, "bytes")
	if err == nil && n != size {
		err = fmt.Errorf("got %d bytes, want %d", n, size)
	}
	if err != nil {
		return err
	}
	_, err = s.take(n)
	return err
}

func (s *strict) text() ([]byte, error) {
	n, err := s.length(formStr, "text")
	if err != nil {
		return nil, err
	}
	return s.take(n)
}

func (s *strict) boolean() error {
	c, err := s.take(1)
	if err == nil && c[0] != codeFalse && c[0] != codeTrue {
		err = fmt.Errorf("got code %#x, want true or false", c[0])
	}
	return err
}

func (s *strict) float() error {
	if len(s.rest) == 0 || s.rest[0] != codeFloat32 && s.rest[0] != codeFloat64 {
		return s.integer(math.MinInt64, math.MaxInt64) // a whole number may come as one
	}
	code, b, err := s.scalar()
	if err != nil {
		return err
	}
	v := math.Float64frombits(bits(b))
	if code == codeFloat32 {
		v = float64(math.Float32frombits(uint32(bits(b)))) //nolint:gosec // four bytes
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%v is no number", v)
	}
	return nil
}

// integer takes any integer form whose value lies in the range.
func (s *strict) integer(low int64, high uint64) error {
	code, b, err := s.scalar()
	if err != nil {
		return err
	}
	switch {
	case code >= codeUint8 && code <= codeUint64 || code <= codeMaxFixint:
		if v := bits(b); v > high {
			return fmt.Errorf("%d is out of range", v)
		}
	case code >= codeInt8 && code <= codeInt64 || code >= codeMinNegative:
		shift := 64 - 8*len(b)
		if v := int64(bits(b)<<shift) >> shift; v < low { //nolint:gosec // sign extension is meant
			return fmt.Errorf("%d is out of range", v)
		}
	default:
		return fmt.Errorf("got code %#x, want a whole number", code)
	}
	return nil
}

// skip passes over one value of any form.
func (s *strict) skip(depth int) error {
	if depth > maxDepth {
		return errors.New("too deep")
	}
	if len(s.rest) == 0 {
		return errShort
	}
	for _, f := range forms {
		if f.begins(s.rest[0]) {
			return s.skipForm(f, depth)
		}
	}
	_, _, err := s.scalar()
	return err
}

func (s *strict) skipForm(f form, depth int) error {
	n, err := s.length(f, "")
	if err != nil {
		return err
	}
	if f.values == 0 {
		_, err = s.take(n + f.extra)
		return err
	}
	for range n * f.values {
		if err := s.skip(depth + 1); err != nil {
			return err
		}
	}
	return nil
}
