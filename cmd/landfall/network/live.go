package network

import (
	"reflect"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
)

// TakeOn gives n with the live keys of next: what a process that was started with n takes on of a file that was
// changed since. The rest of next needs a restart; when n's own contradicts next's live keys it gives the faults.
func (n *Network) TakeOn(next *Network) (*Network, []*Error) {
	live := next.excerpt(func(k *Key) bool { return k.Live })
	return n.overlaid(parseDocument(live).(*ast.MappingNode))
}

// excerpt is the part of the configuration whose rows are wanted, as it holds, in YAML that is the same for the same
// values. An open map whose row is wanted stands there whole.
func (n *Network) excerpt(wanted func(*Key) bool) string {
	part, _ := excerptOf(root, reflect.ValueOf(n.settings), wanted).(yaml.MapSlice)
	text, err := yaml.Marshal(part)
	if err != nil {
		panic("network: write the live keys: " + err.Error()) // plain values, all of which were read from YAML
	}
	return string(text)
}

// excerptOf is a value for YAML; nil when nothing of it is wanted.
func excerptOf(s *schema, v reflect.Value, wanted func(*Key) bool) any {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	switch {
	case s.any != nil:
		return excerptOfOpen(s, v, wanted)
	case len(s.fields) > 0:
		out := yaml.MapSlice{}
		for _, name := range s.names {
			if value := excerptOf(s.fields[name], fieldOf(v, name), wanted); value != nil {
				out = append(out, yaml.MapItem{Key: name, Value: value})
			}
		}
		return orNil(out)
	case s.key == nil || !wanted(s.key):
		return nil
	}
	if length, ok := v.Interface().(time.Duration); ok {
		return length.String()
	}
	return v.Interface()
}

func excerptOfOpen(s *schema, v reflect.Value, wanted func(*Key) bool) any {
	whole := s.key != nil && wanted(s.key)
	if whole {
		wanted = func(*Key) bool { return true }
	}
	out := yaml.MapSlice{}
	for _, name := range sortedKeys(v) {
		if value := excerptOf(s.any, v.MapIndex(name), wanted); value != nil {
			out = append(out, yaml.MapItem{Key: name.String(), Value: value})
		}
	}
	if whole {
		return out
	}
	return orNil(out)
}

func orNil(m yaml.MapSlice) any {
	if len(m) == 0 {
		return nil
	}
	return m
}

// overlaid gives n with some keys replaced. Keys that are wrong, or contradict the rest, have no line: they are not
// of n's file.
func (n *Network) overlaid(part *ast.MappingNode) (*Network, []*Error) {
	top, fault := root.document(n.file, n.data)
	if fault != nil {
		return nil, []*Error{fault} // cannot be: it was read before
	}
	overlay(root, top, part)
	out, faults := inspectDocument(n.file, n.data, top)
	for _, f := range faults {
		f.File, f.Line = "", 0
	}
	return out, faults
}

// overlay puts what part has into dst: a key at a time, an open map that is in the table itself as a whole.
func overlay(s *schema, dst, part *ast.MappingNode) {
	for _, pair := range part.Values {
		name := written(pair.Key)
		inner := s.any
		if f := s.fields[name]; f != nil {
			inner = f
		}
		given, isMap := lookup(dst, name).(*ast.MappingNode)
		deeper, both := pair.Value.(*ast.MappingNode)
		if isMap && both && inner != nil && inner.isMap() && inner.key == nil {
			overlay(inner, given, deeper)
			continue
		}
		put(dst, name, pair)
	}
}

// put replaces an entry of a map, or adds it.
func put(m *ast.MappingNode, name string, pair *ast.MappingValueNode) {
	for i, old := range m.Values {
		if written(old.Key) == name {
			m.Values[i] = pair
			return
		}
	}
	m.Values = append(m.Values, pair)
}
