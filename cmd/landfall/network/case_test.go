package network

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// Cases of configuration that others met in the field.

// fault is the one fault of a file; the test ends when there is another number of them.
func fault(t *testing.T, text string) *Error {
	t.Helper()
	_, err := Parse("network.yml", []byte(text))
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want an *Error\n%s", err, text)
	}
	return e
}

// TestCase053_ANameMistyped: one wrong letter in the name of a server made it count as offline for
// ever, and nothing said so. Here a name that nobody bears is refused wherever it stands, with the
// one that was likely meant, and so is a proxy where a game server is meant.
func TestCase053_ANameMistyped(t *testing.T) {
	const wanted = "; allowed: survival-1"
	for key, text := range map[string]string{
		"store.carrier":            strings.Replace(small, "carrier: proxy-1", "carrier: %s", 1),
		"edge.fallback":            strings.Replace(small, "{ domain:", "{ fallback: %s, domain:", 1),
		"edge.backends.%s":         strings.Replace(small, "{ domain:", "{ backends: { %s: \"10.0.0.5:1\" }, domain:", 1),
		"loadBalancer.policy":      small + "loadBalancer: { policy: \"fixed:%s\" }\n",
		"loadBalancer.backends.%s": small + "loadBalancer: { backends: { %s: { weight: 2 } } }\n",
		"routing.lobbies":          small + "routing: { lobbies: [%s] }\n",
	} {
		t.Run(key, func(t *testing.T) {
			named := func(id string) (*Error, string) {
				return fault(t, strings.ReplaceAll(text, "%s", id)), strings.ReplaceAll(key, "%s", id)
			}
			meant, allowed := "survival-1", wanted
			if key == "store.carrier" {
				meant, allowed = "proxy-1", "; allowed: proxy-1, survival-1"
			}
			typo := strings.Replace(meant, "v", "", 1)
			if meant == "proxy-1" {
				typo = "prxy-1"
			}
			e, at := named(typo)
			if want := fmt.Sprintf("%q is not under hosts, did you mean %q?%s", typo, meant, allowed); e.Code != CodeUnknownHost || e.Key != at || e.Msg != want || e.Line == 0 {
				t.Errorf("got  %s %s\nwant %s: %s", e.Code, e, at, want)
			}
			if key == "store.carrier" {
				return // any host may carry it
			}
			e, at = named("proxy-1")
			if want := "proxy-1 is a proxy: players connect to it, and nobody can be sent there" + wanted; e.Code != CodeContradiction || e.Key != at || e.Msg != want {
				t.Errorf("got  %s %s\nwant %s: %s", e.Code, e, at, want)
			}
		})
	}
	t.Run("the id of the host itself", func(t *testing.T) {
		for _, source := range []string{"--id", EnvServerID, EnvProxyID} {
			flag, env := "", environment(source+"=survial-1")
			if source == "--id" {
				flag, env = "survial-1", environment()
			}
			_, err := parse(t, small).Identity(flag, env)
			want := `network.yml:4: hosts: does not list "survial-1", which ` + source + ` names, did you mean "survival-1"?; allowed: proxy-1, survival-1`
			if err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		}
	})
	t.Run("a key", func(t *testing.T) {
		for text, want := range map[string]string{
			"loadBalncer: {}":                                   `loadBalncer: unknown key, did you mean "loadBalancer"?; allowed: `,
			"loadBalancer: { maxRetires: 3 }":                   `loadBalancer.maxRetires: unknown key, did you mean "maxRetries"?; allowed: `,
			"loadBalancer: { terms: { msptt: { weight: 1 } } }": `loadBalancer.terms.msptt: "msptt" is not an input, did you mean "mspt"?; allowed: `,
			"loadBalancer: { onNoCandidate: que }":              `loadBalancer.onNoCandidate: "que" is not allowed, did you mean "queue"?; allowed: `,
			"line: { zzzz: 1 }":                                 `line.zzzz: unknown key; allowed: `,
		} {
			if e := fault(t, small+text+"\n"); !strings.HasPrefix(e.Error(), "network.yml:11: "+want) {
				t.Errorf("got  %s\nwant %s", e, want)
			}
		}
	})
}

// yamlWords are words that YAML readers take for something else than text.
var yamlWords = []string{
	"NO", "no", "on", "Off", "y", "Yes", "true", "FALSE", "null", "Null", "~", "1e3", "0123", "0x1F", "0b11", "0o17", "12", "1_000", "-5", "-0", ".5", "5.", ".inf", ".nan", "1e400",
	"2026-11-30", "12:30:45", "22:22", "=", "<<", "-", "--", "NaN", "9999999999999999999999",
}

// TestCase098_WordsThatAreNoText: a server called NO became false. Here a name that is not in
// quotes is either the text that stands there, letter by letter, or refused with its line.
func TestCase098_WordsThatAreNoText(t *testing.T) {
	const around = "network: { name: test, enabled: true }\nhosts:\n  p: { edges: [ { listen: \":1\" } ] }\n  %s: { advertise: \"127.0.0.1:1\", regions: { %s: {} } }\nedge: { domain: d, fallback: %s }\nrouting: { lobbies: [%s] }\nstore: { carrier: p, url: \"nats://127.0.0.1:1\" }\n"
	taken, refused := 0, 0
	for _, word := range yamlWords {
		for _, written := range []string{word, `"` + word + `"`, "'" + word + "'"} {
			text := strings.ReplaceAll(around, "%s", written)
			n, err := Parse("network.yml", []byte(text))
			if err != nil {
				refused++
				var e *Error
				if !errors.As(err, &e) || e.Line < 3 || e.Line > 6 {
					t.Errorf("%s: %v, want a fault with its line", written, err)
				}
				if written != word && idForm.MatchString(word) {
					t.Errorf("%s: refused although it is in quotes: %v", written, err)
				}
				continue
			}
			taken++
			self, err := n.Identity(word, environment())
			if err != nil || self.ServerID != word || n.Edge.Fallback != word || n.Routing.Lobbies[0] != word || len(n.Hosts[word].Regions) != 1 {
				t.Errorf("%s: %v, %+v, fallback %q, lobbies %q", written, err, n.HostIDs(), n.Edge.Fallback, n.Routing.Lobbies)
			}
			for name := range n.Hosts[word].Regions {
				if name != word {
					t.Errorf("%s: the region is called %q", written, name)
				}
			}
		}
	}
	if taken < 20 || refused < 20 {
		t.Errorf("%d taken, %d refused: too few to tell", taken, refused)
	}
	t.Run("texts", func(t *testing.T) {
		for _, word := range yamlWords {
			entries, err := Flat("messages.yml", "want texts", []byte("a: "+word+"\nb: \""+word+"\"\n"))
			if err != nil {
				var e *Error
				if !errors.As(err, &e) || e.Line != 1 {
					t.Errorf("%s: %v", word, err)
				}
				continue
			}
			for _, x := range entries {
				if x.Text != word {
					t.Errorf("%s is read as %q", word, x.Text)
				}
			}
		}
	})
}

// TestCase101_NothingIsSplit: what stood behind a second colon was dropped. Here values are read
// by a reader of YAML and of URLs, and come out as they were written.
func TestCase101_NothingIsSplit(t *testing.T) {
	values := []string{
		"a:b:c", "http://example.net:80/a#b?c=d&e=f", "# no comment", "a #b", "a: b", "key=value=more", "§6Welcome: to \"us\" 🎉: 1 = 1", "👩‍👩‍👧:👍🏽", "{}", "[a, b]", "%s {0}", `back\slash\n`, "'", "''", " lead", "trail ", "&a", "*a", "!a", "|", ">", "@a", "`a`", "-", "? a", "a\tb", "مرحبا: 1",
	}
	random := rand.New(rand.NewPCG(1, 101))
	for range 300 {
		values = append(values, anyLine(random))
	}
	for _, v := range values {
		want := v
		text := small + "permissions: " + strconv.Quote(v) + "\nmessages: '" + strings.ReplaceAll(v, "'", "''") + "'\n"
		n, err := Parse("network.yml", []byte(text))
		if v == "" {
			continue
		}
		if err != nil || n.Permissions != want || n.Messages != want {
			t.Errorf("%q: %v, read as %+v", v, err, n)
			continue
		}
		entries, err := Flat("messages.yml", "want texts", []byte("a: "+strconv.Quote(v)+"\n"))
		if err != nil || len(entries) != 1 || entries[0].Text != v {
			t.Errorf("%q: %v, text %+v", v, err, entries)
		}
		for _, s := range n.Settings() {
			if s.Key == "permissions" && !strings.Contains(v, "://") && s.Value != v {
				t.Errorf("%q is shown as %q", v, s.Value)
			}
		}
	}
	n := parse(t, `network: { name: test, enabled: true }
store: { mode: external, url: "nats://[fd00::1]:4222,nats://db-2.example.net:4223" }
edge: { domain: play.example.net, fallback: a, backends: { a: "[fd00::2]:25565" } }
hosts:
  a: { game: tcp, advertise: "[fd00::5]:25566", regions: { default: {} } }
  p: { edges: [ { game: tcp, listen: "[::]:25565", dialled: { "[fd00::9]:25565": a } } ] }
triggers: { join: { map: { "play.example.net": { region: default } } } }
`)
	for got, want := range map[string]string{
		n.Store.URL: "nats://[fd00::1]:4222,nats://db-2.example.net:4223", n.Hosts["a"].Advertise: "[fd00::5]:25566", n.Edge.Backends["a"]: "[fd00::2]:25565",
		n.Hosts["p"].Edges[0].Dialled["[fd00::9]:25565"]: "a", n.Triggers.Join.Map["play.example.net"].Region: "default",
	} {
		if got != want {
			t.Errorf("%q is read as %q", want, got)
		}
	}
}

// anyLine is one line of text, made more of what YAML has a use for than of letters.
func anyLine(random *rand.Rand) string {
	const special = ":#=-?,[]{}&*!|>'\"%@`\\ ~<"
	var b strings.Builder
	for range random.IntN(12) {
		switch random.IntN(4) {
		case 0:
			b.WriteRune(rune('a' + random.IntN(26)))
		case 1:
			if r := rune(random.IntN(0x1F9FF)); unicode.IsGraphic(r) {
				b.WriteRune(r)
			}
		default:
			b.WriteByte(special[random.IntN(len(special))])
		}
	}
	return b.String()
}
