package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/landfall/landfall/events"
)

const (
	ruleDecision = "candidates pass the filters, then the lowest score wins, the sum of its terms (raw value = share); the server the player stands on comes last or first, as routing.prefer says; the choice rides in the fact that follows"
	ruleProblem  = "a fact that does not verify, was not written on top of the player's last one, or is impossible in this state changes nothing"
)

// ruleOf is the rule that let a fact follow.
func ruleOf(f events.Fact) string {
	switch f := f.(type) {
	case *events.Requested:
		return "a player has one active transfer: the guard on the player's last fact let this one in, and its sequence is the place in line"
	case *events.Reserved:
		return "the destination promised this coordinate before it was written; of two attempts the first to land counts"
	case *events.Claimed:
		return "compare-and-swap on the player's last fact: one claimer wins; new transfers are not stopped, and enough of the token's time is left"
	case *events.Transferred:
		return ruleOfMove(f.Result)
	case *events.Consumed:
		return "the destination saw the player arrive; token, server, incarnation and player match the promise"
	case *events.Completed:
		return "the destination reported the player at the place"
	case *events.Released:
		return "before a move a token is given back as soon as the reason is known; the next attempt may follow"
	case *events.Expired:
		return "before a move a token ends with its time, or with the life of the server that promised it; the next attempt may follow"
	case *events.Reopened:
		return "the claimer is presumed dead and the origin has not sent the player: the claim is taken back, and its move is refused from now on"
	case *events.Waitlisted:
		return "nobody can serve the wish now: it keeps its place in line; written once"
	case *events.Failed:
		return ruleOfFailure(f.Code)
	case *events.Cancelled:
		return "the player, or the player's absence, ended the transfer before a move"
	case *events.Superseded:
		return "a different wish replaces the active one before it is claimed; the place in line is lost"
	default:
		return ""
	}
}

func ruleOfMove(r events.MoveResult) string {
	if r == events.MoveUnknown {
		return "no answer is not a failure: the move may have happened, so it is never repeated, and the token waits for the arrival"
	}
	return "the move was carried out: this transfer moves nobody again"
}

func ruleOfFailure(code events.Code) string {
	switch code {
	case events.NotArrived:
		return "after a move was sent or is unknown there is no second attempt: without an arrival in the token's time the transfer fails"
	case events.PlacementUnconfirmed:
		return "an arrival that nobody could confirm at its place is not called a success"
	case events.PlayerLeft:
		return "the player left between arrival and placement"
	case events.PlayerOffline:
		return "a request of a player whom nobody holds ends after a few seconds"
	case events.AttemptsExhausted, events.KeyFull:
		return "attempts are bounded, so that nothing can block a player"
	default:
		return "whoever finds out that a transfer cannot go on ends it with the reason, and the player is told"
	}
}

const explainIndent = "\n                     "

// explained is the rule, and the scores of a choice.
func (s step) explained() string {
	out := ""
	if s.Rule != "" {
		out = explainIndent + "rule: " + s.Rule
	}
	if s.Decision == nil {
		return out
	}
	for _, line := range append(scoreTable(s.Decision.Candidates), remarks(s.Decision)...) {
		out += explainIndent + printable(line)
	}
	return out
}

// scoreTable shows the candidates best first, a column for each term: its raw value = its
// share in the score. Where others report what a candidate does not, its value is "missing".
func scoreTable(candidates []events.Candidate) []string {
	if len(candidates) == 0 {
		return nil
	}
	rows := [][]string{{"candidate", "score"}}
	for _, c := range candidates {
		for _, t := range c.Terms {
			if !slices.Contains(rows[0][2:], t.Name) {
				rows[0] = append(rows[0], t.Name)
			}
		}
	}
	for _, c := range candidates {
		row := make([]string, len(rows[0]))
		row[0], row[1] = string(c.Server)+"/"+c.Region, fmt.Sprintf("%.4f", c.Score)
		for _, t := range c.Terms {
			row[2+slices.Index(rows[0][2:], t.Name)] = termCell(t)
		}
		rows = append(rows, row)
	}
	return aligned(rows)
}

func termCell(t events.Term) string {
	raw := fmt.Sprintf("%.6g", t.Raw)
	if t.Missing {
		raw = "missing"
	}
	return fmt.Sprintf("%s = %.4f", raw, t.Score)
}

// aligned makes lines of rows of equal length, the second column to the right.
func aligned(rows [][]string) []string {
	lines := make([]string, len(rows))
	for col := range rows[0] {
		width := 0
		for _, row := range rows {
			width = max(width, utf8.RuneCountInString(row[col]))
		}
		for i, row := range rows {
			pad := strings.Repeat(" ", width-utf8.RuneCountInString(row[col]))
			if col == 1 {
				lines[i] += "  " + pad + row[col]
			} else {
				lines[i] += "  " + row[col] + pad
			}
		}
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines
}

// remarks are what a decision says beside its candidates.
func remarks(d *events.Decision) (out []string) {
	if d.Unreported != "" {
		out = append(out, "left out, since no candidate reports it: "+strings.ReplaceAll(d.Unreported, ",", ", "))
	}
	if d.Collision != "" {
		out = append(out, "the region means different worlds: "+strings.ReplaceAll(d.Collision, ",", ", "))
	}
	return out
}
