package edge

import (
	"bufio"
	"bytes"
	"net"
	"testing"
	"time"
)

// bytesConn is a client that says what it has to say at once, and then ends its half.
type bytesConn struct {
	net.Conn

	in  *bytes.Reader
	out bytes.Buffer
}

func (c *bytesConn) Read(b []byte) (int, error)    { return c.in.Read(b) }
func (c *bytesConn) Write(b []byte) (int, error)   { return c.out.Write(b) }
func (*bytesConn) SetDeadline(time.Time) error     { return nil }
func (*bytesConn) SetReadDeadline(time.Time) error { return nil }
func (c *bytesConn) consumed(r *bufio.Reader) int {
	return int(c.in.Size()) - c.in.Len() - r.Buffered()
}
func (c *bytesConn) answers(kind legacyKind) []byte {
	return appendLegacyStatus(nil, kind, fuzzedStatus())
}
func fuzzedStatus() Status {
	return Status{Version: "1.21", Description: "§aHello\n\x00you", Online: 3, Max: 20}
}
func opened(b []byte) (*bytesConn, *bufio.Reader) {
	c := &bytesConn{in: bytes.NewReader(b)}
	return c, bufio.NewReaderSize(c, 4096)
}

// FuzzGreet: whatever a client says first, with a PROXY header or without, old or new, the edge
// answers it, lets it go on to a login, or closes; it takes in a bounded number of bytes, and
// says nothing to what is no ping.
func FuzzGreet(f *testing.F) {
	for _, o := range openings(f) {
		f.Add(o.bytes, false)
	}
	for _, b := range [][]byte{{0xfe}, {0xfe, 1}, {0xfe, 1, 0xfa}, {0xfe, 2}, {0xfe, 1, 0}, nil, {0x80, 0x80, 0x80, 0x80}, []byte("GET / HTTP/1.1\r\n\r\n")} {
		f.Add(b, false)
	}
	f.Add(append([]byte("PROXY TCP4 203.0.113.9 10.0.0.1 51000 25565\r\n"), 0xfe), true)
	f.Add(append(append(hello(snapshotProtocol, "play.example.net", intentStatus), 1, 0), 9, 1, 0, 0, 0, 0, 0, 0, 0, 7), false)
	f.Fuzz(func(t *testing.T, b []byte, proxied bool) {
		c, r := opened(b)
		if proxied {
			if _, _, err := readProxyHeader(r); err != nil {
				return
			}
		}
		before := c.consumed(r)
		pings := 0
		g, err := greet(c, r, time.Now().Add(time.Hour), time.Hour, func() Status { pings++; return fuzzedStatus() })
		if most := 3 * (maxFrame + 3); c.consumed(r)-before > most {
			t.Fatalf("took in %d bytes, at most %d", c.consumed(r)-before, most)
		}
		if rest := b[before:]; len(rest) > 0 && rest[0] == 0xfe && c.out.Len() > 0 && c.out.Bytes()[0] == 0xff {
			if kind := classifyLegacy(rest[:min(3, len(rest))]); !bytes.Equal(c.out.Bytes(), c.answers(kind)) {
				t.Fatalf("an old ping % x is answered by % x", rest[:min(3, len(rest))], c.out.Bytes())
			}
		}
		switch {
		case err == nil && g.start != nil && (c.out.Len() > 0 || g.start.name == ""):
			t.Fatalf("a login of %q, and the answer % x", g.start.name, c.out.Bytes())
		case pings > 1 || c.out.Len() > 1<<16:
			t.Fatalf("%d pings, %d bytes of answer", pings, c.out.Len())
		}
	})
}
