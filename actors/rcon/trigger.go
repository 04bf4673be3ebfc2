package rcon

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// DefaultAlias is the name of the command where none is given: /trigger rtp.
const DefaultAlias = "rtp"

// LeaveValue is the number by which a player leaves the line: /trigger rtp set 99.
const LeaveValue = 99

// trigger turns /trigger NAME [set N] into requests. A player's trigger locks
// itself when used, so between reading and resetting a score it cannot change.
// It belongs to the goroutine of Run.
type trigger struct {
	console *console
	name    string // of the command, and of the scoreboard objective behind it
	scores  *regexp.Regexp
	// read holds players whose score was reported and is still to be reset.
	read map[string]bool
	// left holds players who went and whose score, if they have one, is still to be reset: a wish of an
	// earlier visit must not move anybody.
	left map[string]bool
	// closed is set when somebody may not be able to use the trigger.
	closed bool
}

func newTrigger(c *console, name string) *trigger {
	return &trigger{console: c, name: name, scores: scoreRE(name), read: map[string]bool{}, left: map[string]bool{}}
}

// board is a command about the objective's players; what stands for them.
func (t *trigger) board(act, what string) string {
	return t.console.own("scoreboard") + " players " + act + " " + what + " " + t.name
}

// askers are the players who have used it.
func (t *trigger) askers() string { return "@a[scores={" + t.name + "=1..}]" }

// setUp makes the objective and forgets what was asked while nobody listened:
// a wish of yesterday must not move a player today.
func (t *trigger) setUp(ctx context.Context) error {
	for _, command := range []string{
		t.console.own("scoreboard") + " objectives add " + t.name + " trigger",
		t.board("reset", "*"),
		t.board("enable", "@a"),
	} {
		if _, err := t.console.run(ctx, Work, command); err != nil {
			return err
		}
	}
	clear(t.read)
	clear(t.left)
	t.closed = false
	return nil
}

// forgotten is how many of those who left are forgotten at one look: each costs a command.
const forgotten = 4

// forget resets the scores of players who left.
func (t *trigger) forget(ctx context.Context) error {
	n := 0
	for name := range t.left {
		if n++; n > forgotten {
			return nil
		}
		if _, err := t.console.run(ctx, Work, t.board("reset", name)); err != nil {
			return err
		}
		delete(t.left, name)
		t.closed = true // the player may be back
	}
	return nil
}

// poll costs one command while nobody asks, whatever the number of players.
// known are the players of the last list.
func (t *trigger) poll(ctx context.Context, known []string) ([]score, error) {
	if err := t.forget(ctx); err != nil {
		return nil, err
	}
	reply, err := t.console.run(ctx, Paid, t.console.own("execute if entity "+t.askers()))
	if err != nil {
		return nil, err
	}
	passed, count := parseTest(reply)
	if !passed { // so all resets have landed
		t.closed = t.closed || len(t.read) > 0
		clear(t.read)
		return nil, t.open(ctx)
	}
	scores, err := t.details(ctx, count, known)
	if err != nil {
		return nil, err
	}
	fresh := slices.DeleteFunc(scores, func(s score) bool { // who is not listed yet is read again
		return t.read[s.Name] || !slices.Contains(known, s.Name)
	})
	for _, s := range fresh {
		t.read[s.Name] = true
	}
	return slices.DeleteFunc(fresh, func(s score) bool { return t.left[s.Name] }), nil
}

// details reads the scores in one command. Where teams decorate names so that
// they cannot be told from the text, it asks player by player.
func (t *trigger) details(ctx context.Context, count int, known []string) ([]score, error) {
	reply, err := t.console.run(ctx, Urgent, t.console.own("execute as "+t.askers()+" run "+t.board("get", "@s")))
	if err != nil {
		return nil, err
	}
	scores := slices.DeleteFunc(parseScores(t.scores, reply), func(s score) bool { return s.Value < 1 })
	if len(scores) >= count {
		return scores, nil
	}
	for _, name := range known {
		if slices.ContainsFunc(scores, func(s score) bool { return s.Name == name }) {
			continue
		}
		reply, err := t.console.run(ctx, Poll, t.board("get", name))
		if err != nil {
			return nil, err
		}
		if v, ok := parseScore(reply); ok && v >= 1 {
			scores = append(scores, score{name, v})
		}
	}
	return scores, nil
}

// settle resets the scores that were reported and opens the trigger again.
func (t *trigger) settle(ctx context.Context) error {
	for name := range t.read {
		if _, err := t.console.run(ctx, Work, t.board("reset", name)); err != nil {
			return err
		}
		delete(t.read, name)
		t.closed = true
	}
	return t.open(ctx)
}

// open enables the trigger for everybody who is there.
func (t *trigger) open(ctx context.Context) error {
	if !t.closed {
		return nil
	}
	_, err := t.console.run(ctx, Work, t.board("enable", "@a"))
	t.closed = err != nil
	return err
}

// FirstRegion is the number of the first region by alphabet: 1 is what the plain /trigger rtp adds to a score.
const FirstRegion = 2

// regionOf says which region a value names: 1, which is also the plain
// /trigger rtp, is bare; from FirstRegion on they are named by alphabet. LeaveValue names none.
func regionOf(value int, bare string, regions []string) (region string, named bool) {
	if value < FirstRegion {
		return bare, true
	}
	for i, name := range regions {
		if numberOf(i) == value {
			return name, true
		}
	}
	return "", false
}

// numberOf is the number by which the region at an index is asked for.
func numberOf(i int) int {
	n := i + FirstRegion
	if n >= LeaveValue {
		n++
	}
	return n
}

// listedRegions is how many regions a player is shown at most.
const listedRegions = 20

// choices are the numbers that name something, as a player is shown them.
func choices(bare string, regions []string) []string {
	first := "any"
	if bare != "" {
		first = bare
	}
	out := []string{"1 " + first}
	for i, name := range regions {
		if i == listedRegions {
			return append(out, "...")
		}
		out = append(out, strconv.Itoa(numberOf(i))+" "+name)
	}
	return out
}

// sorted is a copy in alphabetical order without repeats.
func sorted(names []string) []string {
	out := slices.Clone(names)
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}
