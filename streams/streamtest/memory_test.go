package streamtest

import (
	"context"
	"errors"
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
		_, err := c.Append(ctx, Fact(t, transferKey(), 0, &events.Requested{}))
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

func transferKey() string {
	return events.TransferKey(NewID[events.PlayerID](), NewID[events.TransferID]())
}

func wantReason(t *testing.T, err error, want events.AppendReason) *events.AppendError {
	t.Helper()
	failed, ok := errors.AsType[*events.AppendError](err)
	if !ok || failed.Reason != want {
		t.Fatalf("append: %v, want reason %q", err, want)
	}
	return failed
}
