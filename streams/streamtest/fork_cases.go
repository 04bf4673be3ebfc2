package streamtest

import (
	"testing"

	"github.com/landfall/landfall/events"
)

// past is a bucket with five facts, as a tail has seen it.
type past struct {
	c           Conn
	bucket      events.Bucket
	messages    []events.Message
	records     []events.Record
	incarnation string
}

func newPast(t *testing.T, s Store, b events.Bucket) past {
	t.Helper()
	p := past{c: s.Connect(t), bucket: b}
	for range 5 {
		m := p.fact(t)
		mustAppend(t, p.c, m)
		p.messages = append(p.messages, m)
	}
	f := follow(t, p.c, b, events.TailStart{})
	f.waitCalls(t, "live", 1)
	f.stop(t)
	p.records, p.incarnation = f.records, f.incarnation()
	return p
}

// fact is the first one of a new key.
func (p past) fact(t *testing.T) events.Message {
	t.Helper()
	if p.bucket == events.Sessions {
		return Fact(t, newSession(), 0, opened())
	}
	return Fact(t, newTransfer(), 0, &events.Requested{})
}

// resume follows from the n-th fact of the past on, and waits until the tail is live.
func (p past) resume(t *testing.T, n int) *following {
	t.Helper()
	f := follow(t, p.c, p.bucket, cursorOf(p.records[n-1], p.incarnation))
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
	p := newPast(t, s, events.Transfers)
	s.Replace(t, events.Transfers, false, nil)
	wantFork(t, p.resume(t, 5), nil)
	var fresh []events.Message
	for range 8 {
		m := p.fact(t)
		eventually(t, "an append to the new stream", func() error { _, err := p.c.Append(within(t), m); return err })
		fresh = append(fresh, m)
	}
	wantFork(t, p.resume(t, 5), fresh)
}

// forkOtherIncarnation: a restored stream with the same facts is another life: a fork.
func forkOtherIncarnation(t *testing.T, s Store, _ Features) {
	p := newPast(t, s, events.Transfers)
	s.Replace(t, events.Transfers, false, p.messages)
	wantFork(t, p.resume(t, 5), p.messages)
}

// forkShorter: a cursor behind the end of the stream is a fork; one before it is not.
func forkShorter(t *testing.T, s Store, _ Features) {
	for _, b := range []events.Bucket{events.Transfers, events.Sessions} {
		p := newPast(t, s, b)
		s.Replace(t, b, true, p.messages[:3])
		wantFork(t, p.resume(t, 5), p.messages[:3])
		wantResumed(t, p.resume(t, 3), nil)
		wantResumed(t, p.resume(t, 2), p.messages[2:3])
	}
}

// forkOtherFact: another fact at the cursor's sequence is a fork.
func forkOtherFact(t *testing.T, s Store, _ Features) {
	p := newPast(t, s, events.Transfers)
	other := append(p.messages[:4:4], p.fact(t))
	s.Replace(t, events.Transfers, true, other)
	wantFork(t, p.resume(t, 5), other)
	wantResumed(t, p.resume(t, 4), other[4:])
}

// forkWhileTailing: a tail that runs while the stream changes its past finds the fork by
// itself, delivers the new past whole, and goes on.
func forkWhileTailing(t *testing.T, s Store, _ Features) {
	p := newPast(t, s, events.Transfers)
	f := follow(t, p.c, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	other := append(p.messages[:3:3], p.fact(t), p.fact(t))
	s.Replace(t, events.Transfers, true, other)
	f.until(t, "the fork", func() bool { return f.counted("fork") == 1 && f.isLive })
	m := p.fact(t)
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
	p := newPast(t, s, events.Transfers)
	s.Expire(t, events.Transfers)
	wantResumed(t, p.resume(t, 5), nil)
	fresh := p.fact(t)
	mustAppend(t, p.c, fresh)
	wantResumed(t, p.resume(t, 5), []events.Message{fresh})
	wantResumed(t, p.resume(t, 2), []events.Message{fresh})
}

// missedRecordsBeginAnew: a tail whose next records retention took while it was away drops
// what it has, for it cannot know what they said. That is no fork.
func missedRecordsBeginAnew(t *testing.T, s Store, _ Features) {
	p := newPast(t, s, events.Transfers)
	reader := s.Connect(t)
	f := follow(t, reader, p.bucket, events.TailStart{})
	f.waitCalls(t, "live", 1)
	s.Cut(t, reader)
	f.waitCalls(t, "blind", 1)
	mustAppend(t, p.c, p.fact(t))
	s.Expire(t, p.bucket)
	fresh := p.fact(t)
	mustAppend(t, p.c, fresh)
	s.Heal(t, reader)
	f.waitCalls(t, "live", 2)
	f.stop(t)
	sameFacts(t, f.records, []events.Message{fresh})
	if f.count("begin") != 2 || f.count("fork") != 0 {
		t.Errorf("begun %d times, %d forks; want to begin again, without a fork", f.count("begin"), f.count("fork"))
	}
}
