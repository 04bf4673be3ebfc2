package streamtest

import (
	"testing"

	"github.com/landfall/landfall/events"
)

// past is a bucket with five facts, as a tail has seen it.
type past struct {
	c           Conn
	messages    []events.Message
	records     []events.Record
	incarnation string
}

func newPast(t *testing.T, s Store) past {
	t.Helper()
	p := past{c: s.Connect(t)}
	for range 5 {
		m := Fact(t, newTransfer(), 0, &events.Requested{})
		mustAppend(t, p.c, m)
		p.messages = append(p.messages, m)
	}
	f := follow(t, p.c, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	f.stop(t)
	p.records, p.incarnation = f.records, f.incarnation()
	return p
}

// resume follows from the n-th fact of the past on, and waits until the tail is live.
func (p past) resume(t *testing.T, n int) *following {
	t.Helper()
	f := follow(t, p.c, events.Transfers, cursorOf(p.records[n-1], p.incarnation))
	f.waitCalls(t, "live", 1)
	return f
}

// wantFork checks that the tail began with a fork and delivered the whole log.
func wantFork(t *testing.T, f *following, want []events.Message) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[0] != "fork" {
		t.Errorf("the tail began with %q, want a fork", f.calls[0])
	}
	sameFacts(t, f.records, want)
}

// wantResumed checks that the tail went on without a fork, with nothing but want.
func wantResumed(t *testing.T, f *following, want []events.Message) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[0] != "begin" {
		t.Errorf("the tail began with %q, want no fork", f.calls[0])
	}
	sameFacts(t, f.records, want)
}

func sameFacts(t *testing.T, got []events.Record, want []events.Message) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%d records, want %d", len(got), len(want))
		return
	}
	for i := range want {
		if got[i].Header[events.HeaderID] != want[i].Header[events.HeaderID] {
			t.Errorf("record %d is another fact", i)
		}
	}
}

// forkMadeAgain: a cursor into a stream that was deleted and made again is a fork, however
// far the new one has come.
func forkMadeAgain(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	s.Replace(t, events.Transfers, false, nil)
	wantFork(t, p.resume(t, 5), nil)
	var fresh []events.Message
	for range 8 {
		m := Fact(t, newTransfer(), 0, &events.Requested{})
		eventually(t, "an append to the new stream", func() error { _, err := p.c.Append(within(t), m); return err })
		fresh = append(fresh, m)
	}
	wantFork(t, p.resume(t, 5), fresh)
}

// forkOtherIncarnation: a restored stream with the same facts is another life: a fork.
func forkOtherIncarnation(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	s.Replace(t, events.Transfers, false, p.messages)
	wantFork(t, p.resume(t, 5), p.messages)
}

// forkShorter: a cursor behind the end of the stream is a fork; one before it is not.
func forkShorter(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	s.Replace(t, events.Transfers, true, p.messages[:3])
	wantFork(t, p.resume(t, 5), p.messages[:3])
	wantResumed(t, p.resume(t, 3), nil)
	wantResumed(t, p.resume(t, 2), p.messages[2:3])
}

// forkOtherFact: another fact at the cursor's sequence is a fork.
func forkOtherFact(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	other := append(p.messages[:4:4], Fact(t, newTransfer(), 0, &events.Requested{}))
	s.Replace(t, events.Transfers, true, other)
	wantFork(t, p.resume(t, 5), other)
	wantResumed(t, p.resume(t, 4), other[4:])
}

// forkWhileTailing: a tail that runs while the stream changes its past finds the fork by
// itself, delivers the new past whole, and goes on.
func forkWhileTailing(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	f := follow(t, p.c, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	other := append(p.messages[:3:3], Fact(t, newTransfer(), 0, &events.Requested{}), Fact(t, newTransfer(), 0, &events.Requested{}))
	s.Replace(t, events.Transfers, true, other)
	f.until(t, "the fork", func() bool { return f.counted("fork") == 1 && f.isLive })
	m := Fact(t, newTransfer(), 0, &events.Requested{})
	var seq uint64
	eventually(t, "an append after the fork", func() (err error) { seq, err = p.c.Append(within(t), m); return err })
	f.waitFor(t, seq)
	f.stop(t)
	sameFacts(t, f.records, append(other, m))
	if f.count("begin") != 1 || f.count("fork") != 1 {
		t.Errorf("begun %d times, %d forks; want one of each", f.count("begin"), f.count("fork"))
	}
}

// retentionIsNoFork: a cursor whose record retention took goes on with what is left.
func retentionIsNoFork(t *testing.T, s Store, _ Features) {
	p := newPast(t, s)
	s.Expire(t, events.Transfers)
	wantResumed(t, p.resume(t, 5), nil)
	fresh := Fact(t, newTransfer(), 0, &events.Requested{})
	mustAppend(t, p.c, fresh)
	wantResumed(t, p.resume(t, 5), []events.Message{fresh})
	wantResumed(t, p.resume(t, 2), []events.Message{fresh})
}
