package projections

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/landfall/landfall/events"
)

// law is one fold as the laws see it. A new projection is one more line in laws.
type law struct {
	name   string
	bucket events.Bucket
	fresh  func() folder
}

// folder is a fold under test: what it holds comes out as text, without the reader's times.
type folder struct {
	apply func(e events.Event, seen time.Time) *events.Refusal
	state func() string
}

func laws() []law {
	return []law{
		{"journeys", events.Transfers, func() folder { j := NewJourneys(1); return folder{j.Apply, func() string { return journeyState(j) }} }},
		{"line", events.Transfers, func() folder {
			j := NewJourneys(1)
			return folder{j.Apply, func() string { return fmt.Sprint(j.line.waiting, j.line.bypasses) }}
		}},
		{"sessions", events.Sessions, func() folder { s := NewSessions(); return folder{s.Apply, func() string { return sessionState(s) }} }},
		{"controls", events.Control, func() folder {
			c := Controls{}
			return folder{func(e events.Event, _ time.Time) (r *events.Refusal) { c, r = c.Apply(e); return r }, func() string { return controlState(c) }}
		}},
		{"fleet", events.Fleet, func() folder {
			f := &Fleet{}
			return folder{func(e events.Event, seen time.Time) (r *events.Refusal) { f, r = f.Apply(e, seen); return r }, func() string { return fleetState(f) }}
		}},
		{"pledges", events.Transfers, func() folder {
			p := NewPledges()
			return folder{func(e events.Event, _ time.Time) *events.Refusal {
				if r, ok := e.Fact.(*events.Reserved); ok {
					p.Reserved(r)
				}
				return nil
			}, func() string { return fmt.Sprint(p.servers) }}
		}},
	}
}

// Folding is a function of the facts: twice the same, whatever the clocks say, and in one
// go or in pieces.
func TestFoldLaws(t *testing.T) {
	for _, l := range laws() {
		t.Run(l.name, rapid.MakeCheck(func(t *rapid.T) {
			history := drawHistory(t, l.bucket)
			cut := rapid.IntRange(0, len(history)).Draw(t, "cut")
			once, twice, clocks, pieces := l.fresh(), l.fresh(), l.fresh(), l.fresh()
			var refused []string
			for _, e := range history {
				refused = append(refused, codeOf(once.apply(e, e.Stored)))
			}
			for i, e := range history {
				if got := codeOf(twice.apply(e, e.Stored)); got != refused[i] {
					t.Fatalf("replayed, sequence %d: %s, at first %s", e.Seq, got, refused[i])
				}
				wild := e
				wild.Stored = noon.Add(time.Duration(rapid.Int64().Draw(t, "stored")))
				wild.Time = time.Unix(rapid.Int64().Draw(t, "time"), 0)
				if got := codeOf(clocks.apply(wild, time.Unix(rapid.Int64().Draw(t, "seen"), 0))); got != refused[i] {
					t.Fatalf("other clocks, sequence %d: %s, at first %s", e.Seq, got, refused[i])
				}
			}
			for _, e := range history[:cut] {
				pieces.apply(e, e.Stored)
			}
			_ = pieces.state() // a reader in the middle changes nothing
			for _, e := range history[cut:] {
				pieces.apply(e, e.Stored)
			}
			want := once.state()
			for name, f := range map[string]folder{"replayed": twice, "other clocks": clocks, "in pieces": pieces} {
				if got := f.state(); got != want {
					t.Fatalf("%s:\n%s\nat first:\n%s", name, got, want)
				}
			}
		}))
	}
}

// A refused fact changes no state but the guard and the count of its key.
func TestRefusedFactsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		j := NewJourneys(1)
		for _, e := range drawHistory(t, events.Transfers) {
			player, transfer, err := events.ParseTransferKey(e.Key)
			before := j.Player(player)
			refusal := j.Apply(e, noon)
			after := j.Player(player)
			if err == nil && after.Guard != e.Seq {
				t.Fatalf("sequence %d: guard %d", e.Seq, after.Guard)
			}
			if after.Active != nil {
				checkSound(t, fmt.Sprintf("sequence %d", e.Seq), *after.Active)
			}
			if refusal == nil || before.Active == nil || before.Active.ID == transfer {
				continue
			}
			if after.Active == nil || !reflect.DeepEqual(*before.Active, *after.Active) {
				t.Fatalf("sequence %d was refused (%v) and changed %+v to %+v", e.Seq, refusal, before.Active, after.Active)
			}
		}
	})
}

func codeOf(r *events.Refusal) string {
	if r == nil {
		return "taken"
	}
	return string(r.Code)
}

// drawHistory draws facts as they might stand in a bucket: mostly what a correct writer
// would put there next, some of it wrong in every way.
func drawHistory(t *rapid.T, b events.Bucket) []events.Event {
	l, shadow := newTape(), NewJourneys(1)
	for range rapid.IntRange(0, 80).Draw(t, "facts") {
		key, fact := drawFact(t, b, l)
		if active := shadow.Active(); b == events.Transfers && len(active) > 0 && rapid.IntRange(0, 4).Draw(t, "likely") > 0 {
			slices.SortFunc(active, func(x, y Transfer) int { return slices.Compare(x.Player[:], y.Player[:]) })
			x := rapid.SampledFrom(active).Draw(t, "active")
			key, fact = events.TransferKey(x.Player, x.ID), rapid.SampledFrom(likely(x)).Draw(t, "attempted").fact
		}
		l.add(key, fact)
		e := l.newest()
		switch rapid.IntRange(0, 19).Draw(t, "damage") {
		case 0:
			e.Prev = rapid.Uint64Range(0, l.seq+1).Draw(t, "prev")
		case 1:
			e.Key = rapid.SampledFrom([]string{"", "x", "kill", e.Key + "x"}).Draw(t, "key")
		case 2:
			e.Correlation = next
		case 3:
			e.Fact = rapid.SampledFrom(events.Catalog).Draw(t, "other").New()
		}
		shadow.Apply(*e, noon)
	}
	return l.out
}

// likely are the facts that take a transfer further, and one that does not.
func likely(x Transfer) (out []named) {
	for i, n := range attempted(x) {
		_, refusal := x.Apply(0, n.fact, noon)
		_, completes := n.fact.(*events.Completed)
		if further := refusal == nil && (completes || !events.Terminal(n.fact)); further || i == x.Facts {
			out = append(out, n)
		}
	}
	if x.Facts > 8 {
		out = append(out, named{"failed", &events.Failed{Code: events.NotArrived}})
	}
	return out
}

func drawFact(t *rapid.T, b events.Bucket, l *tape) (string, events.Fact) {
	small := rapid.IntRange(0, 3)
	player := id[events.PlayerID](byte(rapid.IntRange(1, 2).Draw(t, "player"))) //nolint:gosec // small
	seq := rapid.Uint64Range(0, l.seq).Draw(t, "sequence")
	host := rapid.SampledFrom([]events.HostID{"a", "b", "c"}).Draw(t, "host")
	life := rapid.SampledFrom([]events.Incarnation{lifeB, lifeB2}).Draw(t, "life")
	on := rapid.Bool().Draw(t, "on")
	switch b {
	case events.Sessions:
		return player.String(), rapid.SampledFrom([]events.Fact{opened(host), refreshed(seq, host), closed(seq, host)}).Draw(t, "fact")
	case events.Control:
		if on {
			return "kill", &events.KillSet{On: rapid.Bool().Draw(t, "kill")}
		}
		return events.DrainKey(host), &events.DrainSet{Host: host, On: rapid.Bool().Draw(t, "drain")}
	case events.Fleet:
		if on {
			return events.BackendKey(host), beat(host, life, seq)
		}
		return events.ProxyKey(host), proxyBeat(host)
	default:
		n := small.Draw(t, "attempt")
		fact := rapid.SampledFrom([]events.TransferFact{
			requested(), reserved(n), claimed(n), transferred(n), consumed(n), completed(n), released(n), unreachable(n), expired(n),
			reopened(n, seq), &events.Waitlisted{}, &events.Failed{Code: events.NotArrived}, &events.Cancelled{Code: events.GraceOver}, &events.Superseded{By: next},
		}).Draw(t, "fact")
		return events.TransferKey(player, id[events.TransferID](byte(rapid.IntRange(1, 6).Draw(t, "transfer")))), fact //nolint:gosec // small
	}
}

func journeyState(j *Journeys) string {
	var out strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(j.players), func(a, b events.PlayerID) int { return slices.Compare(a[:], b[:]) }) {
		p := j.players[id]
		out.WriteString(fmt.Sprintf("%s guard %d strays %v\n", id.Short(), p.last, p.strays))
		for _, x := range append(slices.Clone(p.done), p.current) {
			out.WriteString(timeless(x) + "\n")
		}
	}
	return out.String() + fmt.Sprintf("%d active, owners %v", len(j.active), j.byID)
}

func timeless(x Transfer) string {
	x.Seen = Seen{}
	facts := fmt.Sprintf(" %v %v %v %v %v", deref(x.Request), deref(x.Reserved), deref(x.Claim), deref(x.Consumed), deref(x.Completed))
	x.Request, x.Reserved, x.Claim, x.Consumed, x.Completed = nil, nil, nil, nil, nil
	return fmt.Sprintf("%+v", x) + facts
}

func deref[T any](p *T) any {
	if p == nil {
		return "none"
	}
	return *p
}

func sessionState(s *Sessions) string {
	var out strings.Builder
	for _, id := range slices.SortedFunc(maps.Keys(s.players), func(a, b events.PlayerID) int { return slices.Compare(a[:], b[:]) }) {
		x := s.players[id]
		x.Seen, x.OpenedAt, x.ClosedAt, x.OpenSeen, x.Before, x.Away = time.Time{}, time.Time{}, time.Time{}, time.Time{}, time.Time{}, 0
		out.WriteString(fmt.Sprintf("%s %+v\n", id.Short(), x))
	}
	return out.String()
}

func controlState(c Controls) string {
	return fmt.Sprint(c.Killed, deref(c.Kill), slices.Sorted(maps.Keys(c.Drained)))
}

func fleetState(f *Fleet) string {
	var out strings.Builder
	out.WriteString(fmt.Sprint(f.Seq, f.Live))
	for _, b := range f.Backends {
		out.WriteString(fmt.Sprintf("\n%+v %d %v", b.BackendBeat, b.Seq, b.Live))
	}
	for _, p := range f.Proxies {
		out.WriteString(fmt.Sprintf("\n%+v %d %v", p.ProxyBeat, p.Seq, p.Live))
	}
	return out.String()
}
