package network

import (
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"slices"
	"sync"
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

// pushable tells that operators may replace the key for the whole network. A path leads to each host's own file.
func (k *Key) pushable() bool { return k.Live && k.Kind != Path }

// Pushable is the part of the configuration that operators may replace for the whole network, as it holds, in YAML
// that is the same for the same values.
func (n *Network) Pushable() string { return n.excerpt((*Key).pushable) }

// WithPushed gives n with the keys that operators pushed in place of its own. What they pushed is refused as a whole
// when a key is not known here, cannot change here while a host runs, is out of bounds, or contradicts the rest.
func (n *Network) WithPushed(text string) (*Network, []*Error) {
	part, fault := root.document("", []byte(text))
	if fault != nil {
		return nil, []*Error{fault}
	}
	c := &checker{places: map[string]place{}}
	c.value(root, "", part, 1)
	for _, path := range c.order {
		if !mayPush(path) {
			c.refuse(path, c.places[path].line, refusal{CodeNotPushable, "cannot be replaced while hosts run", "the keys marked live in docs/configuration.md, without paths of files"})
		}
	}
	if len(c.faults) > 0 {
		return nil, c.faults
	}
	return n.overlaid(part)
}

// mayPush tells that the value at a path of the file may be pushed, or that it is a map with keys of its own.
func mayPush(path string) bool {
	for i := range keys {
		if k := &keys[i]; pathPattern(k.Path).MatchString(path) {
			return k.pushable()
		}
	}
	return true
}

// Section is a part of the configuration, as a hash that is the same for the same values.
type Section struct{ Name, Hash string }

// Fixed are, by the top keys of the file, the values that must be the same on every host and need a restart to change;
// Pushables those that can be replaced. What holds nothing but defaults is left out.
func (n *Network) Fixed() []Section {
	return n.sections(func(k *Key) bool {
		return !k.pushable() && k.Path != "network.serverId" && k.Path != "network.proxyId"
	})
}

// Pushables are the sections of what Pushable gives; see Fixed.
func (n *Network) Pushables() []Section { return n.sections((*Key).pushable) }

// defaults are a file without a key.
var defaults = sync.OnceValue(func() *Network {
	n, err := Parse("", nil)
	if err != nil {
		panic("network: the defaults are refused: " + err.Error()) // any test finds it
	}
	return n
})

func (n *Network) sections(wanted func(*Key) bool) []Section {
	out := []Section{}
	for _, name := range slices.Sorted(slices.Values(root.names)) {
		text := n.section(name, wanted)
		if text == defaults().section(name, wanted) {
			continue
		}
		sum := sha256.Sum256([]byte(text))
		out = append(out, Section{Name: name, Hash: hex.EncodeToString(sum[:4])})
	}
	return out
}

func (n *Network) section(name string, wanted func(*Key) bool) string {
	return yamlOf(excerptOf(root.fields[name], fieldOf(reflect.ValueOf(n.settings), name), wanted))
}

// excerpt is the part of the configuration whose rows are wanted, as it holds, in YAML that is the same for the same
// values. An open map whose row is wanted stands there whole.
func (n *Network) excerpt(wanted func(*Key) bool) string {
	part, _ := excerptOf(root, reflect.ValueOf(n.settings), wanted).(yaml.MapSlice)
	return yamlOf(part)
}

func yamlOf(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		panic("network: write YAML: " + err.Error()) // plain values, all of which were read from YAML
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
	case s.items != nil:
		return excerptOfList(s, v, wanted)
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

func excerptOfList(s *schema, v reflect.Value, wanted func(*Key) bool) any {
	var out []any
	for i := range v.Len() {
		if value := excerptOf(s.items, v.Index(i), wanted); value != nil {
			out = append(out, value)
		}
	}
	if out == nil {
		return nil
	}
	return out
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
