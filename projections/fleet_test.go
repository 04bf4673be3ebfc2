package projections

import (
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

func beat(server events.HostID, life events.Incarnation, promise uint64) *events.BackendBeat {
	return &events.BackendBeat{
		Server: server, Incarnation: life, State: events.Ready, Accepting: true, Promise: promise,
		Regions: []events.RegionBeat{{Name: "wild", World: "w", Kept: 5, Size: 8}},
	}
}

func proxyBeat(proxy events.HostID) *events.ProxyBeat {
	return &events.ProxyBeat{Proxy: proxy, Incarnation: lifeE, State: events.Ready}
}

func watching(t *testing.T, l *tape, f *Fleet) *Fleet {
	t.Helper()
	for _, e := range l.out {
		var refusal *events.Refusal
		if f, refusal = f.Apply(e, e.Stored); refusal != nil {
			t.Fatal(refusal)
		}
	}
	return f
}

func TestFleet(t *testing.T) {
	empty := &Fleet{}
	l := newTape().
		add("backend.m", beat("m", lifeB, 1)).add("backend.z", beat("z", lifeB, 1)).add("proxy.p", proxyBeat("p")).
		add("backend.a", beat("a", lifeB, 1)).add("backend.m", beat("m", lifeB2, 2))
	f := watching(t, l, empty)
	var names []string
	for _, b := range f.Backends {
		names = append(names, string(b.Server))
	}
	if !slices.Equal(names, []string{"a", "m", "z"}) || f.Seq != 5 || len(f.Proxies) != 1 {
		t.Errorf("backends %v, sequence %d, %d proxies", names, f.Seq, len(f.Proxies))
	}
	if m := f.Backend("m"); m.Incarnation != lifeB2 || m.Seq != 5 || m.Promise != 2 || !m.Seen.Equal(l.out[4].Stored) || m.Live || m.Kept() != 5 {
		t.Errorf("%+v", m)
	}
	if f.Proxy("p") == nil || f.Proxy("q") != nil || f.Backend("b") != nil || f.Backend("zz") != nil {
		t.Error("found who is not there, or not who is")
	}
	if len(empty.Backends) != 0 || empty.Seq != 0 {
		t.Error("the snapshot it began with has changed")
	}
	held := *f
	first := f.Backends[0]
	l2 := newTape()
	l2.seq = 5
	watching(t, l2.add("backend.a", beat("a", lifeB2, 9)).add("backend.b", beat("b", lifeB, 1)), f)
	if f.Seq != held.Seq || len(f.Backends) != 3 || f.Backends[0] != first || first.Promise != 1 {
		t.Error("a snapshot that was handed out has changed")
	}
	_, refusal := f.Apply(events.Event{Fact: requested()}, noon)
	wantRefusal(t, "a fact of another bucket", refusal, events.Malformed)
}

// Live tells whether a beat came before the reader's eyes, or was found in the store.
func TestFleetLive(t *testing.T) {
	f := watching(t, newTape().add("backend.a", beat("a", lifeB, 1)).add("proxy.p", proxyBeat("p")), &Fleet{})
	f = f.WithSight(true, noon)
	if f.Backend("a").Live || f.Proxy("p").Live {
		t.Error("a beat found in the store counts as live")
	}
	f = watching(t, newTape().add("backend.a", beat("a", lifeB, 2)).add("proxy.p", proxyBeat("p")), f)
	if !f.Backend("a").Live || !f.Proxy("p").Live {
		t.Error("a beat seen as it came does not count as live")
	}
}

// Silence is this reader's own: what it could not see does not count, and for a while after
// it can see again nobody is absent.
func TestSilence(t *testing.T) {
	const grace = 4 * time.Second
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	blind := &Fleet{}
	seeing := blind.WithSight(true, at(10))
	again := seeing.WithSight(false, at(20)).WithSight(true, at(30))
	cases := []struct {
		name      string
		f         *Fleet
		seen, now int
		silence   int
		sighted   bool
	}{
		{"never saw", blind, 0, 100, 0, false},
		{"sees, beat came before", seeing, 0, 12, 2, false},
		{"sees, beat came since", seeing, 11, 12, 1, false},
		{"sees for just grace", seeing, 11, 14, 3, false},
		{"sees for longer", seeing, 11, 15, 4, true},
		{"went blind", seeing.WithSight(false, at(20)), 11, 100, 0, false},
		{"sees again, nothing counts", again, 19, 31, 1, false},
		{"sees again for long", again, 19, 40, 10, true},
	}
	for _, c := range cases {
		if got := c.f.Silence(at(c.seen), at(c.now)); got != time.Duration(c.silence)*time.Second {
			t.Errorf("%s: silent for %v, want %d s", c.name, got, c.silence)
		}
		if got := c.f.Sighted(at(c.now), time.Hour, grace); got != c.sighted {
			t.Errorf("%s: sighted %v, want %v", c.name, got, c.sighted)
		}
	}
}

// TestFleetBreak: a reader that heard nobody for longer than silence takes, not even itself, has
// slept or hung. It judges nobody until it hears again, and then begins to watch anew.
func TestFleetBreak(t *testing.T) {
	const stale, grace = 3 * time.Second, 4 * time.Second
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	l := newTape().add("backend.a", beat("a", lifeB, 1)).add("backend.b", beat("b", lifeB, 1)).add("backend.a", beat("a", lifeB, 2)).add("backend.b", beat("b", lifeB, 2))
	f := (&Fleet{}).WithSight(true, at(0))
	hear := func(i, when int) {
		next, refusal := f.Apply(l.out[i], at(when))
		if refusal != nil {
			t.Fatal(refusal)
		}
		f = next.after(f, stale)
	}
	hear(0, 2)
	hear(1, 5)
	if !f.Hears(at(8), stale) || !f.Sighted(at(8), stale, grace) || f.Silence(at(2), at(8)) != 6*time.Second {
		t.Error("a pause as long as allowed is taken for a break")
	}
	if f.Hears(at(9), stale) || f.Sighted(at(9), stale, grace) {
		t.Error("hears nobody, and judges")
	}
	hear(2, 60)
	if !f.Hears(at(60), stale) || f.Sighted(at(64), stale, grace) || f.Silence(f.Backend("b").Seen, at(61)) != time.Second {
		t.Errorf("what was missed counts as silence: %v", f.Silence(f.Backend("b").Seen, at(61)))
	}
	hear(3, 62)
	if !f.Sighted(at(65), stale, grace) {
		t.Error("does not judge any more")
	}
}

// Who begins again with a stream keeps the beats it has; of a shorter stream the sequences
// mean something else.
func TestFleetFrom(t *testing.T) {
	f := watching(t, newTape().add("backend.a", beat("a", lifeB, 1)).add("backend.b", beat("b", lifeB, 1)), &Fleet{})
	if g := f.From(2); g.Seq != 2 || len(g.Backends) != 2 {
		t.Errorf("same stream: %+v", g)
	}
	if g := f.From(1); g.Seq != 0 || len(g.Backends) != 2 || f.Seq != 2 {
		t.Errorf("shorter stream: %+v", g)
	}
}
