package projections

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases that others reported of programs which do this job, as far as the folds alone answer for
// them. The number is that of the case in our list.

// shadow is the line as a list, kept by hand beside the log.
type shadow struct {
	t      *testing.T
	ctx    context.Context
	writer *streamtest.Client
	rnd    *rand.Rand
	last   map[events.PlayerID]uint64
	next   int
	line   []member // who waits, in the order of the first request
	out    []member // who has a token
}

type member struct {
	n       int
	place   uint64
	attempt int
	told    bool
}

func (s *shadow) write(n int, fact events.TransferFact) uint64 {
	p := someone(n)
	seq, err := s.writer.Append(s.ctx, streamtest.Seal(s.t, events.Envelope{
		ID: streamtest.NewID[events.EventID](), Source: streamtest.Source(events.SourceEdge, "e1"), Time: time.Now(),
		Key: events.TransferKey(p, transferOf(n)), Correlation: transferOf(n), Prev: s.last[p],
	}, fact))
	if err != nil {
		s.t.Fatal(err)
	}
	s.last[p] = seq
	return seq
}

// step does one thing that a player, a destination or a deadline may do.
func (s *shadow) step() {
	pick := func(list []member) int { return s.rnd.IntN(len(list)) }
	switch what := s.rnd.IntN(10); {
	case what < 4 || len(s.line) == 0:
		s.next++
		place := s.write(s.next, &events.Requested{Trigger: events.TriggerCommand, Wish: events.Wish{Region: []string{"", "east", "west"}[s.next%3]}})
		s.line = append(s.line, member{n: s.next, place: place})
	case what < 6: // a place is given, mostly to the first
		i := min(pick(s.line), pick(s.line), pick(s.line))
		x := s.line[i]
		x.attempt++
		s.write(x.n, &events.Reserved{Attempt: x.attempt, Server: "b", Region: "east", Decision: events.Decision{Candidates: []events.Candidate{}, Filtered: []events.Filtered{}}})
		s.line, s.out = slices.Delete(s.line, i, i+1), append(s.out, x)
	case what < 7: // somebody leaves
		i := pick(s.line)
		s.write(s.line[i].n, &events.Cancelled{Code: events.Cancel})
		s.line = slices.Delete(s.line, i, i+1)
	case what < 8: // somebody is told to wait
		if i := pick(s.line); !s.line[i].told {
			s.write(s.line[i].n, &events.Waitlisted{Decision: events.Decision{Candidates: []events.Candidate{}, Filtered: []events.Filtered{}}})
			s.line[i].told = true
		}
	case len(s.out) == 0:
	default:
		s.settle(pick(s.out), what == 8)
	}
}

// settle ends a token: its player is back in line at the old place, or gone for good.
func (s *shadow) settle(i int, back bool) {
	x := s.out[i]
	s.out = slices.Delete(s.out, i, i+1)
	if !back || x.attempt > 3 {
		s.write(x.n, &events.Failed{Code: events.NoCandidate})
		return
	}
	s.write(x.n, &events.Expired{Attempt: x.attempt, Reason: events.TTLPassed})
	at, _ := slices.BinarySearchFunc(s.line, x.place, func(m member, p uint64) int { return int(int64(m.place) - int64(p)) }) //nolint:gosec // small
	s.line = slices.Insert(s.line, at, x)
}

// TestCase029_TheLineByHand: members were removed while a list was walked by index, and others
// were skipped or stood there twice. Here the line of every replica is, at the same sequence, the
// order of the first requests without those who left: no gap, nobody twice.
func TestCase029_TheLineByHand(t *testing.T) {
	const steps = 10_000
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		mem := streamtest.NewMemory()
		s := &shadow{t: t, ctx: ctx, writer: mem.Client("writer"), rnd: rand.New(rand.NewPCG(29, 1)), last: map[events.PlayerID]uint64{}} //nolint:gosec // repeatable
		var views []*View
		var ended []chan error
		begin := func() {
			v := NewView(Config{Log: mem.Client(fmt.Sprint("proxy-", len(views))), Keys: streamtest.Keyring(), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
			end := make(chan error, 1)
			views, ended = append(views, v), append(ended, end)
			go func() { end <- v.Run(ctx) }()
			synctest.Wait()
		}
		begin()
		begin()
		for i := range steps {
			s.step()
			if i == steps/2 {
				begin() // one that comes late
			}
			if i%100 == 99 {
				synctest.Wait()
				for k, v := range views {
					s.compare(t, k, v)
				}
			}
		}
		t.Logf("%d players, %d still wait", s.next, len(s.line))
		cancel()
		for _, end := range ended {
			<-end
		}
	})
}

// compare holds the line of one replica against the list.
func (s *shadow) compare(t *testing.T, k int, v *View) {
	t.Helper()
	var places []uint64
	v.InOrder(func(q Queued) bool {
		places = append(places, q.Place)
		return true
	})
	want := make([]uint64, 0, len(s.line))
	lanes := map[string]int{}
	for i, m := range s.line {
		want = append(want, m.place)
		lane := []string{"", "east", "west"}[m.n%3]
		lanes[lane]++
		if got := v.Position(m.place); got != lanes[lane] || v.Ahead(m.place) != i {
			t.Fatalf("replica %d: player %d is at %d with %d ahead, want %d with %d", k, m.n, got, v.Ahead(m.place), lanes[lane], i)
		}
	}
	if !slices.Equal(places, want) {
		t.Fatalf("replica %d: the line is %v, want %v", k, places, want)
	}
}
