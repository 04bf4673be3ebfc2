package sim_test

import (
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

func chronicled(t *testing.T, log sim.Appender, facts uint64) sim.ChronicleReport {
	t.Helper()
	c := sim.NewChronicle(sim.ChronicleConfig{
		Log: log, Kind: events.KindEdge, Proxies: []events.HostID{"e1", "e2"}, Backends: []events.HostID{"b1", "b2", "b3"},
		Players: 200, Facts: facts, Writers: 8, Seed: 7,
		Identity: func(kind events.SourceKind, id events.HostID) actors.Identity {
			newID := func() [16]byte { return uuid.Must(uuid.NewV7()) }
			return actors.Identity{
				Source: events.Source{Kind: kind, ID: id, Incarnation: events.Incarnation(newID())},
				Keys:   streamtest.Keyring(), Now: time.Now, NewID: newID,
			}
		},
	})
	if err := c.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Report()
}

// What a chronicle writes is what a network could have written: every fold takes every fact, and
// all kinds of lives are in it.
func TestChronicleIsALogOfManyLives(t *testing.T) {
	const facts = 20_000
	m := streamtest.NewMemory()
	report := chronicled(t, m.Client("filler"), facts)
	kinds := map[string]int{}
	audit, err := sim.Audit(opened(t, m, events.Transfers, kinds), 0, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	if audit.Facts != facts || report.Facts != facts || audit.Doubled != 0 || audit.Lost != 0 {
		t.Errorf("reported %+v, the log says %+v; want %d facts, all of them good", report, audit, facts)
	}
	if report.Transfers != uint64(audit.Transfers) || report.Completed != uint64(audit.Completed) || report.Ended != uint64(audit.Failed) || report.Open() != uint64(audit.Open) {
		t.Errorf("reported %+v, the log says %+v", report, audit)
	}
	if 10*audit.Completed < 7*audit.Transfers || audit.Open == 0 {
		t.Errorf("of %d transfers %d were completed and %d are open: want most of them, and some", audit.Transfers, audit.Completed, audit.Open)
	}
	for _, k := range events.Catalog {
		if _, ok := k.New().(events.TransferFact); ok && kinds[k.Type] == 0 {
			t.Errorf("no %s", k.Type)
		}
	}
	for _, code := range []events.Code{events.GraceOver, events.NoCandidate, events.NotArrived, events.PlayerLeft, events.PlacementUnconfirmed} {
		if kinds[string(code)] == 0 {
			t.Errorf("nothing ended with %s", code)
		}
	}
	sessions := projections.NewSessions()
	for e := range opened(t, m, events.Sessions, kinds) {
		if refusal := sessions.Apply(e, e.Stored); refusal != nil {
			t.Fatalf("sessions, sequence %d: %v", e.Seq, refusal)
		}
	}
	for e := range opened(t, m, events.Fleet, kinds) {
		if _, refusal := (&projections.Fleet{}).Apply(e, e.Stored); refusal != nil {
			t.Fatalf("fleet, sequence %d: %v", e.Seq, refusal)
		}
	}
}

// opened are the facts of a bucket, verified; kinds counts their types and the codes of ends.
func opened(t *testing.T, m *streamtest.Memory, b events.Bucket, kinds map[string]int) iter.Seq2[events.Event, error] {
	t.Helper()
	return func(yield func(events.Event, error) bool) {
		for _, r := range m.Records(b) {
			e, refusal := events.Open(streamtest.Keyring(), r)
			if refusal != nil {
				yield(e, refusal)
				return
			}
			kinds[events.TypeName(e.Fact)]++
			switch f := e.Fact.(type) {
			case *events.Failed:
				kinds[string(f.Code)]++
			case *events.Cancelled:
				kinds[string(f.Code)]++
			default:
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

// A store that refuses ends the chronicle with the reason; what is written stays good.
func TestChronicleEndsWithItsStore(t *testing.T) {
	m := streamtest.NewMemory()
	client := m.Client("filler")
	client.FailAppend(events.StreamIsFull, 1)
	c := sim.NewChronicle(sim.ChronicleConfig{
		Log: client, Kind: events.KindEdge, Proxies: []events.HostID{"e1"}, Backends: []events.HostID{"b1"}, Players: 2, Facts: 100, Writers: 2, Seed: 1,
		Identity: func(kind events.SourceKind, id events.HostID) actors.Identity {
			return actors.Identity{Source: events.Source{Kind: kind, ID: id}, Keys: streamtest.Keyring(), Now: time.Now, NewID: func() [16]byte { return uuid.Must(uuid.NewV7()) }}
		},
	})
	var failed *events.AppendError
	if err := c.Run(t.Context()); !errors.As(err, &failed) || failed.Reason != events.StreamIsFull {
		t.Errorf("ended with %v", err)
	}
}
