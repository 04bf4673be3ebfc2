package network

import (
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// merged are the open maps where the file's entries come beside the default ones; elsewhere they replace them.
var merged = map[string]bool{"loadBalancer.terms": true}

// whole are the maps that a default never completes: half of one curve and half of another is neither.
var whole = map[string]bool{"curve": true, "normalize": true}

// fill completes a map of the file with what it leaves out.
func (s *schema) fill(m *ast.MappingNode) {
	for _, name := range s.names {
		field := s.fields[name]
		if given := lookup(m, name); given != nil {
			field.fillValue(given)
		} else if n := field.defaultNode(); n != nil {
			m.Values = append(m.Values, pairOf(name, n))
		}
	}
	if s.any != nil {
		for _, pair := range m.Values {
			s.any.fillValue(pair.Value)
		}
	}
}

func (s *schema) fillValue(n ast.Node) {
	switch n := n.(type) {
	case *ast.MappingNode:
		if s.key != nil && merged[s.key.Path] {
			complete(n, s.parsedDefault())
		}
		s.fill(n)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			if m, ok := item.(*ast.MappingNode); ok && s.items != nil {
				s.items.fill(m)
			}
		}
	}
}

// defaultNode is the value of a key that the file leaves out; nil when it then stays empty.
func (s *schema) defaultNode() ast.Node {
	if s.key != nil && s.key.Default != "" {
		n := s.parsedDefault()
		s.fillValue(n)
		return n
	}
	if len(s.fields) == 0 {
		return nil
	}
	m := emptyMap()
	s.fill(m)
	if len(m.Values) == 0 {
		return nil
	}
	return m
}

func (s *schema) parsedDefault() ast.Node { return parseValue(s.key.Default) }

// complete adds to dst what only the default has, entry by entry.
func complete(dst *ast.MappingNode, def ast.Node) {
	for _, pair := range def.(*ast.MappingNode).Values {
		name := pair.Key.(*ast.StringNode).Value
		given := lookup(dst, name)
		if given == nil {
			dst.Values = append(dst.Values, pair)
			continue
		}
		inner, isMap := given.(*ast.MappingNode)
		if deeper, ok := pair.Value.(*ast.MappingNode); ok && isMap && !whole[name] {
			complete(inner, deeper)
		}
	}
}

func lookup(m *ast.MappingNode, name string) ast.Node {
	for _, pair := range m.Values {
		if key, ok := pair.Key.(*ast.StringNode); ok && key.Value == name {
			return pair.Value
		}
	}
	return nil
}

func pairOf(name string, value ast.Node) *ast.MappingValueNode {
	pair := parseDocument(name + ": 0").(*ast.MappingNode).Values[0]
	pair.Value = value
	return pair
}

func parseValue(text string) ast.Node {
	return parseDocument("v: " + text).(*ast.MappingNode).Values[0].Value
}

// parseDocument reads YAML of our own tables; a fault in it is a fault in the program, found by any test.
func parseDocument(text string) ast.Node {
	f, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		panic("network: table of keys: " + err.Error())
	}
	return f.Docs[0].Body
}

func emptyMap() *ast.MappingNode { return parseValue("{}").(*ast.MappingNode) }
