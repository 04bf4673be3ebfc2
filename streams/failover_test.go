package streams_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// TestLeaderStopsUnderLoad: writers on three nodes, the leader of transfers stops in the
// middle. Everything that was acknowledged is there, once, and nothing else under that id.
func TestLeaderStopsUnderLoad(t *testing.T) {
	c, err := embedded.Cluster(t.Context(), 3, t.TempDir(), testConfig(t).Logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ensured(t, c.Connection(0))
	leader := c.Leader(events.Transfers)
	survivor := connect(t, c.Connection((leader+1)%3))
	acked := newLedger()
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 6 {
		st := connect(t, c.Connection(w%3))
		writers.Go(func() { acked.write(t, st, w, stop) })
	}
	acked.await(t, 100)
	c.Stop(leader)
	acked.await(t, 100)
	if err := c.Start(t.Context(), leader); err != nil {
		t.Fatal(err)
	}
	acked.await(t, 100)
	close(stop)
	writers.Wait()
	stored := map[string]int{}
	for r, err := range survivor.History(t.Context(), events.Transfers, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.Header[events.HeaderID]]++
	}
	for id := range acked.ids {
		if stored[id] != 1 {
			t.Errorf("acknowledged fact %s is stored %d times", id, stored[id])
		}
	}
	for id, n := range stored {
		if n > 1 {
			t.Errorf("fact %s is stored %d times", id, n)
		}
	}
}

// Of a replicated log a replica that was away for a while answers from its past, unless every
// decision reads through the leader: a reader on any node never sees a value older than one that
// was acknowledged before it asked, while a replica stops and comes back.
func TestCase091_NoReadGoesBack(t *testing.T) {
	c, err := embedded.Cluster(t.Context(), 3, t.TempDir(), testConfig(t).Logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	ensured(t, c.Connection(0))
	leader := c.Leader(events.Transfers)
	away, reader := (leader+1)%3, connect(t, c.Connection((leader+2)%3))
	writer := connect(t, c.Connection(leader))
	l, seq := newLedger(), uint64(0)
	for n := range 1000 {
		switch n {
		case 300:
			c.Stop(away)
		case 600:
			if err := c.Start(t.Context(), away); err != nil {
				t.Fatal(err)
			}
		case 650:
			reader = connect(t, c.Connection(away)) // it has just come back
		}
		if n%20 == 0 {
			if seq, err = l.insist(t, writer, message(events.Transfers, key(1, 1), seq)); err != nil {
				t.Fatal(err)
			}
		}
		got, found, err := reader.Last(t.Context(), events.Transfers, key(1, 1))
		if err != nil || !found || got.Seq != seq {
			t.Fatalf("read %d: sequence %d, %v, %v; %d was acknowledged", n, got.Seq, found, err, seq)
		}
	}
}

// ledger is what writers were told.
type ledger struct {
	mu   sync.Mutex
	ids  map[string]bool
	news chan struct{} // one for each acknowledgement, as far as there is room
}

func newLedger() *ledger { return &ledger{ids: map[string]bool{}, news: make(chan struct{}, 1<<16)} }

func (l *ledger) await(t *testing.T, n int) {
	t.Helper()
	for len(l.news) > 0 {
		<-l.news
	}
	for range n {
		receive(t, "acknowledgement", l.news)
	}
}

// write appends for one player after another until stop, as the mutation loop would.
func (l *ledger) write(t *testing.T, st *streams.Store, w int, stop <-chan struct{}) {
	for player := w * 100_000; ; player++ {
		prev := uint64(0)
		for range 5 {
			select {
			case <-stop:
				return
			default:
			}
			m := message(events.Transfers, key(player, 1), prev)
			seq, err := l.insist(t, st, m)
			if err != nil {
				t.Errorf("writer %d: %v", w, err)
				return
			}
			prev = seq
			l.mu.Lock()
			l.ids[m.Header[events.HeaderID]] = true
			l.mu.Unlock()
			select {
			case l.news <- struct{}{}:
			default:
			}
		}
	}
}

func (l *ledger) insist(t *testing.T, st *streams.Store, m events.Message) (uint64, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		seq, err := st.Append(ctx, m)
		var failed *events.AppendError
		if err == nil || ctx.Err() != nil || !errors.As(err, &failed) {
			return seq, err
		}
		switch failed.Reason {
		case events.Unknown, events.Unavailable, events.InFlight:
		default:
			return seq, err
		}
	}
}
