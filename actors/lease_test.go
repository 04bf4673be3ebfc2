package actors

import (
	"context"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// leases runs a test with two dispatchers that want the same job.
func leases(t *testing.T, body func(ctx context.Context, one, two *lease, mem *streamtest.Memory)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		of := func(id events.HostID) *lease {
			return &lease{d: newSeer(t, ctx, mem, id).Dispatcher, name: "a job", ttl: 15 * time.Second}
		}
		body(ctx, of("e1"), of("e2"), mem)
	})
}

// One has the lease as long as it prolongs it; when it does not, another one has it, and the
// first finds out.
func TestLeaseIsHeldRenewedAndLost(t *testing.T) {
	leases(t, func(ctx context.Context, one, two *lease, mem *streamtest.Memory) {
		for range 20 {
			if !one.take(ctx) || two.take(ctx) {
				t.Fatal("one has it: one alone may have it")
			}
			passTime(4 * time.Second)
		}
		if n := len(mem.Records(events.Leases)); n != 1 {
			t.Errorf("%d records of one lease", n)
		}
		passTime(15 * time.Second) // one is stopped for longer than its lease
		if !two.take(ctx) {
			t.Fatal("nobody holds it, and two does not get it")
		}
		if one.take(ctx) {
			t.Error("one prolonged what it had lost")
		}
		one.held, one.last = true, 1 // it believes in it for longer
		one.giveBack(ctx)
		if passTime(6 * time.Second); !two.take(ctx) || one.take(ctx) {
			t.Error("two lost its lease to somebody who gave it back late")
		}
	})
}

func TestLeaseThatIsGivenBackIsFreeAtOnce(t *testing.T) {
	leases(t, func(ctx context.Context, one, two *lease, _ *streamtest.Memory) {
		ended, cancel := context.WithCancel(ctx)
		one.take(ended)
		cancel()
		one.giveBack(ended) // also by a dispatcher that ends
		if !two.take(ctx) || one.take(ctx) {
			t.Error("it was given back, and two does not have it")
		}
	})
}

// While the log is away the holder keeps the job, for as long as nobody else can have it.
func TestLeaseWhileTheLogIsAway(t *testing.T) {
	leases(t, func(ctx context.Context, one, two *lease, mem *streamtest.Memory) {
		one.take(ctx)
		mem.Outage()
		if passTime(6 * time.Second); !one.take(ctx) || two.take(ctx) {
			t.Error("the holder has lost it, or another one has it")
		}
		if passTime(9 * time.Second); one.take(ctx) {
			t.Error("the holder believes in it for longer than it lasts")
		}
		mem.Restore()
		if passTime(time.Minute); !two.take(ctx) {
			t.Error("nobody gets it any more")
		}
	})
}
