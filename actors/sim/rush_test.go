package sim_test

import (
	"context"
	"iter"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestRush: what the demo shows of the line, in fake time.
func TestRush(t *testing.T) {
	const players, seats, pace = 120, 20, 20
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		mem := streamtest.NewMemory()
		line := actors.ShippedLineRules()
		line.DrainPerSecond = pace
		shapes := map[events.HostID]sim.Shape{
			"lobby": {Seats: 2 * players}, "small": {Seats: seats, Keep: seats}, "large": {Seats: 2 * players, Keep: players, Down: true},
		}
		stage := sim.NewStage(ctx, sim.StageConfig{
			Proxies: []events.HostID{"p1", "p2"}, Backends: []events.HostID{"lobby", "small", "large"}, Line: line,
			Shape: func(id events.HostID) sim.Shape { return shapes[id] }, Reconnect: 30 * time.Millisecond,
			Connect: func(_ context.Context, _ events.SourceKind, id events.HostID) (sim.Conn, error) {
				return mem.Client(string(id)), nil
			},
			Identity: func(kind events.SourceKind, id events.HostID) actors.Identity {
				return actors.Identity{
					Source: events.Source{Kind: kind, ID: id, Incarnation: streamtest.NewID[events.Incarnation]()},
					Keys:   streamtest.Keyring(), Now: time.Now, NewID: streamtest.NewID[[16]byte],
				}
			},
			Logger: slog.New(slog.DiscardHandler),
		})
		ended := make(chan error, 1)
		go func() { ended <- stage.Run(ctx) }()
		<-stage.Ready()
		var moments []sim.RushMoment
		rush := sim.Rush{
			Stage: stage, Players: players, Returns: "large", Stands: 10 * time.Second, Within: time.Minute, Every: time.Second,
			Say: func(m sim.RushMoment) { moments = append(moments, m) },
		}
		r, err := rush.Run(ctx)
		if err != nil || r.First != seats || r.Waited != players-seats || r.Told != r.Waited || r.Arrived != players {
			t.Errorf("%+v, %v", r, err)
		}
		least := int64(1000 * (players - seats - pace) / pace)
		if r.EmptiedMs < least || r.EmptiedMs > least+4000 {
			t.Errorf("emptied in %d ms, want %d and a little", r.EmptiedMs, least)
		}
		fell := 0
		for i, m := range moments[1:] {
			if before := moments[i]; m.Back && before.Back && (m.InLine > before.InLine || m.Arrived < before.Arrived) {
				t.Errorf("%s\nafter %s", m, before)
			}
			if m.InLine == players-seats && !m.Back && strings.Contains(m.String(), "100 in line    20 arrived   no room") {
				fell++
			}
		}
		if last := moments[len(moments)-1]; last.InLine != 0 || last.Arrived != players || !last.Back || fell == 0 {
			t.Errorf("the last moment: %s; the line stood %d s", last, fell)
		}
		cancel()
		<-ended
		stage.Net().Wait()
		over, err := sim.Overtaken(factsOf(t, mem), 0, "large")
		if err != nil || over > 2*pace {
			t.Errorf("overtaken %d times, %v", over, err)
		}
	})
}

// factsOf are the facts of a log in memory, in order.
func factsOf(t *testing.T, mem *streamtest.Memory) iter.Seq2[events.Event, error] {
	return func(yield func(events.Event, error) bool) {
		for _, rec := range mem.Records(events.Transfers) {
			e, refusal := events.Open(streamtest.Keyring(), rec)
			if refusal != nil {
				t.Fatal(refusal)
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func TestOvertaken(t *testing.T) {
	ids := []events.TransferID{{1}, {2}, {3}, {4}}
	log := func(order ...int) iter.Seq2[events.Event, error] {
		return func(yield func(events.Event, error) bool) {
			seq := uint64(0)
			put := func(id events.TransferID, f events.Fact) bool {
				seq++
				return yield(events.Event{Envelope: events.Envelope{Correlation: id}, Seq: seq, Fact: f}, nil)
			}
			for _, id := range ids {
				if !put(id, &events.Requested{}) {
					return
				}
			}
			for i, n := range order {
				if !put(ids[n], &events.Reserved{Server: "b", Promise: uint64(i + 1)}) || !put(ids[n], &events.Reserved{Server: "c", Promise: uint64(9 - i)}) { //nolint:gosec // small
					return
				}
			}
		}
	}
	for want, order := range map[int][]int{0: {0, 1, 2, 3}, 1: {1, 0, 3, 2}, 3: {1, 2, 3, 0}} {
		if got, err := sim.Overtaken(log(order...), 0, "b"); err != nil || got != want {
			t.Errorf("%v: overtaken %d times, %v, want %d", order, got, err, want)
		}
	}
}
