package events

import (
	"reflect"
	"strings"
	"sync"
)

// shape is what the wire may say of a struct: its fields by both of their names.
type shape struct {
	fields []shapeField
	wire   map[string]int // MessagePack name -> index in fields
	json   map[string]int // JSON name -> index in fields
}

type shapeField struct {
	wire, json string
	optional   bool
	typ        reflect.Type
}

var shapes sync.Map // reflect.Type -> *shape

func shapeOf(t reflect.Type) *shape {
	if s, ok := shapes.Load(t); ok {
		return s.(*shape)
	}
	s := &shape{wire: map[string]int{}, json: map[string]int{}}
	for f := range t.Fields() {
		wire, options, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		text, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		s.wire[wire], s.json[text] = len(s.fields), len(s.fields)
		s.fields = append(s.fields, shapeField{wire: wire, json: text, optional: options == "omitempty", typ: f.Type})
	}
	shapes.Store(t, s)
	return s
}

// missing gives the first mandatory field that was not seen.
func (s *shape) missing(seen []bool) (f shapeField, found bool) {
	for i, f := range s.fields {
		if !f.optional && !seen[i] {
			return f, true
		}
	}
	return shapeField{}, false
}
