package actors

import (
	"context"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// shelf reads the records of a memory.
type shelf struct{ *streamtest.Memory }

func (s shelf) Info(_ context.Context, b events.Bucket) (events.StreamState, error) {
	records := s.Memory.Records(b)
	if len(records) == 0 {
		return events.StreamState{First: 1}, nil
	}
	return events.StreamState{First: records[0].Seq, Last: records[len(records)-1].Seq}, nil
}

func (s shelf) Records(_ context.Context, b events.Bucket, after, upTo uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range s.Memory.Records(b) {
			if r.Seq > after && r.Seq <= upTo && !yield(r, nil) {
				return
			}
		}
	}
}

func newSealer(t *testing.T, mem *streamtest.Memory, id events.HostID, change func(*SealerConfig)) *Sealer {
	t.Helper()
	cfg := SealerConfig{
		Identity: identity(events.SourceEdge, id), Log: mem.Client(string(id)), Records: shelf{mem}, Logger: logger(t), Facts: 4, Every: time.Minute, Look: time.Second,
	}
	if change != nil {
		change(&cfg)
	}
	s, err := NewSealer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fill puts n facts into transfers.
func fill(t *testing.T, mem *streamtest.Memory, n int) {
	t.Helper()
	for range n {
		putFor(t, mem, streamtest.NewID[events.PlayerID](), streamtest.NewID[events.TransferID](), &events.Requested{Trigger: events.TriggerCommand, Name: "Someone"})
	}
}

// sealedIn gives the checkpoints of a log, after it has checked that they are a chain over all
// facts up to the last one's end.
func sealedIn(t *testing.T, mem *streamtest.Memory) (out []events.Checkpoint) {
	t.Helper()
	var before events.Checkpoint
	for _, r := range mem.Records(events.Checkpoints) {
		e, refusal := events.Open(streamtest.Keyring(), r)
		if refusal != nil {
			t.Fatal(refusal)
		}
		c := *e.Fact.(*events.Checkpoint)
		segment := events.NewSegment(before.Hash)
		for rec := range (shelf{mem}).Records(t.Context(), events.Transfers, c.From-1, c.To) {
			segment.Add(rec)
		}
		if !c.Follows(before) || c.Hash != segment.Hash() || c.Count != segment.Count() {
			t.Errorf("checkpoint %+v does not seal what follows %+v", c, before)
		}
		before = c
		out = append(out, c)
	}
	return out
}

// TestSealer: a checkpoint is due after so many facts, or so much time with facts in it; of
// two sealers each number is written once.
func TestSealer(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		ended := make(chan error, 2)
		for _, id := range []events.HostID{"e1", "e2"} {
			s := newSealer(t, mem, id, nil)
			go func() { ended <- s.Run(ctx) }()
		}
		passTime(2 * time.Minute)
		if got := sealedIn(t, mem); len(got) != 0 {
			t.Errorf("an empty log was sealed: %+v", got)
		}
		fill(t, mem, 3)
		passTime(3 * time.Second)
		if got := sealedIn(t, mem); len(got) != 1 || got[0].To != 3 {
			t.Errorf("what waited for longer than a minute: %+v", got)
		}
		fill(t, mem, 9)
		passTime(5 * time.Second)
		if got := sealedIn(t, mem); len(got) != 3 || got[2].To != 11 {
			t.Errorf("after twelve facts: %+v", got)
		}
		passTime(time.Minute + 3*time.Second)
		if got := sealedIn(t, mem); len(got) != 4 || got[3].To != 12 || got[3].Count != 1 {
			t.Errorf("the last one, later: %+v", got)
		}
		cancel()
		for range 2 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
	})
}

// TestSealerGoesOnAfterAnOutage: what was not acknowledged may stand all the same.
func TestSealerGoesOnAfterAnOutage(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		s := newSealer(t, mem, "e1", nil)
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		mem.Client("e1").LoseNextAck(1)
		fill(t, mem, 4)
		passTime(5 * time.Second)
		mem.Outage()
		passTime(10 * time.Second)
		mem.Restore()
		fill(t, mem, 4)
		passTime(15 * time.Second)
		if got := sealedIn(t, mem); len(got) != 2 || got[1].To != 8 {
			t.Errorf("%+v", got)
		}
		cancel()
		<-ended
	})
}

// TestSealerRemembers what it has seen, and says when the log no longer holds it.
func TestSealerRemembers(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		var kept events.Checkpoint
		var lost []string
		life := func(length time.Duration) {
			ctx, cancel := context.WithCancel(ctx)
			s := newSealer(t, mem, "e1", func(c *SealerConfig) {
				c.Remembered, c.Remember = kept, func(x events.Checkpoint) { kept = x }
				c.Lost = func(detail string) { lost = append(lost, detail) }
			})
			ended := make(chan error, 1)
			go func() { ended <- s.Run(ctx) }()
			passTime(length)
			cancel()
			<-ended
		}
		fill(t, mem, 8)
		life(5 * time.Second)
		if kept.Number != 2 || kept.To != 8 || len(lost) != 0 {
			t.Fatalf("remembers %+v, lost %q", kept, lost)
		}
		life(time.Second)
		if len(lost) != 0 {
			t.Errorf("the same log: %q", lost)
		}
		mem.Truncate(events.Checkpoints, 1)
		mem.Truncate(events.Transfers, 5)
		life(time.Second)
		if len(lost) != 1 {
			t.Errorf("a log that has lost its end: %q", lost)
		}
		fill(t, mem, 3)
		life(5 * time.Second)
		if got := sealedIn(t, mem); len(got) != 2 || kept != got[1] {
			t.Errorf("goes on with %+v, remembers %+v", got, kept)
		}
	})
}

// TestSealerStopsBehindAForgery: nobody begins another chain beside it.
func TestSealerStopsBehindAForgery(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		ctx, cancel := context.WithCancel(ctx)
		var lost []string
		s := newSealer(t, mem, "e1", func(c *SealerConfig) { c.Lost = func(detail string) { lost = append(lost, detail) } })
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx) }()
		fill(t, mem, 4)
		passTime(3 * time.Second)
		forged := streamtest.Fact(t, "2", 0, &events.Checkpoint{Number: 2, From: 5, To: 6, Count: 2, Hash: "00", Prev: "another"})
		mem.Inject(events.Checkpoints, forged.Key, forged.Header, forged.Body)
		fill(t, mem, 4)
		passTime(10 * time.Second)
		if s.Newest().Number != 1 || len(lost) != 1 || len(mem.Records(events.Checkpoints)) != 2 {
			t.Errorf("newest %+v, lost %q", s.Newest(), lost)
		}
		cancel()
		<-ended
	})
}

func TestNewSealerWantsItsPorts(t *testing.T) {
	if _, err := NewSealer(SealerConfig{}); err == nil {
		t.Error("a sealer without ports was made")
	}
}
