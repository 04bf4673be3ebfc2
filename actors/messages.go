package actors

import (
	_ "embed" // the shipped message file
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/landfall/landfall/events"
)

//go:embed messages.yml
var shippedMessages []byte

// Messages are the texts that players see, by key. Placeholders are {name}.
type Messages map[string]string

// ShippedMessages are the texts of the program itself.
func ShippedMessages() Messages {
	m, err := ParseMessages(shippedMessages)
	if err != nil {
		panic("shipped messages: " + err.Error()) // a test reads this file
	}
	return m
}

// ParseMessages reads a message file: a flat map of keys to texts.
func ParseMessages(data []byte) (Messages, error) {
	var m Messages
	if err := yaml.UnmarshalWithOptions(data, &m, yaml.Strict()); err != nil {
		return nil, fmt.Errorf("messages: want a flat list of key: text: %w", err)
	}
	return m, nil
}

// With gives these texts, replaced by those of other where it has them.
func (m Messages) With(other Messages) Messages {
	out := make(Messages, len(m))
	maps.Copy(out, m)
	maps.Copy(out, other)
	return out
}

// placeholders are the arguments that come with a message: those of its key, else those of
// the family of its key.
var placeholders = map[string][]string{
	"transfer":          {},
	"transfer.active":   {"state"},
	"transfer.position": {"eta", "position"},
	"transfer.stopped":  {"eta", "position"},
	"transfer.paused":   {"eta", "position"},
	"transfer.resumed":  {"eta", "position"},
	"refused":           {"code", "detail"},
	"failed":            {"code", "detail", "region", "server"},
	"token":             {"code"},
	"login":             {},
	"login.waiting":     {"keep", "position"},
	"status":            {"network"},
	"length":            {"n"},
	"length.unknown":    {},

	"refused.COOLDOWN":      {"code", "detail", "wait"},
	"refused.LIMIT_REACHED": {"code", "detail", "wait"},
}

// Placeholders gives the arguments that come with a message, by name.
func Placeholders(key string) []string {
	if own, ok := placeholders[key]; ok {
		return own
	}
	family, _, _ := strings.Cut(key, ".")
	return placeholders[family]
}

// Text renders a message. An unknown key of a family ("failed.X") falls back to the
// family's own text ("failed"), which names the code. An argument that did not come is empty,
// or a length that nobody knows.
func (m Messages) Text(key string, args []events.Arg) string {
	text, ok := m[key]
	family, code, _ := strings.Cut(key, ".")
	if !ok {
		if text, ok = m[family]; !ok {
			return key
		}
	}
	args = append(slices.Clone(args), events.Arg{Name: "code", Value: code})
	for _, name := range Placeholders(key) {
		args = append(args, events.Arg{Name: name})
	}
	pairs := make([]string, 0, 2*len(args))
	for _, a := range args {
		pairs = append(pairs, "{"+a.Name+"}", m.value(a))
	}
	return strings.NewReplacer(pairs...).Replace(text) // the first of a name holds
}

// value is an argument as a player reads it.
func (m Messages) value(a events.Arg) string {
	if slices.Contains(lengths, a.Name) {
		return m.length(a.Value)
	}
	return a.Value
}
