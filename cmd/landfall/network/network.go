// Package network reads network.yml, the one file an operator writes, and tells a process who it is in it.
//
// Nothing in it is repaired: an unknown key, a value out of bounds and a contradiction are each refused with
// file, line, key and what is allowed. A table (Keys) holds every key with bounds and default; it checks the
// file, fills it, and is the page docs/configuration.md.
package network

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Network is a checked and completed network.yml. It is not changed after loading and may be shared.
type Network struct {
	settings

	file    string
	data    []byte
	checked *checker
}

var root = newSchema(keys)

// Load reads and checks the file. Every refusal is an *Error; one of a missing file is also fs.ErrNotExist.
// Of several faults it is the first.
func Load(path string) (*Network, error) {
	data, err := read(path)
	if err != nil {
		return nil, err
	}
	return Parse(path, data)
}

// Parse is Load of bytes already read; file stands in errors and is where relative paths start.
func Parse(file string, data []byte) (*Network, error) {
	n, faults := inspect(file, data)
	if len(faults) > 0 {
		return nil, faults[0]
	}
	return n, nil
}

// Inspect is Load that goes on after a fault: it returns all it can find, in the order of the file. Whether keys
// contradict each other is seen once each of them is right by itself. The Network is nil when there is a fault.
func Inspect(path string) (*Network, []*Error) {
	data, err := read(path)
	if err != nil {
		return nil, []*Error{err}
	}
	n, faults := inspect(path, data)
	if len(faults) == 0 {
		return n, nil
	}
	slices.SortStableFunc(faults, func(a, b *Error) int { return a.Line - b.Line })
	return nil, faults
}

func read(path string) ([]byte, *Error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{File: path, Code: CodeMissing, Msg: "no such file; allowed: one written after docs/network.yml", cause: err}
	}
	if err != nil {
		return nil, &Error{File: path, Code: CodeMissing, Msg: "cannot be read: " + err.Error(), cause: err}
	}
	return data, nil
}

func inspect(file string, data []byte) (*Network, []*Error) {
	top, fault := root.document(file, data)
	if fault != nil {
		return nil, []*Error{fault}
	}
	return inspectDocument(file, data, top)
}

// inspectDocument checks and completes what was read from data, or made of it.
func inspectDocument(file string, data []byte, top *ast.MappingNode) (*Network, []*Error) {
	n := &Network{file: file, data: data}
	var faults []*Error
	if n.checked, faults = root.read(file, top, &n.settings); len(faults) > 0 {
		return nil, faults
	}
	n.complete()
	return n, n.refuse()
}

// read checks and fills a document, and puts it into a struct. The checker knows where each key stands.
func (s *schema) read(file string, top *ast.MappingNode, into any) (*checker, []*Error) {
	c := &checker{file: file, places: map[string]place{}}
	if c.value(s, "", top, 1); len(c.faults) > 0 {
		return nil, c.faults
	}
	s.fill(top)
	if err := yaml.NodeToValue(top, into, yaml.Strict()); err != nil {
		return nil, []*Error{syntaxError(file, err)}
	}
	return c, nil
}

// document is the file's one map; an empty file is an empty map.
func (s *schema) document(file string, data []byte) (*ast.MappingNode, *Error) {
	parsed, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, syntaxError(file, err)
	}
	if len(parsed.Docs) > 1 {
		return nil, &Error{File: file, Line: beginning(parsed.Docs[1]), Code: CodeSyntax, Msg: "a second document begins; allowed: one"}
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		return emptyMap(), nil
	}
	top, ok := parsed.Docs[0].Body.(*ast.MappingNode)
	if !ok {
		return nil, &Error{File: file, Line: 1, Code: CodeSyntax, Msg: "the file is not a map of keys; allowed: " + s.keysAllowed()}
	}
	return top, nil
}

// beginning is the line on which a document begins; 1 when it has nothing that tells.
func beginning(d *ast.DocumentNode) int {
	switch {
	case d.Start != nil:
		return d.Start.Position.Line
	case d.Body != nil:
		return d.Body.GetToken().Position.Line
	}
	return 1
}

// syntaxError makes one line of what the YAML library says over several.
func syntaxError(file string, err error) *Error {
	e := &Error{File: file, Code: CodeSyntax}
	var y yaml.Error
	if !errors.As(err, &y) {
		e.Msg = "not YAML: " + firstLine(err.Error())
		return e
	}
	if tk := y.GetToken(); tk != nil {
		e.Line = tk.Position.Line
	}
	e.Msg = "not YAML: " + firstLine(y.GetMessage())
	if strings.Contains(e.Msg, "already defined") {
		e.Code, e.Key, e.Msg = CodeDuplicateKey, y.GetToken().Value, "is given twice; allowed: once"
	}
	return e
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// complete fills what depends on another key of the file.
func (n *Network) complete() {
	for id, h := range n.Hosts {
		if h.PublicAddress == "" {
			h.PublicAddress = h.Advertise
		}
		n.Hosts[id] = h
	}
	for label, t := range n.LoadBalancer.Terms {
		if t.Input == "" {
			t.Input = label
		}
		t.Curve.complete()
		n.LoadBalancer.Terms[label] = t
	}
}

// refuse finds what no single key shows: contradictions, and what this version does not carry out.
func (n *Network) refuse() []*Error {
	j := &judge{Network: n}
	j.checkTerms()
	if !n.Network.Enabled {
		return j.faults
	}
	for _, rule := range rules {
		rule(j)
	}
	j.unsupported()
	return j.faults
}

// Enabled tells whether anything may be opened, started or written at all.
func (n *Network) Enabled() bool { return n.Network.Enabled }

// Direct tells whether the hosts of backends dispatch too: for players who do not come over an edge or relay of ours.
func (n *Network) Direct() bool {
	switch n.Routing.DispatchMode {
	case "direct":
		return true
	case "proxy":
		return false
	default:
		return !n.HasFront()
	}
}

// HasFront tells whether players may come over an edge or a relay of ours.
func (n *Network) HasFront() bool {
	for _, h := range n.Hosts {
		if h.IsEdge() || h.IsRelay() {
			return true
		}
	}
	return false
}

// HasAPI tells whether any host lets programs in.
func (n *Network) HasAPI() bool {
	for _, h := range n.Hosts {
		if h.IsAPI() {
			return true
		}
	}
	return false
}

// Dispatches tells whether any host of the file moves players.
func (n *Network) Dispatches() bool {
	if n.Direct() {
		return true
	}
	for _, h := range n.Hosts {
		if h.IsEdge() && !h.IsRouter() || h.IsRelay() {
			return true
		}
	}
	return false
}

// File resolves a path that network.yml names: relative ones start where network.yml lies.
func (n *Network) File(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(n.file), path)
}

// At makes an Error for a key, with its line, or that of the nearest map around it which the file has.
func (n *Network) At(code, key, format string, args ...any) *Error {
	return &Error{File: n.file, Line: n.LineOf(key), Key: key, Msg: fmt.Sprintf(format, args...), Code: code}
}

// LineOf is where the file has a key, or the nearest map around it.
func (n *Network) LineOf(key string) int { return n.checked.lineOf(key) }

func (c *checker) lineOf(key string) int {
	for path := key; path != ""; {
		if p, ok := c.places[path]; ok {
			return p.line
		}
		i := strings.LastIndexAny(path, ".[")
		if i < 0 {
			break
		}
		path = path[:i]
	}
	return 1
}
