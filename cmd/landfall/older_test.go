package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// newerTape is a log that two versions share: the newer one has written a fact of a type that
// this one does not know, properly signed, in the middle of a transfer. Its sequence is given.
func newerTape(t *testing.T) (log *tape, unknown uint64) {
	t.Helper()
	log = newTape(t)
	other := log.begin("Older", 3, events.Wish{})
	other.joined("lobby-1")
	j := log.begin("Newer", 4, events.Wish{})
	j.joined("lobby-1")
	m := log.seal(streamtest.Source(events.SourceEdge, "e9"), log.records[events.Transfers][1].Key, 2, &events.Failed{Code: events.NotArrived})
	m.Header = maps.Clone(m.Header)
	m.Header[events.HeaderType] = "landfall.transfer.parked.v1"
	m.Header[events.HeaderSig] = streamtest.Keyring().Sign(m.Bucket.Subject(m.Key), m.Header, m.Body)
	return log, log.store(m)
}

// An older program on the log of a newer one reads what it can, and stops at what it does not
// know, with its sequence: it never passes over it in silence.
func TestAnOlderVersionStopsAtWhatItDoesNotKnow(t *testing.T) {
	log, unknown := newerTape(t)
	if unknown != 3 {
		t.Fatalf("the fact of a newer version is at %d", unknown)
	}
	tail := onTape(t, log, withKey(), "tail")
	if tail.status != statusOK || strings.Count(tail.stdout, "requested") != 2 || !strings.Contains(tail.stdout, "decode-error: UNKNOWN_TYPE: landfall.transfer.parked.v1") {
		t.Errorf("tail shows all of it, and says what it cannot read: %+v", tail)
	}
	for _, state := range []string{"transfers", "line", "sessions"} {
		o := onTape(t, log, withKey(), "state", state)
		if o.status != statusFailed || o.stdout != "" || !strings.Contains(o.stderr, "sequence 3 of transfers: UNKNOWN_TYPE: landfall.transfer.parked.v1") {
			t.Errorf("state %s: %+v", state, o)
		}
	}
	if o := onTape(t, log, withKey(), "state", "transfers", "--as-of", "2"); o.status != statusOK || strings.Count(o.stdout, "REQUESTED") != 2 {
		t.Errorf("what was before it: %+v", o)
	}
	if o := onTape(t, log, withKey(), "replay", "player", events.OfflinePlayer("Older").String()); o.status != statusOK {
		t.Errorf("somebody else's story: %+v", o)
	}
	if o := onTape(t, log, withKey(), "replay", "player", events.OfflinePlayer("Newer").String()); o.status == statusOK || !strings.Contains(o.stdout, "UNKNOWN_TYPE") {
		t.Errorf("its own story: %+v", o)
	}
	text, findings, _, status := verified(t, log, withKey())
	if status != statusInconsistent || len(findings) != 1 || findings[0].Seq != unknown || !strings.Contains(text, "UNKNOWN_TYPE") {
		t.Errorf("verify: status %d, %+v\n%s", status, findings, text)
	}
}
