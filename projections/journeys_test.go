package projections

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

func happy(l *tape, p events.PlayerID, t events.TransferID) *tape {
	return l.of(p, t, requested(), reserved(1), claimed(1), transferred(1), consumed(1), completed(1))
}

func TestJourneyHappyPath(t *testing.T) {
	l := happy(newTape(), steve, first)
	j := folded(t, l)
	p := j.Player(steve)
	if p.Guard != 6 || p.Active != nil || len(p.Done) != 1 || len(j.Active()) != 0 {
		t.Fatalf("%+v", p)
	}
	got := p.Find(first)
	if got == nil || got.Phase != Completed || got.Code != events.OK || got.Facts != 6 || got.Place != 1 || got.Last != 6 {
		t.Errorf("%+v", got)
	}
	if owner, ok := j.Owner(first); !ok || owner != steve {
		t.Errorf("owner %s, %v", owner, ok)
	}
	if p.Find(next) != nil {
		t.Error("found a transfer that is not there")
	}
	if q := j.Player(alex); q.Guard != 0 || q.Active != nil || q.Done != nil {
		t.Errorf("a stranger has %+v", q)
	}
}

// A fact on top of another one than the player's last changes nothing but the guard, so
// that the next writer's fact, made on top of it, is taken.
func TestWrongPrev(t *testing.T) {
	for name, prev := range map[string]uint64{"a replay": 0, "unguarded": 1, "from the future": 9} {
		l := newTape().of(steve, first, requested(), reserved(1))
		j := folded(t, l)
		before := *j.Player(steve).Active
		l.of(steve, first, claimed(1))
		l.newest().Prev = prev
		wantRefusal(t, name, j.Apply(*l.newest(), noon), events.WrongPrev)
		p := j.Player(steve)
		if p.Guard != 3 {
			t.Errorf("%s: guard %d, want 3", name, p.Guard)
		}
		before.Facts, before.Last = 3, 3 // it takes a place under the key all the same
		if !reflect.DeepEqual(*p.Active, before) {
			t.Errorf("%s: %+v, want %+v", name, *p.Active, before)
		}
		l.of(steve, first, claimed(1))
		wantRefusal(t, name+", then a good one", j.Apply(*l.newest(), noon), events.OK)
		if got := j.Player(steve).Active; got.Phase != Claimed || got.ClaimSeq != 4 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The guard of one player says nothing about another's.
func TestGuardsArePerPlayer(t *testing.T) {
	l := newTape().of(steve, first, requested()).of(alex, next, requested()).of(steve, first, reserved(1)).of(alex, next, reserved(1))
	j := folded(t, l)
	if a, b := j.Player(steve).Guard, j.Player(alex).Guard; a != 3 || b != 4 || len(j.Active()) != 2 {
		t.Errorf("guards %d and %d, %d active", a, b, len(j.Active()))
	}
}

// What retention took may be the previous message: a fold that begins there takes what it
// cannot check, and no more than that.
func TestRetention(t *testing.T) {
	cases := []struct {
		name        string
		first, prev uint64
		code        events.Code
	}{
		{"previous is gone", 100, 99, events.OK},
		{"first of the player", 100, 0, events.OK},
		{"previous would be held", 100, 100, events.WrongPrev},
		{"previous would be held, later", 100, 110, events.WrongPrev},
	}
	for _, c := range cases {
		l := newTape()
		l.seq = 119
		l.of(steve, first, requested())
		l.newest().Prev = c.prev
		wantRefusal(t, c.name, NewJourneys(c.first).Apply(*l.newest(), noon), c.code)
	}
	// the rest of a key whose head is gone: no request, no transfer, but the guard is right
	l := newTape().of(steve, first, requested(), reserved(1), claimed(1))
	j := NewJourneys(3)
	wantRefusal(t, "a claim without its head", j.Apply(l.out[2], noon), events.Impossible)
	if p := j.Player(steve); p.Guard != 3 || p.Active != nil {
		t.Errorf("%+v", p)
	}
	l.of(steve, next, requested())
	wantRefusal(t, "a new request on top of it", j.Apply(*l.newest(), noon), events.OK)
}

// TestRetentionOfWhatIsHeld: retention takes a message while this fold holds it, and the store
// then wants the guard 0. Only a fact that is younger by so much may say so; else somebody has
// written past the guard.
func TestRetentionOfWhatIsHeld(t *testing.T) {
	const day = 24 * time.Hour
	for name, row := range map[string]struct {
		keeps, later time.Duration
		want         events.Code
	}{
		"younger by what the stream keeps": {day, day, events.OK},
		"too soon":                         {day, day - time.Second, events.WrongPrev},
		"the stream keeps everything":      {0, 100 * day, events.WrongPrev},
	} {
		l := newTape().of(steve, first, requested(), &events.Failed{Code: events.NoCandidate}).of(steve, next, requested())
		j := NewJourneys(1)
		j.keeps = row.keeps
		wantRefusal(t, name, j.Apply(l.out[0], noon), events.OK)
		wantRefusal(t, name, j.Apply(l.out[1], noon), events.OK)
		l.out[2].Prev, l.out[2].Stored = 0, l.out[1].Stored.Add(row.later)
		wantRefusal(t, name, j.Apply(l.out[2], noon), row.want)
	}
}

func TestOneActivePerPlayer(t *testing.T) {
	l := newTape().of(steve, first, requested()).of(steve, next, requested())
	j := NewJourneys(1)
	wantRefusal(t, "first", j.Apply(l.out[0], noon), events.OK)
	wantRefusal(t, "second while active", j.Apply(l.out[1], noon), events.Impossible)
	if got := j.Player(steve).Active; got.ID != first {
		t.Errorf("active is %s", got.ID)
	}
	if _, ok := j.Owner(next); ok {
		t.Error("the refused transfer has an owner")
	}
	l.of(steve, next, reserved(1))
	wantRefusal(t, "a fact of the refused one", j.Apply(*l.newest(), noon), events.Impossible)
	l.of(steve, first, &events.Superseded{By: next}).of(steve, next, requested())
	wantRefusal(t, "superseded", j.Apply(l.out[3], noon), events.OK)
	wantRefusal(t, "the new wish", j.Apply(l.out[4], noon), events.OK)
	p := j.Player(steve)
	if p.Active == nil || p.Active.ID != next || p.Active.Place != 5 || p.Done[0].Phase != Superseded {
		t.Errorf("%+v", p)
	}
	if p.Active.Facts != 3 {
		t.Errorf("its key holds %d messages, want 3: two were refused before it began", p.Active.Facts)
	}
}

// Nothing follows an end, and an ended transfer does not begin again.
func TestStrayFactsAfterTheEnd(t *testing.T) {
	l := happy(newTape(), steve, first)
	j := folded(t, l)
	before := j.Player(steve).Done[0]
	for _, f := range []events.TransferFact{requested(), reserved(2), claimed(1), completed(1), &events.Failed{Code: events.NotArrived}} {
		l.of(steve, first, f)
		wantRefusal(t, events.TypeName(f), j.Apply(*l.newest(), noon), events.Impossible)
	}
	p := j.Player(steve)
	if p.Active != nil || len(p.Done) != 1 || !reflect.DeepEqual(p.Done[0], before) || p.Guard != l.seq {
		t.Errorf("%+v", p)
	}
}

// A key is full when it holds 64 messages, whoever put them there. Then its transfer has
// ended to every fold, and the player may begin another.
func TestFullKeyBlocksNobody(t *testing.T) {
	fills := map[string]func(j *Journeys, l *tape){
		"refused facts": func(j *Journeys, l *tape) {
			l.of(steve, first, claimed(9))
			wantRefusal(t, "impossible", j.Apply(*l.newest(), noon), events.Impossible)
		},
		"facts behind a wrong guard": func(j *Journeys, l *tape) {
			l.of(steve, first, reserved(1))
			l.newest().Prev++
			wantRefusal(t, "wrong prev", j.Apply(*l.newest(), noon), events.WrongPrev)
		},
		"markers put by hand": func(j *Journeys, l *tape) {
			l.of(steve, first, reserved(1))
			j.Skip(l.newest().Key, l.seq)
		},
		"facts of another transfer": func(j *Journeys, l *tape) {
			l.of(steve, first, reserved(1))
			l.newest().Correlation = next
			wantRefusal(t, "wrong correlation", j.Apply(*l.newest(), noon), events.Malformed)
		},
	}
	for name, fill := range fills {
		l := newTape().of(steve, first, requested())
		j := folded(t, l)
		for n := 1; n < events.MaxKeyFacts; n++ {
			if j.Player(steve).Active == nil {
				t.Fatalf("%s: ended after %d", name, n)
			}
			fill(j, l)
		}
		p := j.Player(steve)
		if p.Active != nil || len(p.Done) != 1 || p.Done[0].Code != events.KeyFull || p.Guard != l.seq || len(j.Active()) != 0 {
			t.Errorf("%s: %+v", name, p)
		}
		l.of(steve, next, requested())
		wantRefusal(t, name+", then a new request", j.Apply(*l.newest(), noon), events.OK)
	}
	// garbage first, the request on top of it
	l := newTape()
	j := NewJourneys(1)
	for range events.MaxKeyFacts - 1 {
		l.of(steve, first, claimed(1))
		j.Skip(l.newest().Key, l.seq)
	}
	l.of(steve, first, requested())
	wantRefusal(t, "a request in the last place", j.Apply(*l.newest(), noon), events.OK)
	if p := j.Player(steve); p.Active != nil || p.Done[0].Code != events.KeyFull {
		t.Errorf("%+v", p)
	}
}

func TestMalformedKeys(t *testing.T) {
	j := NewJourneys(1)
	key := events.TransferKey(steve, first)
	for _, bad := range []string{"", "x", steve.String(), strings.ToUpper(key), strings.ReplaceAll(key, "-", ""), key + ".x"} {
		e := events.Event{Seq: 1, Fact: requested()}
		e.Key, e.Correlation = bad, first
		wantRefusal(t, bad, j.Apply(e, noon), events.Malformed)
		j.Skip(bad, 1)
	}
	if p := j.Player(steve); p.Guard != 0 {
		t.Errorf("another spelling of a key moved the guard to %d", p.Guard)
	}
	l := newTape().add(steve.String(), &events.SessionClosed{})
	l.newest().Key, l.newest().Correlation = key, first
	wantRefusal(t, "a session fact", j.Apply(*l.newest(), noon), events.Malformed)
}

func TestDoneIsBounded(t *testing.T) {
	l := newTape()
	for n := range keptDone + 3 {
		l.of(steve, id[events.TransferID](byte(n+1)), requested(), &events.Cancelled{Code: events.GraceOver})
	}
	j := folded(t, l)
	p := j.Player(steve)
	if len(p.Done) != keptDone || p.Done[keptDone-1].ID != id[events.TransferID](keptDone+3) {
		t.Errorf("%d kept, the last is %s", len(p.Done), p.Done[len(p.Done)-1].ID)
	}
	if _, ok := j.Owner(first); ok || len(j.byID) != keptDone {
		t.Errorf("%d ids held", len(j.byID))
	}
}

// What was handed out stays as it was.
func TestPlayerIsACopy(t *testing.T) {
	l := newTape().of(steve, first, requested())
	j := folded(t, l)
	held := j.Player(steve)
	copied := *held.Active
	for _, f := range []events.TransferFact{reserved(1), claimed(1), &events.Failed{Code: events.NotArrived}} {
		l.of(steve, first, f)
		wantRefusal(t, "", j.Apply(*l.newest(), noon), events.OK)
	}
	done := j.Player(steve)
	for n := range keptDone + 1 {
		l.of(steve, id[events.TransferID](byte(n+5)), requested())
		wantRefusal(t, "", j.Apply(*l.newest(), noon), events.OK)
		l.of(steve, id[events.TransferID](byte(n+5)), &events.Cancelled{})
		wantRefusal(t, "", j.Apply(*l.newest(), noon), events.OK)
	}
	if !reflect.DeepEqual(*held.Active, copied) || held.Guard != 1 || len(held.Done) != 0 {
		t.Errorf("%+v", held)
	}
	if len(done.Done) != 1 || done.Done[0].ID != first || done.Done[0].Phase != Failed {
		t.Errorf("%+v", done)
	}
}

func TestForget(t *testing.T) {
	l := happy(newTape(), steve, first).of(alex, next, requested())
	j := folded(t, l)
	j.Forget(l.out[5].Stored)
	if p := j.Player(steve); p.Guard != 6 {
		t.Errorf("forgotten at its own moment: %+v", p)
	}
	j.Forget(noon.Add(time.Hour))
	if p := j.Player(steve); p.Guard != 0 || p.Done != nil {
		t.Errorf("not forgotten: %+v", p)
	}
	if _, ok := j.Owner(first); ok {
		t.Error("the id of a forgotten transfer is held")
	}
	if p := j.Player(alex); p.Active == nil || p.Guard != 7 {
		t.Errorf("an active transfer was forgotten: %+v", p)
	}
	// the next fact of a forgotten player names a guard that cannot be checked
	l.of(steve, next, requested())
	wantRefusal(t, "after forgetting", j.Apply(*l.newest(), noon), events.OK)
	if p := j.Player(steve); p.Active == nil || p.Guard != 8 {
		t.Errorf("%+v", p)
	}
	// a player of whom only garbage is known is dropped as well
	j.Skip(events.TransferKey(id[events.PlayerID](3), first), 9)
	j.Forget(noon)
	if len(j.players) != 2 {
		t.Errorf("%d players held", len(j.players))
	}
}
