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

func TestMemoryLateAppendLandsAfterTheCallerGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(WithLatency(time.Millisecond))
		c := m.Client("e1")
		c.DelayAppend(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := c.Append(ctx, Fact(t, newTransfer(), 0, &events.Requested{}))
		wantReason(t, err, events.Unknown)
		time.Sleep(2 * time.Second)
		if n := len(m.Records(events.Transfers)); n != 1 {
			t.Fatalf("%d records, want the one that was under way", n)
		}
	})
}

func TestMemoryStoppedHostIsHeldAndServedAfterwards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(WithLatency(time.Millisecond))
		asker, server := m.Client("asker"), m.Client("server")
		ctx, cancel := context.WithCancel(t.Context())
		handled := make(chan time.Time, 1)
		ended := make(chan error, 1)
		ready := make(chan struct{})
		go func() {
			ended <- server.Serve(ctx, "a.*", "q", func() { close(ready) }, func(context.Context, string, events.Wire) events.Wire {
				handled <- time.Now()
				return events.Wire{}
			})
		}()
		<-ready
		server.Stop()
		start := time.Now()
		short, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		if _, err := asker.Ask(short, "a.b", events.Wire{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("ask of a stopped host: %v", err)
		}
		server.Resume()
		if at := <-handled; at.Sub(start) < time.Second {
			t.Fatalf("handled %v after the request, while stopped", at.Sub(start))
		}
		cancel()
		<-ended
	})
}

func TestMemoryConforms(t *testing.T) {
	Run(t, Factory{
		Features: Features{Cut: true, LoseAck: true, Outage: true, Replace: true, Expire: true},
		Open:     func(*testing.T) Store { return storeOf(NewMemory()) },
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

func wantReason(t *testing.T, err error, want events.AppendReason) *events.AppendError {
	t.Helper()
	failed, ok := errors.AsType[*events.AppendError](err)
	if !ok || failed.Reason != want {
		t.Fatalf("append: %v, want reason %q", err, want)
	}
	return failed
}
