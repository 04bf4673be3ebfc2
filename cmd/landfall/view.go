package main

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
)

// Views of a story.
const (
	viewTimeline = "timeline" // everything, a line each
	viewCompact  = "compact"  // the transfer's own facts, a line each
	viewRaw      = "raw"      // everything, and under each record what the log holds
)

// onlyFailures is what --only can mean.
const onlyFailures = "failures"

// view is which steps of a story are shown, and how much of them.
type view struct {
	form     string // one of the views; "" is the timeline
	failures bool   // only what went wrong
	explain  bool
}

// viewFlags are the part of the command line that chooses a view.
type viewFlags struct {
	form, only string
	explain    bool
}

func (f viewFlags) view() (view, error) {
	if !slices.Contains([]string{viewTimeline, viewCompact, viewRaw}, f.form) {
		return view{}, usageError("--view %q: want timeline, compact or raw", f.form)
	}
	if f.only != "" && f.only != onlyFailures {
		return view{}, usageError("--only %q: want failures", f.only)
	}
	if f.explain && f.form == viewCompact {
		return view{}, usageError("--explain shows choices and rules, --view compact leaves them out: give one")
	}
	return view{form: f.form, failures: f.only != "", explain: f.explain}, nil
}

// shows gives the step as the view has it, false when the view leaves it out.
func (v view) shows(s step) (step, bool) {
	if v.failures && !s.failed || v.form == viewCompact && s.Kind != stepFact && s.Kind != stepProblem {
		return s, false
	}
	if s.explain = v.explain; !v.explain {
		s.Rule = ""
	}
	if v.form == viewRaw && s.record != nil {
		row := rowOf(*s.record)
		s.Record = &row
	}
	return s, true
}

// picks tells that the view has something to show of a transfer.
func (v view) picks(t *tale) bool {
	return !v.failures || len(t.problems()) > 0 || slices.ContainsFunc(t.entries, func(e entry) bool { return wentWrong(e.event.Fact) })
}

// wentWrong tells a fact of a token that fell, of a move of which nothing is known, or of an end
// without an arrival.
func wentWrong(f events.Fact) bool {
	if move, ok := f.(*events.Transferred); ok {
		return move.Result != events.MoveSent
	}
	return codeOf(f) != ""
}

// inFull is the record of a step as the log holds it, indented under its line.
func (r factRow) inFull() string {
	body, err := json.MarshalIndent(r, explainIndent[1:], "  ")
	if err != nil {
		return explainIndent + printable(err.Error())
	}
	lines := strings.Split(string(body), "\n")
	for i, line := range lines {
		lines[i] = printable(line)
	}
	return explainIndent + strings.Join(lines, "\n")
}
