package events

import (
	"bytes"
	"fmt"
	"time"
)

// Header is the part of a message that can be read without decoding its body.
type Header map[string]string

// Message is a sealed fact before it is stored.
type Message struct {
	Bucket Bucket
	Key    string
	Prev   uint64 // the guard: the last sequence inside Bucket.Guard(Key) that the writer has seen
	Header Header
	Body   []byte
	// TTL is how long the record stands, in whole seconds; 0: for good. Only the buckets whose
	// keys expire (limits, routes, leases) take one. When it is over a marker without a type
	// stands in its place for a while: its sequence is the guard, and it says that nothing is there.
	TTL time.Duration
}

// CheckTTL refuses a time to live that the log cannot keep.
func (m Message) CheckTTL() error {
	if m.TTL < 0 || m.TTL%time.Second != 0 {
		return fmt.Errorf("time to live %s: want whole seconds, or 0 for good", m.TTL)
	}
	return nil
}

// Is tells that a record is this fact, whatever it was written on top of.
func (m Message) Is(r Record) bool {
	return r.Bucket == m.Bucket && r.Key == m.Key && r.Header[HeaderType] == m.Header[HeaderType] && bytes.Equal(r.Body, m.Body)
}

// OtherFact is the refusal of a message whose id is another fact's.
func (m Message) OtherFact(r Record) error {
	return fmt.Errorf("the id %s is that of another fact, at sequence %d under %s", m.Header[HeaderID], r.Seq, r.Key)
}

// Record is one stored message, exactly as the log holds it.
type Record struct {
	Bucket Bucket
	Key    string
	Seq    uint64
	Stored time.Time // the stream's clock; neither monotonic nor shared between streams
	Header Header
	Body   []byte
}

// EventID is the id in the headers, zero when there is none (a marker put by hand).
func (r Record) EventID() EventID {
	id, _ := ParseID[EventID](r.Header[HeaderID])
	return id
}

// AppendReason says why an append did not end in an acknowledged fact.
type AppendReason string

// Reasons of an AppendError.
const (
	// Conflict: another fact is newer than the guard. Last is the new guard when the store named it.
	Conflict AppendReason = "conflict"
	// InFlight: another append inside the boundary is under way; nothing is lost yet, look again.
	InFlight AppendReason = "in flight"
	// KeyIsFull: the key holds as many facts as it may.
	KeyIsFull AppendReason = "key full"
	// StreamIsFull: the store is full.
	StreamIsFull AppendReason = "stream full"
	// Unknown: no answer came. The fact may have landed; read back.
	Unknown AppendReason = "unknown"
	// Unavailable: the fact did not leave this process. It will not land later.
	Unavailable AppendReason = "unavailable"
	// NotAllowed: the store refused it for good (permission, header, size).
	NotAllowed AppendReason = "not allowed"
)

// AppendError is how an append fails. It never means "maybe later": what it says is final
// for that call, except Unknown, which must be read back.
type AppendError struct {
	Reason AppendReason
	Key    string
	Last   uint64 // of a Conflict: the last sequence inside the guard, 0 when not named
	Code   int    // the store's own error code, 0 when none
	Err    error
}

func (e *AppendError) Error() string {
	return fmt.Sprintf("append %s: %s (last %d, code %d): %v", e.Key, e.Reason, e.Last, e.Code, e.Err)
}

// Unwrap gives the store's own error.
func (e *AppendError) Unwrap() error { return e.Err }
