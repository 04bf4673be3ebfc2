package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// site is a directory with a network.yml, whose hosts run inside the test.
type site struct{ dir string }

func newSite(t *testing.T, config string) site {
	t.Helper()
	s := site{t.TempDir()}
	write(t, filepath.Join(s.dir, "network.yml"), config)
	write(t, filepath.Join(s.dir, "rcon.secret"), rconPassword)
	return s
}

// life is one `landfall up` inside the test.
type life struct {
	*process // what it logs
	cancel   context.CancelFunc
	err      error // once exited is closed
}

// up starts a host. It is asked to stop when the test is over, at the latest.
func (s site) up(t *testing.T, id string, env ...string) *life {
	t.Helper()
	return s.upTold(t, nil, id, env...)
}

// upTold is up of a host that reads its configuration again when told so.
func (s site) upTold(t *testing.T, again <-chan os.Signal, id string, env ...string) *life {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	l := &life{process: &process{name: "host " + id, grown: make(chan struct{}), exited: make(chan struct{})}, cancel: cancel}
	getenv := environment(append([]string{"RTP_NET_SECRET=" + encoded(realSecret)}, env...))
	go func() {
		defer close(l.exited)
		l.err = up(ctx, upOptions{config: filepath.Join(s.dir, "network.yml"), id: id, again: again}, getenv, l.process)
	}()
	t.Cleanup(func() {
		cancel()
		<-l.exited
		if t.Failed() {
			t.Logf("the last lines of %s:\n%s", id, l.tail(40))
		}
	})
	return l
}

// environment gives the last of the variables of a name.
func environment(pairs []string) func(string) string {
	return func(name string) string {
		value := ""
		for _, p := range pairs {
			if v, ok := strings.CutPrefix(p, name+"="); ok {
				value = v
			}
		}
		return value
	}
}

// end waits for the end of a host by itself, or after stop.
func (l *life) end(t *testing.T) error {
	t.Helper()
	select {
	case <-l.exited:
		return l.err
	case <-time.After(patience):
		t.Fatalf("%s does not end:\n%s", l.name, l.tail(20))
		return nil
	}
}

func (l *life) stop(t *testing.T) {
	t.Helper()
	l.cancel()
	if err := l.end(t); err != nil {
		t.Errorf("%s was asked to stop: %v", l.name, err)
	}
}

// oneHost is a network in one process: proxy, backend and store under one id.
func oneHost(rcon string) string {
	return fmt.Sprintf(`network: { name: test, enabled: true }
store: { maxBytes: 1073741824 }
edge: { domain: %s, identity: offline }
hosts:
  all:
    edges: [ { listen: "127.0.0.1:0" } ]
    advertise: "127.0.0.1:1"
    rcon: { address: %q, passwordFile: rcon.secret }
    regions: { default: {} }
`, domain, rcon)
}

// twoHosts are a carrier that is a proxy, and another proxy.
func twoHosts(storePort int) string {
	return fmt.Sprintf("network: { name: test, enabled: true }\nedge: { domain: %s }\n%shosts:\n%s%s",
		domain, carriedYAML("proxy-1", storePort), edgeYAML("proxy-1", 0), edgeYAML("proxy-2", 0))
}

// taken is an address that somebody listens on.
func taken(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestUpRefusesBadInput: one line that names the thing and the remedy, and nothing left behind.
func TestUpRefusesBadInput(t *testing.T) {
	before := runtime.NumGoroutine()
	busy := taken(t).Addr().String()
	all := oneHost(busy)
	owned := func(json string) func(*testing.T, site) {
		return func(t *testing.T, s site) {
			dir := filepath.Join(s.dir, "landfall-data")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "landfall.json"), json)
		}
	}
	for _, c := range []struct {
		name, config, id string
		env              string
		prepare          func(*testing.T, site)
		want             []string // in the one line
	}{
		{name: "no file", id: "all", prepare: func(t *testing.T, s site) { remove(t, filepath.Join(s.dir, "network.yml")) }, want: []string{"network.yml: no such file", "docs/network.yml"}},
		{name: "unknown key", config: strings.Replace(all, "edge:", "edgy:", 1), id: "all", want: []string{"network.yml:3: edgy:", "edge"}},
		{name: "no id", config: all, want: []string{"has no id", "--id", "LANDFALL_SERVER_ID", "all"}},
		{name: "two ids", config: twoHosts(1), id: "proxy-1", env: "LANDFALL_PROXY_ID=proxy-2", want: []string{"two ids", "LANDFALL_PROXY_ID", "proxy-1", "proxy-2"}},
		{name: "ill-formed id", config: all, id: "all hosts", want: []string{`"all hosts" is not an id`, "A-Za-z0-9_-"}},
		{name: "unknown id", config: all, id: "one", want: []string{`does not list "one"`, "all"}},
		{name: "store alone", config: strings.Replace(twoHosts(1), carriedYAML("proxy-1", 1), "", 1), id: "proxy-1", want: []string{"STORE_ALONE", "the proxy proxy-1", "store.carrier"}},
		{name: "no secret", config: backendOnly(busy), id: "survival", env: "RTP_NET_SECRET=", want: []string{"$RTP_NET_SECRET", "is not set", "head -c 32"}},
		{name: "short secret", config: backendOnly(busy), id: "survival", env: "RTP_NET_SECRET=c2hvcnQ=", want: []string{"has only 5 bytes", "32 bytes or more"}},
		{name: "sample secret", config: backendOnly(busy), id: "survival", env: "RTP_NET_SECRET=changeme", want: []string{"placeholder", "head -c 32"}},
		{name: "no password file", config: all, id: "all", prepare: func(t *testing.T, s site) { remove(t, filepath.Join(s.dir, "rcon.secret")) }, want: []string{"hosts.all.rcon.passwordFile", "rcon.password of server.properties"}},
		{name: "no rcon", config: strings.Replace(all, "rcon:", "#", 1), id: "all", want: []string{"hosts.all.rcon: is missing", "password file"}},
		{name: "bad messages", config: all, id: "all", prepare: func(t *testing.T, s site) { write(t, filepath.Join(s.dir, "messages.yml"), "- one\n") }, want: []string{"messages.yml", "key: text"}},
		{name: "edge port in use", config: strings.Replace(all, "127.0.0.1:0", busy, 1), id: "all", want: []string{"edge: listen on " + busy, "address already in use", "choose another port"}},
		{name: "store port in use", config: strings.Replace(twoHosts(1), "listen: \"127.0.0.1:1\"", fmt.Sprintf("listen: %q", busy), 1), id: "proxy-1", want: []string{"store.listen " + busy, "change store.listen"}},
		{name: "another network's store", config: all, id: "all", prepare: owned(`{"network":"other","format":1,"creator":"up"}`), want: []string{`belongs to network "other"`, "use another directory"}},
		{name: "a newer store", config: all, id: "all", prepare: owned(`{"network":"test","format":2,"creator":"up"}`), want: []string{"format version 2", "use the matching version"}},
		{name: "a demo's store", config: all, id: "all", prepare: owned(`{"network":"test","format":1,"creator":"demo"}`), want: []string{"landfall demo", "use another directory"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newSite(t, c.config)
			if c.prepare != nil {
				c.prepare(t, s)
			}
			err := s.up(t, c.id, c.env).end(t)
			if err == nil {
				t.Fatal("it ran")
			}
			line := oneLine(err)
			if !containsAll(line, c.want) || strings.Contains(line, "\n") || len(line) > 500 {
				t.Errorf("got %q, want it to name %q", line, c.want)
			}
			if status := statusOf(err); status != statusFailed {
				t.Errorf("status %d", status)
			}
		})
	}
	noGoroutinesAbove(t, before)
}

func backendOnly(rcon string) string {
	return fmt.Sprintf(`network: { name: test, enabled: true }
store: { carrier: survival }
hosts:
  survival: { advertise: "127.0.0.1:1", rcon: { address: %q, passwordFile: rcon.secret } }
`, rcon)
}

// noGoroutinesAbove waits until what was started has ended: servers let go a moment later.
func noGoroutinesAbove(t *testing.T, before int) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for late := time.After(5 * time.Second); runtime.NumGoroutine() > before; {
		select {
		case <-look.C:
		case <-late:
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// TestUpOfADisabledNetworkIsInert: no goroutine, no socket, no file. What it would listen on is
// taken, so that it could not have tried; nobody knocked at the game server; the directory is as it was.
func TestUpOfADisabledNetworkIsInert(t *testing.T) {
	for name, enabled := range map[string]string{"false": ", enabled: false", "absent": ""} {
		t.Run(name, func(t *testing.T) {
			busy, rcon := taken(t), taken(t).(*net.TCPListener)
			config := strings.Replace(oneHost(rcon.Addr().String()), ", enabled: true", enabled, 1)
			config = strings.Replace(config, "127.0.0.1:0", busy.Addr().String(), 1)
			config = strings.Replace(config, "store: {", fmt.Sprintf("store: { carrier: all, listen: %q,", busy.Addr()), 1)
			s := newSite(t, config)
			before := runtime.NumGoroutine()
			l := s.up(t, "all", "RTP_NET_SECRET=")
			if err := l.end(t); err != nil {
				t.Error(err)
			}
			l.says(t, "network.enabled is false")
			noGoroutinesAbove(t, before)
			if err := rcon.SetDeadline(time.Now()); err != nil {
				t.Fatal(err)
			}
			if c, err := rcon.Accept(); err == nil {
				t.Errorf("%s knocked at the game server", c.RemoteAddr())
			}
			files, err := os.ReadDir(s.dir)
			if err != nil || len(files) != 2 {
				t.Errorf("in its directory: %v, %v", files, err)
			}
		})
	}
}

func TestUpStopsInOrder(t *testing.T) {
	before := runtime.NumGoroutine()
	s := newSite(t, oneHost("127.0.0.1:1"))
	for range 2 { // the second time on the store of the first
		l := s.up(t, "all")
		l.says(t, "msg=ready proxy=all server=all carrier=true")
		l.stop(t)
	}
	noGoroutinesAbove(t, before)
}

func TestUpIsStoppedWhileItWaitsForTheStore(t *testing.T) {
	l := newSite(t, twoHosts(freePort(t))).up(t, "proxy-2")
	l.says(t, "msg=edge")
	l.stop(t)
}

// TestUpEndsWithoutItsStore: who is asked to stop while the store is away stops all the same.
func TestUpEndsWithoutItsStore(t *testing.T) {
	s := newSite(t, twoHosts(freePort(t)))
	carrier, other := s.up(t, "proxy-1"), s.up(t, "proxy-2")
	other.says(t, "msg=ready proxy=proxy-2")
	carrier.stop(t)
	other.says(t, "store connection lost")
	began := time.Now()
	other.stop(t)
	if took := time.Since(began); took > stopBudget {
		t.Errorf("it took %s", took)
	}
}

// TestUpOnAStoreThatIsOpen: a host started twice is told so, the first goes on.
func TestUpOnAStoreThatIsOpen(t *testing.T) {
	s := newSite(t, oneHost("127.0.0.1:1"))
	first := s.up(t, "all")
	first.says(t, "msg=ready proxy=all")
	err := s.up(t, "all").end(t)
	if err == nil || !containsAll(oneLine(err), []string{"store.dir", "another process has it open", "stop that one"}) {
		t.Errorf("the second: %v", err)
	}
	if first.over() {
		t.Errorf("the first ended: %v", first.err)
	}
}

// TestUpGroupsDurability: carrier and host settle what an append waits for; one whose file says
// something else is refused, and a verb learns it from the store.
func TestUpGroupsDurability(t *testing.T) {
	always := twoHosts(freePort(t))
	s := newSite(t, strings.Replace(always, "store: {", "store: { durability: grouped,", 1))
	carrier := s.up(t, "proxy-1")
	carrier.says(t, "durability=grouped")
	s.up(t, "proxy-2").says(t, "msg=ready proxy=proxy-2")
	t.Setenv(envSecret, encoded(realSecret))
	if status, out, errs := landfall(t.Context(), "kill", "on", "--config", filepath.Join(s.dir, "network.yml")); status != statusOK {
		t.Errorf("kill: status %d, %q, %q", status, out, errs)
	}
	err := newSite(t, always).up(t, "proxy-2").end(t)
	if err == nil || !containsAll(oneLine(err), []string{"store.durability is always here", "the carrier of this store has it grouped", "the same network.yml"}) {
		t.Errorf("a host with another file: %v", err)
	}
}

// TestUpTwiceUnderOneID: the newer process goes on, the older one ends with its own status.
func TestUpTwiceUnderOneID(t *testing.T) {
	s := newSite(t, twoHosts(freePort(t)))
	s.up(t, "proxy-1").says(t, "msg=ready proxy=proxy-1")
	first := s.up(t, "proxy-2")
	first.says(t, "msg=ready proxy=proxy-2")
	second := s.up(t, "proxy-2")
	second.says(t, "msg=ready proxy=proxy-2")
	err := first.end(t)
	if statusOf(err) != statusDuplicateID || !containsAll(oneLine(err), []string{"host proxy-2", "DUPLICATE_ID", "give each host its own id"}) {
		t.Errorf("the first ended with status %d: %v", statusOf(err), err)
	}
	if second.over() {
		t.Errorf("the second ended: %v", second.err)
	}
}

func TestUpWithAWrongRCONPassword(t *testing.T) {
	l := taken(t)
	go refusePasswords(l)
	err := newSite(t, oneHost(l.Addr().String())).up(t, "all").end(t)
	if statusOf(err) != statusFailed || !containsAll(oneLine(err), []string{"rcon " + l.Addr().String(), "password refused", "rcon.passwordFile"}) {
		t.Errorf("status %d: %v", statusOf(err), err)
	}
	if strings.Contains(fmt.Sprint(err), rconPassword) {
		t.Error("the error tells the password")
	}
}

// refusePasswords is an RCON that knows another password: id -1 is its refusal.
func refusePasswords(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		var length uint32
		if binary.Read(c, binary.LittleEndian, &length) == nil {
			_, _ = io.CopyN(io.Discard, c, int64(length))
			_ = binary.Write(c, binary.LittleEndian, []int32{10, -1, 2})
			_, _ = c.Write([]byte{0, 0})
		}
		_ = c.Close()
	}
}

// TestUpWithAnUnreachableRCON: the host stays, says so once, and is DEGRADED.
func TestUpWithAnUnreachableRCON(t *testing.T) {
	s := newSite(t, oneHost(fmt.Sprintf("127.0.0.1:%d", freePort(t))))
	l := s.up(t, "all")
	l.says(t, "msg=ready proxy=all")
	key, err := events.NewKey(realSecret)
	if err != nil {
		t.Fatal(err)
	}
	w := watchLog(t, filepath.Join(s.dir, "landfall-data"), events.NewKeyring(key))
	w.until(t, "three heartbeats that say DEGRADED", func() bool { return degraded(w.View) })
	seen := w.Fleet().Backend("all").Seq
	w.until(t, "more heartbeats", func() bool { return degraded(w.View) && w.Fleet().Backend("all").Seq > seen+2 })
	if n := strings.Count(l.tail(1000), "enable-rcon=true"); n != 1 {
		t.Errorf("the remedy was said %d times, want once:\n%s", n, l.tail(1000))
	}
	l.stop(t)
}

func degraded(v *projections.View) bool {
	b := v.Fleet().Backend("all")
	return b != nil && b.State == events.Degraded
}

// TestUpWithoutASecretLetsPlayersIn: an edge that cannot sign opens its doors to the
// advertised servers in turn.
func TestUpWithoutASecretLetsPlayersIn(t *testing.T) {
	servers := []net.Listener{taken(t), taken(t)}
	port := freePort(t)
	l := newSite(t, fmt.Sprintf("network: { name: test, enabled: true }\nstore: { carrier: proxy-1, url: \"nats://127.0.0.1:1\" }\nedge: { domain: %s }\nhosts:\n%s  A: { advertise: %q }\n  B: { advertise: %q }\n",
		domain, edgeYAML("proxy-1", port), servers[0].Addr(), servers[1].Addr())).up(t, "proxy-1", "RTP_NET_SECRET=")
	l.says(t, "level=ERROR", "no secret", "RTP_NET_SECRET", "ready=false")
	for _, server := range []net.Listener{servers[0], servers[1], servers[0]} {
		knock(t, port)
		c, err := server.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if first, err := bufio.NewReader(c).ReadByte(); err != nil || int(first) != len(loginBytes[0])-1 {
			t.Errorf("the server read %d, %v: not the client's handshake", first, err)
		}
		_ = c.Close()
	}
	if strings.Contains(l.tail(1000), "msg=ready") {
		t.Error("it calls itself ready")
	}
	l.stop(t)
}

// loginBytes are the two frames with which a client of 1.8 logs in as "Ann".
var loginBytes = [2]string{"\x0f\x00\x2f\x09localhost\x63\xdd\x02", "\x05\x00\x03Ann"}

func knock(t *testing.T, port int) {
	t.Helper()
	c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, loginBytes[0]+loginBytes[1]); err != nil {
		t.Fatal(err)
	}
}
