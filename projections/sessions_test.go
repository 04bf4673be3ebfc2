package projections

import (
	"reflect"
	"testing"

	"github.com/landfall/landfall/events"
)

func session(number uint64, server events.HostID) events.Session {
	return events.Session{Number: number, Holder: "e", HolderIncarnation: lifeE, Kind: events.KindEdge, Server: server, Join: id[events.JoinID](3), Name: "Steve", Protocol: 767}
}

func opened(server events.HostID) *events.SessionOpened {
	return &events.SessionOpened{Session: session(0, server)}
}

func closed(number uint64, server events.HostID) *events.SessionClosed {
	return &events.SessionClosed{Session: session(number, server), Reason: "left"}
}

func refreshed(number uint64, server events.HostID) *events.SessionRefreshed {
	return &events.SessionRefreshed{Session: session(number, server)}
}

func TestSessionLife(t *testing.T) {
	key := steve.String()
	l := newTape().add(key, opened("a")).add(key, refreshed(1, "a")).add(key, closed(1, "a"))
	s := NewSessions()
	want := []Session{
		{Session: session(1, "a"), Open: true, Last: 1, OpenedAt: l.out[0].Stored, OpenSeen: noon, Seen: noon},
		{Session: session(1, "a"), Open: true, Last: 2, OpenedAt: l.out[0].Stored, OpenSeen: noon, Seen: noon},
		{Session: session(1, "a"), Open: false, Last: 3, OpenedAt: l.out[0].Stored, ClosedAt: l.out[2].Stored, OpenSeen: noon, Seen: noon},
	}
	for i, e := range l.out {
		wantRefusal(t, "", s.Apply(e, noon), events.OK)
		if got, ok := s.Player(steve); !ok || !reflect.DeepEqual(got, want[i]) {
			t.Errorf("after %d: %+v, want %+v", i+1, got, want[i])
		}
	}
	l.add(key, opened("b"))
	wantRefusal(t, "opened anew", s.Apply(*l.newest(), noon), events.OK)
	if got, _ := s.Player(steve); got.Number != 4 || !got.Open || got.Server != "b" || !got.ClosedAt.IsZero() || got.Away != l.out[3].Stored.Sub(l.out[2].Stored) {
		t.Errorf("%+v", got)
	}
	if _, ok := s.Player(alex); ok || len(s.All()) != 1 {
		t.Error("a stranger has a session")
	}
}

// A late close, or refresh, of an old session changes nothing but the revision.
func TestLateClose(t *testing.T) {
	key := steve.String()
	for name, late := range map[string]events.Fact{
		"close of an old session":   closed(1, "a"),
		"refresh of an old session": refreshed(1, "a"),
		"close of no session":       closed(0, "a"),
		"refresh of no session":     refreshed(0, "a"),
		"close of one to come":      closed(9, "a"),
	} {
		s := NewSessions()
		l := newTape().add(key, opened("a")).add(key, opened("b"))
		for _, e := range l.out {
			wantRefusal(t, name, s.Apply(e, noon), events.OK)
		}
		want, _ := s.Player(steve)
		l.add(key, late)
		wantRefusal(t, name, s.Apply(*l.newest(), noon.Add(1)), events.Impossible)
		want.Last = 3
		if got, _ := s.Player(steve); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
		l.add(key, closed(2, "b"))
		wantRefusal(t, name+", then the true one", s.Apply(*l.newest(), noon), events.OK)
		l.add(key, closed(2, "b"))
		wantRefusal(t, name+", then it again", s.Apply(*l.newest(), noon), events.Impossible)
	}
}

// Each fact is the whole state: the newest of a key is enough to begin with.
func TestSessionFromTheNewestFact(t *testing.T) {
	for name, c := range map[string]struct {
		fact events.Fact
		open bool
	}{"refreshed": {refreshed(4, "a"), true}, "closed": {closed(4, "a"), false}} {
		l := newTape()
		l.seq = 6
		l.add(steve.String(), c.fact)
		s := NewSessions()
		wantRefusal(t, name, s.Apply(*l.newest(), noon), events.OK)
		got, ok := s.Player(steve)
		if !ok || got.Open != c.open || got.Number != 4 || got.Last != 7 || !got.OpenedAt.IsZero() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A message that is no fact moves the revision, and is not a session.
func TestSessionSkip(t *testing.T) {
	s := NewSessions()
	s.Skip(steve.String(), 5)
	if got, ok := s.Player(steve); ok || got.Last != 5 || got.Open {
		t.Errorf("%+v, %v", got, ok)
	}
	l := newTape()
	l.seq = 5
	l.add(steve.String(), refreshed(3, "a"))
	wantRefusal(t, "a refresh behind it", s.Apply(*l.newest(), noon), events.OK)
	if got, ok := s.Player(steve); !ok || !got.Open || got.Number != 3 {
		t.Errorf("%+v", got)
	}
	s.Skip("no player", 9)
	e := *l.newest()
	e.Key = "no player"
	wantRefusal(t, "a key that is no player", s.Apply(e, noon), events.Malformed)
	e.Key, e.Fact = steve.String(), requested()
	wantRefusal(t, "a fact of another bucket", s.Apply(e, noon), events.Malformed)
}
