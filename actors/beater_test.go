package actors

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// beating makes a beater of dispatcher e1 in a life of its own, on a connection of its own.
func beating(t *testing.T, log Log, life events.HostID) *beater {
	id := identity(events.SourceEdge, "e1")
	id.Source.Incarnation = lifeOf(life)
	b := &beater{Identity: id, log: log, logger: logger(t), every: time.Second, key: events.ProxyKey("e1")}
	b.beat = func() events.Fact {
		return &events.ProxyBeat{Proxy: "e1", Incarnation: id.Source.Incarnation, State: events.Ready, Schema: events.SchemaVersion, Kinds: []events.SessionKind{events.KindEdge}}
	}
	return b
}

func beats(mem *streamtest.Memory) int { return len(mem.Records(events.Fleet)) }

// TestBeatTakesOver: the first beat of a new life replaces whoever beat before; the one that
// was replaced stops.
func TestBeatTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		old, young := beating(t, mem.Client("one"), "one"), beating(t, mem.Client("two"), "two")
		for range 3 {
			if err := old.once(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := young.once(ctx); err != nil {
			t.Fatalf("the first beat of a new life: %v", err)
		}
		if n := beats(mem); n != 4 {
			t.Errorf("%d beats, want 4", n)
		}
		if err := old.once(ctx); !errors.Is(err, ErrDuplicateID) {
			t.Errorf("the old life goes on: %v", err)
		}
		if err := young.once(ctx); err != nil {
			t.Errorf("the new life: %v", err)
		}
	})
}

// TestBeatRuns: it beats about once per interval, at once when it is asked to, and says
// goodbye when its context ends.
func TestBeatRuns(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		b := beating(t, mem.Client("one"), "one")
		soon := make(chan struct{}, 1)
		landed := 0
		b.now, b.landed = soon, func() { landed++ }
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- b.run(ctx) }()
		time.Sleep(10 * time.Second)
		synctest.Wait()
		n := beats(mem)
		if n < 9 || n > 12 || landed != n {
			t.Errorf("%d beats in 10 s, %d reported", n, landed)
		}
		soon <- struct{}{}
		synctest.Wait()
		if beats(mem) != n+1 {
			t.Error("no beat when asked for one")
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) || beats(mem) != n+2 {
			t.Errorf("ended with %v after %d beats, want a last one", err, beats(mem)-n-1)
		}
	})
}

// TestBeatStops: who is replaced returns ErrDuplicateID and writes nothing any more.
func TestBeatStops(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		b := beating(t, mem.Client("one"), "one")
		ended := make(chan error, 1)
		go func() { ended <- b.run(ctx) }()
		synctest.Wait()
		if err := beating(t, mem.Client("two"), "two").once(ctx); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, ErrDuplicateID) {
			t.Errorf("ended with %v, want ErrDuplicateID", err)
		}
		if n := beats(mem); n != 2 {
			t.Errorf("%d beats, want 2", n)
		}
	})
}

// TestBeatLostAck: the own beat, whose acknowledgement was lost, is not somebody else's.
func TestBeatLostAck(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		c := mem.Client("one")
		b := beating(t, c, "one")
		for i := range 6 {
			if i%2 == 1 {
				c.LoseNextAck(1)
			}
			if err := b.once(ctx); err != nil {
				t.Fatalf("beat %d: %v", i, err)
			}
		}
		if n := beats(mem); n < 5 {
			t.Errorf("%d beats landed", n)
		}
		b.once(ctx)
		if err := beating(t, mem.Client("two"), "two").once(ctx); err != nil {
			t.Fatal(err)
		}
		if err := b.once(ctx); !errors.Is(err, ErrDuplicateID) {
			t.Errorf("after an acknowledged beat another life is taken for the own: %v", err)
		}
	})
}

// TestBeatTwoLives: whatever is lost, the older of two lives of one id stops, and the newer
// one goes on.
func TestBeatTwoLives(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		c := mem.Client("one")
		one, two := beating(t, c, "one"), beating(t, mem.Client("two"), "two")
		one.once(ctx)
		c.FailAppend(events.Unknown, 1)
		one.once(ctx) // did not land, and nobody knows
		two.once(ctx) // takes over
		first, second := one.once(ctx), two.once(ctx)
		if !errors.Is(first, ErrDuplicateID) || second != nil {
			t.Errorf("the older life: %v, the newer one: %v", first, second)
		}
	})
}

// TestBeatStoreLostItsTail: an unsynced stream that forgot the last beats is no other life.
func TestBeatStoreLostItsTail(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		b := beating(t, mem.Client("one"), "one")
		for range 5 {
			b.once(ctx)
		}
		mem.Truncate(events.Fleet, 2)
		if err := b.once(ctx); err != nil {
			t.Fatalf("after the store lost beats: %v", err)
		}
		if n := beats(mem); n != 3 {
			t.Errorf("%d beats, want 3", n)
		}
	})
}

// denied is a log whose store lets nothing be written while it is set.
type denied struct {
	Log

	now atomic.Bool
}

func (d *denied) Append(ctx context.Context, m events.Message) (uint64, error) {
	if d.now.Load() {
		return 0, &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Err: errors.New("permissions violation")}
	}
	return d.Log.Append(ctx, m)
}

// A host that may read but not write, because its permission was taken, says so itself within two
// beats and once; when it may again its next beat lands, and those that did not are not made up
// for.
func TestCase085_AHostThatCannotBeatSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		store := &denied{Log: mem.Client("one")}
		b := beating(t, store, "one")
		var said bytes.Buffer
		b.logger = slog.New(slog.NewTextHandler(&said, nil))
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- b.run(ctx) }()
		passTime(5 * time.Second)
		before := beats(mem)
		store.now.Store(true)
		passTime(2500 * time.Millisecond)
		if n := strings.Count(said.String(), "heartbeats are not acknowledged"); n != 1 || !strings.Contains(said.String(), string(events.NotAllowed)) {
			t.Errorf("said %d times within two beats:\n%s", n, said.String())
		}
		passTime(time.Minute)
		if n := beats(mem); n != before {
			t.Fatalf("%d beats landed without the permission", n-before)
		}
		if n := strings.Count(said.String(), "heartbeats are not acknowledged"); n != 1 {
			t.Errorf("said %d times in a minute", n)
		}
		store.now.Store(false)
		back := time.Now()
		passTime(5 * time.Second)
		landed := mem.Records(events.Fleet)[before:]
		if len(landed) < 3 || len(landed) > 6 {
			t.Errorf("%d beats in the 5 s after it, those of a minute were missed", len(landed))
		}
		for _, r := range landed {
			if r.Stored.Before(back) {
				t.Errorf("sequence %d was stored before it might", r.Seq)
			}
		}
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestBeatOutage: nothing is decided while the store is away, and the first beat after it lands.
func TestBeatOutage(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		b := beating(t, mem.Client("one"), "one")
		b.once(ctx)
		mem.Outage()
		for range 3 {
			if err := b.once(ctx); err != nil {
				t.Fatalf("during an outage: %v", err)
			}
		}
		mem.Restore()
		if err := b.once(ctx); err != nil || beats(mem) != 2 {
			t.Errorf("after it: %v, %d beats", err, beats(mem))
		}
	})
}
