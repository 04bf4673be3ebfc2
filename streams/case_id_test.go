package streams_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// TestCase013_AnIDIsAFact: a retry under the same id was answered "duplicate", and what it was to do
// was never done. Here an id is that of the fact: the same fact again is the one that stands, and
// nothing is published to be delivered again, since every reader follows the log; another fact
// under that id is refused, not swallowed. The time in which the server remembers ids makes no
// difference.
func TestCase013_AnIDIsAFact(t *testing.T) {
	for name, later := range map[string]time.Duration{"at once": 0, "within the server's memory of ids": time.Minute, "long after it": time.Hour} {
		t.Run(name, func(t *testing.T) {
			bubbled(t, func(t *testing.T, st *streams.Store) {
				m := message(events.Transfers, key(1, 1), 0)
				seq := mustAppend(t, st, m)
				time.Sleep(min(later, retention/2))
				synctest.Wait()
				if again := mustAppend(t, st, m); again != seq {
					t.Errorf("the retry got %d, want %d", again, seq)
				}
				if later > time.Minute {
					return
				}
				other := message(events.Transfers, key(2, 1), 0)
				other.Header[events.HeaderID] = m.Header[events.HeaderID]
				got, err := st.Append(t.Context(), other)
				if failed, ok := errors.AsType[*events.AppendError](err); !ok || failed.Reason != events.NotAllowed {
					t.Errorf("another fact under that id: sequence %d, %v", got, err)
				}
				if r, ok, err := st.Last(t.Context(), events.Transfers, key(2, 1)); err != nil || ok {
					t.Errorf("it was stored: %+v, %v", r, err)
				}
				other.Header[events.HeaderID] = message(events.Transfers, key(2, 1), 0).Header[events.HeaderID]
				if got := mustAppend(t, st, other); got != seq+1 {
					t.Errorf("under its own id: %d", got)
				}
			})
		})
	}
}
