package edge

import (
	"bytes"
	"encoding/hex"
	"errors"
	"net/netip"
	"testing"
)

func ap(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

func TestProxyV2Golden(t *testing.T) {
	const sig = "0d0a0d0a000d0a515549540a"
	for _, c := range []struct {
		source, destination netip.AddrPort
		want                string
	}{
		{ap("203.0.113.9:48930"), ap("10.0.0.5:25565"), sig + "2111000c" + "cb007109" + "0a000005" + "bf22" + "63dd"},
		{ap("[2001:db8::9]:48930"), ap("[2001:db8::5]:25565"), sig + "21210024" +
			"20010db8000000000000000000000009" + "20010db8000000000000000000000005" + "bf22" + "63dd"},
		{ap("203.0.113.9:1"), ap("[2001:db8::5]:2"), sig + "21210024" +
			"00000000000000000000ffffcb007109" + "20010db8000000000000000000000005" + "0001" + "0002"},
		{netip.AddrPort{}, netip.AddrPort{}, sig + "20000000"},
	} {
		if got := hex.EncodeToString(AppendProxyV2(nil, c.source, c.destination)); got != c.want {
			t.Errorf("%v → %v:\n got %s\nwant %s", c.source, c.destination, got, c.want)
		}
	}
}

func TestProxyV2RoundTrip(t *testing.T) {
	for _, e := range []endpoints{
		{ap("203.0.113.9:48930"), ap("10.0.0.5:25565")},
		{ap("[2001:db8::9]:1"), ap("[2001:db8::5]:65535")},
		{ap("203.0.113.9:1"), ap("[2001:db8::5]:2")},
		{ap("[2001:db8::9]:1"), ap("10.0.0.5:2")},
		{ap("[::ffff:203.0.113.9]:1"), ap("10.0.0.5:2")},
	} {
		r := reader(append(AppendProxyV2(nil, e.source, e.destination), "next"...))
		got, found, err := readProxyHeader(r)
		want := endpoints{unmapped(e.source), unmapped(e.destination)}
		if rest, _ := r.Peek(4); err != nil || !found || got != want || string(rest) != "next" {
			t.Errorf("%v: %v %v %v, rest %q", e, got, found, err, rest)
		}
	}
}

func TestReadProxyHeader(t *testing.T) {
	local := AppendProxyV2(nil, netip.AddrPort{}, netip.AddrPort{})
	handshake13 := hello(47, "abcdefg", intentLogin) // starts 0D, as v2 does
	if handshake13[0] != 0x0D {
		t.Fatalf("length %#x", handshake13[0])
	}
	for _, c := range []struct {
		name  string
		bytes []byte
		found bool
		bad   bool
		rest  int
	}{
		{"v1", []byte("PROXY TCP4 203.0.113.9 10.0.0.5 48930 25565\r\nnext"), true, false, 4},
		{"v1 six", []byte("PROXY TCP6 2001:db8::9 2001:db8::5 48930 25565\r\nnext"), true, false, 4},
		{"v1 unknown", []byte("PROXY UNKNOWN\r\nnext"), false, false, 4},
		{"v1 too long", append([]byte("PROXY "), bytes.Repeat([]byte("x"), 200)...), false, true, -1},
		{"v1 bad address", []byte("PROXY TCP4 a b 1 2\r\n"), false, true, -1},
		{"v2 local", append(bytes.Clone(local), "next"...), false, false, 4},
		{"v2 bad command", append([]byte(proxyV2Signature), 0x2F, 0x11, 0, 0), false, true, -1},
		{"v2 too long", append([]byte(proxyV2Signature), 0x21, 0x11, 0xFF, 0xFF), false, true, -1},
		{"v2 cut", AppendProxyV2(nil, ap("1.2.3.4:5"), ap("1.2.3.4:5"))[:20], false, true, -1},
		{"none", hello(767, "play.example.test", 2), false, false, 25},
		{"none, like v2 at first", handshake13, false, false, 14},
	} {
		r := reader(c.bytes)
		_, found, err := readProxyHeader(r)
		if found != c.found || (err != nil) != c.bad || err != nil && !errors.Is(err, errMalformed) {
			t.Errorf("%s: found %v, error %v", c.name, found, err)
		}
		if c.rest >= 0 && r.Buffered() != c.rest {
			t.Errorf("%s: %d bytes left, want %d", c.name, r.Buffered(), c.rest)
		}
	}
}

func FuzzProxyHeader(f *testing.F) {
	f.Add(AppendProxyV2(nil, ap("203.0.113.9:48930"), ap("10.0.0.5:25565")))
	f.Add(AppendProxyV2(nil, ap("203.0.113.9:48930"), ap("[2001:db8::5]:25565")))
	f.Add(AppendProxyV2(nil, netip.AddrPort{}, netip.AddrPort{}))
	f.Add([]byte("PROXY TCP4 203.0.113.9 10.0.0.5 48930 25565\r\n"))
	f.Add([]byte("PROXY UNKNOWN\r\n"))
	f.Add(hello(767, "play.example.test", 2))
	f.Fuzz(func(t *testing.T, b []byte) {
		ends, found, err := readProxyHeader(reader(b))
		if !found || err != nil {
			if ends != (endpoints{}) {
				t.Fatalf("addresses %v without a header", ends)
			}
			return
		}
		again, found, err := readProxyHeader(reader(AppendProxyV2(nil, ends.source, ends.destination)))
		if !found || err != nil || again != ends {
			t.Fatalf("%v was written and read back as %v, %v, %v", ends, again, found, err)
		}
	})
}
