package rcon

import (
	"context"
	"slices"
	"strconv"
	"strings"
)

// TriggerObjective is the scoreboard objective behind /trigger rtp.
const TriggerObjective = "rtp"

// LeaveValue is the number by which a player leaves the line: /trigger rtp set 99.
const LeaveValue = 99

const (
	asked   = "@a[scores={" + TriggerObjective + "=1..}]"
	anyone  = " players enable @a " + TriggerObjective
	getSelf = " players get @s " + TriggerObjective
)

// triggers turns /trigger rtp [set N] into requests. A player's trigger locks
// itself when used, so between reading and resetting a score it cannot change.
// It belongs to the goroutine of Run.
type triggers struct {
	console *console
	// read holds players whose score was reported and is still to be reset.
	read map[string]bool
	// closed is set when somebody may not be able to use the trigger.
	closed bool
}

func newTriggers(c *console) *triggers { return &triggers{console: c, read: map[string]bool{}} }

// setUp makes the objective and forgets what was asked while nobody listened:
// a wish of yesterday must not move a player today.
func (t *triggers) setUp(ctx context.Context) error {
	board := t.console.own("scoreboard")
	for _, command := range []string{
		board + " objectives add " + TriggerObjective + " trigger",
		board + " players reset * " + TriggerObjective,
		board + anyone,
	} {
		if _, err := t.console.run(ctx, Work, command); err != nil {
			return err
		}
	}
	clear(t.read)
	t.closed = false
	return nil
}

// poll costs one command while nobody asks, whatever the number of players.
// known are the players of the last list.
func (t *triggers) poll(ctx context.Context, known []string) ([]score, error) {
	reply, err := t.console.run(ctx, Paid, t.console.own("execute if entity "+asked))
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
	return fresh, nil
}

// details reads the scores in one command. Where teams decorate names so that
// they cannot be told from the text, it asks player by player.
func (t *triggers) details(ctx context.Context, count int, known []string) ([]score, error) {
	board := t.console.own("scoreboard")
	reply, err := t.console.run(ctx, Urgent, t.console.own("execute as "+asked+" run "+board+getSelf))
	if err != nil {
		return nil, err
	}
	scores := slices.DeleteFunc(parseScores(reply), func(s score) bool { return s.Value < 1 })
	if len(scores) >= count {
		return scores, nil
	}
	for _, name := range known {
		if slices.ContainsFunc(scores, func(s score) bool { return s.Name == name }) {
			continue
		}
		reply, err := t.console.run(ctx, Poll, board+" players get "+name+" "+TriggerObjective)
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
func (t *triggers) settle(ctx context.Context) error {
	board := t.console.own("scoreboard")
	for name := range t.read {
		if _, err := t.console.run(ctx, Work, board+" players reset "+name+" "+TriggerObjective); err != nil {
			return err
		}
		delete(t.read, name)
		t.closed = true
	}
	return t.open(ctx)
}

// open enables the trigger for everybody who is there.
func (t *triggers) open(ctx context.Context) error {
	if !t.closed {
		return nil
	}
	_, err := t.console.run(ctx, Work, t.console.own("scoreboard")+anyone)
	t.closed = err != nil
	return err
}

// regionOf says which region a value names: 1, which is also the plain
// /trigger rtp, is bare; N is the Nth region by alphabet. What names none is
// passed on as written, so that the refusal names it.
func regionOf(value int, bare string, regions []string) string {
	switch {
	case value <= 1:
		return bare
	case value <= len(regions):
		return regions[value-1]
	}
	return strconv.Itoa(value)
}

// sorted is a copy in alphabetical order without repeats.
func sorted(regions []string) []string {
	out := slices.Clone(regions)
	slices.SortFunc(out, strings.Compare)
	return slices.Compact(out)
}
