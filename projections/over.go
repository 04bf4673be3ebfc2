package projections

import (
	"time"

	"github.com/landfall/landfall/events"
)

// Over reads the newest record of a transfer's key: when it is an end that verifies, the
// transfer is over, and the fact says how. A guarded writer puts nothing else there, so what
// stands before it need not be read. Anything else under the key leaves it open: then only
// its whole history can tell.
func Over(k *events.Keyring, newest events.Record) (events.TransferFact, bool) {
	if newest.Bucket != events.Transfers || !events.TerminalType(newest.Header[events.HeaderType]) {
		return nil, false
	}
	e, refusal := events.Open(k, newest)
	_, transfer, err := events.ParseTransferKey(newest.Key)
	fact, ok := e.Fact.(events.TransferFact)
	if refusal != nil || err != nil || !ok || e.Correlation != transfer {
		return nil, false
	}
	return fact, true
}

// Ending is the phase and the code that a terminal fact leaves; both are empty for any other.
func Ending(f events.TransferFact) (Phase, events.Code) {
	if !events.Terminal(f) {
		return "", ""
	}
	t, _ := Transfer{}.step(0, f, time.Time{})
	return t.Phase, t.Code
}
