package streamtest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/landfall/landfall/events"
)

// LiveRecorder is a Recorder of what is alive: a key is over once its newest record is an
// end that verifies.
type LiveRecorder struct {
	*Recorder
	settled map[string]uint64 // by key, since the last begin; guarded by Recorder.mu
}

// NewLiveRecorder makes one.
func NewLiveRecorder() *LiveRecorder { return &LiveRecorder{Recorder: &Recorder{}} }

// Begin drops what was recorded.
func (l *LiveRecorder) Begin(state events.StreamState, fork bool) {
	l.mu.Lock()
	l.settled = map[string]uint64{}
	l.mu.Unlock()
	l.Recorder.Begin(state, fork)
}

// Newest implements events.LiveFollower.
func (*LiveRecorder) Newest(r events.Record) bool {
	e, refusal := events.Open(keyring, r)
	fact, ok := e.Fact.(events.TransferFact)
	return refusal != nil || !ok || !events.Terminal(fact)
}

// Settled keeps where a guard stands. It must come before any record.
func (l *LiveRecorder) Settled(key string, seq uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.records) > 0 || l.isLive {
		l.fault("%s settled at %d after a record", key, seq)
	}
	l.settled[key] = seq
	l.told("settled", false)
}

// over gives the sequence at which a key's guard was settled, 0 when it was not.
func (l *LiveRecorder) over(key string) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled[key]
}

func followLive(t *testing.T, c Conn, l *LiveRecorder) *following {
	t.Helper()
	return followInto(t, c, events.Transfers, events.TailStart{Mode: events.TailLive}, l, l.Recorder)
}

var over = &events.Failed{Code: events.NoCandidate}

// ended appends n facts and an end under a key, and gives their sequences.
func ended(t *testing.T, c Conn, key string, last uint64, n int) []uint64 {
	t.Helper()
	seqs := chain(t, c, key, last, n)
	return append(seqs, mustAppend(t, c, Fact(t, key, seqs[n-1], over)))
}

// wantUnion holds what a live tail was told against the whole log: a guard that was settled
// had nothing alive up to there and is delivered from there on, any other one is delivered
// whole.
func wantUnion(t *testing.T, c Conn, l *LiveRecorder) {
	t.Helper()
	all := follow(t, c, events.Transfers, events.TailStart{})
	all.waitCalls(t, "live", 1)
	all.stop(t)
	if n := len(all.records); n > 0 {
		last := all.records[n-1]
		l.until(t, "the end of the log", func() bool { return l.has(last.Seq) || l.settled[last.Key] == last.Seq })
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	settled := map[string]uint64{}
	for key, seq := range l.settled {
		settled[events.Transfers.Guard(key)] = seq
	}
	newest := map[string]events.Record{}
	var want, got []uint64
	for _, r := range all.records {
		if r.Seq > settled[events.Transfers.Guard(r.Key)] {
			want = append(want, r.Seq)
			continue
		}
		newest[r.Key] = r
	}
	for _, r := range newest {
		if l.Newest(r) {
			t.Errorf("%s was settled above its newest record %d, which is no end", r.Key, r.Seq)
		}
	}
	for _, r := range l.records {
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%d records delivered, want %d of %d: the union has a gap", len(got), len(want), len(all.records))
	}
}

// liveWhole: a player with anything alive is delivered whole, of the others only the guard
// is told, and what comes after is delivered of everybody.
func liveWhole(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	player, idle := NewID[events.PlayerID](), NewID[events.PlayerID]()
	before, now, gone, later := transferOf(player), transferOf(player), transferOf(idle), transferOf(idle)
	whole := ended(t, writer, before, 0, 2)
	idles := ended(t, writer, gone, 0, 3)
	whole = append(whole, chain(t, writer, now, whole[2], 2)...)
	idles = append(idles, ended(t, writer, later, idles[3], 1)...)

	forged := newTransfer() // an end that does not verify ends nothing
	m := Fact(t, forged, 0, over)
	m.Header[events.HeaderSig] = strings.Repeat("0", len(m.Header[events.HeaderSig]))
	bad := mustAppend(t, writer, m)
	after := newTransfer() // nor does one with something behind it
	behind := ended(t, writer, after, 0, 1)
	behind = append(behind, mustAppend(t, writer, Fact(t, after, behind[1], &events.Waitlisted{})))
	m = Fact(t, newTransfer(), 0, over)
	m.Key = NewID[events.PlayerID]().String() // a misspelt key, which lies beside the guard that is taken for it
	odd := mustAppend(t, writer, m)

	l := NewLiveRecorder()
	f := followLive(t, reader, l)
	f.waitCalls(t, "live", 1)
	sameSeqs(t, f.mine(before, now), whole)
	sameSeqs(t, f.mine(forged), []uint64{bad})
	sameSeqs(t, f.mine(after), behind)
	sameSeqs(t, f.mine(m.Key), []uint64{odd})
	sameSeqs(t, f.mine(gone, later), nil)
	if l.over(later) != idles[5] || l.over(gone) != 0 || l.over(before) != 0 {
		t.Errorf("settled at %d and %d, want once, at %d", l.over(later), l.over(gone), idles[5])
	}
	f.mu.Lock()
	if f.calls[0] != "begin" || f.lives[0] < odd || f.state.Last < odd {
		t.Errorf("first call %q, live at %d, state %+v; the last record was %d", f.calls[0], f.lives[0], f.state, odd)
	}
	f.mu.Unlock()
	fresh := chain(t, writer, transferOf(idle), idles[5], 2)
	f.waitFor(t, fresh[1])
	wantUnion(t, reader, l)
}

// busy appends journeys of eight players, most of which end, until it is stopped; what it
// writes is bounded, for the cases that read it all.
func busy(t *testing.T, c Conn) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var writers sync.WaitGroup
	for range 4 {
		writers.Go(func() {
			var players [2]struct {
				id   events.PlayerID
				last uint64
			}
			for i := range players {
				players[i].id = NewID[events.PlayerID]()
			}
			for n := 0; n < 400 && ctx.Err() == nil; n++ {
				p := &players[n%2]
				key := transferOf(p.id)
				for _, f := range []events.Fact{&events.Requested{}, &events.Waitlisted{}, over}[:3-n%5/4] {
					p.last = mustAppend(t, c, Fact(t, key, p.last, f))
				}
			}
		})
	}
	return sync.OnceFunc(func() { cancel(); writers.Wait() })
}

// liveBelowWriter: beginning below a writer at full rate neither misses nor repeats, and ends.
func liveBelowWriter(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	stop := busy(t, writer)
	defer stop()
	recorders := make([]*LiveRecorder, 0, 4)
	for range 4 {
		l := NewLiveRecorder()
		recorders = append(recorders, l)
		followLive(t, reader, l).waitCalls(t, "live", 1)
	}
	stop()
	for _, l := range recorders {
		wantUnion(t, reader, l)
	}
}

// liveOfMany: the same when more is alive than anybody would ask for one by one.
func liveOfMany(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	for n := range 150 {
		key := newTransfer()
		if n%3 == 0 {
			ended(t, c, key, 0, 1)
			continue
		}
		chain(t, c, key, 0, 1)
	}
	l := NewLiveRecorder()
	followLive(t, c, l).waitCalls(t, "live", 1)
	wantUnion(t, c, l)
}

// liveWantsToKnow: a follower that cannot tell what is alive is refused at once.
func liveWantsToKnow(t *testing.T, s Store, _ Features) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := s.Connect(t).Tail(ctx, events.Transfers, events.TailStart{Mode: events.TailLive}, &Recorder{})
	if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "TailLive") {
		t.Errorf("tail ended with %v, want a word on TailLive", err)
	}
}

// liveAcrossCuts: once it has begun, a live tail loses nothing over breaks, and does not
// begin again.
func liveAcrossCuts(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	ended(t, writer, newTransfer(), 0, 3)
	chain(t, writer, newTransfer(), 0, 3)
	ended(t, writer, newTransfer(), 0, 3) // nothing below the end is delivered last
	l := NewLiveRecorder()
	f := followLive(t, reader, l)
	f.waitCalls(t, "live", 1)
	for round := range 3 {
		s.Cut(t, reader)
		f.waitCalls(t, "blind", round+1)
		if round > 0 {
			ended(t, writer, newTransfer(), 0, 2)
		}
		s.Heal(t, reader)
		f.waitCalls(t, "live", round+2)
	}
	wantUnion(t, writer, l)
	if n := f.count("begin") + f.count("fork"); n != 1 {
		t.Errorf("begun %d times, want once: nothing was lost", n)
	}
}

// liveCutInBeginning: a break while it still delivers what is alive leaves no hole.
func liveCutInBeginning(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	for range 10 {
		chain(t, writer, newTransfer(), 0, 50)
		ended(t, writer, newTransfer(), 0, 2)
	}
	l := NewLiveRecorder()
	l.hold = make(chan struct{})
	release := sync.OnceFunc(func() { close(l.hold) })
	defer release()
	f := followLive(t, reader, l)
	f.waitCalls(t, "settled", 10)
	s.Cut(t, reader)
	ended(t, writer, newTransfer(), 0, 2)
	s.Heal(t, reader)
	release()
	f.until(t, "live", func() bool { return f.isLive })
	wantUnion(t, writer, l)
}

// liveAcrossFork: a tail that finds another past looks again for what is alive there.
func liveAcrossFork(t *testing.T, s Store, _ Features) {
	p := newPast(t, s, events.Transfers)
	l := NewLiveRecorder()
	f := followLive(t, p.c, l)
	f.waitCalls(t, "live", 1)
	other := p.messages[:3:3]
	for range 3 {
		other = append(other, Fact(t, newTransfer(), 0, over))
	}
	s.Replace(t, events.Transfers, true, other)
	f.until(t, "the fork", func() bool { return f.counted("fork") == 1 && f.isLive })
	wantUnion(t, p.c, l) // how much of the new past was there when the tail looked is the store's affair
	for _, m := range p.messages[3:] {
		if len(f.mine(m.Key)) > 0 {
			t.Errorf("%s is still held, of a past that is gone", m.Key)
		}
	}
}

// liveMissedRecords: a tail whose next records retention took looks again for what is alive.
func liveMissedRecords(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	chain(t, writer, newTransfer(), 0, 3)
	l := NewLiveRecorder()
	f := followLive(t, reader, l)
	f.waitCalls(t, "live", 1)
	s.Cut(t, reader)
	f.waitCalls(t, "blind", 1)
	chain(t, writer, newTransfer(), 0, 2)
	s.Expire(t, events.Transfers)
	key := newTransfer()
	seqs := ended(t, writer, key, 0, 1)
	s.Heal(t, reader)
	f.waitCalls(t, "live", 2)
	f.stop(t)
	if l.over(key) != seqs[1] || len(f.records) != 0 || f.count("begin") != 2 || f.count("fork") != 0 {
		t.Errorf("settled at %d, %d records, begun %d times, %d forks; want %d, none, 2 and none",
			l.over(key), len(f.records), f.count("begin"), f.count("fork"), seqs[1])
	}
}
