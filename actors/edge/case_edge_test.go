package edge

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"
)

// TestCase073_HostsWithSuffixes: what mod loaders and filters put behind the host takes no part in the look-up, and reaches
// the server as it came.
func TestCase073_HostsWithSuffixes(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, Domain: "play.example.net"})
	token := "r-00112233445566778899aabbccddeeff-1.play.example.net"
	for _, suffix := range []string{"", "\x00FML\x00", "\x00FML2\x00", "\x00FML3\x00", "\x00FORGE", "///1.2.3.4:5///1700000000", ".", "\x00FML3\x00///1.2.3.4:5"} {
		for _, host := range []string{"Play.Example.net", token} {
			p := connect(t, s)
			sent := p.login(t, host+suffix, intentLogin)
			b.accept().got(t, sent)
			a := next(t, "arrival", router.arrivals)
			if a.Host != CleanHost(host) || (a.TokenLabel != "") != (host == token) {
				t.Errorf("%q: host %q, token %q", host+suffix, a.Host, a.TokenLabel)
			}
			p.Close()
		}
	}
}

// TestCase074_ProxyHeaders: each form of a header, cut anywhere, is read from a listed source, and so is a login without one; from any
// other source a header is no login, and is counted.
func TestCase074_ProxyHeaders(t *testing.T) {
	source, six := "203.0.113.9:48930", "[2001:db8::9]:48930"
	withTLV := AppendProxyV2(nil, ap(source), ap("10.0.0.5:25565"))
	withTLV[15] += 7                                          // of the length
	withTLV = append(withTLV, 0x04, 0, 4, 'n', 'o', 'o', 'p') // PP2_TYPE_NOOP
	local := AppendProxyV2(nil, netip.AddrPort{}, netip.AddrPort{})
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, PerSecond: 10_000, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for name, row := range map[string]struct {
		header []byte
		remote string // "": the peer itself
	}{
		"v1 TCP4":     {[]byte("PROXY TCP4 203.0.113.9 10.0.0.5 48930 25565\r\n"), source},
		"v1 TCP6":     {[]byte("PROXY TCP6 2001:db8::9 2001:db8::5 48930 25565\r\n"), six},
		"v1 UNKNOWN":  {[]byte("PROXY UNKNOWN\r\n"), ""},
		"v2 TCP4":     {AppendProxyV2(nil, ap(source), ap("10.0.0.5:25565")), source},
		"v2 TCP6":     {AppendProxyV2(nil, ap(six), ap("[2001:db8::5]:25565")), six},
		"v2 with TLV": {withTLV, source},
		"v2 LOCAL":    {local, ""},
		"none":        {nil, ""},
	} {
		for _, cut := range []int{0, 1, 5, 12, 15, len(row.header) - 1} {
			cut = max(min(cut, len(row.header)), 0)
			p := connect(t, s)
			p.send(t, row.header[:cut])
			p.send(t, row.header[cut:])
			sent := p.login(t, "a", intentLogin)
			a := next(t, fmt.Sprintf("arrival of %s, cut at %d", name, cut), router.arrivals)
			b.accept().got(t, sent)
			want := addrPort(p.LocalAddr())
			if row.remote != "" {
				want = ap(row.remote)
			}
			if a.Remote != want {
				t.Errorf("%s, cut at %d: from %s, want %s", name, cut, a.Remote, want)
			}
			p.Close()
		}
	}
	stranger := run(t, Config{Router: always(Decision{})})
	for _, header := range [][]byte{[]byte("PROXY TCP4 203.0.113.9 10.0.0.5 48930 25565\r\n"), AppendProxyV2(nil, ap(source), ap("10.0.0.5:25565"))} {
		p := connect(t, stranger)
		p.send(t, header)
		p.ended(t)
	}
	if got := stranger.Counts().Malformed; got != 2 {
		t.Errorf("%d headers of strangers were counted, want 2", got)
	}
}

// TestCase076_StatusInOneSegment: handshake, question and ping are answered however they are cut.
func TestCase076_StatusInOneSegment(t *testing.T) {
	s := run(t, Config{Router: always(Decision{}), PerSecond: 10_000})
	all := join(hello(767, "play.example.test", intentStatus), appendFrame(nil, 0, nil), appendFrame(nil, 1, []byte("12345678")))
	for size := len(all); size > 0; size = min(size-1, size/2+8) {
		p := connect(t, s)
		for i := 0; i < len(all); i += size {
			p.send(t, all[i:min(i+size, len(all))])
		}
		if f, err := readFrame(p.r, 0); err != nil || f.id() != 0 {
			t.Fatalf("in pieces of %d: status %v, %v", size, f, err)
		}
		if f, err := readFrame(p.r, 1); err != nil || f.id() != 1 || string(f.payload()) != "12345678" {
			t.Fatalf("in pieces of %d: pong %v, %v", size, f, err)
		}
	}
}

// TestCase077_StatusForEachVersion: no answer is kept for the next one who asks: each client reads its own version, and the
// state as it is now.
func TestCase077_StatusForEachVersion(t *testing.T) {
	router := &changingStatus{scripted: always(Decision{})}
	s := run(t, Config{Router: router})
	for i, protocol := range []int32{767, 47, 774, 767} {
		router.online = i
		p := connect(t, s)
		p.send(t, hello(protocol, "a", intentStatus), appendFrame(nil, 0, nil))
		f, err := readFrame(p.r, 0)
		if err != nil {
			t.Fatal(err)
		}
		c := cursor{b: f.payload()}
		var got statusJSON
		if err := json.Unmarshal([]byte(c.string(maxFrame, "status")), &got); err != nil || got.Version.Protocol != protocol || got.Players.Online != i {
			t.Errorf("protocol %d reads %+v, %v", protocol, got, err)
		}
	}
}

type changingStatus struct {
	*scripted

	online int
}

func (c *changingStatus) Status() Status { return Status{Online: c.online, Max: 20} }

// TestCase079_JoinsAfterARestart: 200 players of three addresses who come back in one second are let in by the limits as they are shipped;
// who is turned away has a counter of its own.
func TestCase079_JoinsAfterARestart(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	for i := range 200 {
		p := connect(t, s)
		p.send(t, AppendProxyV2(nil, ap(fmt.Sprintf("203.0.113.%d:%d", i%3, 1000+i)), ap("10.0.0.5:25565")))
		p.login(t, "a", intentLogin)
		b.accept().answers(t, p)
		next(t, "arrival", router.arrivals)
	}
	if c := s.Counts(); c.Capped != 0 || c.Malformed != 0 || c.TimedOut != 0 {
		t.Errorf("counts %+v", c)
	}
}
