package events

import "time"

// TailStart says where a tail begins.
type TailStart struct {
	// Mode: all history, the newest record of each key, what is still alive, or after a
	// known record.
	Mode TailMode
	// Cursor of TailResume: the last record that was folded. The tail resumes AT it and
	// compares the event id found there: another one, or none without retention as the
	// reason, is a fork.
	Cursor Cursor
}

// TailMode is where a tail begins.
type TailMode uint8

// Tail modes.
const (
	TailAll TailMode = iota
	TailLastPerKey
	TailResume
	// TailLive begins with whatever is not over: see LiveFollower, which the follower must be.
	TailLive
)

// Cursor names one record of one life of a stream.
type Cursor struct {
	Seq         uint64
	ID          EventID
	Incarnation string // of the stream, from its metadata
}

// Follower receives a tail. Calls come one at a time, from one goroutine.
type Follower interface {
	// Begin is called at the start, and again whenever everything must be dropped because
	// what was delivered before is no longer the log's history (a fork), or because the
	// mode is TailLastPerKey and the tail began anew, or because retention took records before
	// they could be delivered. fork tells the first of these from the others.
	Begin(stream StreamState, fork bool)
	// Record delivers the next record, in order, none twice. An error ends the tail with it.
	Record(r Record) error
	// Live says that everything up to the stream's end, as it was when the tail began or
	// reconnected, has been delivered: from here records are fresh.
	Live(last uint64)
	// Blind says that the connection is lost. Records may be missing until the next Live.
	Blind(err error)
}

// LiveFollower is a Follower that need not see what is over. A tail in the mode TailLive
// looks at the newest record of each key up to the stream's end. A guard (see Bucket.Guard)
// with a live key inside is delivered whole, from the first record the stream holds, all
// such guards in one order by sequence; of every other guard only the last sequence is told.
// Behind that end, and after a lost connection, the tail goes on as TailAll does; when it
// must begin anew, it looks again.
type LiveFollower interface {
	Follower
	// Newest tells whether a key with this newest record is alive. It is asked before Begin,
	// once for each key and again when a newer record of it comes meanwhile; it must depend
	// on nothing but the record. When in doubt a key is alive: then it is read whole.
	Newest(r Record) bool
	// Settled says, between Begin and the first Record, where a guard stands of which no
	// record up to the stream's end is delivered: key and sequence of its last record.
	Settled(key string, seq uint64)
}

// StreamState is what a tail knows of its stream.
type StreamState struct {
	Network     string // whose it is, as far as that is known
	Incarnation string
	First       uint64
	Last        uint64
	Clock       int64         // the stream's clock in Unix nanoseconds when it was asked
	Keeps       time.Duration // how long it keeps a message; 0: for ever
}
