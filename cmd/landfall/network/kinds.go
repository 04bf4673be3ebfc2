package network

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Kind says what a value is; the zero Kind is Text.
type Kind int

const (
	Text Kind = iota
	Bool
	Int
	Number
	Length // a length of time, such as 720h
	Choice // one of Key.Choices
	ID
	IDs
	Words
	Nodes
	Players
	Path
	EnvName
	Domain
	Address // host:port
	Listen  // host:port or :port
	StoreURL
	Policy
	World
	Column // [x, z]
	CIDRs
	Map
)

const idPattern = `[A-Za-z0-9_-]{1,63}`

var (
	idForm     = regexp.MustCompile(`^` + idPattern + `$`)
	wordForm   = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)
	envForm    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	domainForm = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	worldForm  = regexp.MustCompile(`^[a-z0-9_.-]+:[a-z0-9_./-]+$`)
	lineForm   = regexp.MustCompile(`^[^\r\n\x00]*$`)
)

// form is how a kind of text looks: the test for it, and the words that say so.
type form struct {
	fits    func(string) bool
	allowed string
}

var forms = map[Kind]form{
	Text:     {lineForm.MatchString, "one line of text"},
	Path:     {lineForm.MatchString, "the path of a file or directory"},
	ID:       {idForm.MatchString, idPattern},
	Words:    {wordForm.MatchString, "a list of [a-z0-9_-]{1,32}"},
	Nodes:    {isNode, "a list of " + allowedNodes},
	Players:  {isPlayer, "a list of names and UUIDs, in quotes when a name is a number"},
	IDs:      {idForm.MatchString, "a list of " + idPattern},
	EnvName:  {envForm.MatchString, "the name of an environment variable"},
	Domain:   {domainForm.MatchString, "a host name, such as play.example.net"},
	Address:  {func(s string) bool { return isAddress(s, false) }, "host:port"},
	Listen:   {func(s string) bool { return isAddress(s, true) }, "host:port or :port"},
	StoreURL: {isStoreURLs, "nats://host:port or tls://host:port, several separated by commas"},
	Policy:   {isPolicy, "weighted, roundRobin, leastPlayers, fixed:<serverId>"},
	World:    {worldForm.MatchString, "a dimension, such as minecraft:overworld"},
	CIDRs:    {isCIDR, "a list of networks, such as 10.0.0.0/8"},
}

// Allowed says in words what the key may hold; it stands in errors and in the documentation.
func (k Key) Allowed() string {
	switch k.Kind {
	case Bool:
		return "true, false"
	case Int, Number:
		if k.Min == k.Max {
			return plain(k.Min)
		}
		return strings.TrimSpace(fmt.Sprintf("%s..%s %s", plain(k.Min), plain(k.Max), k.Unit))
	case Length:
		return fmt.Sprintf("%s..%s, such as 90m or 720h", hours(k.Min), hours(k.Max))
	case Choice:
		return strings.Join(k.Choices, ", ")
	case Column:
		return fmt.Sprintf("[x, z] in whole blocks, each %s..%s", plain(k.Min), plain(k.Max))
	case Map:
		return "a map"
	default:
		return forms[k.Kind].allowed
	}
}

func plain(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func hours(seconds float64) string {
	text := (time.Duration(seconds) * time.Second).String()
	return strings.TrimSuffix(strings.TrimSuffix(text, "0s"), "0m")
}

// check judges a leaf; nil means that the value may stand.
func (k Key) check(n ast.Node) *refusal {
	switch k.Kind {
	case Bool:
		if _, ok := n.(*ast.BoolNode); !ok {
			return k.wrongType(n, "true or false")
		}
		return nil
	case Int:
		return k.checkInt(n)
	case Number:
		return k.checkNumber(n)
	case Length:
		return k.checkLength(n)
	case Choice:
		return k.checkChoice(n)
	case Column:
		return k.checkColumn(n)
	case IDs, Words, CIDRs, Nodes, Players:
		return k.checkList(n)
	default:
		return k.checkText(n)
	}
}

func (k Key) checkInt(n ast.Node) *refusal {
	if _, ok := n.(*ast.IntegerNode); !ok {
		return k.wrongType(n, "a whole number")
	}
	return k.checkNumber(n)
}

func (k Key) checkNumber(n ast.Node) *refusal {
	value, ok := number(n)
	if !ok {
		return k.wrongType(n, "a number")
	}
	if value < k.Min || value > k.Max {
		return k.outOfBounds(n)
	}
	return nil
}

func number(n ast.Node) (float64, bool) {
	switch n := n.(type) {
	case *ast.FloatNode:
		return n.Value, true
	case *ast.IntegerNode:
		switch v := n.Value.(type) {
		case int64:
			return float64(v), true
		case uint64:
			return float64(v), true
		}
	}
	return 0, false
}

func (k Key) checkLength(n ast.Node) *refusal {
	text, ok := n.(*ast.StringNode)
	if !ok {
		return k.wrongType(n, "a length of time")
	}
	length, err := time.ParseDuration(text.Value)
	if err != nil {
		return k.wrongType(n, "a length of time")
	}
	if s := length.Seconds(); s < k.Min || s > k.Max {
		return k.outOfBounds(n)
	}
	return nil
}

// checkChoice compares what is written, so that the choices of a number (replicas) work like those of a word.
func (k Key) checkChoice(n ast.Node) *refusal {
	if _, scalar := n.(ast.ScalarNode); !scalar {
		return k.wrongType(n, "one word")
	}
	if word := written(n); !slices.Contains(k.Choices, word) {
		return &refusal{CodeOutOfBounds, shown(n) + " is not allowed" + Meant(Nearest(word, k.Choices)), k.Allowed()}
	}
	return nil
}

func (k Key) checkText(n ast.Node) *refusal {
	text, ok := n.(*ast.StringNode)
	if !ok {
		return k.wrongType(n, "text (put it in quotes)")
	}
	if text.Value == "" && k.Default == `""` {
		return nil
	}
	if text.Value == "" || !forms[k.Kind].fits(text.Value) {
		return k.outOfBounds(n)
	}
	return nil
}

func (k Key) checkList(n ast.Node) *refusal {
	list, ok := n.(*ast.SequenceNode)
	if !ok {
		return k.wrongType(n, "a list")
	}
	for _, item := range list.Values {
		text, ok := item.(*ast.StringNode)
		if !ok || !forms[k.Kind].fits(text.Value) {
			return k.outOfBounds(item)
		}
	}
	return nil
}

func (k Key) checkColumn(n ast.Node) *refusal {
	list, ok := n.(*ast.SequenceNode)
	if !ok || len(list.Values) != 2 {
		return k.wrongType(n, "a pair of whole numbers")
	}
	for _, item := range list.Values {
		if refused := k.checkInt(item); refused != nil {
			return refused
		}
	}
	return nil
}

func (k Key) wrongType(n ast.Node, want string) *refusal {
	return &refusal{CodeWrongType, shown(n) + " is not " + want, k.Allowed()}
}

func (k Key) outOfBounds(n ast.Node) *refusal {
	return &refusal{CodeOutOfBounds, shown(n) + " is not allowed", k.Allowed()}
}

// shown is a value as an error quotes it: on one line, not at any length.
func shown(n ast.Node) string {
	switch n := n.(type) {
	case *ast.MappingNode:
		return "a map"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "no value"
	case *ast.StringNode:
		return strconv.Quote(cut(n.Value))
	default:
		return cut(n.GetToken().Value)
	}
}

func cut(s string) string {
	if len(s) > 60 {
		return s[:60] + "…"
	}
	return s
}

// written is a scalar without its quotes.
func written(n ast.Node) string {
	if s, ok := n.(*ast.StringNode); ok {
		return s.Value
	}
	return n.GetToken().Value
}

func isAddress(s string, anyHost bool) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || (host == "" && !anyHost) {
		return false
	}
	if host != "" && !domainForm.MatchString(host) {
		if _, err := netip.ParseAddr(host); err != nil {
			return false
		}
	}
	// Port 0 lets the system choose one; tests and networks in one process use it.
	p, err := strconv.ParseUint(port, 10, 16)
	return err == nil && strconv.FormatUint(p, 10) == port
}

func isStoreURLs(s string) bool {
	for part := range strings.SplitSeq(s, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || (u.Scheme != "nats" && u.Scheme != "tls") || u.User != nil || u.Path != "" || !isAddress(u.Host, false) {
			return false
		}
	}
	return true
}

// OnThisMachine tells whether only this machine can reach the store.
func (s Store) OnThisMachine() bool {
	for part := range strings.SplitSeq(s.URL, ",") {
		u, err := url.Parse(strings.TrimSpace(part))
		if err != nil || !isLoopback(u.Host) {
			return false
		}
	}
	return true
}

func isPolicy(s string) bool {
	if id, fixed := strings.CutPrefix(s, "fixed:"); fixed {
		return idForm.MatchString(id)
	}
	return slices.Contains([]string{"weighted", "roundRobin", "leastPlayers"}, s)
}

func isCIDR(s string) bool {
	_, err := netip.ParsePrefix(s)
	return err == nil
}

// isLoopback tells whether only this machine can reach the address.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || (err == nil && ip.IsLoopback())
}
