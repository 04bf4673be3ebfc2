package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// stumbling is a log whose appends fail, from one of them on and for so many.
type stumbling struct {
	testLog

	from, times int
}

var errStumbled = errors.New("injected by the test")

func (s *stumbling) Append(ctx context.Context, m events.Message) (uint64, error) {
	s.from--
	if s.from < 0 && s.from >= -s.times {
		return 0, errStumbled
	}
	return s.testLog.Append(ctx, m)
}

// takesAll is a log that guards nothing.
type takesAll struct {
	testLog

	mem *streamtest.Memory
}

func (s takesAll) Append(ctx context.Context, m events.Message) (uint64, error) {
	seq, err := s.testLog.Append(ctx, m)
	if failed, known := errors.AsType[*events.AppendError](err); known && failed.Reason == events.Conflict {
		return 1, nil
	}
	return seq, err
}

// tokensPassed runs the test on a log in memory, in fake time, and gives what is left in it.
func tokensPassed(t *testing.T, got *transcript, what string, rounds int, hinder func(mem *streamtest.Memory, log testLog) testLog) *projections.Journeys {
	t.Helper()
	left := projections.NewJourneys(0)
	synctest.Test(t, func(t *testing.T) {
		mem := streamtest.NewMemory()
		r := runTokenTest(t.Context(), testPeer(hinder(mem, mem.Client("cli"))), rounds)
		for _, asJSON := range []bool{false, true} {
			var out bytes.Buffer
			status := statusOf(tellTest(&out, asJSON, r))
			flags := map[bool]string{true: " --json"}[asJSON]
			got.add("test network tokens"+flags+"   # "+what, out.String(), "", status)
		}
		for _, rec := range mem.Records(events.Transfers) {
			e, refusal := events.Open(streamtest.Keyring(), rec)
			if refusal == nil {
				refusal = left.Apply(e, e.Stored)
			}
			if refusal != nil {
				t.Fatalf("sequence %d: %v", rec.Seq, refusal)
			}
		}
	})
	return left
}

func TestNetworkTokens(t *testing.T) {
	var got transcript
	for _, c := range []struct {
		what   string
		rounds int
		hinder func(mem *streamtest.Memory, log testLog) testLog
		left   int
	}{
		{"no dispatcher runs", 3, func(_ *streamtest.Memory, log testLog) testLog { return log }, 0},
		{"nothing can be written", 3, func(_ *streamtest.Memory, log testLog) testLog { return &stumbling{log, 0, 1000} }, 0},
		{"the store fails under way", 3, func(_ *streamtest.Memory, log testLog) testLog { return &stumbling{log, 2, 1} }, 0},
		{"the store fails for good", 3, func(_ *streamtest.Memory, log testLog) testLog { return &stumbling{log, 2, 1000} }, 1},
		{"the store guards nothing", 3, func(mem *streamtest.Memory, log testLog) testLog { return takesAll{log, mem} }, 0},
		{"the store is away", 3, func(mem *streamtest.Memory, log testLog) testLog { mem.Outage(); return log }, 0},
	} {
		left := tokensPassed(t, &got, c.what, c.rounds, c.hinder)
		if n := len(left.Active()); n != c.left {
			t.Errorf("%s: %d transfers are left in the log, want %d", c.what, n, c.left)
		}
	}
	for _, verb := range []string{"tokens", "all"} {
		o := typed(t, "test", "network", verb, "--help")
		got.add("test network "+verb+" --help", o.stdout, o.stderr, o.status)
	}
	o := typed(t, "test", "network", "tokens", "--count", "0")
	got.add("test network tokens --count 0", o.stdout, o.stderr, o.status)
	got.matches(t, "test-network-tokens")
}

// TestNetworkTokensOnARunningNetwork: beside proxies that work, one of which ends the token
// that nobody came for. They take no other notice.
func TestNetworkTokensOnARunningNetwork(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "demo")
	_, stage, stop := runStage(t, dir)
	defer stop()
	awaitProxies(t, stage.Observer().View())
	o := typed(t, "test", "network", "all", "--json", "--within", "30s", "--store", dir)
	var r allReport
	if err := json.Unmarshal([]byte(o.stdout), &r); err != nil || o.status != statusOK {
		t.Fatalf("%+v: %v", o, err)
	}
	if !r.OK || r.Tokens.Tokens != tokenRounds || len(r.Tokens.Steps) != len(tokenSteps) || r.Tokens.Raced != "conflict" || r.Tokens.Left != 0 {
		t.Errorf("%+v", r)
	}
	if x := r.Tokens.Reaped; x == nil || !slices.Contains(demoProxies, x.By) || x.Code != events.PlayerOffline || x.AfterMs < float64(demoTiming.WithDefaults().TTLSlack.Milliseconds()) {
		t.Errorf("reaped: %+v, want by a proxy of the network", x)
	}
	settled(t, "no transfer is left", func() bool { return len(stage.Observer().View().Active()) == 0 })
}
