package edge

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
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
			Protocol: o.protocol, Host: "play.example.test", Intent: 2, Remote: addrPort(p.LocalAddr()), Game: Minecraft,
		}
		if fmt.Sprint(a) != fmt.Sprint(want) || a.HasUUID != (a.ClaimedUUID == offlineBot0) {
			t.Fatalf("%s: arrival %+v\nwant %+v", o.version, a, want)
		}
		opened := next(t, "opened", router.opened)
		if opened.Dialled <= 0 || opened.Dialled > time.Second {
			t.Errorf("dialled in %s", opened.Dialled)
		}
		if opened != (Connection{a.ConnID, "Bot0", offlineBot0, "survival-1", o.protocol, "play.example.test", a.Remote, opened.Dialled, Minecraft, ""}) {
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
	server.answers(t, p)
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
		server.answers(t, p)
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

func TestManyPlayersAtOnce(t *testing.T) {
	const players = 200
	b := newBackend(t)
	router := always(b.to())
	s := run(t, Config{Router: router, PendingPerIP: players, PerSecond: players})
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
