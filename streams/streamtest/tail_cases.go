package streamtest

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// chain appends n facts under one key and gives their sequences.
func chain(t *testing.T, c Conn, key string, last uint64, n int) []uint64 {
	t.Helper()
	var seqs []uint64
	for range n {
		last = mustAppend(t, c, Fact(t, key, last, &events.Requested{}))
		seqs = append(seqs, last)
	}
	return seqs
}

func sameSeqs(t *testing.T, got, want []uint64) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("sequences %v, want %v", got, want)
	}
}

func cursorOf(r events.Record, incarnation string) events.TailStart {
	return events.TailStart{Mode: events.TailResume, Cursor: events.Cursor{Seq: r.Seq, ID: r.EventID(), Incarnation: incarnation}}
}

// tailHistory: a tail begins, delivers what is stored, says that it is live, and goes on
// with what comes, in order.
func tailHistory(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	key := newTransfer()
	old := chain(t, writer, key, 0, 20)
	f := follow(t, reader, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	sameSeqs(t, f.mine(key), old)
	f.mu.Lock()
	if f.calls[0] != "begin" || f.lives[0] < old[19] || f.state.Last < old[19] || f.state.Incarnation == "" || f.state.Clock == 0 {
		t.Errorf("first call %q, live at %d, state %+v; the last record was %d", f.calls[0], f.lives[0], f.state, old[19])
	}
	f.mu.Unlock()
	fresh := chain(t, writer, key, old[19], 20)
	f.waitFor(t, fresh[19])
	sameSeqs(t, f.mine(key), append(old, fresh...))
	f.stop(t)
	calls := len(f.calls)
	chain(t, writer, key, fresh[19], 1)
	if len(f.calls) != calls {
		t.Error("the follower was called after Tail returned")
	}
}

// tailResume: a tail goes on behind the record it names and repeats nothing.
func tailResume(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key := newTransfer()
	seqs := chain(t, c, key, 0, 10)
	records := storedOf(t, c, events.Transfers, key)
	whole := follow(t, c, events.Transfers, events.TailStart{})
	whole.waitCalls(t, "live", 1)
	f := follow(t, c, events.Transfers, cursorOf(records[4], whole.incarnation()))
	f.waitCalls(t, "live", 1)
	sameSeqs(t, f.mine(key), seqs[5:])
	end := follow(t, c, events.Transfers, cursorOf(records[9], whole.incarnation()))
	end.waitCalls(t, "live", 1)
	next := chain(t, c, key, seqs[9], 1)
	end.waitFor(t, next[0])
	sameSeqs(t, end.mine(key), next)
	if f.count("fork")+end.count("fork") != 0 {
		t.Error("a fork was found where there is none")
	}
}

func beat(id events.HostID) *events.BackendBeat {
	return &events.BackendBeat{Server: id, Incarnation: Source(events.SourceBackend, id).Incarnation}
}

// beats appends n heartbeats of a new backend and gives its key and their sequences.
func beats(t *testing.T, c Conn, n int) (string, []uint64) {
	t.Helper()
	id := events.HostID(NewID[events.RequestID]().Hex())
	var seqs []uint64
	last := uint64(0)
	for range n {
		last = mustAppend(t, c, Fact(t, events.BackendKey(id), last, beat(id)))
		seqs = append(seqs, last)
	}
	return events.BackendKey(id), seqs
}

// tailLastPerKey: a tail of the newest beats gives one of each host, then every one that follows.
func tailLastPerKey(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	var keys []string
	var newest []uint64
	for range 5 {
		key, seqs := beats(t, c, 3)
		keys, newest = append(keys, key), append(newest, seqs[2])
	}
	f := follow(t, c, events.Fleet, events.TailStart{Mode: events.TailLastPerKey})
	f.waitCalls(t, "live", 1)
	sameSeqs(t, f.mine(keys...), newest)
	key, seqs := beats(t, c, 3)
	f.waitFor(t, seqs[2])
	sameSeqs(t, f.mine(key), seqs)
}

// manyTails: tails of one connection and of others see the same, each whole.
func manyTails(t *testing.T, s Store, _ Features) {
	writer, shared := s.Connect(t), s.Connect(t)
	key := newTransfer()
	tails := make([]*following, 0, 12)
	for i := range 12 {
		c := shared
		if i%3 == 0 {
			c = s.Connect(t)
		}
		tails = append(tails, follow(t, c, events.Transfers, events.TailStart{}))
	}
	seqs := chain(t, writer, key, 0, events.MaxKeyFacts)
	for _, f := range tails {
		f.waitFor(t, seqs[len(seqs)-1])
		f.waitCalls(t, "live", 1)
		sameSeqs(t, f.mine(key), seqs)
	}
}

// slowFollower: a follower that is slow, or stands still for a while, misses nothing and
// holds nobody else up.
func slowFollower(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	hold := make(chan struct{})
	release := sync.OnceFunc(func() { close(hold) })
	defer release()
	slow := followWith(t, reader, events.Sessions, events.TailStart{}, &Recorder{hold: hold})
	quick := follow(t, reader, events.Sessions, events.TailStart{})
	var keys []string
	var last uint64
	for range 400 {
		keys = append(keys, newSession())
		last = mustAppend(t, writer, Fact(t, keys[len(keys)-1], 0, opened()))
	}
	quick.waitFor(t, last)
	release()
	slow.waitFor(t, last)
	sameSeqs(t, slow.mine(keys...), quick.mine(keys...))
}

var errWant = errors.New("the follower's own error")

// tailError: what the follower returns ends the tail and reaches its caller.
func tailError(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key := newTransfer()
	chain(t, c, key, 0, 3)
	r := &Recorder{fail: errWant}
	done := make(chan error, 1)
	go func() { done <- c.Tail(t.Context(), events.Transfers, events.TailStart{}, r) }()
	select {
	case err := <-done:
		if !errors.Is(err, errWant) || len(r.records) != 1 {
			t.Errorf("tail ended with %v after %d records, want the follower's error after 1", err, len(r.records))
		}
	case <-time.After(patience):
		t.Error("the tail went on after its follower failed")
	}
}

// tailAcrossCuts: while its connection breaks again and again a tail delivers everything
// once, says blind for each break and live after it.
func tailAcrossCuts(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	f := follow(t, reader, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	var want []uint64
	var keys []string
	write := func(n int) {
		key := newTransfer()
		keys, want = append(keys, key), append(want, chain(t, writer, key, 0, n)...)
	}
	for round := range 5 {
		write(20)
		s.Cut(t, reader)
		f.waitCalls(t, "blind", round+1)
		write(20)
		s.Heal(t, reader)
		f.waitCalls(t, "live", round+2)
		sameSeqs(t, f.mine(keys...), want)
	}
	if n := f.count("begin") + f.count("fork"); n != 1 {
		t.Errorf("begun %d times, want once: nothing was lost", n)
	}
}

// tailAcrossOutage: the same when the whole store was away.
func tailAcrossOutage(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	f := follow(t, c, events.Transfers, events.TailStart{})
	f.waitCalls(t, "live", 1)
	key := newTransfer()
	want := chain(t, c, key, 0, 20)
	f.waitFor(t, want[19])
	s.Outage(t)
	f.waitCalls(t, "blind", 1)
	s.Restore(t)
	f.waitCalls(t, "live", 2)
	var next uint64
	m := Fact(t, key, want[19], &events.Requested{})
	eventually(t, "an append after the outage", func() (err error) { next, err = c.Append(within(t), m); return err })
	f.waitFor(t, next)
	sameSeqs(t, f.mine(key), append(want, next))
	if n := f.count("begin") + f.count("fork"); n != 1 {
		t.Errorf("begun %d times, want once: nothing was lost", n)
	}
}

// lastPerKeyAcrossCut: a tail of the newest beats begins anew after a break.
func lastPerKeyAcrossCut(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	one, _ := beats(t, writer, 3)
	f := follow(t, reader, events.Fleet, events.TailStart{Mode: events.TailLastPerKey})
	f.waitCalls(t, "live", 1)
	s.Cut(t, reader)
	f.waitCalls(t, "blind", 1)
	two, seqs := beats(t, writer, 3)
	s.Heal(t, reader)
	f.waitCalls(t, "live", 2)
	if f.count("begin") != 2 || f.count("fork") != 0 {
		t.Errorf("begun %d times, %d forks; want to begin again, without a fork", f.count("begin"), f.count("fork"))
	}
	if len(f.mine(one)) != 1 {
		t.Errorf("%d beats of the first host, want its newest", len(f.mine(one)))
	}
	sameSeqs(t, f.mine(two), seqs[2:])
}
