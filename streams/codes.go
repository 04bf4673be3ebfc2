package streams

import (
	"errors"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// JetStream's error codes that mean something to an append or a creation.
const (
	codeAccountLimits  = 10002
	codeNotAvailable   = 10008
	codeNotLeader      = 10009
	codeInsufficient   = 10023
	codeMemoryExceeded = 10028
	codeNotEnabled     = 10039
	codeStoreExceeded  = 10047
	codeCreateFailed   = 10049
	codeNameInUse      = 10058
	codeWrongLastID    = 10070
	codeWrongLast      = 10071
	codeDisabled       = 10076
	codeStoreFailed    = 10077
	codeStreamOffline  = 10118
	codeStreamTooBig   = 10122
	codeWrongLastConst = 10164
)

// storeError is the error part of a JetStream answer.
type storeError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *storeError) Error() string { return e.Description }

// reasonOf is the one place where the store's refusals get their meaning. A refusal that
// is not listed was an answer all the same: the fact is not stored, and asking again
// gives the same.
func reasonOf(e *storeError) (reason events.AppendReason, last uint64) {
	switch e.ErrCode {
	case codeWrongLast:
		return events.Conflict, lastNumber(e.Description)
	case codeWrongLastConst:
		return events.InFlight, 0
	case codeStoreFailed:
		return storeFailed(e.Description), 0
	case codeAccountLimits, codeInsufficient, codeMemoryExceeded, codeStoreExceeded, codeStreamTooBig:
		return events.StreamIsFull, 0
	case codeNotAvailable, codeNotLeader, codeNotEnabled, codeDisabled, codeStreamOffline:
		return events.Unavailable, 0
	}
	return events.NotAllowed, 0
}

// storeFailed: one code stands for a full key, a full stream, and a disk that failed. After
// the last nobody knows what is on it.
func storeFailed(text string) events.AppendReason {
	switch {
	case strings.Contains(text, "per subject"):
		return events.KeyIsFull
	case strings.Contains(text, "maximum"), strings.Contains(text, "exceeded"), strings.Contains(text, "insufficient"):
		return events.StreamIsFull
	}
	return events.Unknown
}

// lastNumber reads "wrong last sequence: 17".
func lastNumber(text string) uint64 {
	n, _ := strconv.ParseUint(text[strings.LastIndexByte(text, ' ')+1:], 10, 64)
	return n
}

// reasonOfTransport says what a publish without an answer means.
func reasonOfTransport(sent bool, err error) events.AppendReason {
	switch {
	case sent:
		return events.Unknown
	case errors.Is(err, errDenied), errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject), errors.Is(err, nats.ErrHeadersNotSupported):
		return events.NotAllowed
	}
	return events.Unavailable
}
