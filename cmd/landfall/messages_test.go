package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// TestMessagesAreRead from the file that is named and the translations beside it.
func TestMessagesAreRead(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"messages.yml":       "transfer.arrived: there\nrefused: \"no ({code})\"\n",
		"messages.de.yml":    "transfer.arrived: da\nlength.minutes: \"{n} Minuten\"\n",
		"messages.de-AT.yml": "transfer.none: nix\n",
		"messages.yml.bak":   "no: message\n",
		"other.fr.yml":       "no: message\n",
	} {
		write(t, filepath.Join(dir, name), text)
	}
	got, err := readMessages(filepath.Join(dir, "messages.yml"))
	if err != nil {
		t.Fatal(err)
	}
	shipped := actors.ShippedMessages()
	position := []events.Arg{{Name: "eta", Value: "300"}, {Name: "position", Value: "3"}}
	for _, c := range []struct {
		locale, key string
		args        []events.Arg
		want        string
	}{
		{"", "transfer.arrived", nil, "there"},
		{"de", "transfer.arrived", nil, "da"},
		{"de_at", "transfer.arrived", nil, "da"},
		{"de_at", "transfer.none", nil, "nix"},
		{"fr", "transfer.none", nil, shipped["transfer.none"]},
		{"de_at", "transfer.position", position, "You are number 3 in line (wait: 5 Minuten)."},
		{"de", "refused.NEW", nil, "no (NEW)"},
	} {
		if got := got.In(c.locale).Text(c.key, c.args); got != c.want {
			t.Errorf("%s in %q is %q, want %q", c.key, c.locale, got, c.want)
		}
	}
	for _, path := range []string{"", filepath.Join(dir, "none.yml"), filepath.Join(dir, "nowhere", "none.yml")} {
		if got, err := readMessages(path); err != nil || len(got) != 1 || got[""]["transfer.arrived"] != shipped["transfer.arrived"] {
			t.Errorf("%q: %v, %v", path, got, err)
		}
	}
}

// TestBadMessagesAreRefused with file, line and what was meant, all at once.
func TestBadMessagesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		file, text, says string
	}{
		"a list":                {"messages.yml", "- a\n", "messages.yml:1: want a flat list of key: text: the file holds something else"},
		"nested":                {"messages.yml", "\nfailed:\n  KILL_SWITCH: x\n", "messages.yml:2: want a flat list of key: text: failed has no text"},
		"no text":               {"messages.yml", "failed:\n", "messages.yml:1: want a flat list of key: text: failed has no text"},
		"a key twice":           {"messages.yml", "failed: x\nfailed: y\n", "messages.yml:2: failed: is given twice"},
		"not YAML":              {"messages.yml", "failed: [", "messages.yml:1: want a flat list of key: text"},
		"an unknown key":        {"messages.yml", "failed: x\nfailed.AGEDOUT: y\n", `messages.yml:2: failed.AGEDOUT: no message has this key, did you mean "failed.AGED_OUT"?`},
		"nothing like it":       {"messages.yml", "hello.world: y\n", `messages.yml:1: hello.world: no message has this key; docs`},
		"an unknown name":       {"messages.yml", "transfer.position: \"{postion}\"\n", `{postion} does not come with it, did you mean "position"?; allowed in braces: eta, position`},
		"a name of another key": {"messages.yml", "transfer.none: \"{eta}\"\n", "{eta} does not come with it; this message may name nothing in braces"},
		"an open brace":         {"messages.yml", "transfer.position: \"{eta\"\n", "{eta does not come with it"},
		"a lone brace":          {"messages.yml", "transfer.position: \"eta}\"\n", "} does not come with it"},
		"a translation":         {"messages.de.yml", "# neu\nfaild: y\n", `messages.de.yml:2: faild: no message has this key, did you mean "failed"?`},
		"no locale":             {"messages.german.yml", "", `messages.german.yml: "german" is no locale: want`},
		"a locale twice":        {"messages.PT_BR.yml", "", "messages.pt-BR.yml: is the same locale as messages.PT_BR.yml"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "messages.pt-BR.yml"), "")
			write(t, filepath.Join(dir, c.file), c.text)
			got, err := readMessages(filepath.Join(dir, "messages.yml"))
			if err == nil || !strings.Contains(err.Error(), c.says) || len(single(err)) != 1 {
				t.Errorf("%v, %v; want one fault with %q", got, err, c.says)
			}
		})
	}
}
