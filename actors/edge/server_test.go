package edge

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestLoginIsSplicedUntouched(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, Domain: "Play.Example.Test.", Identity: Offline})
	for _, o := range openings(t) {
		p := connect(t, s)
		p.send(t, o.bytes, []byte("read ahead"))
		server := b.accept()
		server.got(t, append(o.bytes, "read ahead"...))

		a := next(t, "arrival", router.arrivals)
		want := Arrival{
			ConnID: a.ConnID, Name: "Bot0", ClaimedUUID: a.ClaimedUUID, HasUUID: o.protocol >= 760, Player: offlineBot0,
			Protocol: o.protocol, Host: "play.example.test", Intent: 2, Remote: addrPort(p.LocalAddr()),
		}
		if fmt.Sprint(a) != fmt.Sprint(want) || a.HasUUID != (a.ClaimedUUID == offlineBot0) {
			t.Fatalf("%s: arrival %+v\nwant %+v", o.version, a, want)
		}
		opened := next(t, "opened", router.opened)
		if opened != (Connection{a.ConnID, "Bot0", offlineBot0, "survival-1", o.protocol, "play.example.test", a.Remote}) {
			t.Fatalf("opened %+v", opened)
		}
		server.send(t, []byte("down"))
		p.got(t, []byte("down"))
		p.send(t, []byte("up"))
		server.got(t, []byte("up"))
		if c := s.Counts(); c.Spliced != 1 || c.Pending != 0 {
			t.Fatalf("counts %+v", c)
		}
		p.Close()
		server.ended(t)
		server.Close()
		if c := next(t, "closed", router.closed); c.Connection != opened || c.reason != ClosedByClient {
			t.Fatalf("closed %+v", c)
		}
	}
}

func addrPort(a net.Addr) netip.AddrPort { return a.(*net.TCPAddr).AddrPort() }

func TestTokenHostAndRewrittenIntent(t *testing.T) {
	for _, rewrite := range []bool{false, true} {
		b := newBackend(t)
		d := b.to()
		d.RewriteIntent = rewrite
		router := always(d)
		s := run(t, Config{Router: router, Domain: "play.example.test"})
		p := connect(t, s)
		host := token + ".Play.example.test.\x00FML3\x00"
		want := p.login(t, host, intentTransfer)
		if rewrite {
			want = join(hello(767, host, intentLogin), start("Bot0", offlineBot0[:]))
		}
		b.accept().got(t, want)
		if a := next(t, "arrival", router.arrivals); a.TokenLabel != token || a.Intent != 3 || a.Player != offlineBot0 {
			t.Fatalf("arrival %+v", a)
		}
		p.Close()
		s.stop()
		if strings.Contains(s.log.String(), token[:20]) {
			t.Fatalf("the token is in the log:\n%s", s.log)
		}
	}
}

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

func TestDeadBackendNextAttempt(t *testing.T) {
	b := newBackend(t)
	dead := deadAddress(t)
	router := newScripted(func(_ context.Context, a Arrival) Decision {
		if len(a.Failed) < 2 {
			return Decision{Server: fmt.Sprint("dead-", len(a.Failed)), Address: dead}
		}
		return b.to()
	})
	s := run(t, Config{Router: router})
	p := connect(t, s)
	b0 := p.login(t, "a", intentTransfer)
	b.accept().got(t, b0)
	first, second, third := next(t, "arrival", router.arrivals), next(t, "arrival", router.arrivals), next(t, "arrival", router.arrivals)
	if first.Failed != nil || fmt.Sprint(second.Failed) != "[dead-0]" || fmt.Sprint(third.Failed) != "[dead-0 dead-1]" || third.ConnID != first.ConnID {
		t.Fatalf("failed %v, %v, %v", first.Failed, second.Failed, third.Failed)
	}
	if c := next(t, "opened", router.opened); c.Server != "survival-1" || s.Counts().Undialled != 2 {
		t.Fatalf("opened %+v, counts %+v", c, s.Counts())
	}
}

func TestAllBackendsDead(t *testing.T) {
	router := always(Decision{Server: "dead", Address: deadAddress(t)})
	s := run(t, Config{Router: router})
	p := connect(t, s)
	p.login(t, "a", intentLogin)
	if got := p.kicked(t); got != "That server is not reachable, try again" {
		t.Fatalf("text %q", got)
	}
	if len(router.arrivals) != 4 || len(router.opened) != 0 {
		t.Fatalf("%d routes, %d opened", len(router.arrivals), len(router.opened))
	}
}

func TestBackendThatClosesWithoutAWord(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router})
	p := connect(t, s)
	sent := p.login(t, "a", intentLogin)
	server := b.accept()
	server.got(t, sent)
	server.Close()
	if got := p.kicked(t); got != "That server is not reachable, try again" {
		t.Fatalf("text %q", got)
	}
	p.Close()
	if c := next(t, "closed", router.closed); c.reason != ClosedByBackend {
		t.Fatalf("closed %+v", c)
	}
}

func TestRefusalIsShown(t *testing.T) {
	s := run(t, Config{Router: always(Decision{Refuse: `No room. "Wait"`, Code: "FULL"})})
	p := connect(t, s)
	p.login(t, "a", intentLogin)
	if got := p.kicked(t); got != `No room. "Wait"` {
		t.Fatalf("text %q", got)
	}
}

func TestBadNameIsToldWhy(t *testing.T) {
	router := always(Decision{Refuse: "routed"})
	s := run(t, Config{Router: router})
	p := connect(t, s)
	p.send(t, hello(767, "a", 2), start(".Bedrock", offlineBot0[:]))
	if got := p.kicked(t); got != "This network does not accept that player name" || len(router.arrivals) != 0 {
		t.Fatalf("text %q", got)
	}
}

// holding blocks in Route until its context ends, and tells why.
func holding() (*scripted, chan error) {
	causes := make(chan error, 16)
	return newScripted(func(ctx context.Context, _ Arrival) Decision {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		return Decision{Server: "late", Address: "127.0.0.1:1"}
	}), causes
}

func TestClientLeavesWhileHeld(t *testing.T) {
	router, causes := holding()
	s := run(t, Config{Router: router})
	p := connect(t, s)
	p.login(t, "a", intentTransfer)
	next(t, "arrival", router.arrivals)
	p.Close()
	if err := next(t, "end of the hold", causes); err != errClientLeft {
		t.Fatalf("cause %v", err)
	}
	s.stop()
	if len(router.arrivals) != 0 || len(router.opened) != 0 {
		t.Fatal("the login went on")
	}
}

func TestHeldLoginIsCutOrStoppedOrLate(t *testing.T) {
	router, causes := holding()
	s := run(t, Config{Router: router})

	p := connect(t, s)
	p.login(t, "a", intentTransfer)
	if id := next(t, "arrival", router.arrivals).ConnID; !s.Disconnect(id) || s.Disconnect(id+1000) {
		t.Fatal("Disconnect does not know its own")
	}
	next(t, "cut", causes)
	if got := p.kicked(t); got != "The connection was closed, try again" {
		t.Fatalf("text %q", got)
	}

	p = connect(t, s)
	p.login(t, "a", intentTransfer)
	next(t, "arrival", router.arrivals)
	ended := make(chan error, 1)
	go func() { ended <- s.stop() }()
	if got := p.kicked(t); got != "This entrance is restarting, try again" {
		t.Fatalf("text %q", got)
	}
	if err := next(t, "stop", ended); err != nil {
		t.Fatal(err)
	}

	s = run(t, Config{Router: router, RouteTimeout: time.Millisecond})
	p = connect(t, s)
	p.login(t, "a", intentTransfer)
	if got := p.kicked(t); got != "No server answered in time, try again" {
		t.Fatalf("text %q", got)
	}
}

// The backend's last words (a kick) arrive although the client was still sending and
// the backend is gone.
func TestHalfCloseDeliversTheLastKick(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router})
	p := connect(t, s)
	sent := p.login(t, "a", intentLogin)
	server := b.accept()
	server.got(t, sent)
	kick := appendDisconnect(nil, strings.Repeat("You are banned. ", 2000))
	server.send(t, kick)
	server.Close()
	for range 20 {
		p.Write(make([]byte, 4096)) // nobody reads this any more
	}
	p.got(t, kick)
	p.ended(t)
	p.Close()
	if c := next(t, "closed", router.closed); c.reason != ClosedByBackend {
		t.Fatalf("closed %+v", c)
	}
}

func TestHalfCloseIsPassedOn(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router})
	p := connect(t, s)
	sent := p.login(t, "a", intentLogin)
	server := b.accept()
	server.got(t, sent)
	p.CloseWrite()
	server.ended(t) // sees the end, and can still answer
	server.send(t, []byte("bye"))
	server.Close()
	p.got(t, []byte("bye"))
	p.ended(t)
	if c := next(t, "closed", router.closed); c.reason != ClosedByClient {
		t.Fatalf("closed %+v", c)
	}
}

func TestHalfOpenIsEndedAfterGrace(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, HalfCloseGrace: 50 * time.Millisecond})
	p := connect(t, s)
	sent := p.login(t, "a", intentLogin)
	server := b.accept()
	server.got(t, sent)
	server.send(t, []byte("x"))
	server.CloseWrite() // and never closes, as the client does not
	p.got(t, []byte("x"))
	p.ended(t)
	if c := next(t, "closed", router.closed); c.reason != ClosedByBackend {
		t.Fatalf("closed %+v", c)
	}
}

func TestDisconnectAndStopEndSpliced(t *testing.T) {
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router})
	for _, reason := range []string{ClosedByUs, ClosedByStop} {
		p := connect(t, s)
		sent := p.login(t, "a", intentLogin)
		server := b.accept()
		server.got(t, sent)
		id := next(t, "opened", router.opened).ConnID
		if reason == ClosedByUs {
			s.Disconnect(id)
		} else {
			go s.stop()
		}
		p.ended(t)
		server.ended(t)
		p.Close()
		if c := next(t, "closed", router.closed); c.reason != reason || c.ConnID != id {
			t.Fatalf("closed %+v, want %s", c, reason)
		}
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

func TestManyPlayersAtOnce(t *testing.T) {
	const players = 200
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, PendingPerIP: players})
	var echo, all sync.WaitGroup
	echo.Go(func() {
		for range players {
			server := <-b.conns
			echo.Go(func() {
				defer server.Close()
				io.Copy(server, server.r)
			})
		}
	})
	for i := range players {
		p := connect(t, s)
		all.Go(func() {
			defer p.Close()
			body := binary.BigEndian.AppendUint32(nil, uint32(i))
			sent := join(hello(767, "a", 2), start(fmt.Sprint("Bot", i), offlineBot0[:]), body)
			p.Write(sent)
			got := make([]byte, len(sent))
			if n, err := io.ReadFull(p.r, got); err != nil || string(got) != string(sent) {
				t.Errorf("player %d: %d of %d bytes, %v", i, n, len(sent), err)
			}
			p.CloseWrite()
			if rest, err := io.ReadAll(p.r); err != nil || len(rest) != 0 {
				t.Errorf("player %d: % x and %v after the end", i, rest, err)
			}
		})
	}
	all.Wait()
	echo.Wait()
	for range players {
		next(t, "closed", router.closed)
	}
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

func TestFileLimitText(t *testing.T) {
	if got := fileLimitText(2000, 12256); got != "" {
		t.Errorf("enough is not enough: %s", got)
	}
	if got := fileLimitText(2000, 1024); !strings.Contains(got, "12256") || !strings.Contains(got, "1024") {
		t.Errorf("warning %q", got)
	}
	if _, err := os.Stat("/proc/self"); err == nil && fileLimitWarning(1<<40) == "" {
		t.Error("a trillion players fit")
	}
}
