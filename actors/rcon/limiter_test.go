package rcon

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimiterSpreadsPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(0, 0)
		start := time.Now()
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if err := l.Wait(t.Context(), Poll); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if took := time.Since(start).Round(time.Millisecond); took != 29*time.Second/3 && took != 9667*time.Millisecond {
			t.Errorf("30 polls took %v, want 29 thirds of a second", took)
		}
	})
}

func TestLimiterUrgentNeverWaitsAndPollsPayAtMostASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(3, 20)
		start := time.Now()
		for range 100 {
			if err := l.Wait(t.Context(), Urgent); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(start) != 0 {
			t.Errorf("urgent commands waited %v", time.Since(start))
		}
		if err := l.Wait(t.Context(), Poll); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took < time.Second || took > 1400*time.Millisecond {
			t.Errorf("the poll after them waited %v", took)
		}
	})
}

func TestLimiterWorkHasItsOwnPaceAndContextsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(3, 20)
		start := time.Now()
		for range 21 {
			if err := l.Wait(t.Context(), Work); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("21 work commands took %v", took)
		}
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 10*time.Millisecond, why)
		defer cancel()
		if err := l.Wait(ctx, Work); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		for _, class := range []Class{Urgent, Paid, Poll, Work} {
			if err := l.Wait(ctx, class); !errors.Is(err, why) {
				t.Errorf("class %d with an ended context: %v", class, err)
			}
		}
	})
}
