package streamtest

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

func newRest() (string, *events.CooldownSet) {
	return events.CooldownKey(NewID[events.PlayerID](), "rtp", ""), &events.CooldownSet{Limit: "rtp", Seconds: 1, Transfer: NewID[events.TransferID]()}
}

// lasting is a fact that stands for ttl.
func lasting(t *testing.T, key string, prev uint64, f events.Fact, ttl time.Duration) events.Message {
	t.Helper()
	m := Fact(t, key, prev, f)
	m.TTL = ttl
	return m
}

// markerOf waits until a marker has come of a key, and gives its sequence.
func (f *following) markerOf(t *testing.T, key string) (seq uint64) {
	t.Helper()
	f.until(t, "the marker of "+key, func() bool {
		for _, r := range f.records {
			if r.Key == key && r.Header[events.HeaderType] == "" {
				seq = r.Seq
			}
		}
		return seq != 0
	})
	return seq
}

// recordExpires: a record with a time to live is there like any other; when its time is over
// a marker without a type stands in its place, tails hear of it, and it is the guard.
func recordExpires(t *testing.T, s Store, _ Features) {
	writer, reader := s.Connect(t), s.Connect(t)
	f := follow(t, reader, events.Limits, events.TailStart{})
	key, rest := newRest()
	m := lasting(t, key, 0, rest, time.Second)
	first := mustAppend(t, writer, m)
	if r, ok := mustLast(t, reader, events.Limits, key); !ok || r.Seq != first || r.Header[events.HeaderID] != m.Header[events.HeaderID] {
		t.Fatalf("last is %d (%v), appended was %d", r.Seq, ok, first)
	}
	f.waitFor(t, first)
	marker := f.markerOf(t, key)
	r, ok := mustLast(t, reader, events.Limits, key)
	if !ok || r.Seq != marker || marker <= first || r.Header["Nats-Marker-Reason"] != "MaxAge" || len(r.Body) != 0 {
		t.Fatalf("after its time last is %d (%v) with headers %v, the tail had %d", r.Seq, ok, r.Header, marker)
	}
	if _, refusal := events.Open(keyring, r); refusal == nil || refusal.Code != events.Stray {
		t.Errorf("the marker opens as %v, want %s", refusal, events.Stray)
	}
	checkConflict(t, mustFail(t, writer, lasting(t, key, first, rest, time.Second), events.Conflict), marker)
	checkConflict(t, mustFail(t, writer, lasting(t, key, 0, rest, time.Second), events.Conflict), marker)
	next := mustAppend(t, writer, lasting(t, key, marker, rest, time.Hour))
	if r, ok := mustLast(t, reader, events.Limits, key); !ok || r.Seq != next || r.Header[events.HeaderType] == "" {
		t.Errorf("last is %d (%v), appended was %d", r.Seq, ok, next)
	}
}

// newerRecordStands: the time of a record ends with the next one of its key, which has its
// own, or none.
func newerRecordStands(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	f := follow(t, c, events.Limits, events.TailStart{})
	longer, rest := newRest()
	ever, _ := newRest()
	witness, _ := newRest()
	wantLonger := mustAppend(t, c, lasting(t, longer, mustAppend(t, c, lasting(t, longer, 0, rest, time.Second)), rest, time.Hour))
	wantEver := mustAppend(t, c, Fact(t, ever, mustAppend(t, c, lasting(t, ever, 0, rest, time.Second)), rest))
	mustAppend(t, c, lasting(t, witness, 0, rest, time.Second))
	f.markerOf(t, witness) // the others' first second was over before
	for key, want := range map[string]uint64{longer: wantLonger, ever: wantEver} {
		if r, ok := mustLast(t, c, events.Limits, key); !ok || r.Seq != want {
			t.Errorf("last of %s is %d (%v), want %d", key, r.Seq, ok, want)
		}
	}
}

// noTTLWhereFactsStay: only the buckets whose keys expire take a time to live, and only whole seconds.
func noTTLWhereFactsStay(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	key, rest := newRest()
	for _, m := range []events.Message{
		lasting(t, newTransfer(), 0, &events.Requested{}, time.Minute),
		lasting(t, newSession(), 0, opened(), time.Minute),
		lasting(t, key, 0, rest, 1500*time.Millisecond),
		lasting(t, key, 0, rest, -time.Second),
	} {
		mustFail(t, c, m, events.NotAllowed)
		if _, ok := mustLast(t, c, m.Bucket, m.Key); ok {
			t.Errorf("%s was stored with %s to live", m.Key, m.TTL)
		}
	}
}
