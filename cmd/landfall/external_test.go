package main

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// externalYAML is a network of two proxies whose store no host carries.
func externalYAML(store string) string {
	return fmt.Sprintf("network: { name: test, enabled: true }\nedge: { domain: %s }\nstore: { mode: external, %s }\nhosts:\n%s%s",
		domain, store, edgeYAML("proxy-1", 0), edgeYAML("proxy-2", 0))
}

// TestJudgeServers: which servers the log may be given to.
func TestJudgeServers(t *testing.T) {
	const local, remote = `url: "nats://127.0.0.1:4222,nats://localhost:4223"`, `url: "nats://127.0.0.1:4222,nats://10.0.0.5:4222"`
	synced := streams.ServerInfo{Name: "nats-1", Version: "2.15.3", Synced: true, SyncEvery: 2 * time.Minute}
	lazy := streams.ServerInfo{Name: "nats-2", Version: "2.15.3", SyncEvery: 2 * time.Minute}
	for name, c := range map[string]struct {
		store   string
		guarded bool
		servers []streams.ServerInfo
		refused string // code and the words it must have
		words   string
		warned  string // what the log must say; "": no warning
	}{
		"as it should be":               {remote, true, []streams.ServerInfo{synced, synced, synced}, "", "", ""},
		"one of three is lazy":          {remote, true, []streams.ServerInfo{synced, lazy, synced}, network.CodeStoreLazy, "nats-2", ""},
		"lazy, and the file says so":    {remote + ", durability: lazy", true, []streams.ServerInfo{lazy}, "", "", "lost in a power cut"},
		"lazy, but nothing is kept":     {remote + ", storage: memory", true, []streams.ServerInfo{lazy}, "", "", ""},
		"nothing can be seen":           {remote, true, nil, "", "", "do not tell"},
		"anybody may connect":           {remote, false, []streams.ServerInfo{synced}, network.CodeStoreOpen, "landfall config nats", ""},
		"anybody here may connect":      {local, false, []streams.ServerInfo{synced}, "", "", "lets in anybody on this machine"},
		"anybody here, nothing is seen": {local, false, nil, "", "", "do not tell"},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := network.Parse("network.yml", []byte(externalYAML(c.store)))
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			h := &host{net: n, log: logTo(&log, false)}
			err = h.judgeServers(c.servers, c.guarded)
			var refusal *network.Error
			if errors.As(err, &refusal) != (c.refused != "") || refusal != nil && (refusal.Code != c.refused || !strings.Contains(refusal.Error(), c.words)) {
				t.Errorf("got %v, want %q", err, c.refused)
			}
			if warned := strings.Contains(log.String(), "level=WARN"); warned != (c.warned != "") || !strings.Contains(log.String(), c.warned) {
				t.Errorf("want %q in the log:\n%s", c.warned, &log)
			}
		})
	}
}

// TestUpOnAnExternalStore: two proxies that start at once make the streams, and a store that
// does not know the logins is refused.
func TestUpOnAnExternalStore(t *testing.T) {
	address := unused(t)
	s := newSite(t, externalYAML(fmt.Sprintf("url: \"nats://%s\"", address)))
	n, err := network.Load(filepath.Join(s.dir, "network.yml"))
	if err != nil {
		t.Fatal(err)
	}
	server, err := embedded.Open(t.Context(), embedded.Config{
		Dir: t.TempDir(), Network: "test", Creator: createdByUp, MaxBytes: 2 << 30, Durability: streams.Lazy, Listen: address, Users: loginsOf(n, [][]byte{realSecret}, events.NewKeyring()),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	one, two := s.up(t, "proxy-1"), s.up(t, "proxy-2")
	one.says(t, "msg=ready proxy=proxy-1")
	two.says(t, "msg=ready proxy=proxy-2")
	one.says(t, "level=WARN", "do not tell whether they write to the disk")

	other := s.up(t, "proxy-1", "RTP_NET_SECRET="+encoded(bytes.Repeat([]byte("another secret!!"), 4)))
	if err := other.end(t); err == nil || !strings.Contains(err.Error(), "refused the login") {
		t.Errorf("with another secret: %v", err)
	}
	one.stop(t)
	two.stop(t)

	st, err := streams.Connect(t.Context(), server.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for _, b := range []events.Bucket{events.Transfers, events.Sessions, events.Leases} {
		if _, err := st.Info(t.Context(), b); err != nil {
			t.Error(err)
		}
	}
}

// allowed are the subjects of a login, which are not this test's business.
var allowed = regexp.MustCompile(`allow: \[ .* \]`)

func TestConfigNATS(t *testing.T) {
	var got transcript
	t.Run("in a directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		for name, text := range configs {
			write(t, name, text)
		}
		for _, secret := range []string{encoded(realSecret), ""} {
			t.Setenv(envSecret, secret)
			o := typed(t, "config", "nats", "direct.yml")
			got.add("config nats direct.yml", allowed.ReplaceAllString(o.stdout, "allow: [ … ]"), o.stderr, o.status)
		}
		for _, args := range [][]string{{"config", "nats"}, {"config", "nats", "typos.yml"}, {"config", "nats", "--help"}} {
			o := typed(t, args...)
			got.add(strings.Join(args, " "), o.stdout, o.stderr, o.status)
		}
	})
	got.matches(t, "config-nats")
}
