package main

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
)

// reloaded is a host that is not run, and its log.
type reloaded struct {
	site
	*host
	log   bytes.Buffer
	named map[string]network.Change
}

func newReloaded(t *testing.T) *reloaded {
	t.Helper()
	r := &reloaded{site: newSite(t, oneHost("127.0.0.1:1")), named: map[string]network.Change{}}
	var err error
	if r.host, err = openHost(filepath.Join(r.dir, "network.yml"), "all", environment(nil), slog.New(slog.NewTextHandler(&r.log, nil))); err != nil {
		t.Fatal(err)
	}
	return r
}

// says reloads and returns what the log says of it, without times.
func (r *reloaded) says(t *testing.T) []string {
	t.Helper()
	return r.logOf(func() { r.reload(r.named) })
}

// logOf is what the log says while something is done, without times.
func (r *reloaded) logOf(act func()) []string {
	r.log.Reset()
	act()
	var lines []string
	for line := range strings.Lines(r.log.String()) {
		_, line, _ = strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		lines = append(lines, line)
	}
	return lines
}

func (r *reloaded) rewrite(t *testing.T, more string) {
	t.Helper()
	write(t, filepath.Join(r.dir, "network.yml"), oneHost("127.0.0.1:1")+more)
}

// TestReload: what changes at once, what is named, and what a fault does.
func TestReload(t *testing.T) {
	for _, c := range []struct {
		name, more string
		want       []string // one line each, as far as it goes
	}{
		{"nothing", "", []string{`level=INFO msg="configuration read again, there is nothing to adopt"`}},
		{"policy", "loadBalancer: { policy: leastPlayers }\n", []string{`level=INFO msg="configuration adopted" keys=[loadBalancer.policy] policy=leastPlayers/`}},
		{"terms and backends", "loadBalancer: { terms: { mspt: { weight: 2 } }, backends: { all: { weight: 2 } } }\n",
			[]string{`level=INFO msg="configuration adopted" keys="[loadBalancer.backends.all loadBalancer.terms.mspt.weight]" policy=weighted/`}},
		{"line", "line: { drainPerSecond: 2, maxAgeSeconds: 60 }\nheartbeat: { intervalMs: 500 }\n", []string{
			`level=WARN msg="this key needs a restart" key=heartbeat.intervalMs`,
			`level=INFO msg="configuration adopted" keys="[line.drainPerSecond line.maxAgeSeconds]"`}},
		{"deadlines", "loadBalancer: { moveTimeoutMs: 4000 }\nreservation: { ttlSeconds: 20, sweepIntervalMs: 100 }\n", []string{
			`level=INFO msg="configuration adopted" keys="[loadBalancer.moveTimeoutMs reservation.sweepIntervalMs reservation.ttlSeconds]"`}},
		{"a contradiction with what runs", "heartbeat: { intervalMs: 100 }\nloadBalancer: { staleAfterMs: 500 }\n", []string{
			`level=ERROR msg="configuration refused, nothing is changed" error="loadBalancer.staleAfterMs: 500 is less than two heartbeats of heartbeat.intervalMs 1000`}},
		{"command", "triggers: { command: { enabled: false } }\n", []string{`level=INFO msg="configuration adopted" keys=[triggers.command.enabled]`}},
		{"restart", "heartbeat: { intervalMs: 500 }\n", []string{
			`level=WARN msg="this key needs a restart" key=heartbeat.intervalMs change="heartbeat.intervalMs: 1000 -> 500"`,
			`level=INFO msg="configuration read again, there is nothing to adopt"`}},
		{"another host", "  hub: { advertise: \"127.0.0.1:2\" }\nloadBalancer: { policy: roundRobin }\n", []string{
			`level=WARN msg="this key needs a restart" key=hosts.hub change="hosts.hub: added"`,
			`level=INFO msg="configuration adopted" keys=[loadBalancer.policy] policy=roundRobin/`}},
		{"a fault", "loadBalancer: { policy: best }\nline: { maxSize: 0 }\n", []string{`level=ERROR msg="configuration refused, nothing is changed" error="`}},
		{"a contradiction", "loadBalancer: { policy: \"fixed:nobody\" }\n", []string{`level=ERROR msg="configuration refused, nothing is changed" error="`}},
		{"events", "triggers: { event: { enabled: true, map: { arena-end: {} } } }\n", []string{`level=INFO msg="configuration adopted" keys="[triggers.event.enabled triggers.event.map.arena-end]"`}},
		{"requests", "routing: { crossServerBurst: 3 }\n", []string{`level=INFO msg="configuration adopted" keys=[routing.crossServerBurst]`}},
		{"limits", "limits: { rtp: { cooldownSeconds: 60 }, join: { perDay: 3 } }\n", []string{`level=INFO msg="configuration adopted" keys="[limits.join limits.rtp.cooldownSeconds]"`}},
		{"permissions", "permissions: p.yml\n", []string{`level=INFO msg="configuration adopted" keys=[permissions]`}},
		{"joins", "loadBalancer: { onNoCandidate: disconnect }\ntriggers: { join: { enabled: true } }\n", []string{`level=INFO msg="configuration adopted" keys="[loadBalancer.onNoCandidate triggers.join.enabled]"`}},
		{"not yet", "  hub: { log: latest.log }\n", []string{
			`level=WARN msg="this key needs a restart" key=hosts.hub`,
			`level=WARN msg="this key is accepted, but not acted on in this version" key=hosts.hub.log`,
			`level=INFO msg="configuration read again, there is nothing to adopt"`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newReloaded(t)
			before := r.live.now()
			r.rewrite(t, c.more)
			got := r.says(t)
			if len(got) != len(c.want) {
				t.Fatalf("got %d lines:\n%s", len(got), strings.Join(got, "\n"))
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("got  %s\nwant %s", got[i], c.want[i])
				}
			}
			if refused := strings.Contains(got[0], "refused"); refused != (r.live.now() == before) {
				t.Errorf("refused %v, changed %v", refused, r.live.now() != before)
			}
		})
	}
}

// TestRestartsAreNamedOnce, and again when the wish changes or comes back.
func TestRestartsAreNamedOnce(t *testing.T) {
	r := newReloaded(t)
	for _, step := range []struct {
		more  string
		named bool
	}{
		{"heartbeat: { intervalMs: 500 }\n", true}, {"heartbeat: { intervalMs: 500 }\n", false}, {"heartbeat: { intervalMs: 600 }\n", true},
		{"", false}, {"heartbeat: { intervalMs: 600 }\n", true},
	} {
		r.rewrite(t, step.more)
		if got := strings.Contains(strings.Join(r.says(t), "\n"), "key=heartbeat.intervalMs"); got != step.named {
			t.Errorf("%q: named %v", step.more, got)
		}
	}
}

// TestMessagesAreReloaded with the rest or not at all.
func TestMessagesAreReloaded(t *testing.T) {
	r := newReloaded(t)
	var heard []actors.Languages
	r.live.follow(func(c *changeable) { heard = append(heard, c.messages) })
	file := filepath.Join(r.dir, "messages.yml")
	write(t, file, "login.down: gone fishing\n")
	if got := r.says(t); len(got) != 1 || !strings.Contains(got[0], "keys=[messages]") {
		t.Errorf("%q", got)
	}
	if got := r.live.text("login.down", nil); got != "gone fishing" || heard[len(heard)-1][""]["login.down"] != got || len(heard) != 2 {
		t.Errorf("login.down is %q, followers heard %d times", got, len(heard))
	}
	write(t, file, "- one\n")
	r.rewrite(t, "loadBalancer: { policy: roundRobin }\n")
	if got := r.says(t); len(got) != 1 || !containsAll(got[0], []string{"level=ERROR", "messages.yml:1: want a flat list of key: text"}) {
		t.Errorf("%q", got)
	}
	if now := r.live.now(); now.net.LoadBalancer.Policy != "weighted" || now.messages[""]["login.down"] != "gone fishing" || len(heard) != 2 {
		t.Error("half of a configuration was adopted")
	}
}

// TestPermissionsAreReloaded with the rest or not at all.
func TestPermissionsAreReloaded(t *testing.T) {
	r := newReloaded(t)
	may := func() bool {
		return permissionsOf(r.live.now().permissions).Permitted(events.OfflinePlayer("Ada"), "ada", actors.NodeUnqueued)
	}
	file := filepath.Join(r.dir, "permissions.yml")
	write(t, file, "groups: { staff: { grant: [rtp.unqueued], players: [Ada] } }\n")
	if got := r.says(t); len(got) != 1 || !strings.Contains(got[0], "keys=[permissions]") || !may() {
		t.Errorf("%q, permitted %v", got, may())
	}
	if got := r.says(t); len(got) != 1 || !strings.Contains(got[0], "nothing to adopt") {
		t.Errorf("%q", got)
	}
	write(t, file, "groups: { staff: { grant: [rtp.unqueud], players: [12] } }\n")
	r.rewrite(t, "loadBalancer: { policy: roundRobin }\n")
	if got := r.says(t); len(got) != 1 || !containsAll(got[0], []string{"level=ERROR", "permissions.yml:1: groups.staff.grant: ", "faults=2"}) {
		t.Errorf("%q", got)
	}
	if !may() || r.live.now().net.LoadBalancer.Policy != "weighted" {
		t.Error("half of a configuration was adopted")
	}
	uuid := "groups: { staff: { deny: [\"*\"], players: [" + events.OfflinePlayer("Ada").String() + "] } }\n"
	write(t, file, uuid)
	if r.says(t); may() || permissionsOf(r.live.now().permissions).Permitted(events.OfflinePlayer("Ada"), "", actors.NodeUse) {
		t.Error("a UUID names nobody")
	}
}

// TestADisabledFileIsNotAdopted: nobody has looked for contradictions in it.
func TestADisabledFileIsNotAdopted(t *testing.T) {
	r := newReloaded(t)
	write(t, filepath.Join(r.dir, "network.yml"), strings.Replace(oneHost("127.0.0.1:1"), "enabled: true", "enabled: false", 1)+"loadBalancer: { policy: roundRobin }\n")
	if got := r.says(t); len(got) != 1 || !strings.Contains(got[0], "key=network.enabled") || r.live.now().net.LoadBalancer.Policy != "weighted" {
		t.Errorf("%q", got)
	}
}

// TestFollowersHearChangesInOrder, whoever adopts and follows meanwhile.
func TestFollowersHearChangesInOrder(t *testing.T) {
	l := newLive(&changeable{})
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				l.change(func(*changeable) *changeable { return &changeable{} })
			}
		})
		group.Go(func() { l.follow(func(c *changeable) { _ = c.messages }) })
	}
	group.Wait()
	var first, second []*changeable
	l.follow(func(c *changeable) { first = append(first, c) })
	l.follow(func(c *changeable) { second = append(second, c) })
	for range 3 {
		l.change(func(*changeable) *changeable { return &changeable{messages: actors.Languages{}} })
	}
	if !slices.Equal(first, second) || len(first) != 4 || first[3] != l.now() {
		t.Errorf("one heard %d changes, another %d", len(first), len(second))
	}
}

// toldWorld is a World that only tells, ears are events of which only one is heard.
type (
	toldWorld struct {
		actors.World

		told []string
	}
	ears struct {
		actors.WorldEvents

		asked []string
	}
)

func (w *toldWorld) Tell(_ context.Context, p actors.Player, text string) error {
	w.told = append(w.told, p.Name+": "+text)
	return nil
}

func (e *ears) Asked(p actors.Player, _ string) { e.asked = append(e.asked, p.Name) }

// TestTheCommandIsSwitchedWhileItRuns: who asks is heard or told.
func TestTheCommandIsSwitchedWhileItRuns(t *testing.T) {
	r := newReloaded(t)
	ground := &toldWorld{}
	world := switched{World: ground, log: r.host.log, live: r.live}
	ears := &ears{}
	asked := switchedEvents{ears, world, t.Context()}
	asked.Asked(actors.Player{Name: "Ann"}, "")
	r.rewrite(t, "triggers: { command: { enabled: false } }\n")
	r.says(t)
	asked.Asked(actors.Player{Name: "Ben"}, "")
	if !reflect.DeepEqual(ears.asked, []string{"Ann"}) || len(ground.told) != 1 || !strings.Contains(ground.told[0], "Ben: ") {
		t.Errorf("heard %q, told %q", ears.asked, ground.told)
	}
}

// TestUpReloadsOnSIGHUP: the program itself, signalled. What is adopted reaches the dispatcher.
func TestUpReloadsOnSIGHUP(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := newSite(t, oneHost("127.0.0.1:1"))
	file := filepath.Join(s.dir, "network.yml")
	p := launch(t, "host all", s.dir, []string{asProgram + "=1", "RTP_NET_SECRET=" + encoded(realSecret)}, terminate(t), program, "up", "--id", "all")
	p.says(t, "msg=ready proxy=all")
	for _, step := range []struct {
		more  string
		lines [][]string
	}{
		{"loadBalancer: { policy: leastPlayers }\n", [][]string{{"configuration adopted", "keys=[loadBalancer.policy]", "policy=leastPlayers/"}}},
		{"loadBalancer: { policy: best }\n", [][]string{{"level=ERROR", "configuration refused", "network.yml:10: loadBalancer.policy", "faults=1"}}},
		{"loadBalancer: { policy: leastPlayers }\nstore: {}\n", [][]string{{"configuration refused", "is given twice"}}},
		{"loadBalancer: { policy: roundRobin }\nheartbeat: { intervalMs: 900 }\n", [][]string{
			{"level=WARN", "needs a restart", "key=heartbeat.intervalMs", "1000 -> 900"}, {"configuration adopted", "policy=roundRobin/"},
		}},
	} {
		write(t, file, oneHost("127.0.0.1:1")+step.more)
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		for _, words := range step.lines {
			p.says(t, words...)
		}
	}
}

// TestUpIsToldWhileItWaitsForTheStore: a host that cannot start yet takes it on all the same.
func TestUpIsToldWhileItWaitsForTheStore(t *testing.T) {
	s := newSite(t, twoHosts(freePort(t)))
	again := make(chan os.Signal, 1)
	l := s.upTold(t, again, "proxy-2")
	l.says(t, "msg=edge")
	write(t, filepath.Join(s.dir, "messages.yml"), "login.down: later\n")
	again <- syscall.SIGHUP
	l.says(t, "configuration adopted", "keys=[messages]")
	l.stop(t)
}
