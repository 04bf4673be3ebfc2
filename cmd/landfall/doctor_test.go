package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/cmd/landfall/doctor"
	"github.com/landfall/landfall/events"
)

// TestDoctorTells: how findings, what was not seen and the sum are printed.
func TestDoctorTells(t *testing.T) {
	var got transcript
	for _, c := range []struct {
		name  string
		facts doctor.Facts
	}{
		{"all is well", doctor.Facts{}},
		{"notes only", doctor.Facts{Config: &doctor.Config{File: "network.yml", Disabled: true}}},
		{"a warning", doctor.Facts{
			Config: &doctor.Config{File: "network.yml", Durability: "lazy"}, Unseen: []doctor.Unseen{{What: "what only one host has", Why: "who this host is was not said: give --id"}},
		}},
		{"the store is down", doctor.Facts{
			Secret: &doctor.Secret{Code: "SECRET_PLACEHOLDER", Text: "secret $RTP_NET_SECRET: is a placeholder, which everybody knows"},
			RCON:   &doctor.RCON{Host: "survival-1", Address: "127.0.0.1:25576", Answers: true, Reached: []string{"10.0.0.5:25576"}},
			Store:  &doctor.Store{Where: "nats://10.0.0.1:4222", Down: "nobody listens there\x1b[31m"},
		}},
		{"a host", doctor.Facts{
			Store: &doctor.Store{Guarded: true}, Hosts: []doctor.Host{{ID: "proxy-1", Dispatcher: true, State: events.Ready, Behind: 40, BehindFor: time.Minute, Schema: 1}},
		}},
	} {
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			status := statusOf(diagnose(&c.facts, printer{w: &out, json: asJSON}))
			got.add("doctor"+map[bool]string{true: " --json"}[asJSON]+"   # "+c.name, out.String(), "", status)
		}
	}
	got.matches(t, "doctor")
}

// TestDoctorWithoutAStore: what is local is looked at all the same.
func TestDoctorWithoutAStore(t *testing.T) {
	t.Setenv(envSecret, "")
	var got transcript
	t.Run("in a directory", func(t *testing.T) {
		t.Chdir(t.TempDir())
		for name, text := range configs {
			write(t, name, text)
		}
		if err := os.Remove("network.yml"); err != nil {
			t.Fatal(err)
		}
		for _, args := range []string{
			"doctor", "doctor --config typos.yml", "doctor --config off.yml", "doctor --config direct.yml --store none", "doctor --config none.yml", "doctor x", "doctor --help",
		} {
			o := typed(t, strings.Fields(args)...)
			got.add(args, o.stdout, o.stderr, o.status)
		}
		const file = `network: { name: test, enabled: true }
store: { carrier: proxy-1, url: "nats://127.0.0.1:%d" }
security: { secretFile: net.secret }
edge: { domain: play.example.net }
hosts: { proxy-1: { edges: [ { listen: ":25565" } ] }, s: { advertise: "127.0.0.1:1", rcon: { address: "127.0.0.1:%d", passwordFile: s.rcon } } }
`
		port := freePort(t)
		write(t, "network.yml", fmt.Sprintf(file, port, freePort(t)))
		write(t, "net.secret", "changeme\n")
		if err := os.Chmod("net.secret", 0o644); err != nil { //nolint:gosec // the mistake that is to be found
			t.Fatal(err)
		}
		o := typed(t, "doctor", "--id", "s", "--json")
		if codes := codesOf(t, o); o.status != statusAiling || !slices.Equal(codes, []string{"SECRET_PLACEHOLDER", "RCON_PASSWORD", "STORE_DOWN", "SECRET_READABLE", "RCON_SILENT"}) {
			t.Errorf("%v\n%+v", codes, o)
		}
		if o := typed(t, "doctor", "--id", "x", "--json"); !slices.Contains(codesOf(t, o), "CONFIG_REFUSED") {
			t.Errorf("an id that is not listed: %+v", o)
		}
	})
	got.matches(t, "doctor-local")
}

func codesOf(t *testing.T, o outcome) (codes []string) {
	t.Helper()
	for _, row := range jsonLines(t, o.stdout) {
		if row["kind"] == "finding" {
			codes = append(codes, fmt.Sprint(row["code"]))
		}
	}
	return codes
}

// TestDoctorOnANetwork: two proxies are well; one that stops beating, a host that is not listed,
// a carrier that was started with other hosts, and a store that nobody carries are found.
func TestDoctorOnANetwork(t *testing.T) {
	port := freePort(t)
	s := newSite(t, twoHosts(port))
	file := filepath.Join(s.dir, "network.yml")
	t.Setenv(envSecret, encoded(realSecret))
	one, two := s.up(t, "proxy-1"), s.up(t, "proxy-2")
	one.says(t, "msg=ready proxy=proxy-1")
	two.says(t, "msg=ready proxy=proxy-2")
	examine := func(file string) outcome {
		return typed(t, "doctor", "--config", file, "--json")
	}
	// What the machine of the test is like is not the test's business.
	relevant := func(o outcome) []string {
		return slices.DeleteFunc(codesOf(t, o), func(c string) bool {
			return slices.Contains([]string{"STORE_ON_TMPFS", "STORE_IN_CONTAINER", "DISK_FULL", "DISK_SMALL", "FILES_LIMITED", "SECRET_READABLE"}, c)
		})
	}
	until(t, func(o outcome) bool { return len(relevant(o)) == 0 }, "doctor", "--config", file, "--json")

	more := filepath.Join(s.dir, "more.yml")
	write(t, more, twoHosts(port)+edgeYAML("proxy-3", 0)+"line: { maxSize: 7 }\n")
	if o := examine(more); !slices.Equal(relevant(o), []string{"LOGIN_REFUSED", "CONFIG_DIFFERS", "CONFIG_DIFFERS", "HOST_UNSEEN"}) {
		t.Errorf("%v\n%+v", relevant(o), o)
	}
	remote := filepath.Join(s.dir, "far", "network.yml")
	if err := os.Mkdir(filepath.Dir(remote), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, remote, twoHosts(port))
	if o := examine(remote); len(relevant(o)) > 0 || o.status != statusOK {
		t.Errorf("from another machine: %+v", o)
	}
	t.Setenv(envSecret, encoded(bytes.Repeat([]byte("another secret!!"), 4)))
	if o := examine(remote); !slices.Equal(relevant(o), []string{"STORE_REFUSES_LOGIN"}) {
		t.Errorf("with another secret: %+v", o)
	}
	t.Setenv(envSecret, encoded(realSecret))
	two.stop(t)
	one.stop(t)
	if o := examine(file); !slices.Equal(relevant(o), []string{"STORE_DOWN"}) {
		t.Errorf("stopped: %v\n%+v", relevant(o), o)
	}
}

// TestExposedRCON: whoever listens on all addresses is reached by another than loopback's.
func TestExposedRCON(t *testing.T) {
	for listen, exposed := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": len(ownAddresses()) > 0} {
		l, err := net.Listen("tcp", listen)
		if err != nil {
			t.Fatal(err)
		}
		_, port, err := net.SplitHostPort(l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		file := filepath.Join(dir, "network.yml")
		write(t, file, fmt.Sprintf("network: { name: test, enabled: true }\nstore: { carrier: s }\nhosts: { s: { advertise: \"127.0.0.1:1\", rcon: { address: \"127.0.0.1:%s\", passwordFile: p } } }\n", port))
		write(t, filepath.Join(dir, "p"), "secret\n")
		g := &gatherer{flags: storeFlags{config: file}, id: "s", env: func(string) string { return "" }}
		g.readConfig()
		g.lookAtRCON(t.Context())
		if r := g.facts.RCON; r == nil || !r.Answers || r.Fault != "" || len(r.Reached) > 0 != exposed {
			t.Errorf("%s: %+v, %+v", listen, r, g.facts.Config)
		}
		_ = l.Close()
	}
}
