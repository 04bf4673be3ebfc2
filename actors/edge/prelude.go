package edge

import (
	"bufio"
	"errors"
	"net"
	"os"
	"time"

	"github.com/landfall/landfall/actors/edge/marker"
	"github.com/landfall/landfall/actors/edge/vintage"
)

// prelude is what a client of a game that says late who it is has sent before a server is chosen. Nothing
// of it is lost, however it is read.
type prelude struct {
	marker [16]byte // zero: none, or none that is known here
	opaque bool     // begins with a marker of another version: what follows is passed on unread
	first  vintage.Client
	frames vintage.Frames // what was read behind the marker, and no more
}

// open reads what a client begins with: a marker, if it sends one, and the first frame of Vintage Story. A
// client that says nothing, or pauses in the middle, is not waited for any longer than wait; what it says
// later is read on where it paused. Only the beginning of a marker is waited for longer where nothing else can
// begin like that. conn is under r.
func (o *prelude) open(conn net.Conn, r *bufio.Reader, game Game, wait, longer time.Duration) error {
	began := time.Now()
	if err := conn.SetReadDeadline(began.Add(wait)); err != nil {
		return err
	}
	id, found, err := marker.Take(r)
	if found == marker.Partial && isTimeout(err) && r.Buffered() > 0 && game == VintageStory {
		if err := conn.SetReadDeadline(began.Add(max(wait, longer))); err != nil {
			return err
		}
		if id, found, err = marker.Take(r); err != nil {
			return err
		}
	}
	switch {
	case err != nil && !isTimeout(err) && r.Buffered() == 0:
		return err // it has left
	case found == marker.Present:
		o.marker = id
	case found == marker.Unknown:
		o.opaque = true
	}
	if game == TCP || o.opaque || r.Buffered() == 0 && err != nil {
		ahead, _ := r.Peek(r.Buffered())
		o.frames.Add(ahead)
		_, err = r.Discard(len(ahead))
		return err
	}
	return o.firstFrame(r)
}

func isTimeout(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

// firstFrame reads until the first frame that says something. Empty ones say nothing.
func (o *prelude) firstFrame(r *bufio.Reader) error {
	var held vintage.Frames
	var passed []byte
	defer func() { o.frames.Add(append(passed, held.Rest()...)) }()
	for {
		frame, ok, err := held.Next(vintage.MaxFirst)
		if err != nil {
			return malformed("%v", err)
		}
		if ok {
			passed = append(passed, frame.Raw...)
			if frame.Compressed || len(frame.Payload()) == 0 {
				continue
			}
			if o.first, err = vintage.ParseClient(frame.Payload()); err != nil {
				return malformed("first packet: %v", err)
			}
			return nil
		}
		if _, err := r.Peek(1); err != nil {
			if isTimeout(err) {
				return nil
			}
			return err
		}
		ahead, _ := r.Peek(r.Buffered())
		held.Add(ahead)
		_, _ = r.Discard(len(ahead))
		if len(passed) > vintage.MaxFirst {
			return malformed("nothing but empty frames")
		}
	}
}
