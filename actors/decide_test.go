package actors

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// state is one row of the matrix: all that a decision may look at.
type state struct {
	name string
	s    Standing
}

// standingOf puts a transfer before a decision, with the player on server a, held by e1.
func standingOf(tr *projections.Transfer) Standing {
	s := Standing{Session: sessionOn("a", "e1"), HasSession: true}
	switch {
	case tr == nil:
	case tr.Phase.Terminal():
		s.Guard, s.Done = tr.Last, []projections.Transfer{*tr}
	default:
		s.Guard, s.Active = tr.Last, tr
	}
	return s
}

// states lists every state whose difference a decision may see.
func states(t testing.TB) []state {
	t.Helper()
	var out []state
	add := func(name string, s Standing) { out = append(out, state{name, s}) }
	of := func(facts ...events.TransferFact) Standing {
		tr := journey(t, facts...)
		return standingOf(&tr)
	}
	wait := &events.Waitlisted{}
	sent := &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveSent}
	unknown := &events.Transferred{Attempt: 1, How: events.HowTransfer, Result: events.MoveUnknown}
	reopened := &events.Reopened{Attempt: 1, Claim: 102}
	unreachable := &events.Released{Attempt: 1, Reason: events.Unreachable}
	pending, claim := []events.TransferFact{reserved(1)}, []events.TransferFact{reserved(1), claimed(1, "e1")}

	add("no transfer", standingOf(nil))
	add("REQUESTED", of())
	add("WAITING", of(wait))
	add("PENDING", of(pending...))
	add("PENDING waitlisted", of(wait, reserved(1)))
	add("PENDING reopened", of(reserved(1), claimed(1, "e1"), reopened))
	add("CLAIMED", of(claim...))
	add("CLAIMED waitlisted", of(wait, reserved(1), claimed(1, "e1")))
	add("CLAIMED sent", of(append(claim, sent)...))
	add("CLAIMED unknown", of(append(claim, unknown)...))
	add("CONSUMED", of(append(claim, consumed(1))...))
	add("COMPLETED", of(append(claim, consumed(1), &events.Completed{Attempt: 1})...))
	back := of(append(claim, consumed(1), &events.Completed{Attempt: 1})...)
	back.Session.Number++
	add("COMPLETED, back since", back)
	add("FAILED", of(&events.Failed{Code: events.NoCandidate}))
	add("CANCELLED", of(&events.Cancelled{Code: events.GraceOver}))
	add("SUPERSEDED", of(&events.Superseded{By: second}))

	moved := append(slices.Clone(claim), sent, unreachable)
	add("REQUESTED, moved once", of(moved...))
	add("PENDING, moved once", of(append(moved, reserved(2))...))

	long := func(facts int, s Standing) Standing {
		s.Active.Facts = facts
		return s
	}
	add("REQUESTED, 48 facts", long(events.MaxTransferFacts, of()))
	add("PENDING, 54 facts", long(events.TerminalOnlyFrom-2, of(pending...)))
	add("PENDING, 55 facts", long(events.TerminalOnlyFrom-1, of(pending...)))
	add("CLAIMED, 55 facts", long(events.TerminalOnlyFrom-1, of(claim...)))
	add("CLAIMED, 63 facts", long(events.MaxKeyFacts-1, of(claim...)))
	add("CONSUMED, 63 facts", long(events.MaxKeyFacts-1, of(append(claim, consumed(1))...)))

	change := func(s Standing, f func(*Standing)) Standing {
		f(&s)
		return s
	}
	kill := func(s *Standing) {
		s.Controls = projections.Controls{Killed: true, Kill: &events.KillSet{On: true, Why: "a test"}}
	}
	drain := func(s *Standing) {
		s.Controls = projections.Controls{Drained: map[events.HostID]*events.DrainSet{"b": {Host: "b", On: true}}}
	}
	pause := func(what events.PauseWhat, name string) func(*Standing) {
		return func(s *Standing) {
			p := &events.PauseSet{What: what, Name: name, On: true}
			s.Controls = projections.Controls{Paused: map[string]*events.PauseSet{events.PauseKey(what, name): p}}
		}
	}
	add("REQUESTED, line paused", change(of(), pause(events.PauseLine, "")))
	add("REQUESTED, b paused", change(of(), pause(events.PauseServer, "b")))
	add("REQUESTED, region paused", change(of(), pause(events.PauseRegion, "wild")))
	add("REQUESTED, other pauses", change(change(of(), pause(events.PauseServer, "c")), func(s *Standing) {
		s.Controls.Paused["pause.region.calm"] = &events.PauseSet{What: events.PauseRegion, Name: "calm", On: true}
	}))
	add("REQUESTED by bypass, line paused", change(bypassing(of()), pause(events.PauseLine, "")))
	add("REQUESTED by bypass, b paused", change(bypassing(of()), pause(events.PauseServer, "b")))
	add("PENDING, line paused", change(of(pending...), pause(events.PauseLine, "")))
	add("PENDING, b paused", change(of(pending...), pause(events.PauseServer, "b")))
	for _, base := range []state{{"no transfer", standingOf(nil)}, {"REQUESTED", of()}, {"PENDING", of(pending...)}, {"CLAIMED", of(claim...)}} {
		add(base.name+", killed", change(base.s, kill))
		add(base.name+", b drained", change(base.s, drain))
		add(base.name+", session elsewhere", change(base.s, func(s *Standing) { s.Session.Server = "c" }))
		add(base.name+", session closed", change(base.s, func(s *Standing) { s.Session.Open = false }))
		add(base.name+", session of e2", change(base.s, func(s *Standing) { s.Session = sessionOn("a", "e2") }))
		add(base.name+", session of another life", change(base.s, func(s *Standing) { s.Session.HolderIncarnation = lifeOf("e1 before") }))
		add(base.name+", never a session", change(base.s, func(s *Standing) { s.Session, s.HasSession = projections.Session{}, false }))
	}
	return out
}

func bypassing(s Standing) Standing {
	s.Active.Request.Bypass = true
	return s
}

// order is one column of the matrix. It is built for the state it meets: a command names
// the token that stands, if there is one.
type order struct {
	name string
	of   func(s Standing) Command
}

func tokenOf(s Standing) events.Token {
	if s.Active != nil && !s.Active.Token.IsZero() {
		return s.Active.Token
	}
	return events.Token{Transfer: first, Attempt: 1}
}

func claimOf(s Standing) uint64 {
	if s.Active == nil {
		return 0
	}
	return s.Active.ClaimSeq
}

// orders lists every command, with the variants that a decision tells apart.
func orders() []order {
	request := func(id events.TransferID, origin events.HostID, wish events.Wish) func(Standing) Command {
		return func(Standing) Command {
			f := *requested()
			f.Wish, f.Origin = wish, origin
			return Request{Transfer: id, Fact: f, Origin: origin}
		}
	}
	reserve := func(id events.TransferID, by events.HostID, login bool) func(Standing) Command {
		return func(Standing) Command { return Reserve{Transfer: id, Fact: *reserved(1), By: edge(by), InLogin: login} }
	}
	claim := func(by events.HostID, other, login bool) func(Standing) Command {
		return func(s Standing) Command {
			token := tokenOf(s)
			if other {
				token.Attempt++
			}
			return Claim{Token: token, By: edge(by), InLogin: login}
		}
	}
	consume := func(server events.HostID, life events.Incarnation, held bool) func(Standing) Command {
		return func(s Standing) Command {
			c := Consume{Server: server, Incarnation: life, Join: num[events.JoinID](9)}
			if held {
				c.Held = []events.Token{tokenOf(s)}
			}
			return c
		}
	}
	fixed := func(c Command) func(Standing) Command { return func(Standing) Command { return c } }
	wild := events.Wish{Region: "wild"}
	return []order{
		{"Request, the same wish", request(second, "a", wild)},
		{"Request, a weaker wish", request(second, "a", events.Wish{})},
		{"Request, another region", request(second, "a", events.Wish{Region: "nether"})},
		{"Request, a pin", request(second, "a", events.Wish{Pin: "c"})},
		{"Request, the same id", request(first, "a", wild)},
		{"Request, from server d", request(second, "d", wild)},
		{"Request, by the API", request(second, "", wild)},
		{"Waitlist", fixed(Waitlist{Transfer: first})},
		{"Waitlist, another transfer", fixed(Waitlist{Transfer: second})},
		{"Reserve", reserve(first, "e1", false)},
		{"Reserve, in a login", reserve(first, "e2", true)},
		{"Reserve, not the holder", reserve(first, "e2", false)},
		{"Reserve, another transfer", reserve(second, "e1", false)},
		{"Claim", claim("e1", false, false)},
		{"Claim, in a login", claim("e2", false, true)},
		{"Claim, another token", claim("e1", true, false)},
		{"Claim, not the holder", claim("e2", false, false)},
		{"RecordMove", func(s Standing) Command {
			return RecordMove{Token: tokenOf(s), Claim: claimOf(s), How: events.HowTransfer, Result: events.MoveSent}
		}},
		{"RecordMove, an older claim", func(s Standing) Command { return RecordMove{Token: tokenOf(s), Claim: claimOf(s) - 1} }},
		{"Consume", consume("b", lifeOf("b"), true)},
		{"Consume, at another server", consume("c", lifeOf("c"), true)},
		{"Consume, in another life", consume("b", lifeOf("b before"), true)},
		{"Consume, promise not held", consume("b", lifeOf("b"), false)},
		{"Complete", func(s Standing) Command { return Complete{Token: tokenOf(s), Server: "b"} }},
		{"Complete, by another server", func(s Standing) Command { return Complete{Token: tokenOf(s), Server: "c"} }},
		{"Release", func(s Standing) Command { return Release{Token: tokenOf(s), Reason: events.MoveRefused} }},
		{"Release, an older claim", func(s Standing) Command {
			return Release{Token: tokenOf(s), Claim: claimOf(s) - 1, Reason: events.MoveRefused}
		}},
		{"Release, unreachable", func(s Standing) Command { return Release{Token: tokenOf(s), Reason: events.Unreachable} }},
		{"Expire", func(s Standing) Command { return Expire{Token: tokenOf(s), Reason: events.TTLPassed} }},
		{"Expire, an older claim", func(s Standing) Command {
			return Expire{Token: tokenOf(s), Claim: claimOf(s) - 1, Reason: events.TTLPassed}
		}},
		{"Reopen", func(s Standing) Command {
			return Reopen{Token: tokenOf(s), By: edge("e1"), Claim: claimOf(s), Evidence: events.Stale}
		}},
		{"Reopen, not the holder", func(s Standing) Command { return Reopen{Token: tokenOf(s), By: edge("e2"), Claim: claimOf(s)} }},
		{"Reopen, an older claim", func(s Standing) Command { return Reopen{Token: tokenOf(s), By: edge("e1"), Claim: claimOf(s) - 1} }},
		{"Fail", fixed(Fail{Transfer: first, Code: events.NoCandidate})},
		{"Fail, meant for CONSUMED", fixed(Fail{Transfer: first, Code: events.PlayerLeft, In: []projections.Phase{projections.Consumed}})},
		{"Fail, an older claim", func(s Standing) Command { return Fail{Transfer: first, Claim: claimOf(s) - 1, Code: events.NotArrived} }},
		{"Fail, reported by server c", fixed(Fail{Transfer: first, Code: events.PlacementUnconfirmed, Server: "c"})},
		{"Fail, another transfer", fixed(Fail{Transfer: second, Code: events.NoCandidate})},
		{"Cancel", fixed(Cancel{Transfer: first, Code: events.Cancel})},
		{"Cancel, another transfer", fixed(Cancel{Transfer: second, Code: events.Cancel})},
		{"Supersede", fixed(Supersede{Transfer: first, By: second})},
		{"Supersede, another transfer", fixed(Supersede{Transfer: second, By: first})},
	}
}

func shortName(f events.TransferFact) string { return reflect.TypeOf(f).Elem().Name() }

func outcomeOf(fact events.TransferFact, refusal *events.Refusal) string {
	if refusal != nil {
		return string(refusal.Code)
	}
	return shortName(fact)
}

// TestDecideMatrix shows what each command gives in each state. What holds in most states
// is said once.
func TestDecideMatrix(t *testing.T) {
	var b strings.Builder
	b.WriteString("What a command gives, and in which states. Written by go test ./actors -update.\n")
	all := states(t)
	b.WriteString("\nThe states\n" + wrapped(names(all)))
	for _, o := range orders() {
		in := map[string][]string{}
		for _, st := range all {
			_, fact, refusal := Decide(st.s, o.of(st.s))
			got := outcomeOf(fact, refusal)
			in[got] = append(in[got], st.name)
		}
		fmt.Fprintf(&b, "\n%s\n", o.name)
		most := usual(in)
		for _, got := range sortedKeys(in) {
			if got != most {
				fmt.Fprintf(&b, "  %s\n%s", got, wrapped(in[got]))
			}
		}
		fmt.Fprintf(&b, "  %s\n      in all the others (%d)\n", most, len(in[most]))
	}
	golden(t, "decide/matrix.golden", b.String())
}

func names(all []state) (out []string) {
	for _, st := range all {
		out = append(out, st.name)
	}
	return out
}

// usual is the outcome of most states, the first by name among equals.
func usual(in map[string][]string) string {
	most := ""
	for _, got := range sortedKeys(in) {
		if most == "" || len(in[got]) > len(in[most]) {
			most = got
		}
	}
	return most
}

// wrapped is a list in lines of a readable length.
func wrapped(names []string) string {
	const indent, width = "      ", 120
	out, line := "", indent
	for i, name := range names {
		if i < len(names)-1 {
			name += "; "
		}
		if len(line)+len(name) > width {
			out, line = out+strings.TrimRight(line, " ")+"\n", indent
		}
		line += name
	}
	return out + line + "\n"
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// frozen is a value as it reads; what it points to included.
func frozen(t interface{ Fatalf(string, ...any) }, v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return fmt.Sprintf("%T %s", v, text)
}

// TestDecideIsPure holds two decisions on equal inputs against each other, and the inputs
// against what they were.
func TestDecideIsPure(t *testing.T) {
	for _, o := range orders() {
		for _, st := range states(t) {
			c := o.of(st.s)
			before := frozen(t, st.s) + frozen(t, c)
			id, fact, refusal := Decide(st.s, c)
			again, fact2, refusal2 := Decide(st.s, c)
			if id != again || !reflect.DeepEqual(fact, fact2) || !reflect.DeepEqual(refusal, refusal2) {
				t.Errorf("%s in %s: %v %v, then %v %v", o.name, st.name, fact, refusal, fact2, refusal2)
			}
			if after := frozen(t, st.s) + frozen(t, c); after != before {
				t.Errorf("%s in %s changed its input:\n%s\n%s", o.name, st.name, before, after)
			}
			if (fact == nil) == (refusal == nil) {
				t.Errorf("%s in %s gives %v and %v, want exactly one", o.name, st.name, fact, refusal)
			}
		}
	}
}

// TestDecidedFactsAreLegal demands that the fold accepts whatever a decision gives.
func TestDecidedFactsAreLegal(t *testing.T) {
	for _, o := range orders() {
		for _, st := range states(t) {
			id, fact, refusal := Decide(st.s, o.of(st.s))
			if refusal != nil {
				continue
			}
			if _, opens := fact.(*events.Requested); opens {
				if st.s.Active != nil || st.s.Find(id) != nil {
					t.Errorf("%s in %s opens a second transfer", o.name, st.name)
				}
				continue
			}
			if next, refused := st.s.Active.Apply(st.s.Guard+1, fact, t0); refused != nil {
				t.Errorf("%s in %s gives %s, which the fold refuses: %v", o.name, st.name, shortName(fact), refused)
			} else if next.Facts >= events.MaxKeyFacts && !events.Terminal(fact) {
				t.Errorf("%s in %s fills the key without an end", o.name, st.name)
			}
		}
	}
}

// walk is a random history of one player: commands in any order, by anybody.
type walk struct{ s Standing }

// step draws a command, decides and folds. It gives the fact, nil when it was refused.
func (w *walk) step(t *rapid.T) events.TransferFact {
	all := orders()
	o := all[rapid.IntRange(0, len(all)-1).Draw(t, "command")]
	w.surround(t)
	c := o.of(w.s)
	before := frozen(t, w.s) + frozen(t, c)
	id, fact, refusal := Decide(w.s, c)
	if after := frozen(t, w.s) + frozen(t, c); after != before {
		t.Fatalf("%s changed its input", o.name)
	}
	if refusal != nil {
		return nil
	}
	seq := w.s.Guard + 1
	if w.s.Active == nil {
		f, ok := fact.(*events.Requested)
		if !ok {
			t.Fatalf("%s without a transfer gives %s", o.name, shortName(fact))
		}
		tr := projections.Begin(events.Event{Envelope: events.Envelope{Correlation: id}, Seq: seq}, steve, f, t0)
		w.s.Active = &tr
	} else {
		next, refused := w.s.Active.Apply(seq, fact, t0)
		if refused != nil {
			t.Fatalf("%s gives %s in %s: %v", o.name, shortName(fact), w.s.Active.Phase, refused)
		}
		w.s.Active = &next
	}
	w.s.Guard = seq
	if w.s.Active.Phase.Terminal() {
		w.s.Done, w.s.Active = append(w.s.Done, *w.s.Active), nil
	}
	return fact
}

// surround changes what stands around the transfer.
func (w *walk) surround(t *rapid.T) {
	server := rapid.SampledFrom([]events.HostID{"a", "a", "a", "c"}).Draw(t, "server")
	w.s.Session, w.s.HasSession = sessionOn(server, rapid.SampledFrom([]events.HostID{"e1", "e1", "e2"}).Draw(t, "holder")), rapid.IntRange(0, 9).Draw(t, "held") > 0
	w.s.Controls.Killed = rapid.IntRange(0, 9).Draw(t, "kill") == 0
	if w.s.Controls.Killed {
		w.s.Controls.Kill = &events.KillSet{On: true}
	}
}

// TestDecideWalks: whatever is asked in whatever order, what is decided is legal, a transfer
// is consumed once, and nobody is moved twice.
func TestDecideWalks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &walk{}
		arrivals, movedOnce := 0, false
		for range rapid.IntRange(1, 120).Draw(t, "steps") {
			switch f := w.step(t).(type) {
			case *events.Requested:
				arrivals, movedOnce = 0, false
			case *events.Transferred:
				if movedOnce && f.Attempt == 1 {
					t.Fatalf("a second move of one token")
				}
				movedOnce = true
			case *events.Reopened:
				if movedOnce && w.s.Active != nil && w.s.Active.Move != "" {
					t.Fatalf("reopened after a move")
				}
			case *events.Consumed:
				if arrivals++; arrivals > 1 {
					t.Fatalf("consumed twice")
				}
			default:
			}
			if w.s.Active != nil && w.s.Active.Facts >= events.MaxKeyFacts {
				t.Fatalf("a key of %d facts without an end", w.s.Active.Facts)
			}
		}
	})
}

// arrows finds every transition that a decision can cause, from the matrix itself.
func arrows(t *testing.T) []string {
	type pair struct{ from, to projections.Phase }
	facts := map[pair][]string{}
	for _, o := range orders() {
		for _, st := range states(t) {
			_, fact, refusal := Decide(st.s, o.of(st.s))
			if refusal != nil || st.s.Active == nil {
				continue
			}
			next, _ := st.s.Active.Apply(st.s.Guard+1, fact, t0)
			p := pair{st.s.Active.Phase, next.Phase}
			if name := shortName(fact); !slices.Contains(facts[p], name) {
				facts[p] = append(facts[p], name)
			}
		}
	}
	var out []string
	for _, from := range projections.Phases {
		for _, to := range projections.Phases {
			if names := facts[pair{from, to}]; names != nil {
				slices.Sort(names)
				out = append(out, fmt.Sprintf("    %s --> %s : %s", from, to, strings.Join(names, ", ")))
			}
		}
	}
	return out
}

func stateDiagram(t *testing.T) string {
	lines := append([]string{"stateDiagram-v2", "    [*] --> REQUESTED : Requested"}, arrows(t)...)
	for _, p := range projections.Phases {
		if p.Terminal() {
			lines = append(lines, fmt.Sprintf("    %s --> [*]", p))
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

const (
	diagramBegin = "<!-- state diagram: begin -->\n"
	diagramEnd   = "<!-- state diagram: end -->\n"
)

// TestStateDiagram draws the states of a transfer, and demands that ARCHITECTURE.md shows
// that drawing.
func TestStateDiagram(t *testing.T) {
	diagram := stateDiagram(t)
	golden(t, "decide/states.mmd", diagram)
	page := "../ARCHITECTURE.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), diagramBegin)
	shown, tail, closed := strings.Cut(rest, diagramEnd)
	if !ok || !closed {
		t.Fatalf("%s has no %q ... %q", page, diagramBegin, diagramEnd)
	}
	want := "```mermaid\n" + diagram + "```\n"
	if shown == want {
		return
	}
	if !*update {
		t.Fatalf("the state diagram of %s is not the one decided (go test ./actors -update writes it)", page)
	}
	if err := os.WriteFile(page, []byte(head+diagramBegin+want+diagramEnd+tail), 0o644); err != nil { //nolint:gosec // a page for readers
		t.Fatal(err)
	}
}

// TestArrivalWithoutThePromise: a destination that does not know the promise is believed when
// it is the life that beats, and looked after the place was promised.
func TestArrivalWithoutThePromise(t *testing.T) {
	promise := reserved(1)
	promise.Promise = 2 // of life b
	tr := journey(t, promise, claimed(1, "e1"))
	number := func(n uint64) *uint64 { return &n }
	life := func(name events.HostID) *events.Incarnation { return new(lifeOf(name)) }
	for _, row := range []struct {
		name   string
		there  *events.Incarnation
		asker  events.HostID
		listed *uint64
		want   events.Code
	}{
		{"nobody knows who beats", nil, "b", number(2), events.PromiseGone},
		{"the promising life beats, and asks", life("b"), "b", number(2), events.PromiseGone},
		{"it does not say when it looked", life("b"), "b", nil, events.PromiseGone},
		{"it looked before it promised", life("b"), "b", number(1), events.WaitABit},
		{"a successor beats, and asks", life("b again"), "b again", number(0), events.PromiseGone},
		{"a successor asks before its beat is seen", life("b"), "b again", number(0), events.NoPlace},
		{"a successor beats, the promising life asks", life("b again"), "b", number(2), events.WaitABit},
		{"a third life beats", life("b third"), "b again", number(0), events.WaitABit},
	} {
		s := standingOf(&tr)
		s.There = row.there
		_, fact, refusal := Decide(s, Consume{Server: "b", Incarnation: lifeOf(row.asker), Join: num[events.JoinID](9), Listed: row.listed})
		if refusal == nil || refusal.Code != row.want {
			t.Errorf("%s: %v, %v, want %s", row.name, fact, refusal, row.want)
		}
	}
}
