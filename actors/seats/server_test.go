package seats

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/edge/vintage"
	"github.com/landfall/landfall/events"
)

// ears writes down what a World reports.
type ears struct {
	actors.WorldEvents

	mu   sync.Mutex
	said []string
	more chan struct{}
}

func (e *ears) say(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.said = append(e.said, fmt.Sprintf(format, args...))
	if e.more != nil {
		e.more <- struct{}{}
	}
}

func (e *ears) Up(life string)                 { e.say("up %s", life) }
func (e *ears) Down(error)                     { e.say("down") }
func (e *ears) Joined(p actors.Player)         { e.say("joined %s", p.Name) }
func (e *ears) Left(p actors.Player, _ string) { e.say("left %s", p.Name) }

func (e *ears) all() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.said)
}

func newServer(t *testing.T, address string) (*Server, *ears) {
	t.Helper()
	s, err := New(Config{Address: address, Every: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e := &ears{}
	s.hears = e
	return s, e
}

var (
	answer     = vintage.Answer{Name: "east", Players: 3, Max: 20, Version: "1.22.6"}
	errRefused = errors.New("refused")
	player     = actors.Player{ID: events.NativePlayer("vintagestory", "uid"), Name: "alice"}
)

// TestLifeOfAServer: it is up when it answers, down after three questions without an answer, and in another life then.
func TestLifeOfAServer(t *testing.T) {
	s, e := newServer(t, "x:1")
	if _, err := s.Health(t.Context()); !errors.Is(err, actors.ErrDown) {
		t.Errorf("before the first answer: %v", err)
	}
	for _, err := range []error{nil, errRefused, errRefused, nil, errRefused, errRefused, errRefused, errRefused, nil} {
		s.note(answer, err)
	}
	if want := []string{"up 1", "down", "up 2"}; !slices.Equal(e.all(), want) {
		t.Errorf("%v, want %v", e.all(), want)
	}
	h, err := s.Health(t.Context())
	if err != nil || h.Players != 3 || h.MaxPlayers != 20 || h.Game != "vintagestory 1.22.6" || h.ProtocolMin != actors.ProtocolVintageStory || h.ProtocolMax != actors.ProtocolVintageStory {
		t.Errorf("health %+v %v", h, err)
	}
}

// TestSeen: a player is here while its newest connection is, or a front repeats it.
func TestSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, e := newServer(t, "x:1")
		s.Seen(player, "first", true)
		s.Seen(player, "first", true)
		s.Seen(player, "second", true) // it has come back before its old connection was seen to end
		s.Seen(player, "first", false)
		if want := []string{"joined alice", "joined alice"}; !slices.Equal(e.all(), want) {
			t.Fatalf("%v, want %v", e.all(), want)
		}
		if at, err := s.Place(t.Context(), player, events.Position{X: 5}); err != nil || at.X != 5 {
			t.Errorf("place: %v %v", at, err)
		}
		s.Seen(player, "second", false)
		s.Seen(player, "second", false)
		if _, err := s.Place(t.Context(), player, events.Position{}); !errors.Is(err, actors.ErrNotHere) {
			t.Errorf("place of somebody who has left: %v", err)
		}
		s.Seen(player, "third", true)
		time.Sleep(3 * actors.SeenEvery)
		s.forget(time.Now())
		time.Sleep(time.Second)
		s.forget(time.Now()) // its front has died
		if want := []string{"joined alice", "joined alice", "left alice", "joined alice", "left alice"}; !slices.Equal(e.all(), want) {
			t.Errorf("%v, want %v", e.all(), want)
		}
	})
}

// TestWhatItCannotDo is said, so that nobody takes it for done.
func TestWhatItCannotDo(t *testing.T) {
	s, _ := newServer(t, "x:1")
	if err := s.Send(t.Context(), player, "x:1"); !errors.Is(err, actors.ErrNotSent) {
		t.Errorf("send: %v", err)
	}
	if _, err := s.Find(t.Context(), actors.Region{}); !errors.Is(err, actors.ErrDown) {
		t.Errorf("a seat on a server that does not answer: %v", err)
	}
	s.note(answer, nil)
	if at, err := s.Find(t.Context(), actors.Region{World: "w", CentreX: 3, CentreZ: 4}); err != nil || at != (events.Position{World: "w", X: 3, Z: 4}) {
		t.Errorf("a seat: %v %v", at, err)
	}
	if _, err := New(Config{}); err == nil {
		t.Error("no address, and no error")
	}
}

// TestAnswersOfAServer: what is no answer to a list is none.
func TestAnswersOfAServer(t *testing.T) {
	for name, in := range map[string][]byte{
		"nothing":      nil,
		"cut":          vintage.AppendQueryAnswer(nil, answer)[:9],
		"a disconnect": vintage.AppendDisconnect(nil, "bye"),
		"far too long": {0x7F, 0, 0, 0},
	} {
		if _, err := readAnswer(bytes.NewReader(in)); err == nil {
			t.Errorf("%s is an answer", name)
		}
	}
	if got, err := readAnswer(bytes.NewReader(vintage.AppendQueryAnswer(nil, answer))); err != nil || got != answer {
		t.Errorf("%+v %v", got, err)
	}
}

// TestAsksARealServer over a socket, as a client's server list does.
func TestAsksARealServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			want := vintage.AppendServerQuery(nil)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(c, got); err == nil && bytes.Equal(got, want) {
				_, _ = c.Write(vintage.AppendQueryAnswer(nil, answer))
			}
			c.Close()
		}
	}()
	s, err := New(Config{Address: l.Addr().String(), Every: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	e := &ears{more: make(chan struct{}, 16)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, e) }()
	<-e.more
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || e.all()[0] != "up 1" {
		t.Errorf("%v, %v", err, e.all())
	}
}
