// Package marker is how a client that was redirected says, in the first bytes of its next
// connection, which redirect it follows.
//
// A proxy that redirects a client announces an id in the display name of the redirect (Announce).
// A client that understands it cuts the announcement off before anybody sees it (Split), keeps
// the id for a minute, and sends it as a marker of 22 bytes ahead of the game's own first bytes,
// to the address that announced it and once only (Memory). The proxy takes the marker off
// (Take) and forwards the rest.
//
// The id is a hint where to route, never a credential: whoever steals one is led to a server
// that still asks who it is. A plain server would refuse unknown bytes, so a client never sends a
// marker that was not announced.
//
// Nothing here knows the proxy: the package is also the reference for those who port the
// client's half into a game.
package marker

import (
	"bufio"
	"encoding/hex"
	"fmt"
)

// The marker on the wire:
//
//	0  4  4E 4D 42 53
//	4  1  version
//	5  1  length of what follows
//	6  16 id
const (
	Magic   = "NMBS"
	Version = 1
	idSize  = 16
	head    = len(Magic) + 2
	Size    = head + idSize // 22 bytes
)

// ID names one redirect: 16 random bytes.
type ID [idSize]byte

// ParseID reads 32 lower-case hex digits.
func ParseID(text string) (ID, error) {
	var id ID
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != idSize || hex.EncodeToString(raw) != text {
		return ID{}, fmt.Errorf("marker id of %d characters: want 32 lower-case hex digits", len(text))
	}
	copy(id[:], raw)
	return id, nil
}

// Hex is the form of an announcement. It routes: logs get Short.
func (id ID) Hex() string { return hex.EncodeToString(id[:]) }

// Short is enough for a person to tell ids apart, and too little to be routed by.
func (id ID) Short() string { return hex.EncodeToString(id[:4]) }

// String is Short, so that an id that slips into a log is not shown.
func (id ID) String() string { return id.Short() }

// Append appends the marker of id.
func Append(dst []byte, id ID) []byte {
	dst = append(dst, Magic...)
	dst = append(dst, Version, idSize)
	return append(dst, id[:]...)
}

// Found says what the first bytes of a connection are.
type Found uint8

// What can be found.
const (
	Absent  Found = iota // no marker begins like this
	Partial              // the beginning of a marker: more is needed
	Present              // a marker
	Unknown              // the magic, with a version or length that nobody here knows: strip nothing
)

func (f Found) String() string {
	return [...]string{"absent", "partial", "present", "unknown"}[f]
}

// Look says what begins a connection, from the bytes that have arrived so far. The id is only
// that of a marker that is Present; it ends Size bytes in.
func Look(b []byte) (ID, Found) {
	for i := range min(len(b), len(Magic)) {
		if b[i] != Magic[i] {
			return ID{}, Absent
		}
	}
	switch {
	case len(b) > len(Magic) && b[len(Magic)] != Version, len(b) > head-1 && b[head-1] != idSize:
		return ID{}, Unknown
	case len(b) < Size:
		return ID{}, Partial
	}
	return ID(b[head:Size]), Present
}

// Take reads the marker that r begins with, however it was cut into segments. All other
// bytes stay in r, also those of a marker that is not complete when r fails: then Found is
// Partial and the error is r's. The buffer of r holds Size bytes or more.
func Take(r *bufio.Reader) (ID, Found, error) {
	for n := 1; ; n++ {
		b, err := r.Peek(max(n, min(r.Buffered(), Size)))
		id, found := Look(b)
		switch {
		case found == Present:
			_, err = r.Discard(Size)
			return id, Present, err
		case found == Absent && len(b) > 0, found == Unknown:
			return ID{}, found, nil
		case err != nil:
			return ID{}, Partial, err
		}
		n = len(b)
	}
}
