package rcon

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/landfall/landfall/events"
)

// fakeWorld answers commands as a small Minecraft server of version 1.21.1.
type fakeWorld struct {
	mu      sync.Mutex
	paper   bool
	old     bool // has no /transfer
	players map[string]events.Position
	order   []string
	boards  map[string]*board // by objective
	forced  map[string]bool   // "world x z" in chunks
	marker  []events.Position
	hot     bool // magma everywhere
	airOf   string
	decor   bool   // a team decorates names
	lacks   string // a block type unknown to it
	ocean   func(x, z float64) bool
	border  float64
	mspt    float64
	frozen  bool           // teleports say yes and do nothing
	hook    func(c string) // runs before each command, outside the lock
	said    []string
}

// board is one trigger objective.
type board struct {
	scores  map[string]int
	enabled map[string]bool
}

// board is there once somebody asks for it.
func (w *fakeWorld) board(name string) *board {
	if w.boards[name] == nil {
		w.boards[name] = &board{scores: map[string]int{}, enabled: map[string]bool{}}
	}
	return w.boards[name]
}

func newFakeWorld() *fakeWorld {
	return &fakeWorld{
		players: map[string]events.Position{}, boards: map[string]*board{}, forced: map[string]bool{},
		airOf: "air", ocean: func(float64, float64) bool { return false }, border: 59999968, mspt: 2.5,
	}
}

const (
	noEntity = "No entity was found"
	noPlayer = "No player was found"
	unknown  = "Unknown or incomplete command, see below for error"
)

func (w *fakeWorld) join(names ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, name := range names {
		w.players[name] = events.Position{World: "minecraft:overworld", X: 8.5, Y: 70, Z: 8.5}
		w.order = append(w.order, name)
	}
}

func (w *fakeWorld) leave(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.players, name)
	w.order = slices.DeleteFunc(w.order, func(n string) bool { return n == name })
}

// trigger is a player's /trigger rtp set value; false when it is locked.
func (w *fakeWorld) trigger(name string, value int) bool { return w.triggerAs("rtp", name, value) }

// triggerAs is the same under another name of the command.
func (w *fakeWorld) triggerAs(alias, name string, value int) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.boards[alias]
	if b == nil || !b.enabled[name] {
		return false
	}
	b.enabled[name] = false
	b.scores[name] = value
	return true
}

func (w *fakeWorld) forcedChunks() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for c := range w.forced {
		out = append(out, c)
	}
	slices.Sort(out)
	return out
}

func (w *fakeWorld) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *fakeWorld) answer(command string) string {
	w.mu.Lock()
	hook := w.hook
	w.mu.Unlock()
	if hook != nil {
		hook(command)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.run(command, "minecraft:overworld", "")
}

var (
	inRE        = regexp.MustCompile(`^execute in (\S+) run (.*)$`)
	asRE        = regexp.MustCompile(`^execute as @a\[scores=\{(\w+)=1\.\.\}\] run (.*)$`)
	ifRE        = regexp.MustCompile(`^execute if entity @a\[scores=\{(\w+)=1\.\.\}\]$`)
	standRE     = regexp.MustCompile(`^execute in (\S+) positioned (-?\d+) (-?\d+) (-?\d+) if block ~ ~ ~ (\w+) if block ~ ~1 ~ (\w+)(( unless block ~ ~-1 ~ \w+)*)$`)
	spreadCmdRE = regexp.MustCompile(`^spreadplayers (-?\d+) (-?\d+) 0 7 (under 120 )?false (@e\[type=marker,tag=landfall_probe,limit=1\])$`)
	dataCmdRE   = regexp.MustCompile(`^data get entity (\S+) (Pos|Dimension)$`)
	tpCmdRE     = regexp.MustCompile(`^tp (\S+) (\S+\.\S+) (\S+\.\S+) (\S+\.\S+)( \S+ \S+)?$`)
)

// run is one command, in a world, by whom (for @s).
func (w *fakeWorld) run(command, world, self string) string {
	if w.paper {
		command = strings.TrimPrefix(command, "minecraft:")
	}
	verb, rest, _ := strings.Cut(command, " ")
	switch {
	case inRE.MatchString(command):
		m := inRE.FindStringSubmatch(command)
		return w.run(m[2], m[1], self)
	case asRE.MatchString(command):
		var out strings.Builder
		m := asRE.FindStringSubmatch(command)
		for _, name := range w.order {
			if w.board(m[1]).scores[name] >= 1 {
				out.WriteString(w.run(m[2], world, name))
			}
		}
		return out.String()
	case ifRE.MatchString(command):
		return w.countAsked(w.board(ifRE.FindStringSubmatch(command)[1]))
	case standRE.MatchString(command):
		return w.stand(standRE.FindStringSubmatch(command))
	}
	switch verb {
	case "tps":
		if w.paper {
			return "\u00a76TPS from last 1m, 5m, 15m: \u00a7a20.0\u00a7r, \u00a7a20.0\u00a7r, \u00a7a20.0\n"
		}
	case "mspt":
		if w.paper {
			return fmt.Sprintf("\u00a76Server tick times from last 5s:\n\u00a76\u25f4 \u00a7a%.1f\u00a77/\u00a7a0.0\u00a77/\u00a7a6.0\n", w.mspt)
		}
	case "tick":
		return fmt.Sprintf("The game is running normallyTarget tick rate: 20.0 per second.\nAverage time per tick: %.1fms (Target: 50.0ms)", w.mspt)
	case "list":
		return w.list()
	case "worldborder":
		return fmt.Sprintf("The world border is currently %.0f block(s) wide", w.border)
	case "forceload":
		return w.forceload(rest, world)
	case "summon", "kill", "spreadplayers":
		return w.markers(verb, command, world)
	case "data":
		return w.data(command)
	case "tp":
		return w.tp(command, world)
	case "transfer":
		return w.transfer(rest)
	case "tellraw":
		return w.tell(rest)
	case "scoreboard":
		return w.scoreboard(strings.Fields(rest), self)
	}
	return unknown + command + "<--[HERE]"
}

func (w *fakeWorld) list() string {
	var names []string
	for _, name := range w.order {
		names = append(names, name+" ("+events.OfflinePlayer(name).String()+")")
	}
	return fmt.Sprintf("There are %d of a max of 20 players online: %s", len(names), strings.Join(names, ", "))
}

func (w *fakeWorld) countAsked(b *board) string {
	n := 0
	for _, name := range w.order {
		if b.scores[name] >= 1 {
			n++
		}
	}
	if n == 0 {
		return "Test failed"
	}
	return fmt.Sprintf("Test passed, count: %d", n)
}

func (w *fakeWorld) stand(m []string) string {
	if w.lacks != "" && strings.Contains(m[7], " "+w.lacks) {
		return "Unknown block type 'minecraft:" + w.lacks + "'...<--[HERE]"
	}
	if !w.forced[chunkKey(m[1], atof(m[2]), atof(m[4]))] {
		return "That position is not loaded"
	}
	if m[5] != w.airOf || m[6] != w.airOf || (w.hot && strings.Contains(m[7], "magma_block")) {
		return ""
	}
	return "Test passed"
}

func chunkKey(world string, x, z float64) string {
	c := chunkOf(events.Position{World: world, X: x, Z: z})
	return fmt.Sprintf("%s %d %d", world, c.X, c.Z)
}

func (w *fakeWorld) forceload(rest, world string) string {
	f := strings.Fields(rest)
	key := chunkKey(world, atof(f[1]), atof(f[2]))
	switch {
	case f[0] == "add" && w.forced[key]:
		return "No chunks were marked for force loading"
	case f[0] == "add":
		w.forced[key] = true
		return "Marked chunk [1, 2] in " + world + " to be force loaded"
	case w.forced[key]:
		delete(w.forced, key)
		return "Unmarked chunk [1, 2] in " + world + " for force loading"
	}
	return "No chunks were removed from force loading"
}

func (w *fakeWorld) markers(verb, command, world string) string {
	f := strings.Fields(command)
	switch verb {
	case "summon":
		w.marker = append(w.marker, events.Position{World: world, X: atof(f[2]), Y: atof(f[3]), Z: atof(f[4])})
		return "Summoned new Marker"
	case "kill":
		if len(w.marker) == 0 {
			return noEntity
		}
		w.marker = nil
		return "Killed Marker"
	}
	m := spreadCmdRE.FindStringSubmatch(command)
	switch {
	case m == nil:
		return unknown
	case len(w.marker) == 0:
		return noEntity
	case w.ocean(atof(m[1]), atof(m[2])):
		return "Could not spread 1 entity/entities around 1.5, 1.5 (too many entities for space - try using spread of at most 0.71)"
	}
	w.marker[0] = events.Position{World: world, X: atof(m[1]) + 3.5, Y: 71, Z: atof(m[2]) - 2.5}
	return "Spread 1 player(s) around 1.5, 1.5 with an average distance of 0.00 blocks apart"
}

func (w *fakeWorld) data(command string) string {
	m := dataCmdRE.FindStringSubmatch(command)
	if m == nil {
		return unknown
	}
	at, found := w.players[m[1]]
	if strings.HasPrefix(m[1], "@e[type=marker") && len(w.marker) > 0 {
		at, found = w.marker[0], true
	}
	switch {
	case !found:
		return noEntity
	case m[2] == "Dimension":
		return m[1] + ` has the following entity data: "` + at.World + `"`
	}
	return fmt.Sprintf("Marker has the following entity data: [%vd, %vd, %vd]", at.X, at.Y, at.Z)
}

func (w *fakeWorld) tp(command, world string) string {
	m := tpCmdRE.FindStringSubmatch(command)
	if m == nil {
		return unknown
	}
	if _, ok := w.players[m[1]]; !ok {
		return noEntity
	}
	if !w.frozen {
		w.players[m[1]] = events.Position{World: world, X: atof(m[2]), Y: atof(m[3]), Z: atof(m[4])}
	}
	return fmt.Sprintf("Teleported %s to %f, %f, %f", m[1], atof(m[2]), atof(m[3]), atof(m[4]))
}

func (w *fakeWorld) transfer(rest string) string {
	f := strings.Fields(rest)
	switch _, here := w.players[f[len(f)-1]]; {
	case w.old:
		return unknown + "transfer<--[HERE]"
	case !here:
		return noPlayer
	}
	return "Transferring " + f[2] + " to " + f[0] + ":" + f[1]
}

func (w *fakeWorld) tell(rest string) string {
	name, text, _ := strings.Cut(rest, " ")
	if _, ok := w.players[name]; !ok {
		return noPlayer
	}
	w.said = append(w.said, text)
	return ""
}

func (w *fakeWorld) scoreboard(f []string, self string) string {
	if f[0] == "objectives" {
		if w.boards[f[2]] != nil {
			return "An objective already exists by that name"
		}
		w.board(f[2])
		return "Created new objective [" + f[2] + "]"
	}
	b, title := w.board(f[3]), "["+f[3]+"]"
	switch {
	case f[1] == "enable":
		for name := range w.players {
			b.enabled[name] = true
		}
		return "Enabled trigger " + title + " for 2 entities"
	case f[1] == "reset" && f[2] == "*":
		clear(b.scores)
		clear(b.enabled)
		return "Reset " + title + " for 0 entities"
	case f[1] == "reset":
		delete(b.scores, f[2])
		delete(b.enabled, f[2])
		return "Reset " + title + " for " + f[2]
	}
	name := strings.Replace(f[2], "@s", self, 1)
	if v, ok := b.scores[name]; ok {
		if w.decor {
			name = "[VIP] " + name + " [x]"
		}
		return fmt.Sprintf("%s has %d %s", name, v, title)
	}
	return "Can't get value of " + title + " for " + name + "; none is set"
}

func atof(s string) float64 {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic(err)
	}
	return v
}
