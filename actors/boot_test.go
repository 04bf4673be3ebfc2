package actors

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// late is a log of which one bucket cannot be read before the test says so.
type late struct {
	*streamtest.Client
	bucket   events.Bucket
	open     chan struct{}
	appended atomic.Int64
}

func (l *late) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	if b == l.bucket {
		select {
		case <-l.open:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return l.Client.Tail(ctx, b, from, f)
}

func (l *late) Append(ctx context.Context, m events.Message) (uint64, error) {
	l.appended.Add(1)
	return l.Client.Append(ctx, m)
}

// TestNothingIsWrittenBeforeTheFoldsAreCurrent (P10): a dispatcher with an empty fold would
// take a player who is on the way for one who is not, and end nothing it should. So it writes
// nothing, not even a heartbeat, and answers nobody before each of its folds has caught up.
func TestNothingIsWrittenBeforeTheFoldsAreCurrent(t *testing.T) {
	for _, b := range []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Fleet} {
		t.Run(string(b), func(t *testing.T) {
			bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
				putFor(t, mem, steve, first, requested()) // long overdue when the dispatcher sees it
				cfg := dispatcherConfig(t, mem)
				log := &late{Client: mem.Client("e1"), bucket: b, open: make(chan struct{})}
				cfg.Log = log
				d, err := NewDispatcher(cfg)
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(ctx)
				ended := make(chan error, 1)
				go func() { ended <- d.Run(ctx) }()
				d.Opened(Connection{ID: 1, Name: "Alex", Player: events.OfflinePlayer("Alex"), Server: "b", Protocol: 767})
				time.Sleep(10 * time.Minute)
				synctest.Wait()
				if n := log.appended.Load(); n != 0 || d.Ready() {
					t.Errorf("%d appends, ready %v: before %s was folded", n, d.Ready(), b)
				}
				if _, err := mem.Client("b").Ask(ctx, events.AskOf("b", events.VerbState), events.Wire{}); !errors.Is(err, events.ErrNobody) {
					t.Errorf("a dispatcher without %s answers: %v", b, err)
				}
				close(log.open)
				eventually(t, "ready", d.Ready)
				eventually(t, "the overdue transfer has an end", func() bool { return len(d.View().Active()) == 0 })
				cancel()
				if err := <-ended; !errors.Is(err, context.Canceled) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}
