package streams

import (
	"testing"

	"github.com/landfall/landfall/events"
)

// TestCase010_OneMeaning: a lost race is answered with one code by a single node and with another
// by a replicated store, and who knew the one took the other for a failure. Here both say that the
// guard is to be looked at again; a code that nobody knows is believed only once the log has shown
// that the fact is not there (see resolve).
func TestCase010_OneMeaning(t *testing.T) {
	again := map[events.AppendReason]bool{events.Conflict: true, events.InFlight: true}
	for _, row := range []struct {
		code  int
		text  string
		again bool
	}{
		{10071, "wrong last sequence: 17", true},
		{10071, "wrong last sequence: 0", true},
		{10164, "wrong last sequence", true},
		{10164, "wrong last sequence: 17", true},
		{10070, "wrong last msg ID: x", false},
		{10077, "maximum messages per subject exceeded", false},
		{10077, "wrong last sequence", false},
		{10009, "JetStream cluster can not handle request", false},
		{99999, "wrong last sequence: 17", false}, // it is the code that counts, never the text
	} {
		if reason, _ := reasonOf(&storeError{Code: 400, ErrCode: row.code, Description: row.text}); again[reason] != row.again {
			t.Errorf("%d %q: %s", row.code, row.text, reason)
		}
	}
}
