package actors

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// slots is an arbiter with requests that come and go.
type slots struct {
	*arbiter

	mu      sync.Mutex
	granted []uint64
	refused []uint64
	wg      sync.WaitGroup
}

func arbitrate(t *testing.T, perSecond float64, body func(s *slots)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		s := &slots{arbiter: newArbiter(perSecond, time.Now)}
		body(s)
		s.wg.Wait()
		s.close()
	})
}

// ask lets a request enter, which waits at most so long, and gives the arbiter time to see it.
func (s *slots) ask(place uint64, patience time.Duration) {
	s.wg.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ok := s.enter(ctx, place)
		s.mu.Lock()
		defer s.mu.Unlock()
		if ok {
			s.granted = append(s.granted, place)
		} else {
			s.refused = append(s.refused, place)
		}
	})
	synctest.Wait()
}

func (s *slots) given() []uint64 {
	synctest.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.granted)
}

// A slot goes to the lowest place that is there; only who comes later may be overtaken.
func TestArbiterGrantsTheLowestPlace(t *testing.T) {
	arbitrate(t, 2, func(s *slots) {
		for _, place := range []uint64{50, 60, 9, 7, 8, 30} { // two slots are saved up
			s.ask(place, time.Minute)
		}
		if got := s.given(); !slices.Equal(got, []uint64{50, 60}) {
			t.Fatalf("at once: %v", got)
		}
		time.Sleep(510 * time.Millisecond)
		s.ask(1, time.Minute)
		time.Sleep(3 * time.Second)
		if got := s.given(); !slices.Equal(got, []uint64{50, 60, 7, 1, 8, 9, 30}) {
			t.Errorf("%v", got)
		}
	})
}

// The order holds for any requests: nobody is granted a slot while a lower place waits.
func TestArbiterOrderAtRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(7, 7)) //nolint:gosec // repeatable
	arbitrate(t, 50, func(s *slots) {
		lowest := func() uint64 {
			s.arbiter.mu.Lock()
			defer s.arbiter.mu.Unlock()
			if len(s.pending) == 0 {
				return ^uint64(0)
			}
			return s.pending[0].place
		}
		known := 0
		for range 400 {
			s.ask(uint64(rnd.Uint32()), time.Minute)
			time.Sleep(time.Duration(rnd.IntN(25)) * time.Millisecond)
			given := s.given()
			if n := len(given); n > known && known > 50 && given[n-1] > lowest() && n == known+1 {
				t.Fatalf("%d was granted, %d waits", given[n-1], lowest())
			}
			known = len(given)
		}
	})
}

// No more than the pace, over any second, beside what was saved up.
func TestArbiterKeepsThePace(t *testing.T) {
	arbitrate(t, 10, func(s *slots) {
		for i := range 40 {
			s.ask(uint64(i), time.Minute)
		}
		for second := range 4 {
			if got := len(s.given()); got != 10*(second+1) {
				t.Errorf("after %d s: %d", second, got)
			}
			time.Sleep(time.Second + time.Millisecond)
		}
	})
}

// Who cannot be served in time is told so before the caller gives up; the slot is not lost.
func TestArbiterAnswersInTime(t *testing.T) {
	arbitrate(t, 1, func(s *slots) {
		began := time.Now()
		s.ask(1, time.Minute)
		s.ask(3, 600*time.Millisecond)
		s.ask(2, time.Minute)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if s.mu.Lock(); !slices.Equal(s.refused, []uint64{3}) {
			t.Errorf("refused %v", s.refused)
		}
		s.mu.Unlock()
		s.wg.Wait()
		if took := time.Since(began); took < time.Second || took > 1100*time.Millisecond {
			t.Errorf("the next slot came after %s", took)
		}
	})
}

// A slot that came to nothing goes to the next at once; a pace that is lifted frees all.
func TestArbiterGivesBackAndChangesPace(t *testing.T) {
	arbitrate(t, 1, func(s *slots) {
		for place := range uint64(5) {
			s.ask(place, time.Minute)
		}
		s.giveBack()
		if got := s.given(); !slices.Equal(got, []uint64{0, 1}) {
			t.Errorf("given back: %v", got)
		}
		s.setRate(0)
		got := s.given()
		slices.Sort(got)
		if !slices.Equal(got, []uint64{0, 1, 2, 3, 4}) {
			t.Errorf("without a pace: %v", got)
		}
		s.ask(9, time.Minute)
		if n := len(s.given()); n != 6 {
			t.Errorf("%d were given a slot", n)
		}
	})
}

// More than can wait send the highest place away, not the last that came.
func TestArbiterIsNotFlooded(t *testing.T) {
	arbitrate(t, 0.01, func(s *slots) {
		s.ask(0, time.Minute)
		for i := range uint64(maxPending) {
			s.ask(1000-i, time.Second)
		}
		s.ask(1, time.Second)
		s.mu.Lock()
		defer s.mu.Unlock()
		if !slices.Equal(s.refused, []uint64{1000}) {
			t.Errorf("refused %v", s.refused)
		}
	})
}

// The end of a life answers everybody.
func TestArbiterCloses(t *testing.T) {
	arbitrate(t, 1, func(s *slots) {
		s.ask(1, time.Hour)
		s.ask(2, time.Hour)
		s.close()
		s.wg.Wait()
		if !slices.Equal(s.refused, []uint64{2}) {
			t.Errorf("refused %v", s.refused)
		}
	})
}
