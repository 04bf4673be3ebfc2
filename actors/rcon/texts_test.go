package rcon

import (
	"reflect"
	"testing"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// player is named as a server in offline mode names it.
func player(name string) actors.Player {
	id := events.OfflinePlayer(name)
	return actors.Player{ID: id, Name: name, NativeID: id.String()}
}

func TestParseList(t *testing.T) {
	bob, al := player("Bob"), player(".Al_2")
	for name, c := range map[string]struct {
		text string
		want roster
		ok   bool
	}{
		"nobody":           {"There are 0 of a max of 20 players online: ", roster{Max: 20}, true},
		"nobody, trimmed":  {"There are 0 of a max of 20 players online:", roster{Max: 20}, true},
		"names only":       {"There are 1 of a max of 20 players online: Bob", roster{Online: 1, Max: 20}, true},
		"two":              {"There are 2 of a max of 100 players online: Bob (" + bob.NativeID + "), .Al_2 (" + al.NativeID + ")", roster{2, 100, []actors.Player{bob, al}}, true},
		"coloured, forge":  {"\u00a7aThere are 1 of a max of 20 players online: \u00a7rBob (" + bob.NativeID + ")\n", roster{1, 20, []actors.Player{bob}}, true},
		"name with spaces": {"There are 1 of a max of 20 players online: A b (" + bob.NativeID + ")", roster{Online: 1, Max: 20}, true},
		"plugin":           {"Online (1/20): Bob", roster{}, false},
		"too big":          {"There are 99999999999999999999 of a max of 20 players online: ", roster{}, false},
	} {
		if got, ok := parseList(c.text); ok != c.ok || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v %v, want %+v %v", name, got, ok, c.want, c.ok)
		}
	}
}

func TestParseTickQuery(t *testing.T) {
	for name, c := range map[string]struct {
		text         string
		mspt, target float64
		ok           bool
	}{
		"1.21.1, glued":  {"The game is running normallyTarget tick rate: 20.0 per second.\nAverage time per tick: 7.7ms (Target: 50.0ms)Percentiles: P50: 7.4ms P95: 9.9ms P99: 11.1ms, sample: 100", 7.7, 20, true},
		"1.20.4":         {"The game runs normallyTarget tick rate: 20.0 per second.\nAverage time per tick: 1.2ms (Target: 50.0ms)Percentiles: P50: 1.2ms P95: 2ms P99: 3ms, sample: 100", 1.2, 20, true},
		"1.21.9":         {"The game is running normallyTarget tick rate: 20.0 per second.\nAverage time per tick: 7.7ms (Target: 50.0ms)Percentiles: P50: 7.4ms P95: 9.9ms P99: 11.1ms. Sample: 100", 7.7, 20, true},
		"lagging":        {"The game is running, but can't keep up with the target tick rateTarget tick rate: 20.0 per second.\nAverage time per tick: 62.5ms (Target: 50.0ms)", 62.5, 20, true},
		"sprinting":      {"The game is sprintingTarget tick rate: 20.0 per second (ignored, reference only).\nAverage time per tick: 0.9ms", 0.9, 20, true},
		"decimal comma":  {"Target tick rate: 20,0 per second.\nAverage time per tick: 7,7ms (Target: 50,0ms)", 7.7, 20, true},
		"exponent":       {"Target tick rate: 2.0E1 per second.\nAverage time per tick: 1.0E-4ms", 0.0001, 20, true},
		"unknown":        {"Unknown or incomplete command, see below for errortick query<--[HERE]", 0, 0, false},
		"not finite":     {"Target tick rate: 20.0 per second.\nAverage time per tick: 1E999ms", 0, 0, false},
		"rate is absent": {"Average time per tick: 1.0ms", 0, 0, false},
	} {
		mspt, target, ok := parseTickQuery(c.text)
		if ok != c.ok || mspt != c.mspt || target != c.target {
			t.Errorf("%s: got %v %v %v", name, mspt, target, ok)
		}
	}
}

func TestParseOneFigure(t *testing.T) {
	for name, c := range map[string]struct {
		parse func(string) (float64, bool)
		text  string
		want  float64
		ok    bool
	}{
		"tps paper":          {parseTPS, "\u00a76TPS from last 1m, 5m, 15m: \u00a7a20.0\u00a7r, \u00a7a19.5\u00a7r, \u00a7a20.0\n", 20, true},
		"tps spigot capped":  {parseTPS, "\u00a76TPS from last 1m, 5m, 15m: \u00a7a*20.0, \u00a7a*20.0, \u00a7a*20.0", 20, true},
		"tps above 20":       {parseTPS, "TPS from last 1m, 5m, 15m: 20.03, 20.0, 20.0", 20.03, true},
		"tps decimal comma":  {parseTPS, "TPS from last 1m, 5m, 15m: 19,98, 20,0, 20,0", 19.98, true},
		"tps 5s first":       {parseTPS, "TPS from last 5s, 1m, 5m, 15m: 18.5, 20.0, 20.0, 20.0", 18.5, true},
		"tps folia":          {parseTPS, "Lowest Region TPS: 20.00", 0, false},
		"tps vanilla":        {parseTPS, "Unknown or incomplete command. See below for errortps<--[HERE]", 0, false},
		"mspt paper":         {parseMSPT, "\u00a76Server tick times \u00a7e(\u00a77avg\u00a7e/\u00a77min\u00a7e/\u00a77max\u00a7e)\u00a76 from last 5s\u00a77,\u00a76 10s\u00a77,\u00a76 1m\u00a7e:\n\u00a76\u25f4 \u00a7a0.3\u00a77/\u00a7a0.0\u00a77/\u00a7a6.0\u00a7e, \u00a7a0.4\u00a77/\u00a7a0.1\u00a77/\u00a7a7.0\u00a7e, \u00a7a0.5\u00a77/\u00a7a0.1\u00a77/\u00a7a9.0\n", 0.3, true},
		"mspt plain":         {parseMSPT, "Server tick times (avg/min/max) from last 5s, 10s, 1m:\n\u25f4 7.2/3.0/16.0, 8.4/0.1/7.0, 9.5/0.1/9.0", 7.2, true},
		"mspt decimal comma": {parseMSPT, "Server tick times (avg/min/max) from last 5s, 10s, 1m:\n\u25f4 7,2/3,0/16,0, 8,4/0,1/7,0, 9,5/0,1/9,0", 7.2, true},
		"mspt ansi":          {parseMSPT, "\x1b[33mServer tick times\x1b[0m from last 5s:\n\u25f4 \x1b[32m1.5\x1b[0m/\x1b[32m0.5\x1b[m/2.5", 1.5, true},
		"mspt unknown":       {parseMSPT, "Unknown or incomplete command, see below for errormspt<--[HERE]", 0, false},
		"border":             {parseBorder, "The world border is currently 59999968 block(s) wide", 59999968, true},
		"border 1.16":        {parseBorder, "The world border is currently 1000 blocks wide", 1000, true},
		"border exponent":    {parseBorder, "The world border is currently 5.9999968E7 block(s) wide", 59999968, true},
	} {
		if got, ok := c.parse(c.text); got != c.want || ok != c.ok {
			t.Errorf("%s: got %v %v", name, got, ok)
		}
	}
}

func TestParsePoints(t *testing.T) {
	for name, c := range map[string]struct {
		parse func(string) (point, bool)
		text  string
		want  point
		ok    bool
	}{
		"pos":            {parsePos, "Marker has the following entity data: [106.5d, 67.0d, -33.5d]", point{106.5, 67, -33.5}, true},
		"pos exponent":   {parsePos, "Bob has the following entity data: [1.23456785E7d, 1.0E-4d, -10.914621337840606d]", point{12345678.5, 0.0001, -10.914621337840606}, true},
		"pos coloured":   {parsePos, "Bob has the following entity data: [\u00a761.5\u00a7cd\u00a7r, \u00a7664.0\u00a7cd\u00a7r, \u00a76-2.5\u00a7cd\u00a7r]", point{1.5, 64, -2.5}, true},
		"pos infinite":   {parsePos, "Bob has the following entity data: [1E999d, 1.0d, 1.0d]", point{}, false},
		"pos nobody":     {parsePos, "No entity was found", point{}, false},
		"teleported":     {parseTeleported, "Teleported Bob to 1234.500000, 80.000000, -99.250000", point{1234.5, 80, -99.25}, true},
		"teleport comma": {parseTeleported, "Teleported Bob to 1234,500000, 80,000000, -99,250000", point{1234.5, 80, -99.25}, true},
		"team name":      {parseTeleported, "Teleported [VIP] to Bob to 1.000000, 2.000000, 3.000000", point{1, 2, 3}, true},
		"invalid":        {parseTeleported, "Invalid position for teleport", point{}, false},
		"to entity":      {parseTeleported, "Teleported Bob to Al", point{}, false},
	} {
		if got, ok := c.parse(c.text); got != c.want || ok != c.ok {
			t.Errorf("%s: got %v %v", name, got, ok)
		}
	}
}

func TestParseWords(t *testing.T) {
	for _, c := range []struct {
		got, want any
		name      string
	}{
		{unknownCommand("Unknown or incomplete command, see below for errortps<--[HERE]"), true, "unknown"},
		{unknownCommand("Unknown or incomplete command. See below for errortransfer h 1<--[HERE]"), true, "unknown 1.21.9"},
		{unknownCommand("Incorrect argument for commandtransfer x<--[HERE]"), true, "argument"},
		{unknownCommand("Transferring Bob to a:1"), false, "known"},
		{nobody("No entity was found"), true, "no entity"},
		{nobody("\u00a7cNo player was found"), true, "no player"},
		{nobody("Test failed"), false, "somebody"},
		{parseForceload("Marked chunk [6, -3] in minecraft:overworld to be force loaded"), markAdded, "forceload add"},
		{parseForceload("No chunks were marked for force loading"), markAlready, "forceload again"},
		{parseForceload("Unmarked chunk [6, -3] in minecraft:overworld for force loading"), markRemoved, "forceload remove"},
		{parseForceload("No chunks were removed from force loading"), markNone, "forceload remove again"},
		{parseForceload("Unknown dimension 'minecraft:moon'"), markFailed, "forceload elsewhere"},
		{summoned("Summoned new Marker"), true, "summon"},
		{summoned("Unable to summon entity"), false, "summon failed"},
		{transferring("Transferring Bob to r-1.example.net:25565"), true, "transfer"},
		{transferring("A player is required to run this command here"), false, "transfer nobody"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestParseSpread(t *testing.T) {
	for text, want := range map[string][2]bool{
		"Spread 1 players around 100.5, -39.5 with an average distance of 0.00 blocks apart":                                     {true, true},
		"Spread 1 player(s) around 100.5, -39.5 with an average distance of 0.00 blocks apart":                                   {true, true},
		"Spread 1 entity/entities around 100.5, -39.5 with an average distance of 0.00 block(s) apart":                           {true, true},
		"Could not spread 1 entity/entities around 9000.5, 0.5 (too many entities for space - try using spread of at most 0.71)": {false, true},
		"Could not spread 1 entities around 9000.5, 0.5 (too many entities for space - try using spread of at most 0.71)":        {false, true},
		"No entity was found": {false, false},
	} {
		if found, ok := parseSpread(text); found != want[0] || ok != want[1] {
			t.Errorf("%s: got %v %v", text, found, ok)
		}
	}
}

func TestParseTests(t *testing.T) {
	for text, want := range map[string]struct {
		passed bool
		count  int
	}{
		"Test passed":            {true, 1},
		"Test passed, count: 12": {true, 12},
		"Test passed. Count: 3":  {true, 3},
		"Test failed":            {false, 0},
		"":                       {false, 0},
		"Test passed, count: 99999999999999999999": {true, 1},
	} {
		if passed, count := parseTest(text); passed != want.passed || count != want.count {
			t.Errorf("%q: got %v %v", text, passed, count)
		}
	}
}

func TestParseScores(t *testing.T) {
	for text, want := range map[string][]score{
		"Bob has 3 [rtp]": {{"Bob", 3}},
		"Bob has 3 [rtp].Al has 1 [rtp]*Cy has 12 [rtp]": {{"Bob", 3}, {".Al", 1}, {"*Cy", 12}},
		"Bob has 3 [rtp]\nAl has 1 [rtp]\n":              {{"Bob", 3}, {"Al", 1}},
		"[VIP] Bob has 3 [rtp]":                          {{"Bob", 3}},
		"[VIP] Bob [x] has 3 [rtp]":                      nil,
		"Bob has 3 [other]":                              nil,
		"Can't get value of rtp for Bob; none is set":    nil,
	} {
		if got := parseScores(scoreRE("rtp"), text); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: got %v", text, got)
		}
	}
	if v, ok := parseScore("[VIP] Bob [x] has 3 [rtp]"); v != 3 || !ok {
		t.Errorf("one score: %v %v", v, ok)
	}
}

func TestParseOthers(t *testing.T) {
	if w, ok := parseDimension(`Bob has the following entity data: "minecraft:the_nether"`); w != "minecraft:the_nether" || !ok {
		t.Errorf("dimension: %q %v", w, ok)
	}
	if _, ok := parseDimension("No entity was found"); ok {
		t.Error("dimension of nobody")
	}
	if b, ok := unknownBlock("Unknown block type 'minecraft:powder_snow'...~ powder_snow<--[HERE]"); b != "powder_snow" || !ok {
		t.Errorf("block: %q %v", b, ok)
	}
}

func FuzzTexts(f *testing.F) {
	for _, text := range []string{
		"There are 1 of a max of 20 players online: Bob (ee2337bd-ef1b-3585-94ad-53fcd1977dd2)",
		"Target tick rate: 20.0 per second.\nAverage time per tick: 7.7ms (Target: 50.0ms)",
		"\u00a76TPS from last 1m, 5m, 15m: \u00a7a20.0\u00a7r, \u00a7a20.0\u00a7r, \u00a7a20.0\n",
		"Server tick times from last 5s:\n\u25f4 0,3/0.0/6.0", "Bob has 3 [rtp]", "Test passed, count: 1",
		"Teleported Bob to 1234.500000, 80.000000, -99.250000", "Marker has the following entity data: [1.0E-4d, 67.0d, -33.5d]",
		"The world border is currently 59999968 block(s) wide", "Unknown block type 'x'", "\x1b[31m\u00a7",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		list, _ := parseList(text)
		for _, p := range list.Players {
			if !namePattern.MatchString(p.Name) {
				t.Errorf("name %q", p.Name)
			}
		}
		for _, s := range parseScores(scoreRE("rtp"), text) {
			if !namePattern.MatchString(s.Name) {
				t.Errorf("name %q", s.Name)
			}
		}
		parseTickQuery(text)
		parseTPS(text)
		parseMSPT(text)
		parseBorder(text)
		parsePos(text)
		parseTeleported(text)
		parseDimension(text)
		parseTest(text)
		parseScore(text)
		parseSpread(text)
		parseForceload(text)
		unknownBlock(text)
		unknownCommand(text)
	})
}
