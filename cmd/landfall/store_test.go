package main

import (
	"encoding/base64"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
	"github.com/landfall/landfall/streams/streamtest"
)

// carrier is a store as another process carries it, on a directory of the test.
type carrier struct {
	cfg    embedded.Config
	server *embedded.Server
	store  *streams.Store
}

// newCarrier makes a store; listen may be empty.
func newCarrier(t *testing.T, listen string) *carrier {
	t.Helper()
	c := &carrier{cfg: embedded.Config{
		Dir: filepath.Join(t.TempDir(), "store"), Network: "test", Creator: "up", Listen: listen, Durability: streams.Lazy, MaxBytes: 2 << 30,
		Users: []embedded.User{readerLogin(realSecret)},
	}}
	c.start(t)
	return c
}

// realSecret is one that a network.yml accepts.
var realSecret = []byte("0123456789abcdefghijklmnopqrstuvwxyz")

func (c *carrier) start(t *testing.T) {
	t.Helper()
	var err error
	if c.server, err = embedded.Open(t.Context(), c.cfg); err != nil {
		t.Fatal(err)
	}
	server := c.server
	t.Cleanup(func() {
		if c.server == server {
			c.stop(t)
		}
	})
	if c.store, err = streams.Connect(t.Context(), server.Connection()); err != nil {
		t.Fatal(err)
	}
	if err := c.store.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (c *carrier) stop(t *testing.T) {
	t.Helper()
	if err := c.store.Close(); err != nil {
		t.Error(err)
	}
	if err := c.server.Close(); err != nil {
		t.Error(err)
	}
	c.server = nil
}

// play appends what a tape holds of transfers and sessions.
func (c *carrier) play(t *testing.T, from *tape) {
	t.Helper()
	for _, b := range []events.Bucket{events.Transfers, events.Sessions} {
		for _, r := range from.records[b] {
			c.append(t, r)
		}
	}
}

// append seals a record anew with the network's own secret.
func (c *carrier) append(t *testing.T, r events.Record) {
	t.Helper()
	e, refusal := events.Open(streamtest.Keyring(), r)
	if refusal != nil {
		t.Fatal(refusal)
	}
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	m, err := events.Seal(events.NewKeyring(key), e.Envelope, e.Fact)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.store.Append(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

func encoded(secret []byte) string { return base64.StdEncoding.EncodeToString(secret) + "\n" }

// TestAStoreIsReadHoweverItIsReached: stopped, carried by another process, over its URL,
// by network.yml, by default.
func TestAStoreIsReadHoweverItIsReached(t *testing.T) {
	t.Setenv(envSecret, "")
	c := newCarrier(t, "127.0.0.1:0")
	story, j := tapeOf(t, "completed")
	c.play(t, story)
	dir := c.cfg.Dir
	write(t, filepath.Join(dir, demoSecretFile), encoded(realSecret))
	conf := filepath.Join(t.TempDir(), "network.yml")
	write(t, conf, "network: { name: test }\nstore: { dir: "+dir+" }\nsecurity: { secretFile: "+filepath.Join(dir, demoSecretFile)+" }\n")
	remote := filepath.Join(t.TempDir(), "network.yml")
	write(t, remote, "network: { name: test }\nstore: { dir: nowhere, url: \""+c.server.URL()+"\" }\nsecurity: { secretFile: "+filepath.Join(dir, demoSecretFile)+" }\n")
	check := func(name string, args ...string) {
		t.Helper()
		o := typed(t, append([]string{"replay", "token", j.token().Label()}, args...)...)
		if o.status != statusOK || !strings.Contains(o.stdout, "end: COMPLETED on survival-2") || !strings.Contains(o.stdout, "all signatures verified (6 facts)") {
			t.Errorf("replay of a %s: %+v", name, o)
		}
		o = typed(t, append([]string{"tail", "--json", "--player", "steve"}, args...)...)
		if rows := jsonLines(t, o.stdout); o.status != statusOK || len(rows) != 6 || rows[5]["verified"] != true {
			t.Errorf("tail of a %s: %+v", name, o)
		}
	}
	check("running store", "--store", dir)
	check("running store by network.yml", "--config", conf)
	check("remote store by network.yml", "--config", remote)
	t.Setenv(envSecret, encoded(realSecret))
	check("store by its URL", "--store", c.server.URL())
	t.Setenv(envSecret, "")
	c.stop(t)
	check("stopped store", "--store", dir)
	check("stopped store by network.yml", "--config", conf)
	t.Chdir(filepath.Dir(dir))
	for _, name := range []string{defaultDemoDir, defaultDataDir} {
		if err := os.Symlink(dir, name); err != nil {
			t.Fatal(err)
		}
		check("store in ./" + name)
	}
}

func TestWithoutASecretNothingIsCalledFalse(t *testing.T) {
	t.Setenv(envSecret, "")
	c := newCarrier(t, "")
	story, j := tapeOf(t, "completed")
	c.play(t, story)
	for _, secret := range []string{"", encoded([]byte("another secret, also thirty-two b"))} {
		t.Setenv(envSecret, secret)
		if o := typed(t, "replay", "transfer", j.id.String(), "--store", c.cfg.Dir); o.status != statusOK || !strings.Contains(o.stdout, "no key") {
			t.Errorf("with %q: %+v", secret, o)
		}
	}
}

// TestReadingWritesNothing: the log is the same after every reading verb.
func TestReadingWritesNothing(t *testing.T) {
	t.Setenv(envSecret, "")
	c := newCarrier(t, "")
	story, j := tapeOf(t, "completed")
	c.play(t, story)
	before := positions(t, c.store)
	typed(t, "replay", "player", "Steve", "--store", c.cfg.Dir, "--explain")
	typed(t, "replay", "token", j.token().String(), "--store", c.cfg.Dir)
	typed(t, "tail", "--bucket", "all", "--store", c.cfg.Dir)
	if after := positions(t, c.store); after != before {
		t.Errorf("the log was at %v, is at %v", before, after)
	}
}

func positions(t *testing.T, s *streams.Store) (out [9]uint64) {
	t.Helper()
	for i, b := range events.Buckets {
		info, err := s.Info(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = info.Last
	}
	return out
}

func TestAStoreThatCannotBeRead(t *testing.T) {
	t.Setenv(envSecret, "")
	t.Chdir(t.TempDir())
	write(t, "file", "")
	write(t, "bad.yml", "nonsense: 1\n")
	if err := os.Mkdir("empty", 0o700); err != nil {
		t.Fatal(err)
	}
	nobody := unused(t)
	for _, c := range []struct {
		name string
		args []string
		env  string
		want string
	}{
		{"none", nil, "", "there is no store here (neither ./landfall-data nor ./landfall-demo): name one with --store"},
		{"not there", []string{"--store", "nowhere"}, "", "store nowhere: file does not exist: name the directory of a store"},
		{"a file", []string{"--store", "file"}, "", "store file: is a file"},
		{"an empty directory", []string{"--store", "empty"}, "", "store empty: there is no Landfall store in this directory"},
		{"nobody listens", []string{"--store", "nats://" + nobody}, "", "nobody listens there"},
		{"no URL", []string{"--store", "nats://"}, "", "--store: not a URL"},
		{"no file", []string{"--config", "network.yml"}, "", "network.yml: no such file"},
		{"bad file", []string{"--config", "bad.yml"}, "", "bad.yml:1: "},
		{"bad secret", []string{"--store", "empty"}, "%%%", "secret $RTP_NET_SECRET: is not Base64"},
		{"short secret", []string{"--store", "empty"}, "c2hvcnQ=", "has only 5 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv(envSecret, c.env)
			for _, verb := range [][]string{{"tail"}, {"replay", "player", "Steve"}} {
				o := typed(t, append(verb, c.args...)...)
				if o.status == statusOK || !strings.Contains(o.stderr, c.want) || strings.Count(o.stderr, "\n") != 1 {
					t.Errorf("%q: want %q, got %+v", verb, c.want, o)
				}
			}
		})
	}
	if _, err := os.Stat("empty/landfall.json"); err == nil {
		t.Error("reading made a store")
	}
}

func TestALoginIsNeverShown(t *testing.T) {
	o := typed(t, "tail", "--store", "nats://operator:hunter2@"+unused(t))
	if o.status != statusFailed || strings.Contains(o.stdout+o.stderr, "hunter2") {
		t.Errorf("%+v", o)
	}
}

// unused is an address where nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
