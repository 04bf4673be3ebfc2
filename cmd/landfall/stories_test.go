package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// journey puts the facts of one transfer onto a tape.
type journey struct {
	*tape
	name    string
	player  events.PlayerID
	id      events.TransferID
	attempt int
}

// begin lets a player ask; n makes the transfer's id.
func (t *tape) begin(name string, n int, wish events.Wish) *journey {
	id, err := events.ParseID[events.TransferID](fmt.Sprintf("019c0fba-6000-7000-8000-%012d", n))
	if err != nil {
		t.tb.Fatal(err)
	}
	j := &journey{tape: t, name: name, player: events.OfflinePlayer(name), id: id}
	j.fact(&events.Requested{Trigger: events.TriggerCommand, Wish: wish, Origin: "lobby-1", Name: name})
	return j
}

func (j *journey) key() string               { return events.TransferKey(j.player, j.id) }
func (j *journey) token() events.Token       { return events.Token{Transfer: j.id, Attempt: j.attempt} }
func (j *journey) fact(f events.Fact) uint64 { j.tb.Helper(); return j.put(j.key(), f) }
func (j *journey) wait(d time.Duration)      { j.after(d) }
func (j *journey) place() events.Position {
	return events.Position{World: "overworld", X: 12.5, Y: 64, Z: -8.5}
}
func (j *journey) life() events.Incarnation {
	return streamtest.Source(events.SourceBackend, "survival-2").Incarnation
}
func (j *journey) session(f events.Fact) { j.put(j.player.String(), f) }
func (j *journey) released(code events.Code) {
	j.fact(&events.Released{Attempt: j.attempt, Reason: code, Detail: "the server lobby-1 does not answer"})
}
func (j *journey) expired(code events.Code) {
	j.fact(&events.Expired{Attempt: j.attempt, Reason: code})
}
func (j *journey) failed(code events.Code)    { j.fact(&events.Failed{Code: code}) }
func (j *journey) cancelled(code events.Code) { j.fact(&events.Cancelled{Code: code}) }

func choice(servers ...events.HostID) events.Decision {
	d := events.Decision{Policy: "kept/1", Snapshot: 42, AgeMs: 85, Candidates: []events.Candidate{}, Filtered: []events.Filtered{{Code: events.Drained, Count: 1, Examples: []string{"survival-9"}}}}
	for i, s := range servers {
		score := 0.0588 * float64(i+1)
		d.Candidates = append(d.Candidates, events.Candidate{Server: s, Region: "spawn", Score: score, Terms: []events.Term{{Name: "kept", Raw: float64(16 - i), Score: score}}})
	}
	return d
}

func (j *journey) reserved() {
	j.attempt++
	j.fact(&events.Reserved{
		Attempt: j.attempt, Server: "survival-2", Incarnation: j.life(), Promise: uint64(j.attempt), Region: "spawn", At: j.place(), TTLMs: 30000,
		Decision: choice("survival-2", "survival-3"),
	})
}

func (j *journey) claimed(by events.HostID) uint64 {
	return j.fact(&events.Claimed{Attempt: j.attempt, Dispatcher: by, Incarnation: streamtest.Source(events.SourceEdge, by).Incarnation, Session: 1, From: "lobby-1"})
}

func (j *journey) moved(r events.MoveResult) {
	j.fact(&events.Transferred{Attempt: j.attempt, How: events.HowTransfer, Result: r})
}

func (j *journey) consumed() {
	j.fact(&events.Consumed{Attempt: j.attempt, Server: "survival-2", Incarnation: j.life(), Join: events.JoinID{15: 1}})
}

func (j *journey) completed() { j.fact(&events.Completed{Attempt: j.attempt, At: j.place()}) }

func (j *journey) joined(server events.HostID) {
	e1 := streamtest.Source(events.SourceEdge, "e1")
	j.session(&events.SessionOpened{Session: events.Session{Holder: "e1", HolderIncarnation: e1.Incarnation, Kind: events.KindEdge, Server: server, Join: events.JoinID{15: 1}, Name: j.name, Protocol: 767}})
}

// stories are the transfers that the transcripts tell: each ends in its own way.
var stories = []struct {
	name string
	tell func(*tape) *journey
}{
	{"completed", completedStory},
	{"waitlisted", func(t *tape) *journey {
		j := t.begin("Alex", 2, events.Wish{Region: "spawn"})
		j.fact(&events.Waitlisted{Decision: choice()})
		j.wait(4200 * time.Millisecond)
		j.reserved()
		j.claimed("e1")
		j.moved(events.MoveSent)
		j.consumed()
		j.completed()
		return j
	}},
	{"reopened", reopenedStory},
	{"forged", forgedStory},
	{"open", func(t *tape) *journey {
		j := t.begin("Open", 5, events.Wish{})
		j.reserved()
		j.claimed("e1")
		return j
	}},
	{"expired", func(t *tape) *journey {
		j := t.begin("Slow", 6, events.Wish{})
		j.reserved()
		j.wait(30 * time.Second)
		j.expired(events.TTLPassed)
		j.reserved()
		j.claimed("e1")
		j.expired(events.NewIncarnation)
		j.cancelled(events.GraceOver)
		return j
	}},
	{"not-arrived", func(t *tape) *journey {
		j := t.begin("Lost", 7, events.Wish{})
		j.reserved()
		j.claimed("e1")
		j.moved(events.MoveUnknown)
		j.wait(30 * time.Second)
		j.failed(events.NotArrived)
		return j
	}},
	{"unconfirmed", func(t *tape) *journey {
		j := t.begin("Vague", 8, events.Wish{})
		j.reserved()
		j.claimed("e1")
		j.moved(events.MoveSent)
		j.consumed()
		j.failed(events.PlacementUnconfirmed)
		return j
	}},
	{"no-candidate", func(t *tape) *journey {
		j := t.begin("Pinned", 9, events.Wish{Pin: "survival-9"})
		why := choice()
		j.fact(&events.Failed{Code: events.NoCandidate, Decision: &why})
		return j
	}},
	{"refused", func(t *tape) *journey {
		j := t.begin("Stuck", 10, events.Wish{World: "nether"})
		for range 2 {
			j.reserved()
			j.claimed("e1")
			j.released(events.MoveRefused)
		}
		j.fact(&events.Failed{Code: events.MoveRefused, Detail: "the server lobby-1 does not answer"})
		return j
	}},
	{"superseded", func(t *tape) *journey {
		j := t.begin("Fickle", 11, events.Wish{})
		j.fact(&events.Superseded{By: events.TransferID{15: 12}})
		return j
	}},
}

func completedStory(t *tape) *journey {
	steve := &journey{tape: t, name: "Steve", player: events.OfflinePlayer("Steve")}
	steve.joined("lobby-1")
	j := t.after(time.Second).begin("Steve", 1, events.Wish{})
	j.reserved()
	j.claimed("e1")
	j.moved(events.MoveSent)
	j.joined("survival-2")
	j.consumed()
	j.completed()
	j.after(5*time.Second).put("e1.WRONG_PLAYER", &events.Rejected{
		Source: "/edge/e1/x", Code: events.WrongPlayer, Subject: events.Transfers.Subject(j.key()), Detail: "token shown by Mallory",
	})
	return j
}

func reopenedStory(t *tape) *journey {
	j := t.begin("Notch", 3, events.Wish{})
	j.reserved()
	claim := j.claimed("e1")
	j.wait(6 * time.Second)
	j.fact(&events.Reopened{Attempt: 1, Claim: claim, Evidence: events.Stale, LastBeat: 77, SilenceMs: 5123})
	j.claimed("e2")
	j.moved(events.MoveUnknown)
	j.consumed()
	j.completed()
	return j
}

// forgedStory holds everything that a fold refuses; the genuine facts go on regardless.
func forgedStory(t *tape) *journey {
	j := t.begin("Victim", 4, events.Wish{})
	j.reserved()
	e1 := streamtest.Source(events.SourceEdge, "e1")
	bad := j.seal(e1, j.key(), t.last(events.Transfers, j.key()), &events.Failed{Code: events.PlayerOffline, Detail: "\x1b[31mgone"})
	bad.Header[events.HeaderTime] = tapeStart.Format(time.RFC3339Nano)
	bad.Header[events.HeaderCausation] = j.id.String()
	t.store(bad)
	t.store(events.Message{Bucket: events.Transfers, Key: j.key(), Header: events.Header{"KV-Operation": "DEL"}})
	t.store(j.seal(e1, j.key(), 1, &events.Completed{Attempt: 1, At: j.place()}))
	j.consumed()
	j.claimed("e1")
	garbled := j.seal(e1, j.key(), t.last(events.Transfers, j.key()), &events.Failed{Code: events.PlayerOffline})
	garbled.Body = []byte{0xc1}
	garbled.Header[events.HeaderSig] = streamtest.Keyring().Sign(events.Transfers.Subject(j.key()), garbled.Header, garbled.Body)
	t.store(garbled)
	j.moved(events.MoveSent)
	j.consumed()
	j.completed()
	return j
}

// wholeTape holds all stories one after another.
func wholeTape(tb testing.TB) *tape {
	t := newTape(tb)
	for _, s := range stories {
		s.tell(t)
	}
	e1 := streamtest.Source(events.SourceEdge, "e1")
	t.putBy(streamtest.Source(events.SourceOperator, "op"), "drain.survival-9", &events.DrainSet{Host: "survival-9", On: true, Who: "op", Why: "new disk"})
	t.put(events.ProxyKey("e1"), &events.ProxyBeat{Proxy: "e1", Incarnation: e1.Incarnation, State: events.Ready, Version: "devel", Schema: 1, Kinds: []events.SessionKind{events.KindEdge}})
	return t
}

// tapeOf holds one story.
func tapeOf(tb testing.TB, name string) (*tape, *journey) {
	t := newTape(tb)
	for _, s := range stories {
		if s.name == name {
			return t, s.tell(t)
		}
	}
	tb.Fatalf("there is no story %q", name)
	return nil, nil
}
