package edge

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// legacyKind tells the server list pings from before 1.7 apart.
type legacyKind int

const (
	notLegacy  legacyKind = iota
	legacyBeta            // FE, beta 1.8 to 1.3
	legacy1_4             // FE 01, 1.4 and 1.5
	legacy1_6             // FE 01 FA …, 1.6
)

// legacyProtocol can never be joined by such a client, which then shows the
// version text instead of a signal strength.
const legacyProtocol = 127

// detectLegacy looks at the first bytes without consuming them. A leading FE is
// not always an old ping: FE 01 is also the length of a handshake of 254 bytes, so
// the bytes after it are waited for, briefly, by setDeadline. The caller sets its
// own deadline again afterwards.
func detectLegacy(r *bufio.Reader, wait time.Duration, setDeadline func(time.Time) error) (legacyKind, error) {
	b, err := r.Peek(1)
	if err != nil || b[0] != 0xFE {
		return notLegacy, err
	}
	if err := setDeadline(time.Now().Add(wait)); err != nil {
		return notLegacy, err
	}
	b, err = r.Peek(3)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, io.EOF) {
		return notLegacy, err
	}
	return classifyLegacy(b), nil
}

// classifyLegacy judges the one to three bytes that came in time, FE first.
func classifyLegacy(b []byte) legacyKind {
	switch {
	case len(b) == 1:
		return legacyBeta
	case b[1] != 1:
		return notLegacy // FE 02 and others: a length, whatever comes
	case len(b) == 2:
		return legacy1_4
	case b[2] == 0xFA:
		return legacy1_6
	}
	return notLegacy // FE 01 00: a handshake of 254 bytes
}

// appendLegacyStatus appends the answer to an old ping: a kick whose text is the
// server list entry.
func appendLegacyStatus(dst []byte, kind legacyKind, s Status) []byte {
	online, limit := strconv.Itoa(s.Online), strconv.Itoa(s.Max)
	line := strings.ReplaceAll(strings.ReplaceAll(s.Description, "\n", " "), "\x00", "")
	var text string
	if kind == legacyBeta {
		// The section sign separates, so it cannot colour here.
		text = strings.Join([]string{withoutColours(line), online, limit}, "§")
	} else {
		text = strings.Join([]string{"§1", strconv.Itoa(legacyProtocol), s.Version, line, online, limit}, "\x00")
	}
	units := utf16.Encode([]rune(text))
	if len(units) > 255 {
		units = units[:255]
	}
	dst = binary.BigEndian.AppendUint16(append(dst, 0xFF), uint16(len(units)))
	for _, u := range units {
		dst = binary.BigEndian.AppendUint16(dst, u)
	}
	return dst
}

// withoutColours drops section signs and the code letter after each.
func withoutColours(line string) string {
	parts := strings.Split(line, "§")
	for i, p := range parts[1:] {
		_, size := utf8.DecodeRuneInString(p)
		parts[i+1] = p[size:]
	}
	return strings.Join(parts, "")
}
