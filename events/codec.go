package events

import (
	"bytes"
	"fmt"
	"reflect"

	"github.com/vmihailenco/msgpack/v5"
)

// MaxBody is the largest body that is encoded or decoded, in bytes.
const MaxBody = 16 << 10

// Marshal writes v as a MessagePack map with the literal tags of its struct, fields in
// the order of the struct, integers in their shortest form: the same value always gives
// the same bytes. It refuses what Unmarshal would (a NaN, for one).
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&b)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	if b.Len() > MaxBody {
		return nil, fmt.Errorf("encode %T: %d bytes, at most %d", v, b.Len(), MaxBody)
	}
	if _, err := checkBody(b.Bytes(), reflect.TypeOf(v)); err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b.Bytes(), nil
}

// Unmarshal reads a body written by anybody: the whole of it must be one map that holds
// every mandatory field of v once, each of its kind and in its range, and so on inside.
// Integers and lengths may stand in any of their forms. Fields that v does not know are
// left alone; they stay in the record's bytes.
func Unmarshal(body []byte, v any) error {
	_, err := unmarshal(body, v)
	return err
}

// UnmarshalExact reads a body written by Marshal. Beside Unmarshal's rules the bytes must
// be the ones that Marshal would write, unless a newer writer added fields.
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
	unknown, err = checkBody(body, reflect.TypeOf(v).Elem())
	if err != nil {
		return unknown, fmt.Errorf("decode %T: %w", v, err)
	}
	dec := msgpack.GetDecoder()
	defer msgpack.PutDecoder(dec)
	dec.Reset(bytes.NewReader(body))
	if err := dec.Decode(v); err != nil {
		return unknown, fmt.Errorf("decode %T: %w", v, err)
	}
	return unknown, nil
}
