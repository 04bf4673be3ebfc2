package network

import (
	"reflect"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// feature is a key whose meaning this version does not carry out. Values tells which: nil is any that differs
// from the key's default. Remove the row with the commit that makes the feature work.
type feature struct {
	Key    string
	Values []string
	Remedy string
}

// refused would be missed badly: safety, or the whole purpose of the host. The file is refused.
var refused = []feature{
	{Key: "telemetry.otlp", Remedy: `""`},
	{Key: "hosts.<id>.relay.listen", Remedy: `""`},
}

// later works without: accepted, checked, and told in the log (NotYet).
var later = []feature{
	{Key: "hosts.<id>.log"},
}

// unsupported refuses a file that relies on one of the refused features.
func (j *judge) unsupported() {
	if j.Store.Mode == "embedded" && j.Store.Replicas == 3 {
		j.fault(CodeNotYet, "store.replicas", "three copies of an embedded store are not in this version; allowed: 1, or store.mode: external")
	}
	for _, f := range refused {
		for _, path := range j.asks(f) {
			j.fault(CodeNotYet, path, "%s is not in this version; allowed: %s", shown(j.checked.places[path].value), f.Remedy)
		}
	}
}

// NotYet lists, in the order of the file, the keys it sets which this version accepts without acting on them.
// Log each once at the start.
func (n *Network) NotYet() []string {
	wanted := map[string]bool{}
	for _, f := range later {
		for _, path := range n.asks(f) {
			wanted[path] = true
		}
	}
	var keys []string
	for _, path := range n.checked.order {
		if wanted[path] {
			keys = append(keys, path)
		}
	}
	return keys
}

// asks returns the paths in the file that ask for the feature.
func (n *Network) asks(f feature) []string {
	var found []string
	row := pathPattern(f.Key)
	for _, path := range n.checked.order {
		if row.MatchString(path) && f.asked(path, n.checked.places[path].value) {
			found = append(found, path)
		}
	}
	return found
}

func (f feature) asked(path string, value ast.Node) bool {
	if f.Values == nil {
		return !isDefault(f.Key, path, value)
	}
	for _, v := range f.Values {
		if written(value) == v {
			return true
		}
	}
	return false
}

// isDefault compares the values, so that a spelt-out default is not told as a wish.
func isDefault(row, path string, value ast.Node) bool {
	want := defaultAt(row, path)
	if want == nil {
		return false
	}
	return reflect.DeepEqual(plainValue(value), plainValue(want))
}

// defaultAt is what the key of a table's row holds when the file leaves it out; nil if that is nothing.
func defaultAt(row, path string) ast.Node {
	if label, isTerm := strings.CutPrefix(path, "loadBalancer.terms."); isTerm {
		shipped := root.fields["loadBalancer"].fields["terms"].defaultNode()
		return lookup(shipped.(*ast.MappingNode), label)
	}
	for _, k := range keys {
		if k.Path == row && k.Default != "" {
			return parseValue(k.Default)
		}
	}
	return nil
}

// plainValue is a node without positions, quotes and the difference between 1 and 1.0.
func plainValue(n ast.Node) any {
	if value, ok := number(n); ok {
		return value
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		fields := map[string]any{}
		for _, pair := range n.Values {
			fields[written(pair.Key)] = plainValue(pair.Value)
		}
		return fields
	case *ast.SequenceNode:
		items := []any{}
		for _, item := range n.Values {
			items = append(items, plainValue(item))
		}
		return items
	default:
		return written(n)
	}
}
