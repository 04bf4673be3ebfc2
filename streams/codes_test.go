package streams

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// TestEveryCodeHasOneMeaning as the server words it (measured on 2.15.3).
func TestEveryCodeHasOneMeaning(t *testing.T) {
	for _, c := range []struct {
		code   int
		text   string
		reason events.AppendReason
		last   uint64
	}{
		{10071, "wrong last sequence: 17", events.Conflict, 17},
		{10071, "wrong last sequence: 0", events.Conflict, 0},
		{10164, "wrong last sequence", events.InFlight, 0},
		{10077, "maximum messages per subject exceeded", events.KeyIsFull, 0},
		{10077, "maximum bytes exceeded", events.StreamIsFull, 0},
		{10077, "maximum messages exceeded", events.StreamIsFull, 0},
		{10077, "insufficient storage resources available", events.StreamIsFull, 0},
		{10077, "input/output error", events.Unknown, 0},
		{10047, "insufficient storage resources available", events.StreamIsFull, 0},
		{10028, "insufficient memory resources available", events.StreamIsFull, 0},
		{10002, "resource limits exceeded for account", events.StreamIsFull, 0},
		{10008, "JetStream system temporarily unavailable", events.Unavailable, 0},
		{10009, "JetStream cluster can not handle request", events.Unavailable, 0},
		{10111, "rollup not permitted", events.NotAllowed, 0},
		{10166, "per-message TTL is disabled", events.NotAllowed, 0},
		{10188, "message schedules is disabled", events.NotAllowed, 0},
		{10054, "message size exceeds maximum allowed", events.NotAllowed, 0},
		{10060, "expected stream does not match", events.NotAllowed, 0},
		{99999, "something new", events.NotAllowed, 0},
	} {
		reason, last := reasonOf(&storeError{ErrCode: c.code, Description: c.text})
		if reason != c.reason || last != c.last {
			t.Errorf("%d %q: %s %d, want %s %d", c.code, c.text, reason, last, c.reason, c.last)
		}
	}
}

func TestTransportFailuresHaveOneMeaning(t *testing.T) {
	for err, want := range map[error]events.AppendReason{
		nats.ErrTimeout:                events.Unknown,
		errLinkLost:                    events.Unknown,
		nats.ErrNoResponders:           events.Unavailable,
		nats.ErrReconnectBufExceeded:   events.Unavailable,
		nats.ErrConnectionClosed:       events.Unavailable,
		nats.ErrConnectionReconnecting: events.Unavailable,
		nats.ErrMaxPayload:             events.NotAllowed,
		fmt.Errorf("%w: x", errDenied): events.NotAllowed,
	} {
		if got := reasonOfTransport(mayHaveLeft(err), err); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}

func TestDoubtsRememberTheFirstGuardAndAreBounded(t *testing.T) {
	var d doubts
	d.add("a", 5)
	d.add("a", 9) // a retry with a refreshed guard
	if prev, ok := d.of("a"); !ok || prev != 5 {
		t.Errorf("a: %d %v, want the guard of the first try", prev, ok)
	}
	d.settle("a")
	d.settle("a")
	if _, ok := d.of("a"); ok {
		t.Error("a settled doubt is remembered")
	}
	for i := range 3 * maxDoubts {
		d.add(fmt.Sprint(i), 1)
	}
	if len(d.from) != maxDoubts || len(d.order) != maxDoubts {
		t.Errorf("%d doubts, %d in order", len(d.from), len(d.order))
	}
	d.add("", 1)
	if _, ok := d.of(""); ok {
		t.Error("a message without an id is in doubt")
	}
}

func TestLastQuoted(t *testing.T) {
	for text, want := range map[string]string{
		`nats: permissions violation: Permissions Violation for Publish to "$KV.a.b"`: "$KV.a.b",
		"no quotes": "",
		`one"`:      "one",
	} {
		if got := lastQuoted(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
