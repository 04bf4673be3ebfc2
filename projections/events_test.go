package projections

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

var update = flag.Bool("update", false, "write golden files anew")

// id is an id of any kind that ends in n.
func id[I ~[16]byte](n byte) (out I) {
	out[0], out[6], out[8], out[15] = 0xab, 0x70, 0x80, n
	return out
}

var (
	steve, alex = id[events.PlayerID](1), id[events.PlayerID](2)
	first, next = id[events.TransferID](1), id[events.TransferID](2)
	lifeB       = id[events.Incarnation](11)
	lifeB2      = id[events.Incarnation](12)
	lifeE       = id[events.Incarnation](21)
	noon        = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
)

// tape builds the events of one bucket with the sequences and guards that a store would give.
type tape struct {
	seq  uint64
	last map[string]uint64
	out  []events.Event
}

func newTape() *tape { return &tape{last: map[string]uint64{}} }

// add appends a fact, each one second after the one before.
func (l *tape) add(key string, f events.Fact) *tape {
	kind, err := events.KindOf(f)
	if err != nil {
		panic(err)
	}
	guard := kind.Bucket.Guard(key)
	l.seq++
	e := events.Event{Bucket: kind.Bucket, Seq: l.seq, Stored: noon.Add(time.Duration(l.seq) * time.Second), Fact: f}
	e.Key, e.Prev = key, l.last[guard]
	_, e.Correlation, _ = events.ParseTransferKey(key)
	l.last[guard] = l.seq
	l.out = append(l.out, e)
	return l
}

// of appends facts of one transfer.
func (l *tape) of(p events.PlayerID, t events.TransferID, facts ...events.TransferFact) *tape {
	for _, f := range facts {
		l.add(events.TransferKey(p, t), f)
	}
	return l
}

func (l *tape) newest() *events.Event { return &l.out[len(l.out)-1] }

// The facts of a plain journey from a to b.
func requested() *events.Requested {
	return &events.Requested{Trigger: events.TriggerCommand, Origin: "a", Name: "Steve"}
}

func reserved(n int) *events.Reserved {
	return &events.Reserved{
		Attempt: n, Server: "b", Incarnation: lifeB, Promise: uint64(n), Region: "wild", TTLMs: 30000, //nolint:gosec // small
		At: events.Position{World: "w", X: 1, Y: 2, Z: 3},
	}
}

func claimed(n int) *events.Claimed {
	return &events.Claimed{Attempt: n, Dispatcher: "e", Incarnation: lifeE, Session: 7, From: "a"}
}

func transferred(n int) *events.Transferred {
	return &events.Transferred{Attempt: n, How: events.HowTransfer, Result: events.MoveSent}
}

func consumed(n int) *events.Consumed {
	return &events.Consumed{Attempt: n, Server: "b", Incarnation: lifeB, Join: id[events.JoinID](9)}
}

func completed(n int) *events.Completed { return &events.Completed{Attempt: n} }

func released(n int) *events.Released {
	return &events.Released{Attempt: n, Reason: events.MoveRefused}
}

func unreachable(n int) *events.Released {
	return &events.Released{Attempt: n, Reason: events.Unreachable}
}

func expired(n int) *events.Expired {
	return &events.Expired{Attempt: n, Reason: events.TTLPassed}
}

func reopened(n int, claim uint64) *events.Reopened {
	return &events.Reopened{Attempt: n, Claim: claim, Evidence: events.Stale}
}

// folded is the fold of a tape that took every fact of it.
func folded(t testing.TB, l *tape) *Journeys {
	t.Helper()
	j := NewJourneys(1)
	for _, e := range l.out {
		if refusal := j.Apply(e, e.Stored); refusal != nil {
			t.Fatalf("sequence %d: %v", e.Seq, refusal)
		}
	}
	return j
}

func wantRefusal(t testing.TB, what string, r *events.Refusal, code events.Code) {
	t.Helper()
	if code == events.OK && r != nil {
		t.Errorf("%s: %v, want none", what, r)
	}
	if code != events.OK && (r == nil || r.Code != code) {
		t.Errorf("%s: %v, want %s", what, r, code)
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // test data is public
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; look at it, then run with -update. Got:\n%s", path, got)
	}
}
