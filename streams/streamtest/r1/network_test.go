package r1_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// TestConformance: the faults leave the contract of the log and the bus as it is.
func TestConformance(t *testing.T) {
	streamtest.Run(t, streamtest.Factory{
		Features: streamtest.Features{Cut: true, Outage: true, Races: 50, Tokens: 50},
		Open: func(t *testing.T) streamtest.Store {
			roles := map[events.HostID]streams.Role{}
			for i := range 200 {
				roles[events.HostID(fmt.Sprintf("host%d", i))] = streams.RoleOperator // it beats in many names
			}
			n := r1.Open(t, t.TempDir(), 0, roles)
			t.Cleanup(n.Close)
			var next atomic.Int64
			return streamtest.Store{
				Connect: func(*testing.T) streamtest.Conn { return n.Client(fmt.Sprintf("host%d", next.Add(1)-1)) },
				Cut:     func(_ *testing.T, c streamtest.Conn) { c.(*r1.Client).Cut() },  //nolint:forcetypeassert // made above
				Heal:    func(_ *testing.T, c streamtest.Conn) { c.(*r1.Client).Heal() }, //nolint:forcetypeassert // made above
				Outage:  func(*testing.T) { n.Outage() },
				Restore: func(*testing.T) { n.Restore() },
			}
		},
	})
}

// bubbled runs a test body in fake time on a network with the dispatcher "e" and the backend "b".
func bubbled(t *testing.T, body func(t *testing.T, n *r1.Network)) {
	t.Helper()
	dir := t.TempDir()
	r1.ForgetTimers()
	defer r1.ForgetTimers()
	synctest.Test(t, func(t *testing.T) {
		n := r1.Open(t, dir, 10*time.Millisecond, map[events.HostID]streams.Role{"e": streams.RoleDispatcher, "b": streams.RoleBackend})
		defer n.Close()
		body(t, n)
	})
}

func request(t *testing.T) events.Message {
	return streamtest.Fact(t, events.TransferKey(events.OfflinePlayer("Steve"), streamtest.NewID[events.TransferID]()), 0, &events.Requested{})
}

func reason(err error) events.AppendReason {
	if failed, ok := errors.AsType[*events.AppendError](err); ok {
		return failed.Reason
	}
	return ""
}

func TestEverythingTakesAWhile(t *testing.T) {
	bubbled(t, func(t *testing.T, n *r1.Network) {
		e := n.Client("e")
		if _, _, err := e.Last(t.Context(), events.Transfers, "k"); err != nil { // it stands now
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := e.Append(t.Context(), request(t)); err != nil || time.Since(began) != 20*time.Millisecond {
			t.Errorf("%v after %s, want 20 ms", err, time.Since(began))
		}
	})
}

// TestAppendFaults: what each fault tells the caller, and what it leaves in the log.
func TestAppendFaults(t *testing.T) {
	for name, row := range map[string]struct {
		fault  func(e *r1.Client)
		reason events.AppendReason
		stored int
	}{
		"lost acknowledgement": {func(e *r1.Client) { e.LoseNextAck(1) }, events.Unknown, 1},
		"refused":              {func(e *r1.Client) { e.FailAppend(events.InFlight, 1) }, events.InFlight, 0},
		"late, given up":       {func(e *r1.Client) { e.DelayAppend(3 * time.Second) }, events.Unknown, 1},
		"late":                 {func(e *r1.Client) { e.DelayAppend(time.Second) }, "", 1},
		"stopped":              {func(e *r1.Client) { e.Stop() }, events.Unavailable, 0},
		"stopped on the way": {func(e *r1.Client) {
			time.AfterFunc(15*time.Millisecond, e.Stop)
		}, events.Unknown, 1},
		"cut on the way back": {func(e *r1.Client) {
			time.AfterFunc(15*time.Millisecond, e.Cut)
		}, events.Unknown, 1},
		"cut before": {func(e *r1.Client) { e.Cut() }, events.Unavailable, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubbled(t, func(t *testing.T, n *r1.Network) {
				e := n.Client("e")
				if _, _, err := e.Last(t.Context(), events.Transfers, "k"); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
				defer cancel()
				row.fault(e)
				synctest.Wait()
				if _, err := e.Append(ctx, request(t)); reason(err) != row.reason {
					t.Errorf("told %v, want %q", err, row.reason)
				}
				e.Resume()
				e.Heal()
				time.Sleep(5 * time.Second)
				if got := len(n.Records(events.Transfers)); got != row.stored {
					t.Errorf("%d stored, want %d", got, row.stored)
				}
			})
		})
	}
}

// TestRequestsGetLost: a request that does not arrive, and an answer that does not.
func TestRequestsGetLost(t *testing.T) {
	bubbled(t, func(t *testing.T, n *r1.Network) {
		subject := events.ToBackend("b", events.VerbTell)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		handled, ready, ended := 0, make(chan struct{}), make(chan error)
		go func() {
			ended <- n.Client("b").Serve(ctx, subject, "", func() { close(ready) }, func(context.Context, string, events.Wire) events.Wire {
				handled++
				return events.Wire{Body: []byte("heard")}
			})
		}()
		<-ready
		ask := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := n.Client("e").Ask(ctx, subject, events.Wire{Body: []byte("hear")})
			return err
		}
		match := func(s string) bool { return s == subject }
		n.DropRequest(match, 1)
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) || handled != 0 {
			t.Errorf("dropped: %v, handled %d", err, handled)
		}
		n.LoseAnswer(match, 1)
		if err := ask(); !errors.Is(err, context.DeadlineExceeded) || handled != 1 {
			t.Errorf("answer lost: %v, handled %d", err, handled)
		}
		if err := ask(); err != nil || handled != 2 {
			t.Errorf("afterwards: %v, handled %d", err, handled)
		}
		cancel()
		<-ended
	})
}

// TestRecordsThroughAnOutage: what was stored is there after the store was away, and known meanwhile.
func TestRecordsThroughAnOutage(t *testing.T) {
	bubbled(t, func(t *testing.T, n *r1.Network) {
		if _, err := n.Client("e").Append(t.Context(), request(t)); err != nil {
			t.Fatal(err)
		}
		before := len(n.Records(events.Transfers))
		n.Outage()
		during := len(n.Records(events.Transfers))
		n.Restore()
		time.Sleep(5 * time.Second)
		if after := len(n.Records(events.Transfers)); before != 1 || during != 1 || after != 1 {
			t.Errorf("%d, %d, %d records before, during and after it", before, during, after)
		}
	})
}
