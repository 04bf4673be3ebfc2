package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// nodeDir holds the Minecraft servers and clients, true in protocol.
const nodeDir = "../../testdata/e2e"

// oldestNode is the first version that the Minecraft library runs on.
const oldestNode = 20

// installNode makes node_modules complete for the lock file. It says what to install when
// the machine has no Node.
func installNode(t *testing.T) {
	t.Helper()
	checkNode(t)
	lock, err := os.ReadFile(filepath.Join(nodeDir, "package-lock.json"))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(lock)
	stamp, want := filepath.Join(nodeDir, "node_modules", ".complete"), hex.EncodeToString(sum[:])
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	began := time.Now()
	output(t, nodeDir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	output(t, nodeDir, "npm", "run", "prune")
	if err := os.WriteFile(stamp, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Logf("npm ci: %s", time.Since(began).Round(time.Millisecond))
}

func checkNode(t *testing.T) {
	t.Helper()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%s is not on the PATH: install Node.js %d or newer (https://nodejs.org); the end-to-end tests play real Minecraft connections with it", program, oldestNode)
		}
	}
	version := strings.TrimSpace(output(t, ".", "node", "--version"))
	major, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldestNode {
		t.Fatalf("node --version says %s: install Node.js %d or newer (https://nodejs.org)", version, oldestNode)
	}
}

// gameServer is a Minecraft server that any client and any RCON takes for a stock one.
type gameServer struct {
	*process
	port, rcon int
}

// rconPassword is that of every game server here.
const rconPassword = "an-rcon-password"

func startServer(t *testing.T, name, version string, flags ...string) *gameServer {
	t.Helper()
	args := append([]string{"backend.js", "--name", name, "--version", version, "--password", rconPassword, "--max", "60"}, flags...)
	s := &gameServer{process: launch(t, "server "+name, nodeDir, nil, closeInput, "node", args...)}
	return s
}

// ready waits until the server listens.
func (s *gameServer) ready(t *testing.T) *gameServer {
	t.Helper()
	e := s.until(t, 0, "ready", func(e happening) bool { return e.Ev == "ready" })
	s.port, s.rcon = e.Port, e.RCON
	return s
}

// joins are the arrivals of a player at the server, oldest first.
func (s *gameServer) joins(name string) []happening {
	var found []happening
	for _, e := range s.happened() {
		if e.Ev == "join" && e.Name == name {
			found = append(found, e)
		}
	}
	return found
}

// players is one process in which any number of clients play.
type players struct{ *process }

func startPlayers(t *testing.T, version string) players {
	t.Helper()
	return players{launch(t, "players", nodeDir, nil, closeInput, "node", "bots.js", "--version", version)}
}

// player is one client with an unmodified client's manners.
type player struct {
	players
	name string
}

func (p players) player(name string) player { return player{p, name} }

// do gives the client an order, with pairs of names and values.
func (p player) do(t *testing.T, cmd string, pairs ...any) {
	t.Helper()
	order := map[string]any{"cmd": cmd, "bot": p.name}
	for i := 0; i < len(pairs); i += 2 {
		order[pairs[i].(string)] = pairs[i+1]
	}
	text, err := json.Marshal(order)
	if err != nil {
		t.Fatal(err)
	}
	p.order(t, string(text))
}

// join connects to a port of this machine, as a client that was told the host name, and
// waits until it is in play.
func (p player) join(t *testing.T, host string, port int, pairs ...any) {
	t.Helper()
	mark := p.mark()
	p.do(t, "connect", append([]any{"host", host, "port", port, "dial", "127.0.0.1"}, pairs...)...)
	p.sees(t, mark, "position", func(e happening) bool { return e.Ev == "position" })
}

// sees waits for an event of this client behind a mark.
func (p player) sees(t *testing.T, mark int, what string, fits func(happening) bool) happening {
	t.Helper()
	return p.until(t, mark, p.name+" sees "+what, func(e happening) bool { return e.Bot == p.name && fits(e) })
}

// reads waits for a line of chat behind a mark.
func (p player) reads(t *testing.T, mark int, text string) {
	t.Helper()
	p.sees(t, mark, strconv.Quote(text), func(e happening) bool { return e.Ev == "chat" && strings.Contains(e.Text, text) })
}

// triggers types a trigger until the server takes it: right after a join it is locked.
func (p player) triggers(t *testing.T, command string) {
	t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		mark := p.mark()
		p.do(t, "chat_command", "command", "trigger "+command)
		answer := p.sees(t, mark, "the answer to "+command, func(e happening) bool {
			return e.Ev == "chat" && (strings.HasPrefix(e.Text, "Triggered") || strings.Contains(e.Text, "cannot trigger"))
		})
		if strings.HasPrefix(answer.Text, "Triggered") {
			return
		}
		select {
		case <-time.After(200 * time.Millisecond): // a person types no faster
		case <-late.C:
			t.Fatalf("%s: the trigger stays locked", p.name)
		}
	}
}

// lastPosition is where the server last put the client.
func (p player) lastPosition() happening {
	var last happening
	for _, e := range p.happened() {
		if e.Bot == p.name && e.Ev == "position" {
			last = e
		}
	}
	return last
}
