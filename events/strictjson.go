package events

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// unmarshalJSON reads a body in JSON by the rules of Unmarshal: mandatory fields there,
// none twice, nothing behind, unknown ones left alone. Names are exact.
func unmarshalJSON(body []byte, v any) error {
	if len(body) > MaxBody {
		return fmt.Errorf("decode %T: %d bytes, at most %d", v, len(body), MaxBody)
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if err := checkJSON(dec, reflect.TypeOf(v).Elem()); err != nil {
		return fmt.Errorf("decode %T: %w", v, err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("decode %T: bytes behind the body", v)
	}
	return json.Unmarshal(body, v)
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

func checkJSON(dec *json.Decoder, t reflect.Type) error {
	switch {
	case t.Kind() == reflect.Pointer:
		return checkJSON(dec, t.Elem())
	case t.Kind() == reflect.Struct && !reflect.PointerTo(t).Implements(textType):
		return jsonObject(dec, shapeOf(t))
	case t.Kind() == reflect.Slice:
		return jsonList(dec, t.Elem())
	}
	return jsonValue(dec)
}

func jsonValue(dec *json.Decoder) error {
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil {
		return err
	}
	if string(raw) == "null" {
		return errors.New("null is no value")
	}
	return nil
}

func jsonObject(dec *json.Decoder, sh *shape) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if token != json.Delim('{') {
		return fmt.Errorf("got %v, want an object", token)
	}
	seen, others := make([]bool, len(sh.fields)), map[string]bool{}
	for dec.More() {
		if token, err = dec.Token(); err != nil {
			return err
		}
		name, _ := token.(string) // a key is always text
		i, known := sh.json[name]
		switch {
		case known && seen[i] || others[name]:
			err = errors.New("stands twice")
		case known:
			seen[i] = true
			err = jsonField(dec, sh.fields[i])
		default:
			others[name] = true
			err = jsonOther(dec, sh, name)
		}
		if err != nil {
			return fmt.Errorf("field %q: %w", name, err)
		}
	}
	if f, found := sh.missing(seen); found {
		return fmt.Errorf("field %q is missing", f.json)
	}
	_, err = dec.Token()
	return err
}

// jsonField takes null for an optional field as "not there".
func jsonField(dec *json.Decoder, f shapeField) error {
	if !f.optional {
		return checkJSON(dec, f.typ)
	}
	var raw json.RawMessage
	if err := dec.Decode(&raw); err != nil || string(raw) == "null" {
		return err
	}
	return checkJSON(json.NewDecoder(bytes.NewReader(raw)), f.typ)
}

// jsonOther passes over a field that is not known. The decoder behind would take it for a
// known one if only the case differed.
func jsonOther(dec *json.Decoder, sh *shape, name string) error {
	for known := range sh.json {
		if strings.EqualFold(known, name) {
			return fmt.Errorf("want %q", known)
		}
	}
	var raw json.RawMessage
	return dec.Decode(&raw)
}

// jsonList takes null for an empty list.
func jsonList(dec *json.Decoder, elem reflect.Type) error {
	token, err := dec.Token()
	if err != nil || token == nil {
		return err
	}
	if token != json.Delim('[') {
		return fmt.Errorf("got %v, want a list", token)
	}
	for i := 0; dec.More(); i++ {
		if err := checkJSON(dec, elem); err != nil {
			return fmt.Errorf("element %d: %w", i, err)
		}
	}
	_, err = dec.Token()
	return err
}
