package projections

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// Ready while connected and caught up, not before, not while blind.
func TestReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).fill()
		if w.view.Ready() {
			t.Error("ready before it ran")
		}
		w.run().live()
		if !w.view.Ready() || !w.view.Fleet().Live {
			t.Error("not ready though live")
		}
		for _, fault := range []struct{ begin, end func() }{{w.reader.Cut, w.reader.Heal}, {w.mem.Outage, w.mem.Restore}} {
			fault.begin()
			synctest.Wait()
			if w.view.Ready() || w.view.Fleet().Live {
				t.Error("ready while blind")
			}
			if w.view.Player(steve).Active == nil || !w.view.Controls().Killed {
				t.Error("blind, it lost what it knew")
			}
			fault.end()
			synctest.Wait()
			if !w.view.Ready() || !w.view.Fleet().Live {
				t.Error("not ready again")
			}
		}
		w.stop()
	})
}

// A log that is not the one that was folded, though its name is the same and nothing is left to
// read: that is said, everything is dropped and folded anew.
func TestCase088_ALogMadeAnewIsAnotherOne(t *testing.T) {
	cases := map[string]struct {
		fork func(w *watch)
		want Phase // of steve's transfer afterwards; empty: none
	}{
		"made again": {func(w *watch) { w.mem.Recreate(events.Transfers) }, ""},
		"shorter":    {func(w *watch) { w.mem.Truncate(events.Transfers, 1) }, Requested},
		"another fact at the place": {func(w *watch) {
			w.guards[events.Transfers.Guard(events.TransferKey(steve, first))] = 1
			m := w.seal(events.TransferKey(steve, first), &events.Waitlisted{})
			w.mem.Rewrite(events.Transfers, 2, events.Record{Key: m.Key, Header: m.Header, Body: m.Body})
		}, Waiting},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t).fill()
				var said bytes.Buffer
				w.view.cfg.Logger = slog.New(slog.NewTextHandler(&said, nil))
				w.run().live()
				c.fork(w)
				synctest.Wait()
				if n := strings.Count(said.String(), "level=ERROR"); n != 1 || !strings.Contains(said.String(), "the log is not the one that was folded") {
					t.Errorf("%d alarms:\n%s", n, said.String())
				}
				p := w.view.Player(steve)
				if (c.want == "") != (p.Active == nil) || p.Active != nil && p.Active.Phase != c.want {
					t.Errorf("%+v", p)
				}
				resets := 0
				for _, change := range w.changes {
					if change.Bucket == events.Transfers && change.Reset {
						resets++
					}
				}
				if resets != 2 || !w.view.Ready() {
					t.Errorf("%d resets, ready %v", resets, w.view.Ready())
				}
				records := w.mem.Records(events.Transfers)
				if got := w.view.Folded(); got != uint64(len(records)) {
					t.Errorf("folded %d of %d", got, len(records))
				}
				w.guards = map[string]uint64{events.Transfers.Guard(events.TransferKey(alex, next)): 0}
				w.of(alex, next, requested())
				synctest.Wait()
				if w.view.Player(alex).Active == nil {
					t.Error("what came after the fork was not folded")
				}
				w.stop()
			})
		})
	}
}

// While a tail that starts from the newest fact of each key begins again, readers see the
// whole of the old state or the whole of the new one, never half.
func TestNothingIsHalfVisible(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		players := make([]events.PlayerID, 50)
		for i := range players {
			players[i] = id[events.PlayerID](byte(i + 1)) //nolint:gosec // small
			w.put(players[i].String(), opened("a"))
		}
		w.put(events.KillKey, &events.KillSet{On: true})
		w.put("drain.a", &events.DrainSet{Host: "a", On: true})
		w.run().live()
		var looked atomic.Int64
		w.mu.Lock()
		w.look = func(c Change) {
			looked.Add(1)
			onA, onB := 0, 0
			sessions := w.view.Sessions() // in one look: another bucket's fold calls this, too
			for _, p := range players {
				switch sessions[p].Server {
				case "a":
					onA++
				case "b":
					onB++
				}
			}
			if onA != len(players) && onB != len(players) {
				t.Errorf("at %s %d: %d on a, %d on b of %d", c.Bucket, c.Seq, onA, onB, len(players))
			}
			if controls := w.view.Controls(); !controls.Killed || !controls.IsDrained("a") {
				t.Errorf("at %s %d: %+v", c.Bucket, c.Seq, controls)
			}
		}
		w.mu.Unlock()
		w.reader.Cut()
		synctest.Wait()
		for _, p := range players {
			w.put(p.String(), opened("b"))
		}
		w.reader.Heal()
		synctest.Wait()
		if s, _ := w.view.Session(players[49]); s.Server != "b" || looked.Load() < 50 || !w.view.Ready() {
			t.Errorf("%+v after %d looks", s, looked.Load())
		}
		w.stop()
	})
}

// A control bucket that was made again has no old decisions in it, and a drain that is no
// longer there is not remembered.
func TestControlsAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).fill().run().live()
		w.mem.Recreate(events.Control)
		synctest.Wait()
		if w.view.Controls().Killed {
			t.Error("the kill switch of another log is on")
		}
		w.stop()
	})
}

// After a reconnect the old snapshot stays, and only grows older, until newer beats come.
func TestFleetKeepsTheOldSnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).fill()
		w.put("backend.c", beat("c", lifeB2, 0))
		w.run().live()
		w.mu.Lock()
		w.look = func(c Change) {
			if f := w.view.Fleet(); f.Backend("b") == nil || f.Backend("c") == nil {
				t.Errorf("at %s %d: %d backends", c.Bucket, c.Seq, len(f.Backends))
			}
		}
		w.mu.Unlock()
		seen := w.view.Fleet().Backend("b").Seen
		time.Sleep(5 * time.Second)
		w.mem.Outage()
		synctest.Wait()
		time.Sleep(10 * time.Second)
		w.mem.Restore()
		synctest.Wait()
		f := w.view.Fleet()
		if got := f.Backend("b").Seen; !got.Equal(seen) {
			t.Errorf("a beat that was read again became younger by %v", got.Sub(seen))
		}
		if f.Silence(seen, time.Now()) != 0 || f.Sighted(time.Now(), time.Minute, time.Second) {
			t.Error("what was missed while blind counts as silence")
		}
		time.Sleep(2 * time.Second)
		if f.Silence(seen, time.Now()) != 2*time.Second || !f.Sighted(time.Now(), time.Minute, time.Second) {
			t.Errorf("silent for %v", f.Silence(seen, time.Now()))
		}
		w.mem.Recreate(events.Fleet) // a stream in memory, after its server's restart
		synctest.Wait()
		if f := w.view.Fleet(); f.Backend("b") == nil || f.Seq != 0 {
			t.Errorf("%+v", f)
		}
		w.stop()
	})
}

// The age of a fact is what the stream's clock says while catching up, and this reader's own
// from then on. The two clocks need not agree about anything but lengths.
func TestAges(t *testing.T) {
	for name, skew := range map[string]time.Duration{"same clock": 0, "store behind": -48 * time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t)
				w.mem.StepClock(skew)
				w.of(steve, first, requested())
				time.Sleep(30 * time.Second)
				w.of(steve, first, reserved(1))
				w.put("backend.b", beat("b", lifeB, 0))
				time.Sleep(10 * time.Second)
				w.run().live()
				age := func(at time.Time) time.Duration { return time.Since(at) }
				x := w.view.Player(steve).Active.Seen
				if age(x.Requested) != 40*time.Second || age(x.Reserved) != 10*time.Second || age(w.view.Fleet().Backend("b").Seen) != 10*time.Second {
					t.Errorf("caught up: ages %v and %v", age(x.Requested), age(x.Reserved))
				}
				w.of(steve, first, claimed(1))
				synctest.Wait()
				if got := w.view.Player(steve).Active.Seen.Claimed; age(got) != 0 {
					t.Errorf("live: age %v", age(got))
				}
				time.Sleep(100 * time.Second)
				w.reader.Cut()
				synctest.Wait()
				time.Sleep(5 * time.Second)
				w.of(steve, first, transferred(1))
				time.Sleep(7 * time.Second)
				w.reader.Heal()
				synctest.Wait()
				if got := w.view.Player(steve).Active.Seen; age(got.Moved) != 7*time.Second || age(got.Claimed) != 112*time.Second {
					t.Errorf("after an outage: ages %v and %v", age(got.Moved), age(got.Claimed))
				}
				w.stop()
			})
		})
	}
}

// A clock of the store that steps back gives no fact an age below zero.
func TestAgeIsNeverNegative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		w.of(steve, first, requested())
		w.mem.StepClock(-time.Hour)
		w.run().live()
		if got := w.view.Player(steve).Active.Seen.Requested; got.After(time.Now()) {
			t.Errorf("seen %v in the future", time.Until(got))
		}
		w.stop()
	})
}

// Changes name what was folded, in order, each after the fold shows it.
func TestChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).run().live()
		synctest.Wait()
		w.mu.Lock()
		w.look = func(c Change) {
			if c.Bucket == events.Transfers && c.Seq > 0 && w.view.Player(c.Player).Guard != c.Seq {
				t.Errorf("told of %d before it was folded", c.Seq)
			}
		}
		w.changes = nil
		w.mu.Unlock()
		w.fill()
		synctest.Wait()
		var transfers []uint64
		for _, c := range w.changes {
			if c.Bucket == events.Transfers {
				transfers = append(transfers, c.Seq)
				if c.Player != steve || c.Event.Fact == nil {
					t.Errorf("%+v", c)
				}
			}
			if c.Bucket == events.Sessions && c.Player != steve {
				t.Errorf("%+v", c)
			}
		}
		if !slices.Equal(transfers, []uint64{1, 2}) {
			t.Errorf("told of %v", transfers)
		}
		w.stop()
	})
}

// A view boots to readiness while somebody writes as fast as the store takes it: it waits
// for the end as it was at the start, which a busy stream reaches.
func TestBootUnderFullLoad(t *testing.T) {
	const facts = 20_000
	w := newWatch(t)
	serial := 0
	journey := func() {
		serial++
		player := events.PlayerID{0: 1, 14: byte(serial >> 8), 15: byte(serial)}
		w.of(player, streamtest.NewID[events.TransferID](), requested(), &events.Cancelled{Code: events.GraceOver})
	}
	for range facts / 2 {
		journey()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	writing.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				journey()
			}
		}
	})
	w.run()
	if err := w.view.WaitLive(ctx); err != nil || !w.view.Ready() {
		t.Errorf("ready %v, %v", w.view.Ready(), err)
	}
	if w.view.Folded() < facts {
		t.Errorf("ready at %d of %d", w.view.Folded(), facts)
	}
	close(stop)
	writing.Wait()
	records := w.mem.Records(events.Transfers)
	if err := w.view.WaitFolded(ctx, events.Transfers, uint64(len(records))); err != nil {
		t.Error(err)
	}
	w.stop()
	if len(w.problems) != 0 {
		t.Errorf("%d problems, the first %+v", len(w.problems), w.problems[0])
	}
}
