package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// ending is the last line of a story, and all of it that a script needs.
type ending struct {
	Kind       string            `json:"kind"` // "end"
	Transfer   events.TransferID `json:"transfer"`
	Player     events.PlayerID   `json:"player"`
	Name       string            `json:"name,omitempty"`
	Phase      projections.Phase `json:"phase"` // empty when its beginning is gone and no end is held
	Code       events.Code       `json:"code,omitempty"`
	Meaning    string            `json:"meaning,omitempty"` // as players read it
	AgeMs      float64           `json:"ageMs"`             // of the last fact
	Stored     time.Time         `json:"stored"`            // of the first one
	Facts      int               `json:"facts"`
	Tokens     int               `json:"tokens"`
	Server     events.HostID     `json:"server,omitempty"` // of the token that stands
	Checked    string            `json:"checked"`
	Problems   []uint64          `json:"problems"` // sequences of the facts that the fold refused
	Missing    string            `json:"missing,omitempty"`
	Consistent bool              `json:"consistent"`
	Status     int               `json:"status"` // the exit status that this transfer deserves
}

func (t *tale) end() ending {
	s := t.state()
	first, last := t.entries[0], t.entries[len(t.entries)-1]
	e := ending{
		Kind: "end", Transfer: t.id, Player: t.player, Name: t.name(), AgeMs: ms(last.Stored.Sub(first.Stored)), Stored: first.Stored.UTC(),
		Facts: len(t.entries), Tokens: s.Attempts, Server: s.Destination(), Checked: t.checked(), Problems: []uint64{}, Missing: t.missing(), Status: t.status(),
	}
	e.Phase, e.Code = t.ending()
	for _, p := range t.problems() {
		e.Problems = append(e.Problems, p.Seq)
	}
	e.Consistent = len(e.Problems) == 0
	if e.Phase == projections.Failed || e.Phase == projections.Cancelled {
		e.Meaning = meaning(e.Code, s, last.event.Fact)
	}
	return e
}

// meaning is the shipped text of a code, as the player was told it.
func meaning(code events.Code, s projections.Transfer, last events.Fact) string {
	args := []events.Arg{{Name: "region"}, {Name: "detail"}}
	if s.Request != nil {
		args[0].Value = s.Request.Wish.Region
	}
	if f, ok := last.(*events.Failed); ok {
		args[1].Value = f.Detail
	}
	return actors.ShippedMessages().Text("failed."+string(code), args)
}

// headline is what stands above a timeline.
func (e ending) headline() string {
	who := e.Player.String()
	if e.Name != "" {
		who = e.Name + " (" + who + ")"
	}
	return printable(fmt.Sprintf("transfer %s of %s, begun %s", e.Transfer, who, e.Stored.Format(timeForm))) + "\n" + printable(e.Checked)
}

// String is the end in words.
func (e ending) String() string {
	lines := []string{"", "end: " + e.how()}
	if e.Meaning != "" {
		lines[1] += ": " + e.Meaning
	}
	if e.Missing != "" {
		lines = append(lines, "incomplete: "+e.Missing)
	}
	if len(e.Problems) > 0 {
		lines = append(lines, fmt.Sprintf("inconsistent: the log holds %s that the fold refuses, at sequence %s", plural(len(e.Problems), "fact"), join(e.Problems)))
	}
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

func (e ending) how() string {
	age := fmt.Sprintf("%.3f s after the request", e.AgeMs/1000)
	if e.Missing != "" {
		age = fmt.Sprintf("%.3f s after the first fact held", e.AgeMs/1000)
	}
	switch {
	case e.Phase == "":
		return "not known"
	case !e.Phase.Terminal():
		return fmt.Sprintf("none yet: %s, last fact %s", e.Phase, age)
	case e.Phase == projections.Completed:
		return fmt.Sprintf("%s on %s, %s", e.Phase, e.Server, age)
	}
	return fmt.Sprintf("%s %s, %s", e.Phase, e.Code, age)
}

func join(seqs []uint64) string {
	out := make([]string, len(seqs))
	for i, s := range seqs {
		out[i] = fmt.Sprint(s)
	}
	return strings.Join(out, ", ")
}

// listing is one transfer among a player's.
type listing struct{ ending }

func (t *tale) listed() listing {
	l := listing{t.end()}
	l.Kind = "listed"
	return l
}

// String is one line.
func (l listing) String() string {
	mark := ""
	switch l.Status {
	case statusInconsistent:
		mark = "  [inconsistent at " + join(l.Problems) + "]"
	case statusIncomplete:
		mark = "  [incomplete]"
	}
	return printable(fmt.Sprintf("%s  %s  %s%s", l.Stored.Format(timeForm), l.Transfer, l.how(), mark))
}
