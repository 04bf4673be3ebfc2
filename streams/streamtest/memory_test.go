package streamtest

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
)

func TestMemoryConforms(t *testing.T) {
	Run(t, Factory{
		Features: Features{Cut: true, LoseAck: true, Outage: true, Replace: true, Expire: true},
		Open:     func(*testing.T) Store { return storeOf(NewMemory()) },
	})
}

// The store is a network away: what holds across faults may not rest on there being no delay.
func TestMemoryWithLatencyConforms(t *testing.T) {
	runBroken(t, Factory{
		Features: Features{Cut: true, LoseAck: true, Outage: true, Replace: true, Expire: true},
		Open:     func(*testing.T) Store { return storeOf(NewMemory(WithLatency(100 * time.Microsecond))) },
	})
}

func storeOf(m *Memory) Store {
	var hosts atomic.Int64
	return Store{
		Connect: func(*testing.T) Conn { return m.Client(strconv.FormatInt(hosts.Add(1), 10)) },
		Cut:     func(_ *testing.T, c Conn) { c.(*Client).Cut() },
		Heal:    func(_ *testing.T, c Conn) { c.(*Client).Heal() },
		LoseAck: func(_ *testing.T, c Conn) { c.(*Client).LoseNextAck(1) },
		Outage:  func(*testing.T) { m.Outage() },
		Restore: func(*testing.T) { m.Restore() },
		Replace: func(_ *testing.T, b events.Bucket, keep bool, messages []events.Message) {
			m.Replace(b, keep, messages)
		},
		Expire: func(_ *testing.T, b events.Bucket) { m.Expire(b, math.MaxUint64) },
	}
}

// bubble runs a test in fake time on a network whose store is 1 ms away.
func bubble(t *testing.T, test func(t *testing.T, m *Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, NewMemory(WithLatency(time.Millisecond))) })
}

func echo(_ context.Context, _ string, w events.Wire) events.Wire { return w }

func wantReason(t *testing.T, err error, want events.AppendReason) {
	t.Helper()
	if failed, ok := errors.AsType[*events.AppendError](err); !ok || failed.Reason != want {
		t.Fatalf("append: %v, want reason %q", err, want)
	}
}

func TestMemoryDelayedAppendLandsAfterItsCallerGaveUp(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		c := m.Client("e1")
		c.DelayAppend(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Append(ctx, Fact(t, newTransfer(), 0, &events.Requested{}))
		wantReason(t, err, events.Unknown)
		if n := len(m.Records(events.Transfers)); n != 0 {
			t.Fatalf("%d records before it arrived", n)
		}
		time.Sleep(2 * time.Second)
		if n := len(m.Records(events.Transfers)); n != 1 {
			t.Fatalf("%d records, want the one that was under way", n)
		}
	})
}

func TestMemoryCutUnderWayIsUnknown(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		c := m.Client("e1")
		c.DelayAppend(time.Second)
		time.AfterFunc(500*time.Millisecond, c.Cut)
		start := time.Now()
		_, err := c.Append(t.Context(), Fact(t, newTransfer(), 0, &events.Requested{}))
		wantReason(t, err, events.Unknown)
		if d := time.Since(start); d != 500*time.Millisecond {
			t.Errorf("known after %v, want at the cut", d)
		}
		_, err = c.Append(t.Context(), Fact(t, newTransfer(), 0, &events.Requested{}))
		wantReason(t, err, events.Unavailable)
	})
}

func TestMemoryInjectedFailuresStoreNothing(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		c := m.Client("e1")
		fact := Fact(t, newTransfer(), 0, &events.Requested{})
		for _, reason := range []events.AppendReason{events.InFlight, events.StreamIsFull, events.Unknown} {
			c.FailAppend(reason, 2)
			for range 2 {
				_, err := c.Append(t.Context(), fact)
				wantReason(t, err, reason)
			}
		}
		if n := len(m.Records(events.Transfers)); n != 0 {
			t.Fatalf("%d records", n)
		}
		mustAppend(t, c, fact)
	})
}

func TestMemoryStoppedHostIsHeldAndServedAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		asker, host := m.Client("asker"), m.Client("host")
		var handled atomic.Int64
		server := serve(t, host, asker, "a.*", "q", func(context.Context, string, events.Wire) events.Wire {
			handled.Store(time.Now().UnixNano())
			return events.Wire{}
		})
		f := follow(t, host, events.Transfers, events.TailStart{})
		f.waitCalls(t, "live", 1)
		host.Stop()
		start := time.Now()
		time.AfterFunc(10*time.Second, host.Resume)
		seq := mustAppend(t, asker, Fact(t, newTransfer(), 0, &events.Requested{}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := asker.Ask(ctx, "a.b", events.Wire{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ask of a stopped host: %v", err)
		}
		if f.count("record") != 0 || handled.Load() != 0 {
			t.Error("something was delivered to a stopped host")
		}
		mustAppend(t, host, Fact(t, newTransfer(), 0, &events.Requested{}))
		if d := time.Since(start); d < 10*time.Second {
			t.Errorf("a stopped host's append returned after %v", d)
		}
		f.waitFor(t, seq)
		synctest.Wait()
		if d := time.Unix(0, handled.Load()).Sub(start); d != 10*time.Second {
			t.Errorf("handled after %v, want at the resume", d)
		}
		server.stop(t)
	})
}

// What a host has sent before it is stopped goes on at the store.
func TestMemoryStopDoesNotTakeBackWhatWasSent(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		c := m.Client("e1")
		c.DelayAppend(time.Second)
		done := make(chan error, 1)
		go func() {
			_, err := c.Append(t.Context(), Fact(t, newTransfer(), 0, &events.Requested{}))
			done <- err
		}()
		time.Sleep(10 * time.Millisecond)
		c.Stop()
		time.Sleep(5 * time.Second)
		if len(m.Records(events.Transfers)) != 1 {
			t.Error("it did not land")
		}
		select {
		case err := <-done:
			t.Errorf("a stopped host's append returned: %v", err)
		default:
		}
		c.Resume()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestMemoryLosesRequestsAndAnswers(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		asker := m.Client("asker")
		var handled atomic.Int64
		serve(t, m.Client("host"), asker, "landfall.backend.b.move", "", func(context.Context, string, events.Wire) events.Wire {
			handled.Add(1)
			return events.Wire{}
		})
		isMove := func(subject string) bool { return subject == "landfall.backend.b.move" }
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := asker.Ask(ctx, "landfall.backend.b.move", events.Wire{})
			return err
		}
		m.DropRequest(isMove, 1)
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) || handled.Load() != 0 {
			t.Errorf("lost request: %v, handled %d times", err, handled.Load())
		}
		m.LoseAnswer(isMove, 1)
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) || handled.Load() != 1 {
			t.Errorf("lost answer: %v, handled %d times", err, handled.Load())
		}
		if err := ask(); err != nil || handled.Load() != 2 {
			t.Errorf("afterwards: %v, handled %d times", err, handled.Load())
		}
	})
}

func TestMemoryServeEndsWithWhatHasArrived(t *testing.T) {
	for name, want := range map[string]int64{"ended": 3, "killed": 1} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, m *Memory) {
				host, asker := m.Client("host"), m.Client("asker")
				var handled atomic.Int64
				server := serve(t, host, asker, "a.b", "", func(context.Context, string, events.Wire) events.Wire {
					handled.Add(1)
					return events.Wire{}
				})
				if err := askBriefly(t, asker, "a.b", events.Wire{}); err != nil {
					t.Fatal(err)
				}
				host.Stop()
				for range 2 {
					if err := askBriefly(t, asker, "a.b", events.Wire{}); err == nil {
						t.Fatal("a stopped host answered")
					}
				}
				if name == "ended" {
					host.set(func() { // both at once
						host.stopped = false
						server.cancel()
					})
				}
				server.stop(t)
				if n := handled.Load(); n != want {
					t.Errorf("%d requests handled, want %d", n, want)
				}
			})
		})
	}
}

func TestMemoryOutageTakesTheBusToo(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		asker := m.Client("asker")
		serve(t, m.Client("host"), asker, "a.b", "", echo)
		m.Outage()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := asker.Ask(ctx, "a.b", events.Wire{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("ask: %v", err)
		}
		if err := asker.Announce(t.Context(), "a.c", events.Wire{}); err == nil {
			t.Error("news went out without a store")
		}
		if _, _, err := asker.Last(t.Context(), events.Transfers, newTransfer()); err == nil {
			t.Error("last answered without a store")
		}
		m.Restore()
		if _, err := asker.Ask(t.Context(), "a.b", events.Wire{}); err != nil {
			t.Errorf("ask afterwards: %v", err)
		}
	})
}

func TestMemoryQueueIsShared(t *testing.T) {
	m := NewMemory(WithSeed(7))
	asker := m.Client("asker")
	var handled [3]atomic.Int64
	for i := range handled {
		serve(t, m.Client(strconv.Itoa(i)), asker, "a.b", "q", func(context.Context, string, events.Wire) events.Wire {
			handled[i].Add(1)
			return events.Wire{}
		})
	}
	for range 300 {
		if _, err := asker.Ask(t.Context(), "a.b", events.Wire{}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range handled {
		if n := handled[i].Load(); n < 60 {
			t.Errorf("server %d of 3 was chosen %d times of 300", i, n)
		}
	}
}

func TestMemoryTimesAndStrayRecords(t *testing.T) {
	bubble(t, func(t *testing.T, m *Memory) {
		c := m.Client("e1")
		start, key := time.Now(), newTransfer()
		mustAppend(t, c, Fact(t, key, 0, &events.Requested{}))
		if d := time.Since(start); d != 2*time.Millisecond {
			t.Errorf("an append took %v, want there and back", d)
		}
		m.StepClock(-time.Hour)
		stray := m.Inject(events.Transfers, key, events.Header{"KV-Operation": "DEL"}, nil)
		checkConflict(t, mustFail(t, c, Fact(t, key, 1, &events.Failed{}), events.Conflict), stray)
		records := m.Records(events.Transfers)
		if len(records) != 2 || !records[0].Stored.Equal(start.Add(time.Millisecond)) || !records[1].Stored.Before(start) {
			t.Errorf("records %+v", records)
		}
		if !records[1].EventID().IsZero() {
			t.Error("a stray marker has an event id")
		}
	})
}

func TestSubjectMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, subject string
		want             bool
	}{
		{"a.b", "a.b", true}, {"a.b", "a.c", false}, {"a.b", "a.b.c", false}, {"a.b.c", "a.b", false},
		{"a.*", "a.b", true}, {"a.*", "a", false}, {"*.b", "a.b", true}, {"a.*", "a.b.c", false},
		{"a.>", "a.b.c", true}, {"a.>", "a", false}, {">", "a", true}, {"a.*.c", "a.b.c", true},
	} {
		if got := matches(c.pattern, c.subject); got != c.want {
			t.Errorf("%s matches %s: %v", c.pattern, c.subject, got)
		}
	}
}
