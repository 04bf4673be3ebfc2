package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// testInit: what init makes moves players, with a key of its own for each host and TLS to the
// store; each fact is signed by the host that wrote it, and a decision by the operator.
func testInit(t *testing.T, binary string) {
	servers := map[string]*gameServer{"A": startServer(t, "A", "1.21.1"), "B": startServer(t, "B", "1.21.1")}
	crowd := startPlayers(t, "1.21.1")
	for _, s := range servers {
		s.ready(t)
	}
	store, edge := freePort(t), freePort(t)
	dir := filepath.Join(t.TempDir(), "net")
	output(t, ".", binary, "init", dir, "--name", "e2e", "--domain", domain, "--proxies", "proxy-1", "--backends", "A,B",
		"--store-address", fmt.Sprintf("127.0.0.1:%d", store), "--edge-listen", fmt.Sprintf("127.0.0.1:%d", edge))
	edit(t, filepath.Join(dir, "network.yml"),
		"edge:\n", "edge:\n  identity: offline\n",
		"127.0.0.1:25566", fmt.Sprintf("127.0.0.1:%d", servers["A"].port), "127.0.0.1:25576", fmt.Sprintf("127.0.0.1:%d", servers["A"].rcon),
		"127.0.0.1:25567", fmt.Sprintf("127.0.0.1:%d", servers["B"].port), "127.0.0.1:25577", fmt.Sprintf("127.0.0.1:%d", servers["B"].rcon))
	for id := range servers {
		if err := os.WriteFile(filepath.Join(dir, id+".rcon"), []byte(rconPassword+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var hosts []*process
	for _, id := range []string{"proxy-1", "A", "B"} {
		hosts = append(hosts, launch(t, "host "+id, dir, nil, terminate(t), binary, "up", "--id", id))
	}
	for _, h := range hosts {
		h.says(t, "msg=ready proxy=")
	}
	for _, name := range []string{"Ada", "Ben", "Cleo"} {
		p := crowd.player(name)
		p.join(t, domain, edge)
		mark := p.mark()
		p.triggers(t, "rtp")
		p.reads(t, mark, "You have arrived.")
		mark = p.mark()
		p.triggers(t, "rtp")
		p.reads(t, mark, "You have arrived.")
		told := output(t, dir, binary, "replay", "player", name, "--config", "network.yml")
		if strings.Count(told, "COMPLETED on") < 2 || !strings.Contains(told, "all signatures verified") {
			t.Errorf("%s:\n%s", name, told)
		}
	}
	output(t, dir, binary, "drain", "A", "--why", "a test", "--config", "network.yml")
	if told := output(t, dir, binary, "state", "fleet", "--config", "network.yml"); !strings.Contains(told, "drained") {
		t.Errorf("drained:\n%s", told)
	}
	if told := output(t, dir, binary, "verify", "--config", "network.yml"); !strings.Contains(told, "nothing is wrong") {
		t.Errorf("verify:\n%s", told)
	}
}

// edit replaces words of a file, each of which stands in it.
func edit(t *testing.T, path string, pairs ...string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(exchange(t, string(text), pairs...)), 0o600); err != nil {
		t.Fatal(err)
	}
}
