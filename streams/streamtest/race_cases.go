package streamtest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/landfall/landfall/events"
)

// raceOfTwoKeys: two hosts open different transfers of one player at once; one wins. On a
// replicated store both do when they name different guards of the same boundary.
func raceOfTwoKeys(t *testing.T, s Store, f Features) {
	const lanes = 8
	conns := []Conn{s.Connect(t), s.Connect(t)}
	var rounds, doubles, none atomic.Int64
	var wg sync.WaitGroup
	for range lanes {
		wg.Go(func() {
			for rounds.Add(1) <= int64(f.Races) && t.Context().Err() == nil {
				switch raceOnce(t, conns) {
				case 0:
					none.Add(1)
				case 1:
				default:
					doubles.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if doubles.Load() != 0 || none.Load() != 0 {
		t.Errorf("of %d races %d had two winners and %d none", f.Races, doubles.Load(), none.Load())
	}
}

// raceOnce gives how many of two first facts of a player were taken.
func raceOnce(t *testing.T, conns []Conn) int {
	p := NewID[events.PlayerID]()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var won atomic.Int64
	var wg sync.WaitGroup
	for _, c := range conns {
		m := Fact(t, transferOf(p), 0, &events.Requested{})
		wg.Go(func() {
			_, err := settle(ctx, c, m)
			if err == nil {
				won.Add(1)
			} else if failed, ok := errors.AsType[*events.AppendError](err); !ok || failed.Reason != events.Conflict {
				t.Errorf("race: %v", err)
			}
		})
	}
	wg.Wait()
	return int(won.Load())
}

// conflictsAreTyped: whatever code the store gives to the loser of a race, its caller sees
// a Conflict or that another append is InFlight.
func conflictsAreTyped(t *testing.T, s Store, _ Features) {
	const writers, keys = 24, 40
	conns := []Conn{s.Connect(t), s.Connect(t), s.Connect(t)}
	for range keys {
		key := newTransfer()
		var won atomic.Int64
		var wg sync.WaitGroup
		for i := range writers {
			m := Fact(t, key, 0, &events.Requested{})
			wg.Go(func() {
				_, err := conns[i%len(conns)].Append(t.Context(), m)
				if err == nil {
					won.Add(1)
					return
				}
				failed, ok := errors.AsType[*events.AppendError](err)
				if !ok || (failed.Reason != events.Conflict && failed.Reason != events.InFlight) {
					t.Errorf("loser got %v", err)
				} else if failed.Code != 0 && failed.Code != 10071 && failed.Code != 10164 {
					t.Errorf("loser got code %d", failed.Code)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d writers won key %s", won.Load(), key)
		}
	}
}
