package actors

import (
	_ "embed" // the shipped message file
	"fmt"
	"maps"
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

// Text renders a message. An unknown key of a family ("failed.X") falls back to the
// family's own text ("failed"), which names the code.
func (m Messages) Text(key string, args []events.Arg) string {
	text, ok := m[key]
	if !ok {
		family, code, _ := strings.Cut(key, ".")
		text, ok = m[family]
		if !ok {
			return key
		}
		text = strings.ReplaceAll(text, "{code}", code)
	}
	for _, a := range args {
		text = strings.ReplaceAll(text, "{"+a.Name+"}", a.Value)
	}
	return text
}
