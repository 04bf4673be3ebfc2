package main

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// beaten runs the test on a log in memory, in fake time.
func beaten(t *testing.T, got *transcript, command string, hinder func(mem *streamtest.Memory, c *streamtest.Client)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		mem := streamtest.NewMemory()
		client := mem.Client("cli")
		hinder(mem, client)
		h := heartbeatTest{peer: testPeer(client)}
		err := h.run(t.Context())
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			status := statusOf(tellTest(&out, asJSON, h.report(err)))
			flags := map[bool]string{true: " --json"}[asJSON]
			got.add("test network heartbeat"+flags+"   # "+command, out.String(), "", status)
		}
		for _, r := range mem.Records(events.Fleet) {
			e, refusal := events.Open(streamtest.Keyring(), r)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if b := e.Fact.(*events.BackendBeat); b.Accepting || len(b.Regions) > 0 || b.State == events.Ready {
				t.Errorf("a player could be sent to %+v", b)
			}
		}
	})
}

func TestNetworkHeartbeat(t *testing.T) {
	var got transcript
	beaten(t, &got, "as it should be", func(*streamtest.Memory, *streamtest.Client) {})
	beaten(t, &got, "nothing can be written", func(_ *streamtest.Memory, c *streamtest.Client) { c.FailAppend(events.Unavailable, 1) })
	beaten(t, &got, "the store is away", func(m *streamtest.Memory, _ *streamtest.Client) { m.Outage() })
	o := typed(t, "test", "network", "heartbeat", "--help")
	got.add("test network heartbeat --help", o.stdout, o.stderr, o.status)
	got.matches(t, "test-network-heartbeat")
}

// TestNetworkHeartbeatOnARunningStore: the verb, on a store that another process has open.
func TestNetworkHeartbeatOnARunningStore(t *testing.T) {
	c := newCarrier(t, "")
	t.Setenv(envSecret, encoded(realSecret))
	o := typed(t, "test", "network", "heartbeat", "--json", "--within", "30s", "--store", c.cfg.Dir)
	var r heartbeatReport
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.status != statusOK {
		t.Fatalf("%+v: %v", o, err)
	}
	if !r.OK || len(r.Beats) != testBeats+1 || r.Beats[testBeats].State != events.ShuttingDown || r.Beats[0].Folded <= 0 {
		t.Errorf("%+v", r)
	}
}

func testPeer(log testLog) peer {
	return peer{log: log, keys: streamtest.Keyring(), host: "test-0a1b2c3d", life: events.Incarnation(newID()), within: 3 * time.Second}
}
