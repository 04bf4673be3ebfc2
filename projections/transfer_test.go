package projections

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
)

// stances are all the ways a transfer can stand, each reached by facts.
func stances(t *testing.T) []stance {
	t.Helper()
	list := []stance{
		{"REQUESTED", []events.TransferFact{requested()}},
		{"REQUESTED again", []events.TransferFact{requested(), reserved(1), expired(1)}},
		{"WAITING", []events.TransferFact{requested(), &events.Waitlisted{}}},
		{"WAITING again", []events.TransferFact{requested(), &events.Waitlisted{}, reserved(1), released(1)}},
		{"PENDING", []events.TransferFact{requested(), reserved(1)}},
		{"PENDING reopened", []events.TransferFact{requested(), reserved(1), claimed(1), reopened(1, 3)}},
		{"CLAIMED", []events.TransferFact{requested(), reserved(1), claimed(1)}},
		{"CLAIMED again", []events.TransferFact{requested(), reserved(1), claimed(1), reopened(1, 3), claimed(1)}},
		{"CLAIMED sent", []events.TransferFact{requested(), reserved(1), claimed(1), transferred(1)}},
		{"CONSUMED", []events.TransferFact{requested(), reserved(1), claimed(1), consumed(1)}},
		{"COMPLETED", []events.TransferFact{requested(), reserved(1), claimed(1), consumed(1), completed(1)}},
		{"FAILED", []events.TransferFact{requested(), &events.Failed{Code: events.NoCandidate}}},
		{"CANCELLED", []events.TransferFact{requested(), &events.Cancelled{Code: events.GraceOver}}},
		{"SUPERSEDED", []events.TransferFact{requested(), &events.Superseded{By: next}}},
	}
	seen := map[Phase]bool{}
	for _, s := range list {
		seen[s.build(t).Phase] = true
	}
	for _, p := range Phases {
		if !seen[p] {
			t.Errorf("no stance is %s", p)
		}
	}
	return list
}

type stance struct {
	name  string
	facts []events.TransferFact
}

// build folds the facts of a stance, the n-th at sequence n.
func (s stance) build(t *testing.T) Transfer {
	t.Helper()
	var x Transfer
	for i, f := range s.facts {
		seq := uint64(i) + 1
		if req, ok := f.(*events.Requested); ok && i == 0 {
			e := events.Event{Seq: seq}
			e.Correlation = first
			x = Begin(e, steve, req, noon)
			continue
		}
		var refusal *events.Refusal
		if x, refusal = x.Apply(seq, f, noon); refusal != nil {
			t.Fatalf("%s: fact %d: %v", s.name, seq, refusal)
		}
	}
	return x
}

// attempted are facts to try, for the current attempt of a transfer and for others.
func attempted(x Transfer) []named {
	n := max(x.Token.Attempt, 1)
	otherServer, otherLife := consumed(n), consumed(n)
	otherServer.Server, otherLife.Incarnation = "c", lifeB2
	unknown := transferred(n)
	unknown.Result = events.MoveUnknown
	return []named{
		{"requested", requested()},
		{"waitlisted", &events.Waitlisted{}},
		{"reserved next", reserved(x.Attempts + 1)},
		{"reserved same", reserved(x.Attempts)},
		{"reserved skipping", reserved(x.Attempts + 2)},
		{"claimed", claimed(n)},
		{"claimed other attempt", claimed(n + 1)},
		{"transferred sent", transferred(n)},
		{"transferred unknown", unknown},
		{"transferred other attempt", transferred(n + 1)},
		{"consumed", consumed(n)},
		{"consumed other attempt", consumed(n + 1)},
		{"consumed other server", otherServer},
		{"consumed other life", otherLife},
		{"completed", completed(n)},
		{"completed other attempt", completed(n + 1)},
		{"released", released(n)},
		{"released unreachable", unreachable(n)},
		{"released other attempt", released(n + 1)},
		{"released attempt 0", released(0)},
		{"expired", expired(n)},
		{"expired other attempt", expired(n + 1)},
		{"reopened", reopened(n, x.ClaimSeq)},
		{"reopened other claim", reopened(n, x.ClaimSeq+1)},
		{"reopened other attempt", reopened(n+1, x.ClaimSeq)},
		{"failed", &events.Failed{Code: events.NotArrived}},
		{"cancelled", &events.Cancelled{Code: events.GraceOver}},
		{"superseded", &events.Superseded{By: next}},
	}
}

type named struct {
	name string
	fact events.TransferFact
}

// The whole transition function: every stance × every fact, and what becomes of it.
func TestTransitions(t *testing.T) {
	var out strings.Builder
	tried := map[string]bool{}
	for _, s := range stances(t) {
		x := s.build(t)
		before := x
		fmt.Fprintf(&out, "%s\n", s.name)
		for _, n := range attempted(x) {
			tried[events.TypeName(n.fact)] = true
			after, refusal := x.Apply(99, n.fact, noon)
			if !reflect.DeepEqual(x, before) {
				t.Fatalf("%s: %s changed the value it was applied to", s.name, n.name)
			}
			if after.Facts != x.Facts+1 || after.Last != 99 {
				t.Errorf("%s: %s: %d facts, last %d", s.name, n.name, after.Facts, after.Last)
			}
			checkSound(t, s.name+": "+n.name, after)
			if refusal == nil {
				fmt.Fprintf(&out, "    %-26s -> %s\n", n.name, describe(after))
				continue
			}
			wantRefusal(t, n.name, refusal, events.Impossible)
			after.Facts, after.Last = x.Facts, x.Last
			if !reflect.DeepEqual(after, x) {
				t.Errorf("%s: %s was refused and changed %+v to %+v", s.name, n.name, x, after)
			}
		}
		out.WriteString("    everything else is refused\n")
	}
	for _, k := range events.Catalog {
		if k.Bucket == events.Transfers && !tried[k.Type] {
			t.Errorf("%s was not tried", k.Type)
		}
	}
	golden(t, "../testdata/projections/transitions.golden", out.String())
}

func describe(x Transfer) string {
	var text strings.Builder
	text.WriteString(string(x.Phase))
	if x.Code != "" {
		text.WriteString("(" + string(x.Code) + ")")
	}
	if !x.Token.IsZero() {
		text.WriteString(fmt.Sprintf(" token %d", x.Token.Attempt))
	}
	for _, mark := range []struct {
		on   bool
		text string
	}{
		{x.ClaimSeq != 0, fmt.Sprintf("claim %d", x.ClaimSeq)},
		{x.Reopened, "reopened"},
		{x.Move != "", "move " + string(x.Move)},
		{x.MovedOnce, "moved once"},
		{x.Waitlisted, "waitlisted"},
	} {
		if mark.on {
			text.WriteString(", " + mark.text)
		}
	}
	return text.String()
}

// checkSound holds a transfer against what must be true in each phase.
func checkSound(t interface {
	Helper()
	Errorf(format string, args ...any)
}, where string, x Transfer,
) {
	t.Helper()
	standing := x.Phase == Pending || x.Phase == Claimed || x.Phase == Consumed
	free := x.Phase == Requested || x.Phase == Waiting
	for what, bad := range map[string]bool{
		"a token without its promise":        !x.Token.IsZero() && (x.Reserved == nil || x.Reserved.Attempt != x.Token.Attempt),
		"no token":                           standing && x.Token.IsZero(),
		"a token":                            free && (!x.Token.IsZero() || x.Reserved != nil),
		"a claim without its sequence":       (x.Claim != nil) != (x.ClaimSeq != 0),
		"no claim":                           x.Phase == Claimed && x.Claim == nil,
		"a claim":                            (free || x.Phase == Pending) && x.Claim != nil,
		"a move":                             (free || x.Phase == Pending) && x.Move != "",
		"a move that is forgotten":           x.Move != "" && !x.MovedOnce,
		"in line and not said so":            x.Phase == Waiting && !x.Waitlisted,
		"an end without a code":              x.Phase.Terminal() != (x.Code != ""),
		"a token beyond the attempts":        x.Token.Attempt > x.Attempts,
		"an arrival without its fact":        x.Phase == Consumed && x.Consumed == nil,
		"more facts than its key can hold":   x.Facts > events.MaxKeyFacts && !x.Phase.Terminal(),
		"a destination that is not promised": (x.Destination() != "") != (x.Reserved != nil),
	} {
		if bad {
			t.Errorf("%s: %s: %s", where, x.Phase, what)
		}
	}
}

// The 64th message ends a transfer whatever it is, legal or not, unless it is an end itself.
func TestKeyFull(t *testing.T) {
	full := stance{"REQUESTED", []events.TransferFact{requested()}}.build(t)
	for n := 1; full.Facts < events.MaxKeyFacts-1; n++ {
		var refusal *events.Refusal
		if full, refusal = full.Apply(uint64(2*n), reserved(n), noon); refusal != nil { //nolint:gosec // small
			t.Fatal(refusal)
		}
		if full, refusal = full.Apply(uint64(2*n+1), expired(n), noon); refusal != nil { //nolint:gosec // small
			t.Fatal(refusal)
		}
	}
	if full.Facts != events.MaxKeyFacts-1 || full.Phase != Requested {
		t.Fatalf("%d facts, %s", full.Facts, full.Phase)
	}
	cases := []struct {
		name  string
		fact  events.TransferFact
		phase Phase
		code  events.Code
		says  events.Code
	}{
		{"legal", reserved(full.Attempts + 1), Failed, events.KeyFull, events.OK},
		{"illegal", claimed(1), Failed, events.KeyFull, events.Impossible},
		{"an end", &events.Cancelled{Code: events.GraceOver}, Cancelled, events.GraceOver, events.OK},
	}
	for _, c := range cases {
		got, refusal := full.Apply(99, c.fact, noon)
		wantRefusal(t, c.name, refusal, c.says)
		if got.Phase != c.phase || got.Code != c.code || got.Facts != events.MaxKeyFacts {
			t.Errorf("%s: %s(%s), %d facts", c.name, got.Phase, got.Code, got.Facts)
		}
	}
}

// A move that was sent, or may have been, is remembered beyond its token: nobody is moved
// twice by one transfer.
func TestMovedOnce(t *testing.T) {
	x := stance{"CLAIMED sent", []events.TransferFact{requested(), reserved(1), claimed(1), transferred(1), unreachable(1)}}.build(t)
	if x.Phase != Requested || !x.MovedOnce || x.Move != "" {
		t.Fatalf("%+v", x)
	}
	for i, f := range []events.TransferFact{reserved(2), claimed(2), consumed(2), completed(2)} {
		var refusal *events.Refusal
		if x, refusal = x.Apply(uint64(10+i), f, noon); refusal != nil || !x.MovedOnce { //nolint:gosec // small
			t.Fatalf("fact %d: %v, %+v", i, refusal, x)
		}
	}
	before := stance{"expired", []events.TransferFact{requested(), reserved(1), claimed(1), expired(1)}}.build(t)
	if before.MovedOnce {
		t.Error("a token that expired before the move counts as moved")
	}
}

// A reopened token can be consumed without a claim, or claimed anew with a new fence.
func TestReopened(t *testing.T) {
	base := []events.TransferFact{requested(), reserved(1), claimed(1), reopened(1, 3)}
	arrived := stance{"", append(base[:4:4], consumed(1))}.build(t)
	if arrived.Phase != Consumed {
		t.Errorf("arrival on a reopened token: %s", arrived.Phase)
	}
	again := stance{"", append(base[:4:4], claimed(1))}.build(t)
	if again.ClaimSeq != 5 {
		t.Errorf("the new claim's sequence is %d, want 5", again.ClaimSeq)
	}
	if _, refusal := again.Apply(6, reopened(1, 3), noon); refusal == nil {
		t.Error("the old claim was taken back a second time")
	}
	nextToken := stance{"", append(base[:4:4], expired(1), reserved(2))}.build(t)
	if nextToken.Reopened {
		t.Error("the next token counts as reopened")
	}
	if _, refusal := nextToken.Apply(7, consumed(2), noon); refusal == nil {
		t.Error("an arrival before the claim, on a token that was never reopened, was taken")
	}
}
