package rcon

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// Packet types. A type no server knows is answered "Unknown request", under the
// same id and in order: the end mark of long replies.
const (
	typeMark    int32 = 0
	typeCommand int32 = 2
	typeLogin   int32 = 3
)

const (
	minFrame = 10
	// maxFrame: 4096 UTF-16 units are at most 12 KiB of UTF-8.
	maxFrame = minFrame + 3*pieceUnits
)

type packet struct {
	id, kind int32
	body     string
}

// frame returns the bytes of one packet, to be written by one Write.
func frame(id, kind int32, body string) []byte {
	b := make([]byte, 0, 4+minFrame+len(body))
	b = binary.LittleEndian.AppendUint32(b, uint32(minFrame+len(body)))
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = binary.LittleEndian.AppendUint32(b, uint32(kind))
	b = append(b, body...)
	return append(b, 0, 0)
}

// readPacket reads one packet and refuses lengths no vanilla server sends
// before it allocates for them.
func readPacket(r io.Reader) (packet, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return packet{}, err
	}
	size := int32(binary.LittleEndian.Uint32(head[:]))
	if size < minFrame || size > maxFrame {
		return packet{}, fmt.Errorf("frame of %d bytes, allowed %d to %d: not an RCON server?", size, minFrame, maxFrame)
	}
	b := make([]byte, size)
	if _, err := io.ReadFull(r, b); err != nil {
		return packet{}, err
	}
	return packet{
		id:   int32(binary.LittleEndian.Uint32(b)),
		kind: int32(binary.LittleEndian.Uint32(b[4:])),
		body: strings.ToValidUTF8(string(b[8:size-2]), "\uFFFD"),
	}, nil
}

// units counts s in UTF-16 units, as the server does when it cuts.
func units(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

// checkCommand refuses what would break the frame or the one-read rule.
func checkCommand(command string) error {
	switch {
	case command == "":
		return fmt.Errorf("empty command")
	case len(command) > maxCommand:
		return fmt.Errorf("command of %d bytes, a server reads at most %d", len(command), maxCommand)
	case strings.ContainsAny(command, "\x00\r\n"):
		return fmt.Errorf("command with a line break or NUL")
	}
	return nil
}

// verb is the part of a command that errors and logs name.
func verb(command string) string {
	word, _, _ := strings.Cut(command, " ")
	if len(word) > 32 {
		word = word[:32]
	}
	return strings.ToValidUTF8(word, "")
}
