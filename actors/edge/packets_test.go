package edge

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

// snapshotProtocol is 26.4-snapshot-6.
const snapshotProtocol = 0x40000000 + 344

// offlineBot0 is what every offline-mode server calls Bot0.
var offlineBot0 = [16]byte{0xee, 0x23, 0x37, 0xbd, 0xef, 0x1b, 0x35, 0x85, 0x94, 0xad, 0x53, 0xfc, 0xd1, 0x97, 0x7d, 0xd2}

func hello(protocol int32, host string, intent byte) []byte {
	b := appendString(appendVarInt(nil, protocol), host)
	return appendFrame(nil, 0, append(b, 0x63, 0xDD, intent))
}

// helloOfLength pads the host until the frame's length prefix says n. The padding is
// of two-byte letters, since a host has at most 255 characters.
func helloOfLength(t *testing.T, n int) []byte {
	t.Helper()
	for _, odd := range []string{"", "x"} {
		for pad := range n {
			b := hello(767, "a.example\x00"+odd+strings.Repeat("ü", pad), intentLogin)
			if length, _ := varInt(b); int(length) == n {
				return b
			}
		}
	}
	t.Fatalf("no host gives a handshake of %d bytes", n)
	return nil
}

func start(name string, rest ...[]byte) []byte {
	return appendFrame(nil, 0, append(appendString(nil, name), bytes.Join(rest, nil)...))
}

// signature is the optional part of 1.19, with a key of 294 and a proof of 512 bytes.
func signature() []byte {
	b := append([]byte{1}, 0, 0, 1, 0x8f, 0, 0, 0, 0)
	b = append(appendVarInt(b, 294), bytes.Repeat([]byte{0x30}, 294)...)
	return append(appendVarInt(b, 512), bytes.Repeat([]byte{0x55}, 512)...)
}

func join(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func reader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }

// opening is one line of testdata/openings.txt.
type opening struct {
	version  string
	protocol int32
	bytes    []byte
}

func openings(t testing.TB) []opening {
	t.Helper()
	text, err := os.ReadFile("testdata/openings.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []opening
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		p, err1 := strconv.Atoi(f[1])
		b, err2 := hex.DecodeString(f[2])
		if err1 != nil || err2 != nil {
			t.Fatalf("testdata/openings.txt: bad line %q", line)
		}
		all = append(all, opening{version: f[0], protocol: int32(p), bytes: b})
	}
	return all
}
