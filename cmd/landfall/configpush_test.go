package main

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// threeHosts are two proxies, the first of which carries the store, and a backend that has no
// login to the log. Its game server is away.
func threeHosts(storePort int) string {
	return twoHosts(storePort) + "  survival: { advertise: \"127.0.0.1:1\", rcon: { address: \"127.0.0.1:1\", passwordFile: rcon.secret }, regions: { wild: {} } }\n"
}

// until runs a command until its outcome is the one that is wanted.
func until(t *testing.T, wanted func(o outcome) bool, args ...string) outcome {
	t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for late := time.After(patience); ; {
		o := typed(t, args...)
		if wanted(o) {
			return o
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%v: the last outcome was %+v", args, o)
		}
	}
}

// lasting leaves out what differs from run to run, or with each key that becomes live.

func lasting(text string) string {
	text = regexp.MustCompile(`\d{4}-\d\d-\d\dT[0-9:.]+Z`).ReplaceAllString(text, "<time>")
	return regexp.MustCompile(`of \d+ bytes`).ReplaceAllString(text, "of <n> bytes")
}

// TestConfigIsPushedToEveryHost: to dispatchers and to a backend that does not see the log, to
// those that start later before they serve, until it is taken back.
func TestConfigIsPushedToEveryHost(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	config := threeHosts(freePort(t))
	s := newSite(t, config)
	file := filepath.Join(s.dir, "network.yml")
	hosts := map[string]*life{}
	for _, id := range []string{"proxy-1", "proxy-2", "survival"} {
		hosts[id] = s.up(t, id)
		hosts[id].says(t, "msg=ready proxy=")
		if id == "survival" {
			break
		}
	}
	var tr transcript
	do := func(shown string, wanted func(o outcome) bool, args ...string) {
		t.Helper()
		o := until(t, wanted, append(strings.Fields(args[0]), args[1:]...)...)
		tr.add(shown, lasting(o.stdout), strings.ReplaceAll(o.stderr, s.dir+"/", ""), o.status)
	}
	once := func(outcome) bool { return true }
	settled := func(status int, words ...string) func(o outcome) bool {
		return func(o outcome) bool { return o.status == status && containsAll(o.stdout, words) }
	}
	heardAll := settled(statusOK, "proxy-1   goes", "proxy-2   goes", "survival  goes")

	do("config diff --network", settled(statusOK, "nobody has pushed"), "config diff --network "+file)
	until(t, heardAll, "config", "show", "--network", file)
	write(t, file, config+"line: { maxSize: 64, drainPerSecond: 2.5 }\nloadBalancer: { backends: { survival: { weight: 2 } } }\n")
	do(`config push --who ada --why weekend`, once, "config push --who ada --why weekend --config "+file)
	for id, l := range hosts {
		l.says(t, "pushed configuration adopted", "version=1", "by=ada", "keys=\"[line.drainPerSecond line.maxSize loadBalancer.backends.survival]\"")
		if strings.Count(strings.Join(l.lines, "\n"), "adopted") != 1 {
			t.Errorf("%s adopted more than once", id)
		}
	}
	do(`config push --who ada`, once, "config push --who ada --config "+file)
	write(t, file, config+"line: { maxSize: 128 }\n")
	do(`config push --who bob --json`, once, "config push --who bob --json --config "+file)

	// The backend begins again: it obeys before it says that it serves.
	hosts["survival"].stop(t)
	again := s.up(t, "survival")
	again.says(t, "pushed configuration adopted", "version=2", "by=bob")
	write(t, file, config+"line: { maxSize: 7 }\nheartbeat: { intervalMs: 900 }\n")
	differ := s.up(t, "proxy-2")
	differ.says(t, "pushed configuration adopted", "version=2")
	hosts["proxy-1"].says(t, "level=WARN", "a host goes by another configuration", "host=proxy-2", "keys that need a restart, in heartbeat")
	write(t, file, config+"line: { maxSize: 7 }\n")
	until(t, settled(statusOK, "in force is version 2, by bob", "* line.maxSize ", "  line.maxBypass ", "proxy-2   goes by version 2; differs", "survival  goes by version 2\n"),
		"config", "show", "--network", file)
	do("config diff --network", settled(statusDifferent, "line.maxSize"), "config diff --network "+file)

	do("config push --off --who ada", once, "config push --off --who ada --config "+file)
	for _, l := range []*life{hosts["proxy-1"], again, differ} {
		l.says(t, "the pushed configuration was taken back", "version=3")
	}
	do("config push --off", once, "config push --off --config "+file)
	do("config diff --network", settled(statusDifferent, "proxy-1   goes by its own file; differs", "proxy-2   goes by its own file; differs", "survival  goes by its own file; differs"), "config diff --network "+file)
	tr.matches(t, "config-push")
}

// TestNothingIsPushed: what is wrong stands beside the key, before any store is opened.
func TestNothingIsPushed(t *testing.T) {
	t.Setenv(envSecret, encoded(realSecret))
	s := newSite(t, oneHost("127.0.0.1:1"))
	file := filepath.Join(s.dir, "network.yml")
	var many strings.Builder
	for i := range 600 {
		fmt.Fprintf(&many, "  host-%03d: { advertise: \"127.0.0.1:2\" }\n", i)
	}
	many.WriteString("loadBalancer:\n  backends:\n")
	for i := range 600 {
		fmt.Fprintf(&many, "    host-%03d: { weight: 2 }\n", i)
	}
	for name, c := range map[string]struct{ config, want string }{
		"faults":      {oneHost("127.0.0.1:1") + "line: { maxSize: 0 }\nloadBalancer: { policy: best }\n", file + ":10: line.maxSize: 0 is not allowed; allowed: 1..1000000 players\n" + file + ":11: loadBalancer.policy: "},
		"disabled":    {strings.Replace(oneHost("127.0.0.1:1"), "enabled: true", "enabled: false", 1), "network.enabled is false"},
		"too much":    {oneHost("127.0.0.1:1") + many.String(), "its live keys take"},
		"no store":    {oneHost("127.0.0.1:1"), "landfall-data"},
		"a bad texts": {oneHost("127.0.0.1:1") + "messages: rcon.secret\n", "rcon.secret"},
	} {
		write(t, file, c.config)
		if o := typed(t, "config", "push", "--config", file); o.status != statusFailed || !strings.Contains(o.stderr, c.want) || o.stdout != "" {
			t.Errorf("%s: %+v", name, o)
		}
	}
}

// TestConfigsOfHosts: what is said of each of them.
func TestConfigsOfHosts(t *testing.T) {
	tape := newTape(t)
	beat := func(id events.HostID, c *events.ConfigBeat) {
		src := events.Source{Kind: events.SourceBackend, ID: id}
		tape.putBy(src, events.BackendKey(id), &events.BackendBeat{Server: id, State: events.Ready, Regions: []events.RegionBeat{}, Config: c})
	}
	file := parsed(t, oneHost("127.0.0.1:1"))
	fixed, live := sectionsOf(file.Fixed()), sectionsOf(parsed(t, oneHost("127.0.0.1:1")+"line: { maxSize: 64 }\n").Pushables())
	beat("gone", &events.ConfigBeat{Fixed: fixed, Live: live, Pushed: 1})
	tape.after(time.Minute)
	operator := events.Source{Kind: events.SourceOperator, ID: "cli"}
	tape.putBy(operator, events.ConfigKey, &events.ConfigSet{Text: parsed(t, oneHost("127.0.0.1:1")+"line: { maxSize: 64 }\n").Pushable(), Who: "ada"})
	beat("follows", &events.ConfigBeat{Fixed: fixed, Live: live, Pushed: 1})
	beat("late", &events.ConfigBeat{Fixed: fixed})
	beat("refuses", &events.ConfigBeat{Fixed: fixed, Refused: 1, Fault: "line.hurry: unknown key"})
	beat("strange", &events.ConfigBeat{Fixed: fixed[1:], Live: []events.SectionBeat{}, Pushed: 1})
	beat("old", nil)
	o, err := newOpener(trust{secrets: withKey()})
	if err != nil {
		t.Fatal(err)
	}
	n, err := takeCensus(t.Context(), tape, o, file)
	if err != nil {
		t.Fatal(err)
	}
	got := map[events.HostID]string{}
	for _, h := range n.configs(file) {
		got[h.Host] = h.words(n)
	}
	for id, want := range map[events.HostID]string{
		"follows": "goes by version 1", "late": "goes by its own file, not yet by version 1",
		"refuses": "refuses version 1: line.hurry: unknown key; goes by its own file", "old": "does not say what it goes by",
		"strange": "goes by version 1; differs from the file, until it is restarted with the same one, in " + fixed[0].Name + "; differs in keys that can be reloaded, in line",
		"gone":    "goes by version 1; last heard 1m0s ago",
	} {
		if got[id] != want {
			t.Errorf("%s: %q, want %q", id, got[id], want)
		}
	}
}
