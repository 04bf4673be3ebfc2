package events

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"

	"github.com/vmihailenco/msgpack/v5"
)

// MaxBody is the largest body that is encoded or decoded, in bytes.
const MaxBody = 16 << 10

// Marshal writes v as a MessagePack map with the literal tags of its struct, fields in
// the order of the struct, integers in their shortest form: the same value always gives
// the same bytes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := msgpack.NewEncoder(&b)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if b.Len() > MaxBody {
		return nil, fmt.Errorf("encode %T: %d bytes, at most %d", v, b.Len(), MaxBody)
	}
	return b.Bytes(), nil
}

// Unmarshal reads a body written by anybody: the whole of it must be one map that holds
// every mandatory field of v once. Fields that v does not know are left alone; they stay
// in the record's bytes.
func Unmarshal(body []byte, v any) error {
	_, err := unmarshal(body, v)
	return err
}

// UnmarshalExact reads a body written by Marshal. Beside Unmarshal's rules the bytes must
// be the ones that Marshal would write (unless a newer writer added fields), so that a
// number out of range or a repeated field cannot pass as something else.
func UnmarshalExact(body []byte, v any) error {
	unknown, err := unmarshal(body, v)
	if err != nil || unknown {
		return err
	}
	again, err := Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, body) {
		return fmt.Errorf("decode %T: not in canonical form", v)
	}
	return nil
}

func unmarshal(body []byte, v any) (unknown bool, err error) {
	if len(body) > MaxBody {
		return false, fmt.Errorf("decode %T: %d bytes, at most %d", v, len(body), MaxBody)
	}
	unknown, err = checkFields(body, reflect.TypeOf(v).Elem())
	if err != nil {
		return unknown, fmt.Errorf("decode %T: %w", v, err)
	}
	dec := msgpack.NewDecoder(bytes.NewReader(body))
	if err := dec.Decode(v); err != nil {
		return unknown, fmt.Errorf("decode %T: %w", v, err)
	}
	return unknown, nil
}

// checkFields walks the top map of body: every mandatory field there, none twice, nothing behind.
func checkFields(body []byte, t reflect.Type) (unknown bool, err error) {
	r := bytes.NewReader(body)
	dec := msgpack.NewDecoder(r)
	n, err := dec.DecodeMapLen()
	if err != nil {
		return false, err
	}
	fields := fieldsOf(t)
	seen := make(map[string]bool, len(fields))
	for range n {
		name, err := dec.DecodeString()
		if err != nil {
			return unknown, err
		}
		if seen[name] {
			return unknown, fmt.Errorf("field %q stands twice", name)
		}
		seen[name] = true
		if _, known := fields[name]; !known {
			unknown = true
		}
		if err := dec.Skip(); err != nil {
			return unknown, err
		}
	}
	for name, mandatory := range fields {
		if mandatory && !seen[name] {
			return unknown, fmt.Errorf("field %q is missing", name)
		}
	}
	if r.Len() != 0 {
		return unknown, errors.New("bytes behind the body")
	}
	return unknown, nil
}

var fieldCache sync.Map // reflect.Type -> map[string]bool

// fieldsOf maps each wire name of a struct to whether it is mandatory.
func fieldsOf(t reflect.Type) map[string]bool {
	if m, ok := fieldCache.Load(t); ok {
		return m.(map[string]bool)
	}
	m := make(map[string]bool, t.NumField())
	for i := range t.NumField() {
		name, opts, _ := strings.Cut(t.Field(i).Tag.Get("msgpack"), ",")
		m[name] = opts != "omitempty"
	}
	fieldCache.Store(t, m)
	return m
}
