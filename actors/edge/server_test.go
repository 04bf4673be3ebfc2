package edge

import (
	"context"
	"io"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"
)

func TestProxyV2TowardsBackend(t *testing.T) {
	b := newBackend(t)
	d := b.to()
	d.ProxyV2 = true
	s := run(t, Config{Router: always(d)})
	p := connect(t, s)
	sent := p.login(t, "play.example.test", intentLogin)
	b.accept().got(t, append(AppendProxyV2(nil, addrPort(p.LocalAddr()), s.Addr()), sent...))
}

func TestProxyFromTrustedPeer(t *testing.T) {
	source, destination := ap("[2001:db8::9]:48930"), ap("203.0.113.5:25565")
	for name, header := range map[string][]byte{
		"v2":   AppendProxyV2(nil, source, destination),
		"v1":   []byte("PROXY TCP6 2001:db8::9 ::ffff:203.0.113.5 48930 25565\r\n"),
		"none": nil,
	} {
		b := newBackend(t)
		d := b.to()
		d.ProxyV2 = true
		router := always(d)
		s := run(t, Config{Router: router, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
		p := connect(t, s)
		sent := join(hello(767, "a", 2), start("Bot0", offlineBot0[:]))
		p.send(t, header, sent)
		want := AppendProxyV2(nil, source, destination)
		if header == nil {
			want = AppendProxyV2(nil, addrPort(p.LocalAddr()), s.Addr())
		}
		b.accept().got(t, append(want, sent...))
		if a := next(t, "arrival", router.arrivals); header != nil && a.Remote != source {
			t.Fatalf("%s: remote %v", name, a.Remote)
		}
	}
}

func TestProxyHeaderFromStrangerIsGarbage(t *testing.T) {
	router := always(Decision{})
	s := run(t, Config{Router: router, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}})
	p := connect(t, s)
	p.send(t, AppendProxyV2(nil, ap("1.2.3.4:5"), ap("1.2.3.4:5")))
	p.ended(t)
	if len(router.arrivals) != 0 {
		t.Fatal("the router was asked")
	}
}

func TestGarbageIsClosedCleanly(t *testing.T) {
	router := always(Decision{Refuse: "routed"})
	s := run(t, Config{Router: router})
	for range 3 {
		p := connect(t, s)
		p.send(t, []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), make([]byte, 8000))
		p.ended(t)
		p.Close()
	}
	if c := s.Counts(); c.Malformed != 3 || len(router.arrivals) != 0 {
		t.Fatalf("counts %+v", c)
	}
}

func TestSlowLorisIsClosed(t *testing.T) {
	s := run(t, Config{Router: always(Decision{}), OpeningTimeout: 50 * time.Millisecond})
	silent, half := connect(t, s), connect(t, s)
	half.send(t, hello(767, "a", 2)[:5])
	silent.ended(t)
	half.ended(t)
	silent.Close()
	half.Close()
	s.stop()
	if c := s.Counts(); c.TimedOut != 2 || c.Malformed != 0 {
		t.Fatalf("counts %+v", c)
	}
}

func TestStopDoesNotWaitForSilentClients(t *testing.T) {
	s := run(t, Config{Router: always(Decision{}), OpeningTimeout: time.Hour})
	p := connect(t, s)
	p.send(t, []byte{0x18})
	for end := time.Now().Add(patience); s.Counts().Pending == 0; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("the connection was not accepted")
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	p.ended(t)
	p.Close()
	next(t, "stop", ended)
}

func TestPerIPCap(t *testing.T) {
	b := newBackend(t)
	release := make(chan struct{})
	router := newScripted(func(ctx context.Context, _ Arrival) Decision {
		select {
		case <-release:
		case <-ctx.Done():
		}
		return b.to()
	})
	s := run(t, Config{Router: router, PendingPerIP: 2})
	held := []*player{connect(t, s), connect(t, s)}
	for _, p := range held {
		p.login(t, "a", intentLogin)
		next(t, "arrival", router.arrivals)
	}
	over := connect(t, s)
	over.ended(t)
	if c := s.Counts(); c.Pending != 2 || c.Capped != 1 {
		t.Fatalf("counts %+v", c)
	}
	close(release) // spliced connections do not count
	next(t, "opened", router.opened)
	next(t, "opened", router.opened)
	again := connect(t, s)
	again.login(t, "a", intentLogin)
	next(t, "opened", router.opened)
}

func TestPerIPCapBehindTrustedProxy(t *testing.T) {
	router, _ := holding()
	s := run(t, Config{Router: router, PendingPerIP: 1, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	from := func(addr string) *player {
		p := connect(t, s)
		p.send(t, AppendProxyV2(nil, ap(addr), ap("203.0.113.5:25565")))
		p.login(t, "a", intentLogin)
		return p
	}
	from("[2001:db8::1]:1")
	next(t, "arrival", router.arrivals)
	from("[2001:db8::2]:1").ended(t) // the same /64
	from("[2001:db8:0:1::1]:1")
	next(t, "arrival", router.arrivals)
	s.stop()
}

func TestStatusOverTCP(t *testing.T) {
	s := run(t, Config{Router: always(Decision{})})
	p := connect(t, s)
	p.send(t, hello(767, "a", 1), appendFrame(nil, 0, nil), appendFrame(nil, 1, []byte("12345678")))
	if f, err := readFrame(p.r, 0); err != nil || !strings.Contains(string(f.payload()), `"protocol":767`) {
		t.Fatalf("status %v", err)
	}
	if f, err := readFrame(p.r, 1); err != nil || string(f.payload()) != "12345678" {
		t.Fatalf("pong %v", err)
	}
	p.ended(t)
	if c := s.Counts(); c.Pings != 1 {
		t.Fatalf("counts %+v", c)
	}
	beta := connect(t, s)
	beta.send(t, []byte{0xFE})
	beta.CloseWrite()
	answer, err := io.ReadAll(beta.r)
	if got := legacyText(t, answer); err != nil || got != "Landfall§7§100" {
		t.Fatalf("beta ping answered %q, %v", got, err)
	}
}

func TestNewRefuses(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	router := always(Decision{})
	for want, cfg := range map[string]Config{
		"no router":              {Listen: "127.0.0.1:0"},
		"no listen address":      {Router: router},
		"identity \"maybe\"":     {Router: router, Listen: "127.0.0.1:0", Identity: "maybe"},
		"negative time-out":      {Router: router, Listen: "127.0.0.1:0", DialTimeout: -1},
		"negative limit":         {Router: router, Listen: "127.0.0.1:0", PendingPerIP: -1},
		"is no CIDR":             {Router: router, Listen: "127.0.0.1:0", TrustedProxies: make([]netip.Prefix, 1)},
		"another process holds":  {Router: router, Listen: l.Addr().String()},
		"correct the listen add": {Router: router, Listen: "127.0.0.1:notaport"},
	} {
		if s, err := New(cfg); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("want %q, got %v", want, err)
			if s != nil {
				s.Close()
			}
		}
	}
}

func TestClosedServerIsNotRunning(t *testing.T) {
	s, err := New(Config{Router: always(Decision{}), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Fatalf("Run on a closed server: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	noGoroutineLeft(t)
}

// TestAFloodHindersNobodyElse: one source opens far more connections than it may, silent ones and
// garbage; who comes from elsewhere meanwhile is let through to the backend.
func TestAFloodHindersNobodyElse(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{
		Router: router, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		PendingPerIP: 8, Pending: 64, PerSecond: 10, OpeningTimeout: time.Hour, FirstByteTimeout: time.Hour,
	})
	header := AppendProxyV2(nil, ap("198.51.100.7:4000"), ap("203.0.113.5:25565"))
	flood := func(say []byte) {
		p := connect(t, s)
		p.send(t, header, say)
	}
	for i := range 400 {
		if i%2 == 0 {
			flood(nil) // held open
		} else {
			flood([]byte("GET / HTTP/1.1\r\n\r\n"))
		}
	}
	for _, from := range []string{"203.0.113.9:1", "203.0.113.10:1", "[2001:db8::1]:1"} {
		p := connect(t, s)
		p.send(t, AppendProxyV2(nil, ap(from), ap("203.0.113.5:25565")))
		p.login(t, "a", intentLogin)
		next(t, "opened", router.opened)
	}
	for end := time.Now().Add(patience); s.Counts().Capped < 400-4*10; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("counts %+v", s.Counts())
		}
	}
	if c := s.Counts(); c.Pending > 8+3 {
		t.Errorf("counts %+v", c)
	}
}

// TestSilenceIsCutSooner: who says nothing at all is not waited for as long as who is slow.
func TestSilenceIsCutSooner(t *testing.T) {
	router, _ := holding()
	s := run(t, Config{Router: router, FirstByteTimeout: 50 * time.Millisecond, OpeningTimeout: time.Hour})
	silent, slow := connect(t, s), connect(t, s)
	words := join(hello(767, "a", intentLogin), start("Bot0", offlineBot0[:]))
	slow.send(t, words[:3])
	silent.ended(t)
	if c := s.Counts(); c.TimedOut != 1 {
		t.Errorf("counts %+v", c)
	}
	slow.send(t, words[3:])
	next(t, "arrival", router.arrivals)
	silent.Close()
	s.stop()
}

// TestWhoseHeaderIsBelieved: CIDRs of both families beside each other, also for peers whose IPv4
// address a socket shows inside IPv6.
func TestWhoseHeaderIsBelieved(t *testing.T) {
	s := &Server{cfg: Config{TrustedProxies: []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8:1::/48"), netip.MustParsePrefix("192.0.2.7/32"), netip.MustParsePrefix("::1/128"),
	}}}
	for addr, want := range map[string]bool{
		"10.200.0.1": true, "::ffff:10.200.0.1": true, "11.0.0.1": false, "192.0.2.7": true, "192.0.2.8": false,
		"2001:db8:1::9": true, "2001:db8:2::9": false, "::1": true, "127.0.0.1": false, "fe80::1%eth0": false, "::ffff:11.0.0.1": false,
	} {
		peer, known := tcpAddrPort(net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(addr), 1)))
		if got := known && s.trusts(peer.Addr()); got != want {
			t.Errorf("%s is believed: %v, want %v", addr, got, want)
		}
	}
}
