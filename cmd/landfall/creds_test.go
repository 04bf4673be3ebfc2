package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// creds types a verb about keys in a site.
func (s site) creds(t *testing.T, args ...string) outcome {
	t.Helper()
	return typed(t, append(append([]string{"creds"}, args...), "--config", filepath.Join(s.dir, defaultConfig))...)
}

func succeeds(t *testing.T, what string, o outcome) string {
	t.Helper()
	if o.status != statusOK {
		t.Fatalf("%s: status %d, %s%s", what, o.status, o.stdout, o.stderr)
	}
	return o.stdout
}

// TestKeysOfARunningNetwork: each host logs in with its own key, an operator decides with one, and
// a revoked host is cut while the others do not notice.
func TestKeysOfARunningNetwork(t *testing.T) {
	s := initialised(t)
	proxy := s.up(t, "proxy-1", envSecret+"=")
	proxy.says(t, "msg=ready", "carrier=true")
	one, two := s.up(t, "survival-1", envSecret+"="), s.up(t, "survival-2", envSecret+"=")
	for _, l := range []*life{one, two} {
		l.says(t, `msg="store connected"`)
		l.says(t, "msg=ready")
	}
	list := succeeds(t, "list", s.creds(t, "list"))
	for _, want := range []string{"operator             operator", "proxy-1              proxy", "survival-1           backend", "survival-2           backend"} {
		if !strings.Contains(list, want) {
			t.Errorf("list lacks %q:\n%s", want, list)
		}
	}
	config := []string{"--config", filepath.Join(s.dir, defaultConfig)}
	succeeds(t, "kill", typed(t, append([]string{"kill", "on"}, config...)...))
	succeeds(t, "add operator", s.creds(t, "add", "operator", "ada"))
	succeeds(t, "add auditor", s.creds(t, "add", "auditor", "eve"))
	as := func(name string) []string {
		return append([]string{"--key", filepath.Join(s.dir, "creds", name+".nk")}, s.overTLS(t)...)
	}
	succeeds(t, "kill as ada", typed(t, append([]string{"kill", "off"}, as("ada")...)...))
	succeeds(t, "tail as eve", typed(t, append([]string{"tail"}, as("eve")...)...))
	if o := typed(t, append([]string{"kill", "on"}, as("eve")...)...); o.status == statusOK || !strings.Contains(o.stderr, "signed by an operator") {
		t.Errorf("an auditor decides: status %d, %s", o.status, o.stderr)
	}
	if o := s.creds(t, "add", "operator", "bob", "--key", filepath.Join(s.dir, "creds", "ada.nk")); o.status == statusOK || !strings.Contains(o.stderr, "only the operator's own key") {
		t.Errorf("another operator names somebody: status %d, %s", o.status, o.stderr)
	}

	before := len(one.saying("store connection"))
	out := succeeds(t, "revoke", s.creds(t, "revoke", "backend", "survival-2", "--why", "sold"))
	if !strings.Contains(out, "it is cut off") {
		t.Error(out)
	}
	two.says(t, "the store lets this host in no more")
	if said := one.saying("store connection"); len(said) > before {
		t.Errorf("another host noticed: %s", said)
	}
	if again := s.creds(t, "revoke", "backend", "survival-2"); again.status == statusOK {
		t.Errorf("revoked twice: %s", again.stdout)
	}

	succeeds(t, "renew", s.creds(t, "add", "backend", "survival-1", "--renew"))
	one.stop(t)
	again := s.up(t, "survival-1", envSecret+"=")
	again.says(t, "msg=ready")
	succeeds(t, "revoke the earlier one", s.creds(t, "revoke", "backend", "survival-1", "--earlier"))
	if o := s.creds(t, "add", "backend", "survival-1"); !strings.Contains(succeeds(t, "add once more", o), "already") {
		t.Error(o.stdout)
	}
	succeeds(t, "verify", typed(t, append([]string{"verify"}, config...)...))
}

// TestKeysAreRefused where they cannot be what network.yml says.
func TestKeysAreRefused(t *testing.T) {
	s := initialised(t)
	for args, want := range map[string]string{
		"add proxy survival-1":        "is to be a backend: it is a game server's host",
		"add backend proxy-1":         "is to be a proxy: it moves players",
		"add backend survival-9":      "is not under hosts",
		"add operator survival-1":     "is a host of network.yml",
		"add operator operator":       "is the operator's own key",
		"add king arthur":             "is no role",
		"add operator":                "want a role",
		"revoke operator operator":    "it ends when another stands there",
		"revoke backend survival-1 x": "want a role",
	} {
		if o := s.creds(t, strings.Fields(args)...); o.status == statusOK || !strings.Contains(o.stderr, want) {
			t.Errorf("%s: status %d, %q; want %q", args, o.status, o.stderr, want)
		}
	}
	for name, c := range map[string]struct {
		spoil func(dir string)
		key   string
		want  string
	}{
		"another host's": {func(dir string) {
			write(t, filepath.Join(dir, "creds/survival-1.nk"), contents(t, dir)["creds/survival-2.nk"])
		}, "hosts.survival-1.creds", "is the key of survival-2"},
		"lost":     {func(dir string) { removeFiles(t, dir, "creds/survival-1.nk") }, "hosts.survival-1.creds", "there is no"},
		"nonsense": {func(dir string) { write(t, filepath.Join(dir, "creds/survival-1.nk"), "hello") }, "hosts.survival-1.creds", "holds no nkey"},
		"an operator's key that is none": {func(dir string) {
			text := contents(t, dir)[defaultConfig]
			at := strings.Index(text, "operatorKey: ") + len("operatorKey: ")
			write(t, filepath.Join(dir, defaultConfig), text[:at]+"UABC"+text[at+56:])
		}, "network.operatorKey", "not the public half"},
	} {
		t.Run(name, func(t *testing.T) {
			s := initialised(t)
			c.spoil(s.dir)
			err := s.up(t, "survival-1", envSecret+"=").end(t)
			var refused *network.Error
			if !errors.As(err, &refused) || refused.Code != network.CodeBadKey || refused.Key != c.key || !strings.Contains(refused.Msg, c.want) {
				t.Errorf("ended with %v", err)
			}
			if o := typed(t, "config", "check", filepath.Join(s.dir, defaultConfig), "--id", "survival-1"); o.status != statusFailed || !strings.Contains(o.stdout, c.want) {
				t.Errorf("config check: status %d, %s", o.status, o.stdout)
			}
		})
	}
}

// TestASecretDoesNotReplaceAKey: whoever has only the secret gets in nowhere where hosts have keys.
func TestASecretDoesNotReplaceAKey(t *testing.T) {
	s := initialised(t)
	proxy := s.up(t, "proxy-1", envSecret+"=")
	proxy.says(t, "msg=ready")
	path := filepath.Join(s.dir, defaultConfig)
	text := contents(t, s.dir)[defaultConfig]
	write(t, path, strings.Replace(text, "    creds: creds/survival-1.nk\n", "", 1))
	if err := s.up(t, "survival-1", envSecret+"=").end(t); err == nil || !strings.Contains(err.Error(), "refused the login") {
		t.Errorf("ended with %v", err)
	}
	removeFiles(t, s.dir, operatorFile)
	for _, verb := range [][]string{{"kill", "on"}, {"state", "fleet"}} {
		if o := typed(t, append(verb, s.overTLS(t)...)...); o.status == statusOK {
			t.Errorf("%v with the secret alone: %s", verb, o.stdout)
		}
	}
}

// TestSpansOfKeys: pure changes of an identity.
func TestSpansOfKeys(t *testing.T) {
	f := events.IdentitySet{Host: "p1", Role: events.IdentityProxy}
	f, err := addKey(f, "aa", ends{events.Transfers: 99})
	if err != nil || f.Keys[0].Spans[0] != (events.Span{Bucket: events.Transfers, From: 100}) {
		t.Fatalf("%+v, %v", f, err)
	}
	f = withoutSecret(f, ends{events.Transfers: 99})
	f, _ = addKey(f, "bb", ends{events.Transfers: 150})
	if _, err := addKey(f, "cc", ends{}); err == nil || !strings.Contains(err.Error(), "--earlier") {
		t.Errorf("a third open key: %v", err)
	}
	renewed := closing(f, true)
	if !renewed.Keys[0].Closed || renewed.Keys[1].Closed || f.Keys[0].Closed || !unsealed(renewed) {
		t.Errorf("closing the earlier one: %+v", renewed.Keys)
	}
	sealed := endSpans(renewed, ends{events.Transfers: 170})
	if got := sealed.Keys[0].Spans[0]; got.Until != 170 || sealed.Keys[1].Spans[0].Until != 0 || unsealed(sealed) {
		t.Errorf("sealed: %+v", sealed.Keys)
	}
	for _, s := range sealed.Keys[0].Spans {
		if s.Bucket != events.Transfers && s.Until >= s.From {
			t.Errorf("%s: nothing was signed there, and %d to %d are good", s.Bucket, s.From, s.Until)
		}
	}
	if all := closing(f, false); len(openKeys(all)) != 0 {
		t.Errorf("closing all: %+v", all.Keys)
	}
	for i := range 20 {
		f = endSpans(closing(f, false), ends{events.Transfers: uint64(200 + i)})                                               //nolint:gosec // small
		if f, err = addKey(f, "dd", ends{events.Transfers: uint64(200 + i)}); err != nil || len(f.Keys) > events.MaxHostKeys { //nolint:gosec // small
			t.Fatalf("%d keys, %v", len(f.Keys), err)
		}
	}
}

// TestOperatorKeyForAFileThatIsThere: init does not touch it, and says what to write.
func TestOperatorKeyForAFileThatIsThere(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, defaultConfig), "network: { name: old, enabled: true }\nedge: { domain: localhost }\nhosts: { all: { edges: [ { listen: \":1\" } ], advertise: \"127.0.0.1:2\" } }\n")
	out := succeeds(t, "init", typed(t, "init", dir, "--operator-key"))
	if !strings.Contains(out, "operatorKey: U") {
		t.Error(out)
	}
	if info, err := os.Stat(filepath.Join(dir, operatorFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v", err)
	}
}
