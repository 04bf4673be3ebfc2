package main

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// longSilence is the shortest pause that a timeline shows.
const longSilence = 2 * time.Second

// Kinds of step.
const (
	stepFact     = "fact"
	stepDecision = "decision"
	stepAbsent   = "absent" // something that belongs here and did not happen
	stepProblem  = "problem"
	stepSession  = "session"
	stepAudit    = "audit"
	stepGap      = "gap"
)

// step is one line of a timeline.
type step struct {
	Kind     string            `json:"kind"`
	AgeMs    float64           `json:"ageMs"` // since the request, by the stream's clock
	Bucket   events.Bucket     `json:"bucket,omitempty"`
	Seq      uint64            `json:"seq,omitempty"`
	Stored   *time.Time        `json:"stored,omitempty"`
	Type     string            `json:"type,omitempty"`
	Attempt  int               `json:"attempt,omitempty"`
	Phase    projections.Phase `json:"phase,omitempty"` // after it
	Source   string            `json:"source,omitempty"`
	Verified verdict           `json:"verified,omitempty"`
	Code     events.Code       `json:"code,omitempty"`
	Text     string            `json:"text"`
	Rule     string            `json:"rule,omitempty"`
	Decision *events.Decision  `json:"decision,omitempty"`
	GapMs    float64           `json:"gapMs,omitempty"`
	Record   *factRow          `json:"record,omitempty"` // as the log holds it, in the raw view

	explain bool // the text form shows rule and scores
	failed  bool // something went wrong here
	record  *reading
}

// aside is what else the log says about a transfer's time: the player's sessions, and
// audit entries that name it.
type aside struct{ sessions, audit []reading }

// timeline is everything that happened to a transfer, in the order of stored times; facts
// of one bucket in the order of their sequences.
func (t *tale) timeline(a aside) []step {
	start := t.entries[0].Stored
	facts := make([]reading, len(t.entries))
	bySeq := make(map[uint64]entry, len(t.entries))
	headless := t.missing() != ""
	for i, e := range t.entries {
		if e.excused(headless) {
			e.refusal = nil
		}
		facts[i], bySeq[e.Seq] = e.reading, e
	}
	var out []step
	last := start
	for r, err := range merged(given(a.sessions), given(a.audit), given(facts)) {
		if err != nil {
			break // what is given already cannot fail
		}
		if pause := r.Stored.Sub(last); pause > longSilence {
			out = append(out, step{Kind: stepGap, AgeMs: ms(last.Sub(start)), GapMs: ms(pause), Text: fmt.Sprintf("… %.1f s nothing …", pause.Seconds())})
		}
		if r.Stored.After(last) { // not what stood before the request
			last = r.Stored
		}
		steps := asideSteps(r)
		if r.Bucket == events.Transfers {
			steps = bySeq[r.Seq].steps()
		}
		for _, s := range steps {
			s.failed = s.failed || s.Kind == stepProblem || s.Code != ""
			s.AgeMs = ms(r.Stored.Sub(start))
			out = append(out, s)
		}
	}
	if s := t.state(); s.Phase != "" && !s.Phase.Terminal() {
		out = append(out, step{Kind: stepAbsent, failed: true, AgeMs: ms(last.Sub(start)), Phase: s.Phase, Attempt: s.Token.Attempt, Text: absent(s) + " yet: this is where the log ends"})
	}
	return out
}

func given(rs []reading) iter.Seq2[reading, error] {
	return func(yield func(reading, error) bool) {
		for _, r := range rs {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// steps of one record: what is missing before it, the choice it rests on, itself.
func (e entry) steps() (out []step) {
	if e.refusal != nil {
		return []step{e.problem()}
	}
	if endsSomething(e.event.Fact) {
		if text := absent(e.before); text != "" {
			out = append(out, step{Kind: stepAbsent, Attempt: e.before.Token.Attempt, Text: text, failed: wentWrong(e.event.Fact)})
		}
	}
	if d := decisionOf(e.event.Fact); d != nil {
		out = append(out, step{Kind: stepDecision, Text: describeDecision(*d), Rule: ruleDecision, Decision: d})
	}
	return append(out, e.fact())
}

func (e entry) fact() step {
	s := stepOf(stepFact, e.reading)
	s.Phase, s.Rule = e.after.Phase, ruleOf(e.event.Fact)
	s.Attempt, _ = attemptOf(e.event.Fact)
	s.Code = codeOf(e.event.Fact)
	s.failed = wentWrong(e.event.Fact)
	return s
}

func (e entry) problem() step {
	s := stepOf(stepProblem, e.reading)
	s.Phase, s.Code, s.Rule = e.after.Phase, e.refusal.Code, ruleProblem
	s.Text = strings.TrimSuffix("refused by the fold: "+e.refusal.Error()+": "+s.Text, ": ")
	return s
}

func stepOf(kind string, r reading) step {
	stored := r.Stored.UTC()
	s := step{Kind: kind, Bucket: r.Bucket, Seq: r.Seq, Stored: &stored, Type: shortType(r.Header[events.HeaderType]), Source: r.Header[events.HeaderSource], Verified: r.verified, record: &r}
	if !r.undecodable() {
		s.Text = describe(r.event.Fact)
	}
	return s
}

// asideSteps are a session or an audit entry as a step.
func asideSteps(r reading) []step {
	kind := stepSession
	if r.Bucket == events.Audit {
		kind = stepAudit
	}
	s := stepOf(kind, r)
	s.Code = codeOf(r.event.Fact)
	if r.refusal != nil {
		s.Text = strings.TrimSpace(s.Text + " [" + r.refusal.Error() + "]")
	}
	return []step{s}
}

// endsSomething tells that a fact ends a token, a claim or the transfer.
func endsSomething(f events.Fact) bool {
	switch f := f.(type) {
	case *events.Released, *events.Expired, *events.Reopened:
		return true
	case *events.Completed:
		return false
	case events.TransferFact:
		return events.Terminal(f)
	default:
		return false
	}
}

// absent names the step that a transfer in this state was waiting for.
func absent(t projections.Transfer) string {
	switch t.Phase {
	case projections.Requested, projections.Waiting:
		return "no place reserved"
	case projections.Pending:
		return fmt.Sprintf("no claim of token %d", t.Token.Attempt)
	case projections.Claimed:
		if t.Move == "" {
			return fmt.Sprintf("no move and no arrival recorded for token %d", t.Token.Attempt)
		}
		return fmt.Sprintf("no arrival recorded for token %d (the move: %s)", t.Token.Attempt, t.Move)
	case projections.Consumed:
		return fmt.Sprintf("arrived, but no placement recorded for token %d", t.Token.Attempt)
	case projections.Completed, projections.Failed, projections.Cancelled, projections.Superseded:
		return ""
	}
	return ""
}

// codeOf is the reason that a fact gives, empty when it gives none.
func codeOf(f events.Fact) events.Code {
	switch f := f.(type) {
	case *events.Released:
		return f.Reason
	case *events.Expired:
		return f.Reason
	case *events.Reopened:
		return f.Evidence
	case *events.Failed:
		return f.Code
	case *events.Cancelled:
		return f.Code
	case *events.Rejected:
		return f.Code
	default:
		return ""
	}
}

// String is the step as a line, or several when it explains.
func (s step) String() string {
	if s.Kind == stepGap {
		return printable(strings.Repeat(" ", 21) + s.Text)
	}
	name, seq := s.Type, ""
	if s.Kind != stepFact && s.Kind != stepSession {
		name = s.Kind
	}
	if s.Seq > 0 {
		seq = fmt.Sprint(s.Seq)
	}
	line := fmt.Sprintf("%+10.3f %8s  %-15s %-10s %s", s.AgeMs/1000, seq, name, s.Phase, s.Text)
	if s.Source != "" {
		line += "  (" + shortSource(s.Source) + ")"
	}
	line = printable(line)
	if s.explain {
		line += s.explained()
	}
	if s.Record != nil {
		line += s.Record.inFull()
	}
	return line
}

// timelineHeader names the columns of a step.
const timelineHeader = "     AFTER      SEQ  STEP            PHASE      WHAT"
