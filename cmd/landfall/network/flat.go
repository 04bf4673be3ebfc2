package network

import (
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Entry is one key of a flat file, and where it stands.
type Entry struct {
	Key, Text string
	Line      int
}

// Flat reads another file that the operator wrote, a flat list of key: text, in its order.
// want says so to who wrote something else.
func Flat(file, want string, data []byte) ([]Entry, error) {
	refuse := func(line int, problem string) error {
		return &Error{File: file, Line: line, Code: CodeSyntax, Msg: want + ": " + problem}
	}
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		e := syntaxError(file, err)
		if e.Code != CodeDuplicateKey {
			e.Msg = want + ": " + strings.TrimPrefix(e.Msg, "not YAML: ")
		}
		return nil, e
	}
	if len(parsed.Docs) > 1 {
		return nil, refuse(parsed.Docs[1].GetToken().Position.Line, "a second document begins")
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		return nil, nil
	}
	top, ok := parsed.Docs[0].Body.(*ast.MappingNode)
	if !ok {
		return nil, refuse(1, "the file holds something else")
	}
	var out []Entry
	for _, pair := range top.Values {
		e := Entry{Line: pair.Key.GetToken().Position.Line}
		_, scalar := pair.Value.(ast.ScalarNode)
		if _, empty := pair.Value.(*ast.NullNode); !scalar || empty {
			return nil, refuse(e.Line, pair.Key.String()+" has no text")
		}
		if err := yaml.NodeToValue(pair.Key, &e.Key); err != nil {
			return nil, refuse(e.Line, "a key is no text")
		}
		if e.Text, err = textOf(pair.Value); err != nil {
			return nil, refuse(e.Line, e.Key+" has no text")
		}
		out = append(out, e)
	}
	return out, nil
}

// textOf is a scalar as text: what YAML takes for a number or a truth is the text that stands there.
func textOf(n ast.Node) (text string, err error) {
	switch n.(type) {
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, nil
	default:
		err = yaml.NodeToValue(n, &text)
		return text, err
	}
}
