package rcon

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Vanilla glues the messages of one command with no separator, Forge puts line
// breaks between them, Paper colours some: so nothing here splits by line, and
// each reader searches the words that stand around what it wants. The formats
// are those of the game's own language files, 1.16 to 26.1.

const (
	number   = `[-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?`
	nameText = `[.*]?[A-Za-z0-9_]{1,16}`
	uuidText = `[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}`
)

var (
	colourRE   = regexp.MustCompile("\u00a7.|\x1b\\[[0-9;?]*[ -/]*[@-~]")
	listRE     = regexp.MustCompile(`There are (\d+) (?:of a max of|out of maximum) (\d+) players online`)
	nameUUIDRE = regexp.MustCompile(`[:,] (` + nameText + `) \((` + uuidText + `)\)`)
	targetRE   = regexp.MustCompile(`Target tick rate: (` + number + `) per second`)
	averageRE  = regexp.MustCompile(`Average time per tick: (` + number + `) ?ms`)
	tpsRE      = regexp.MustCompile(`TPS from last [^:]*:\s*\*?(\d+(?:[.,]\d+)?),? +\*?(\d+(?:[.,]\d+)?),? +\*?(\d+(?:[.,]\d+)?)`)
	msptRE     = regexp.MustCompile(`Server tick times(?s:.*?)(\d+[.,]\d+)/(\d+[.,]\d+)/(\d+[.,]\d+)`)
	spreadRE   = regexp.MustCompile(`(Spread|Could not spread) (\d+) `)
	posRE      = regexp.MustCompile(`has the following entity data: \[(` + number + `)d, (` + number + `)d, (` + number + `)d\]`)
	dataRE     = regexp.MustCompile(`has the following entity data: "([a-z0-9_.-]+:[a-z0-9_./-]+)"`)
	countRE    = regexp.MustCompile(`Test passed[,.] [Cc]ount: (\d+)`)
	teleportRE = regexp.MustCompile(`Teleported .*? to (` + number + `), (` + number + `), (` + number + `)`)
	borderRE   = regexp.MustCompile(`world border is currently (` + number + `) block`)
	oneScoreRE = regexp.MustCompile(` has (-?\d+) \[`)
	blockRE    = regexp.MustCompile(`Unknown block type '(?:minecraft:)?([a-z0-9_]+)'`)
)

// clean takes out legacy colours and terminal sequences.
func clean(text string) string {
	if !strings.ContainsAny(text, "\u00a7\x1b") {
		return text
	}
	return colourRE.ReplaceAllString(text, "")
}

// decimal reads a number whose decimal sign may be a comma, as under some JVM
// locales. Infinite values are not numbers.
func decimal(text string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.Replace(text, ",", ".", 1), 64)
	return v, err == nil && !math.IsInf(v, 0) && !math.IsNaN(v)
}

func decimals(texts []string) ([]float64, bool) {
	out := make([]float64, 0, len(texts))
	for _, text := range texts {
		v, ok := decimal(text)
		if !ok {
			return nil, false
		}
		out = append(out, v)
	}
	return out, true
}

// roster is the answer to list uuids.
type roster struct {
	Online, Max int
	Players     []actors.Player
}

func parseList(text string) (roster, bool) {
	text = clean(text)
	at := listRE.FindStringSubmatchIndex(text)
	if at == nil {
		return roster{}, false
	}
	online, err1 := strconv.Atoi(text[at[2]:at[3]])
	limit, err2 := strconv.Atoi(text[at[4]:at[5]])
	if err1 != nil || err2 != nil {
		return roster{}, false
	}
	r := roster{Online: online, Max: limit}
	for _, m := range nameUUIDRE.FindAllStringSubmatch(text[at[1]:], -1) {
		if id, err := uuid.Parse(m[2]); err == nil {
			r.Players = append(r.Players, actors.Player{ID: events.PlayerID(id), Name: m[1], NativeID: id.String()})
		}
	}
	return r, true
}

// parseTickQuery reads vanilla's tick query: milliseconds per tick and the
// target rate per second.
func parseTickQuery(text string) (mspt, target float64, ok bool) {
	text = clean(text)
	average, rate := averageRE.FindStringSubmatch(text), targetRE.FindStringSubmatch(text)
	if average == nil || rate == nil {
		return 0, 0, false
	}
	v, ok := decimals([]string{average[1], rate[1]})
	if !ok {
		return 0, 0, false
	}
	return v[0], v[1], true
}

// parseTPS reads Paper's tps: the ticks per second of the last minute.
func parseTPS(text string) (float64, bool) {
	m := tpsRE.FindStringSubmatch(clean(text))
	if m == nil {
		return 0, false
	}
	return decimal(m[1])
}

// parseMSPT reads Paper's mspt: the average of the last 5 s in milliseconds.
func parseMSPT(text string) (float64, bool) {
	m := msptRE.FindStringSubmatch(clean(text))
	if m == nil {
		return 0, false
	}
	return decimal(m[1])
}

// unknownCommand recognises a command, or an argument of it, that this version
// does not have.
func unknownCommand(text string) bool {
	text = clean(text)
	return strings.Contains(text, "Unknown or incomplete command") ||
		strings.Contains(text, "Incorrect argument for command") ||
		strings.Contains(text, "Unknown command")
}

// nobody recognises the answer for a target that is not there.
func nobody(text string) bool {
	text = clean(text)
	return strings.Contains(text, "No player was found") || strings.Contains(text, "No entity was found") ||
		strings.Contains(text, "That player does not exist")
}

// marking is what forceload did.
type marking int

const (
	markFailed  marking = iota
	markAdded           // it is ours now
	markAlready         // it was force-loaded before, by us or by the operator
	markRemoved
	markNone // it was not force-loaded
)

func parseForceload(text string) marking {
	text = clean(text)
	switch {
	case strings.Contains(text, "Unmarked "):
		return markRemoved
	case strings.Contains(text, "Marked "):
		return markAdded
	case strings.Contains(text, "No chunks were marked for force loading"):
		return markAlready
	case strings.Contains(text, "No chunks were removed from force loading"):
		return markNone
	}
	return markFailed
}

func summoned(text string) bool { return strings.Contains(clean(text), "Summoned new ") }

// parseSpread tells whether spreadplayers found ground; ok is false when the
// text is neither.
func parseSpread(text string) (found, ok bool) {
	m := spreadRE.FindStringSubmatch(clean(text))
	if m == nil {
		return false, false
	}
	return m[1] == "Spread", true
}

func parsePos(text string) (point, bool) {
	return position(posRE.FindStringSubmatch(clean(text)))
}

func parseTeleported(text string) (point, bool) {
	return position(teleportRE.FindStringSubmatch(clean(text)))
}

// point is a place in some world, in blocks.
type point struct{ X, Y, Z float64 }

func position(match []string) (point, bool) {
	if match == nil {
		return point{}, false
	}
	v, ok := decimals(match[1:])
	if !ok {
		return point{}, false
	}
	return point{v[0], v[1], v[2]}, true
}

// parseDimension reads data get ... Dimension.
func parseDimension(text string) (string, bool) {
	m := dataRE.FindStringSubmatch(clean(text))
	if m == nil {
		return "", false
	}
	return m[1], true
}

// parseTest reads a trailing condition of execute and how many passed. A
// condition in the middle that fails says nothing at all.
func parseTest(text string) (passed bool, count int) {
	text = clean(text)
	if !strings.Contains(text, "Test passed") {
		return false, 0
	}
	if m := countRE.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			return true, n
		}
	}
	return true, 1
}

func transferring(text string) bool { return strings.Contains(clean(text), "Transferring ") }

// parseBorder reads worldborder get: its width in blocks.
func parseBorder(text string) (float64, bool) {
	m := borderRE.FindStringSubmatch(clean(text))
	if m == nil {
		return 0, false
	}
	return decimal(m[1])
}

// scoreRE finds the scores of one objective.
func scoreRE(objective string) *regexp.Regexp {
	return regexp.MustCompile(`(` + nameText + `) has (-?\d+) \[` + regexp.QuoteMeta(objective) + `\]`)
}

// score is one line of a trigger's objective.
type score struct {
	Name  string
	Value int
}

// parseScores reads any number of glued "Bob has 3 [rtp]", as scoreRE finds them.
func parseScores(of *regexp.Regexp, text string) []score {
	var out []score
	for _, m := range of.FindAllStringSubmatch(clean(text), -1) {
		if v, err := strconv.Atoi(m[2]); err == nil {
			out = append(out, score{m[1], v})
		}
	}
	return out
}

// parseScore reads the score of a player known by name, whatever name a team
// shows.
func parseScore(text string) (int, bool) {
	m := oneScoreRE.FindStringSubmatch(clean(text))
	if m == nil {
		return 0, false
	}
	v, err := strconv.Atoi(m[1])
	return v, err == nil
}

// unknownBlock names the block type this version does not know.
func unknownBlock(text string) (string, bool) {
	m := blockRE.FindStringSubmatch(clean(text))
	if m == nil {
		return "", false
	}
	return m[1], true
}
