package streamtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

// within bounds a call of the suite.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// mustAppend appends what must be taken. It repeats what is only in flight.
func mustAppend(t *testing.T, c Conn, m events.Message) uint64 {
	t.Helper()
	seq, err := settle(within(t), c, m)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return seq
}

// settle appends until the outcome is final: neither in flight nor unknown. As callers do,
// it leaves the one that is in flight some time.
func settle(ctx context.Context, c Conn, m events.Message) (uint64, error) {
	for wait := time.Millisecond; ; wait = min(2*wait, 32*time.Millisecond) {
		seq, err := c.Append(ctx, m)
		failed, ok := errors.AsType[*events.AppendError](err)
		if !ok || (failed.Reason != events.InFlight && failed.Reason != events.Unknown) {
			return seq, err
		}
		if sleepUntil(ctx, time.Now().Add(wait)) != nil {
			return seq, err
		}
	}
}

// mustFail is the reason of an append that must not be taken.
func mustFail(t *testing.T, c Conn, m events.Message, want events.AppendReason) *events.AppendError {
	t.Helper()
	seq, err := settle(within(t), c, m)
	failed, ok := errors.AsType[*events.AppendError](err)
	if !ok || failed.Reason != want {
		t.Fatalf("append %s behind %d: sequence %d, %v; want reason %q", m.Key, m.Prev, seq, err, want)
	}
	if failed.Key != m.Key {
		t.Errorf("error names key %q, want %q", failed.Key, m.Key)
	}
	return failed
}

func mustLast(t *testing.T, c Conn, b events.Bucket, key string) (events.Record, bool) {
	t.Helper()
	r, ok, err := c.Last(within(t), b, key)
	if err != nil {
		t.Fatalf("last %s %s: %v", b, key, err)
	}
	return r, ok
}

// eventually repeats an act that fails while a connection comes back.
func eventually(t *testing.T, what string, act func() error) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	ctx := within(t)
	for {
		err := act()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("gave up on %s: %v", what, err)
		case <-tick.C:
		}
	}
}

// stored gives everything a bucket holds, through a tail.
func stored(t *testing.T, c Conn, b events.Bucket) []events.Record {
	t.Helper()
	f := follow(t, c, b, events.TailStart{})
	f.waitCalls(t, "live", 1)
	f.stop(t)
	return f.records
}

func storedOf(t *testing.T, c Conn, b events.Bucket, keys ...string) []events.Record {
	t.Helper()
	return slices.DeleteFunc(stored(t, c, b), func(r events.Record) bool { return !slices.Contains(keys, r.Key) })
}

func transferOf(p events.PlayerID) string {
	return events.TransferKey(p, NewID[events.TransferID]())
}

func newTransfer() string { return transferOf(NewID[events.PlayerID]()) }

func newSession() string { return NewID[events.PlayerID]().String() }

func opened() *events.SessionOpened {
	e1 := Source(events.SourceEdge, "e1")
	return &events.SessionOpened{Session: events.Session{Holder: e1.ID, HolderIncarnation: e1.Incarnation}}
}

// guardOfOneKey: outside transfers the boundary is the key itself, and a conflict names
// the sequence that stands in the way.
func guardOfOneKey(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key := newSession()
	first := mustAppend(t, c, Fact(t, key, 0, opened()))
	checkConflict(t, mustFail(t, c, Fact(t, key, 0, opened()), events.Conflict), first)
	checkConflict(t, mustFail(t, c, Fact(t, key, first+1000, opened()), events.Conflict), first)
	second := mustAppend(t, c, Fact(t, key, first, opened()))
	if second <= first {
		t.Errorf("sequence %d after %d", second, first)
	}
	mustAppend(t, c, Fact(t, newSession(), 0, opened()))
}

func checkConflict(t *testing.T, failed *events.AppendError, last uint64) {
	t.Helper()
	if failed.Last != last {
		t.Errorf("conflict names sequence %d, want %d", failed.Last, last)
	}
	if failed.Code != 0 && failed.Code != 10071 && failed.Code != 10164 {
		t.Errorf("conflict has code %d", failed.Code)
	}
}

// guardOfOnePlayer: in transfers all keys of a player are one boundary: a second pending
// key is refused, and another player's is not.
func guardOfOnePlayer(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	p := NewID[events.PlayerID]()
	one, two := transferOf(p), transferOf(p)
	first := mustAppend(t, c, Fact(t, one, 0, &events.Requested{}))
	checkConflict(t, mustFail(t, c, Fact(t, two, 0, &events.Requested{}), events.Conflict), first)
	mustAppend(t, c, Fact(t, newTransfer(), 0, &events.Requested{}))
	second := mustAppend(t, c, Fact(t, two, first, &events.Requested{}))
	checkConflict(t, mustFail(t, c, Fact(t, one, first, &events.Failed{}), events.Conflict), second)
	if r, ok := mustLast(t, c, events.Transfers, one); !ok || r.Seq != second || r.Key != two {
		t.Errorf("last of the player is %s at %d (%v), want %s at %d", r.Key, r.Seq, ok, two, second)
	}
}

// recordIsExact: a record holds the bytes that were sealed, also a large body and headers
// that mean something to a key-value client; Last and Tail agree on it.
func recordIsExact(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	m := Fact(t, newTransfer(), 0, &events.Failed{Detail: string(bytes.Repeat([]byte("x"), events.MaxBody-200))})
	m.Header["KV-Operation"] = "DEL"
	seq := mustAppend(t, c, m)
	last, ok := mustLast(t, c, events.Transfers, m.Key)
	tailed := storedOf(t, c, events.Transfers, m.Key)
	if !ok || len(tailed) != 1 {
		t.Fatalf("last found %v, tail found %d", ok, len(tailed))
	}
	for _, r := range []events.Record{last, tailed[0]} {
		if r.Bucket != m.Bucket || r.Key != m.Key || r.Seq != seq || !bytes.Equal(r.Body, m.Body) || r.Stored.IsZero() {
			t.Fatalf("record %s %s at %d, %d bytes, stored %v", r.Bucket, r.Key, r.Seq, len(r.Body), r.Stored)
		}
		for name, want := range m.Header {
			if r.Header[name] != want {
				t.Errorf("header %s is %q, want %q", name, r.Header[name], want)
			}
		}
		if _, refusal := events.Open(keyring, r); refusal != nil {
			t.Errorf("open: %v", refusal)
		}
	}
}

// sameIDAgain: a retry of a stored fact gives its sequence, whether its guard is the old
// one or a fresh one, and also after others followed. It is stored once.
func sameIDAgain(t *testing.T, s Store, _ Features) {
	c, other := s.Connect(t), s.Connect(t)
	m := Fact(t, newTransfer(), 0, &events.Requested{})
	first := mustAppend(t, c, m)
	again := func(when string, m events.Message) {
		for i, from := range []Conn{c, other} {
			if seq := mustAppend(t, from, m); seq != first {
				t.Errorf("%s, connection %d: sequence %d, want the first's %d", when, i, seq, first)
			}
		}
	}
	again("old guard", m)
	again("fresh guard", Reseal(t, m, first))
	second := mustAppend(t, c, Fact(t, m.Key, first, &events.Waitlisted{}))
	again("old guard, another fact behind it", m)
	again("fresh guard, another fact behind it", Reseal(t, m, second))
	if n := len(storedOf(t, c, events.Transfers, m.Key)); n != 2 {
		t.Errorf("%d facts stored, want 2", n)
	}
}

// idOfAnotherFact: an id is one fact's for good; who uses it for another is told, and not that the
// other one was stored.
func idOfAnotherFact(t *testing.T, s Store, _ Features) {
	c, other := s.Connect(t), s.Connect(t)
	m := Fact(t, newTransfer(), 0, &events.Requested{})
	first := mustAppend(t, c, m)
	forged := map[string]events.Message{
		"another fact of the same key": Fact(t, m.Key, first, &events.Waitlisted{}),
		"the same of another key":      Fact(t, newTransfer(), 0, &events.Requested{}),
		"another body":                 Fact(t, m.Key, first, &events.Requested{Name: "somebody else"}),
	}
	for name, f := range forged {
		f.Header[events.HeaderID] = m.Header[events.HeaderID]
		for _, from := range []Conn{c, other} {
			seq, err := settle(within(t), from, f)
			failed, ok := errors.AsType[*events.AppendError](err)
			if !ok || failed.Reason != events.NotAllowed {
				t.Errorf("%s: sequence %d, %v; want reason %q", name, seq, err, events.NotAllowed)
			}
		}
	}
	if seq := mustAppend(t, other, m); seq != first {
		t.Errorf("the fact itself: sequence %d, want %d", seq, first)
	}
	if r, ok := mustLast(t, c, events.Transfers, m.Key); !ok || r.Seq != first {
		t.Errorf("something was stored: %+v", r)
	}
}

// cancelledAppend: nothing leaves for a caller who is gone already.
func cancelledAppend(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := Fact(t, newTransfer(), 0, &events.Requested{})
	_, err := c.Append(ctx, m)
	if failed, ok := errors.AsType[*events.AppendError](err); !ok || failed.Reason != events.Unavailable {
		t.Errorf("append with a cancelled context: %v, want reason %q", err, events.Unavailable)
	}
	mustAppend(t, c, Fact(t, newTransfer(), 0, &events.Requested{}))
	if _, ok := mustLast(t, c, events.Transfers, m.Key); ok {
		t.Error("it was stored")
	}
}

// fullKey: a key of transfers refuses the fact above its limit, loses none, does not
// block the player's other keys, and the refused id may be used again.
func fullKey(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	p := NewID[events.PlayerID]()
	key, last := transferOf(p), uint64(0)
	for range events.MaxKeyFacts {
		last = mustAppend(t, c, Fact(t, key, last, &events.Requested{}))
	}
	refused := Fact(t, key, last, &events.Failed{})
	if failed := mustFail(t, c, refused, events.KeyIsFull); failed.Code != 0 && failed.Code != 10077 {
		t.Errorf("code %d", failed.Code)
	}
	mustFail(t, c, Fact(t, key, last-1, &events.Failed{}), events.Conflict)
	next := Seal(t, events.Envelope{
		ID:     events.Record{Header: refused.Header}.EventID(),
		Source: Source(events.SourceEdge, "e1"), Time: time.Now(), Key: transferOf(p), Prev: last,
	}, &events.Requested{})
	if seq := mustAppend(t, c, next); seq <= last {
		t.Errorf("the refused id came to sequence %d, not above %d", seq, last)
	}
	if n := len(storedOf(t, c, events.Transfers, key)); n != events.MaxKeyFacts {
		t.Errorf("%d facts stored, want %d", n, events.MaxKeyFacts)
	}
}

// rollingKey: a key of sessions takes any number of facts and keeps the newest.
func rollingKey(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key, last := newSession(), uint64(0)
	for range events.MaxKeyFacts + 6 {
		last = mustAppend(t, c, Fact(t, key, last, opened()))
	}
	var records []events.Record
	eventually(t, "the oldest facts to go", func() error { // the replica that is read may be behind
		records = storedOf(t, c, events.Sessions, key)
		if len(records) != events.MaxKeyFacts {
			return fmt.Errorf("%d facts stored, want the newest %d", len(records), events.MaxKeyFacts)
		}
		return nil
	})
	if records[len(records)-1].Seq != last {
		t.Errorf("the newest fact is %d, want %d", records[len(records)-1].Seq, last)
	}
}

// erasingHeaders: no header of a message erases, postpones or shortens the life of facts.
func erasingHeaders(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key := newTransfer()
	first := mustAppend(t, c, Fact(t, key, 0, &events.Requested{}))
	for name, value := range map[string]string{"Nats-Rollup": "all", "Nats-TTL": "1s", "Nats-Schedule": "@at 2100-01-01T00:00:00Z"} {
		m := Fact(t, key, first, &events.Failed{})
		m.Header[name] = value
		mustFail(t, c, m, events.NotAllowed)
	}
	if n := len(storedOf(t, c, events.Transfers, key)); n != 1 {
		t.Errorf("%d facts stored, want 1", n)
	}
}

// lastIsFresh: what one host has been acknowledged, every other reads at once.
func lastIsFresh(t *testing.T, s Store, _ Features) {
	writer, readers := s.Connect(t), []Conn{s.Connect(t), s.Connect(t)}
	key, last := newSession(), uint64(0)
	if _, ok := mustLast(t, writer, events.Sessions, key); ok {
		t.Fatal("last of an unused key found something")
	}
	for i := range 200 {
		m := Fact(t, key, last, opened())
		last = mustAppend(t, writer, m)
		r, ok := mustLast(t, readers[i%2], events.Sessions, key)
		if !ok || r.Seq != last || r.Header[events.HeaderID] != m.Header[events.HeaderID] {
			t.Fatalf("round %d: last is %d (%v), acknowledged was %d", i, r.Seq, ok, last)
		}
	}
}

// lastOfKey: the newest record of a key is its own, whatever the guard around it holds.
func lastOfKey(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	player := NewID[events.PlayerID]()
	one, two, never := transferOf(player), transferOf(player), transferOf(player)
	ones := chain(t, writer, one, 0, 3)
	twos := chain(t, writer, two, ones[2], 2)
	for key, want := range map[string]uint64{one: ones[2], two: twos[1], never: 0} {
		r, ok, err := reader.LastOf(within(t), events.Transfers, key)
		if err != nil || ok != (want != 0) || r.Seq != want {
			t.Errorf("last of %s is %d (%v), %v; want %d", key, r.Seq, ok, err, want)
		}
	}
	last := twos[1]
	for i := range 40 { // what was acknowledged is read at once, also below newer facts of another key
		mine := mustAppend(t, writer, Fact(t, two, last, &events.Requested{}))
		last = mustAppend(t, writer, Fact(t, transferOf(player), mine, &events.Requested{}))
		if r, _, err := reader.LastOf(within(t), events.Transfers, two); err != nil || r.Seq != mine {
			t.Fatalf("round %d: last is %d, %v; acknowledged was %d", i, r.Seq, err, mine)
		}
	}
}

// lostAck: an append whose acknowledgement is lost is stored once; its caller learns the
// sequence, at the latest from a retry, and sees it when it reads back.
func lostAck(t *testing.T, s Store, _ Features) {
	c, other := s.Connect(t), s.Connect(t)
	for round := range 3 {
		m := Fact(t, newTransfer(), 0, &events.Requested{})
		s.LoseAck(t, c)
		seq, err := c.Append(within(t), m)
		if failed, ok := errors.AsType[*events.AppendError](err); err != nil && (!ok || failed.Reason != events.Unknown) {
			t.Fatalf("round %d: append: %v, want a sequence or reason %q", round, err, events.Unknown)
		}
		r, ok := mustLast(t, other, events.Transfers, m.Key)
		if !ok || r.Header[events.HeaderID] != m.Header[events.HeaderID] || (err == nil && seq != r.Seq) {
			t.Fatalf("round %d: read back %d (%v), append said %d", round, r.Seq, ok, seq)
		}
		eventually(t, "the retry", func() error { seq, err = c.Append(within(t), m); return err })
		if seq != r.Seq {
			t.Errorf("round %d: the retry gave sequence %d, want %d", round, seq, r.Seq)
		}
		if n := len(storedOf(t, other, events.Transfers, m.Key)); n != 1 {
			t.Errorf("round %d: stored %d times", round, n)
		}
	}
}

// noLateLandingAfterCut: what was given up while the connection was cut is not sent when it heals.
func noLateLandingAfterCut(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	noLateLanding(t, c, func() { s.Cut(t, c) }, func() { s.Heal(t, c) })
}

// noLateLandingAfterOutage: nor when the store comes back.
func noLateLandingAfterOutage(t *testing.T, s Store, _ Features) {
	noLateLanding(t, s.Connect(t), func() { s.Outage(t) }, func() { s.Restore(t) })
}

func noLateLanding(t *testing.T, c Conn, breakIt, mend func()) {
	kept := Fact(t, newTransfer(), 0, &events.Requested{})
	seq := mustAppend(t, c, kept)
	breakIt()
	var abandoned []events.Message
	for range 5 {
		m := Fact(t, newTransfer(), 0, &events.Requested{})
		abandoned = append(abandoned, m)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := c.Append(ctx, m)
		cancel()
		failed, ok := errors.AsType[*events.AppendError](err)
		if !ok || (failed.Reason != events.Unavailable && failed.Reason != events.Unknown) {
			t.Fatalf("append without a store: %v, want reason %q", err, events.Unavailable)
		}
	}
	mend()
	after := Fact(t, newTransfer(), 0, &events.Requested{})
	eventually(t, "the first append afterwards", func() error { _, err := c.Append(within(t), after); return err })
	for i, m := range abandoned {
		if _, ok := mustLast(t, c, events.Transfers, m.Key); ok {
			t.Errorf("abandoned append %d landed afterwards", i)
		}
	}
	if r, ok := mustLast(t, c, events.Transfers, kept.Key); !ok || r.Seq != seq {
		t.Errorf("the acknowledged fact stands at %d (%v), want %d", r.Seq, ok, seq)
	}
}

// guardAfterRetention: when retention took a player's last fact the guard is 0 again, and
// the conflict of a writer who still holds the old one says so.
func guardAfterRetention(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key := newTransfer()
	old := mustAppend(t, c, Fact(t, key, 0, &events.Requested{}))
	s.Expire(t, events.Transfers)
	if r, ok := mustLast(t, c, events.Transfers, key); ok {
		t.Fatalf("last still finds %d", r.Seq)
	}
	checkConflict(t, mustFail(t, c, Fact(t, key, old, &events.Failed{}), events.Conflict), 0)
	if seq := mustAppend(t, c, Fact(t, key, 0, &events.Requested{})); seq <= old {
		t.Errorf("sequence %d was given again after %d", seq, old)
	}
}
