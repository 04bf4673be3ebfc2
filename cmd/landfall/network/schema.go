package network

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// schema is the table of keys as a tree, in the shape of the file.
type schema struct {
	key    *Key // of a leaf, or of a map that is itself in the table
	names  []string
	fields map[string]*schema
	open   string  // "<id>", "<host>", …: what the keys of an open map are
	any    *schema // their values
	items  *schema // of a list of maps
}

// keyForms says which keys an open map may have.
var keyForms = map[string]form{
	"<id>":      {idForm.MatchString, idPattern},
	"<term>":    {idForm.MatchString, idPattern},
	"<node>":    {isNode, allowedNodes},
	"<host>":    {func(s string) bool { return s == "" || domainForm.MatchString(s) }, `a host name, or "" for any`},
	"<address>": {func(s string) bool { return isAddress(s, true) }, "host:port or :port"},
}

func newSchema(rows []Key) *schema {
	root := &schema{}
	for i := range rows {
		root.add(&rows[i])
	}
	return root
}

func (s *schema) add(k *Key) {
	for part := range strings.SplitSeq(k.Path, ".") {
		name, list := strings.CutSuffix(part, "[]")
		s = s.child(name)
		if list {
			if s.items == nil {
				s.items = &schema{}
			}
			s = s.items
		}
	}
	s.key = k
}

func (s *schema) child(name string) *schema {
	if _, open := keyForms[name]; open {
		s.open = name
		if s.any == nil {
			s.any = &schema{}
		}
		return s.any
	}
	if s.fields[name] == nil {
		if s.fields == nil {
			s.fields = map[string]*schema{}
		}
		s.fields[name] = &schema{}
		s.names = append(s.names, name)
	}
	return s.fields[name]
}

func (s *schema) isMap() bool { return len(s.fields) > 0 || s.any != nil }

// place is where the file has a key.
type place struct {
	line  int
	value ast.Node
}

// checker walks the file beside the schema, notes where every key stands, and every fault.
type checker struct {
	file   string
	places map[string]place
	order  []string
	faults []*Error
}

func (c *checker) refuse(path string, line int, r refusal) {
	c.faults = append(c.faults, &Error{File: c.file, Line: line, Key: path, Msg: r.message(), Code: r.code})
}

func (c *checker) value(s *schema, path string, n ast.Node, line int) {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		c.refuse(path, line, refusal{CodeSyntax, "anchors, aliases and tags are not used in this file", "plain values"})
		return
	}
	switch {
	case s.items != nil:
		c.list(s, path, n, line)
	case s.isMap():
		c.mapping(s, path, n, line)
	default:
		if refused := s.key.check(n); refused != nil {
			c.refuse(path, line, *refused)
		}
	}
}

func (c *checker) list(s *schema, path string, n ast.Node, line int) {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		c.refuse(path, line, refusal{CodeWrongType, shown(n) + " is not a list", "a list of maps"})
		return
	}
	for i, item := range list.Values {
		c.value(s.items, fmt.Sprintf("%s[%d]", path, i), item, item.GetToken().Position.Line)
	}
}

func (c *checker) mapping(s *schema, path string, n ast.Node, line int) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		c.refuse(path, line, refusal{CodeWrongType, shown(n) + " is not a map", s.keysAllowed()})
		return
	}
	seen := map[string]bool{}
	for _, pair := range m.Values {
		c.pair(s, path, pair, seen)
	}
	for _, name := range s.names {
		if k := s.fields[name].key; k != nil && k.Required && !seen[name] {
			c.refuse(join(path, name), line, refusal{CodeRequired, "is missing", k.Allowed()})
		}
	}
}

func (c *checker) pair(s *schema, path string, pair *ast.MappingValueNode, seen map[string]bool) {
	line := pair.Key.GetToken().Position.Line
	key, ok := pair.Key.(*ast.StringNode)
	if !ok {
		c.refuse(join(path, pair.Key.GetToken().Value), line, refusal{CodeWrongType, "the key is not text (put it in quotes)", s.keysAllowed()})
		return
	}
	inner := join(path, key.Value)
	if seen[key.Value] {
		c.refuse(inner, line, refusal{CodeDuplicateKey, "is given twice", "once"})
		return
	}
	seen[key.Value] = true
	next := s.fields[key.Value]
	if next == nil && s.any != nil {
		if !keyForms[s.open].fits(key.Value) {
			c.refuse(inner, line, refusal{CodeOutOfBounds, fmt.Sprintf("the key %q is not allowed", cut(key.Value)), keyForms[s.open].allowed})
			return
		}
		next = s.any
	}
	if next == nil {
		c.refuse(inner, line, refusal{CodeUnknownKey, "unknown key" + Meant(Nearest(key.Value, s.names)), s.keysAllowed()})
		return
	}
	c.places[inner] = place{line, pair.Value}
	c.order = append(c.order, inner)
	c.value(next, inner, pair.Value, line)
}

func (s *schema) keysAllowed() string {
	if s.any != nil {
		return "a map by " + s.open
	}
	return strings.Join(s.names, ", ")
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// pathPattern makes the test whether a concrete path is one that a row of a table names.
func pathPattern(row string) *regexp.Regexp {
	wild := strings.NewReplacer(`<id>`, `[^.]+`, `<term>`, `[^.]+`, `<node>`, `.+`, `<host>`, `.*`, `<address>`, `.+`, `\[\]`, `\[\d+\]`)
	return regexp.MustCompile(`^` + wild.Replace(regexp.QuoteMeta(row)) + `$`)
}
