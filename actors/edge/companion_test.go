package edge

import (
	"log/slog"
	"net"
	"net/netip"
	"testing"
	"time"
)

var atHome = netip.MustParseAddr("127.0.0.1")

// udpSocket is a client, or a server, on loopback.
type udpSocket struct {
	*net.UDPConn
	t *testing.T
}

func newUDP(t *testing.T) udpSocket {
	t.Helper()
	c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(atHome, 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return udpSocket{c, t}
}

func (u udpSocket) at() netip.AddrPort { return u.LocalAddr().(*net.UDPAddr).AddrPort() }

func (u udpSocket) sends(to netip.AddrPort, text string) {
	u.t.Helper()
	if _, err := u.WriteToUDPAddrPort([]byte(text), to); err != nil {
		u.t.Fatal(err)
	}
}

// gets reads one datagram and says where it came from.
func (u udpSocket) gets(want string) netip.AddrPort {
	u.t.Helper()
	buf := make([]byte, 1500)
	u.SetReadDeadline(time.Now().Add(patience))
	n, from, err := u.ReadFromUDPAddrPort(buf)
	if err != nil || string(buf[:n]) != want {
		u.t.Fatalf("got %q (%v), want %q", buf[:n], err, want)
	}
	return from
}

func newTestCompanion(t *testing.T) (*companion, netip.AddrPort) {
	t.Helper()
	c := newCompanion(netip.AddrPortFrom(atHome, 0), slog.New(slog.DiscardHandler))
	if c.conn == nil {
		t.Fatal("no port")
	}
	done := make(chan struct{})
	go func() { defer close(done); c.run() }()
	t.Cleanup(func() {
		c.shut()
		<-done
	})
	return c, c.conn.LocalAddr().(*net.UDPAddr).AddrPort()
}

// TestDatagramsOfASession: they go to its server unchanged, from one source all the time, and answers come back.
func TestDatagramsOfASession(t *testing.T) {
	c, door := newTestCompanion(t)
	client, server := newUDP(t), newUDP(t)
	c.join(1, atHome, server.at())
	client.sends(door, "one")
	source := server.gets("one")
	for _, text := range []string{"two", "three"} {
		client.sends(door, text)
		if from := server.gets(text); from != source {
			t.Errorf("%s came from %s, the first from %s", text, from, source)
		}
	}
	server.sends(source, "answer")
	if from := client.gets("answer"); from != door {
		t.Errorf("answer from %s, want %s", from, door)
	}
}

// TestSiblingsKeepApart: two clients behind one address, on different servers, each speak to their own, and the end of one
// session leaves the other alone.
func TestSiblingsKeepApart(t *testing.T) {
	c, door := newTestCompanion(t)
	first, second, a, b := newUDP(t), newUDP(t), newUDP(t), newUDP(t)
	c.join(1, atHome, a.at())
	first.sends(door, "first")
	toA := a.gets("first")
	a.sends(toA, "known")
	first.gets("known")
	c.join(2, atHome, b.at())
	second.sends(door, "second")
	toB := b.gets("second")
	first.sends(door, "first again")
	if from := a.gets("first again"); from != toA {
		t.Errorf("the first came from %s, then from %s", toA, from)
	}
	c.leave(2)
	first.sends(door, "still here")
	a.gets("still here")
	a.sends(toA, "and heard")
	first.gets("and heard")
	b.sends(toB, "late") // of a session that has ended, and whose socket may still stand
}

// TestDatagramsFollowTheSession: after a redirect they go to the new server; the socket stays when that is the same one.
func TestDatagramsFollowTheSession(t *testing.T) {
	c, door := newTestCompanion(t)
	client, a, b := newUDP(t), newUDP(t), newUDP(t)
	c.join(1, atHome, a.at())
	client.sends(door, "on a")
	source := a.gets("on a")
	c.leave(1)
	c.join(2, atHome, a.at())
	client.sends(door, "on a again")
	if from := a.gets("on a again"); from != source {
		t.Errorf("the same server sees another source: %s, before %s", from, source)
	}
	c.leave(2)
	c.join(3, atHome, b.at())
	client.sends(door, "on b")
	back := b.gets("on b")
	b.sends(back, "hello")
	client.gets("hello")
	a.sends(source, "from the old server")
	b.sends(back, "after it")
	client.gets("after it")
}

// TestDatagramsWithoutASession lead nowhere, nor do those of a session that has ended.
func TestDatagramsWithoutASession(t *testing.T) {
	c, _ := newTestCompanion(t)
	client, server := newUDP(t), newUDP(t)
	c.pass(client.at(), []byte("nobody knows me"))
	c.join(1, netip.MustParseAddr("203.0.113.9"), server.at())
	c.pass(client.at(), []byte("another address"))
	c.join(2, netip.AddrFrom16(atHome.As16()), server.at()) // mapped: it is the same one
	c.pass(client.at(), []byte("here I am"))
	server.gets("here I am")
	c.leave(2)
	c.pass(client.at(), []byte("too late"))
	c.join(3, atHome, server.at())
	c.pass(client.at(), []byte("back"))
	server.gets("back")
}

// TestFlowsOfTheWrongSession: which of two sessions a datagram belongs to is a guess; a server that does not answer was
// the wrong one.
func TestFlowsOfTheWrongSession(t *testing.T) {
	c, a, b := &companion{flows: map[netip.AddrPort]*flow{}, log: slog.New(slog.DiscardHandler)}, newUDP(t), newUDP(t)
	defer c.wg.Wait()
	defer c.shut()
	c.join(1, atHome, a.at())
	c.join(2, atHome, b.at())
	now, from := time.Now(), netip.AddrPortFrom(atHome, 5555)
	if f := c.flowOf(from, now); f.session != 2 {
		t.Fatalf("taken for session %d, want the newest", f.session)
	}
	if f := c.flowOf(from, now.Add(flowPatience-1)); f.session != 2 {
		t.Fatalf("session %d, before the server could answer", f.session)
	}
	f := c.flowOf(from, now.Add(flowPatience))
	if f.session != 1 {
		t.Fatalf("session %d, want the other one", f.session)
	}
	if again := c.flowOf(from, now.Add(10*flowPatience)); again != f {
		t.Error("and back again")
	}
	other := c.flowOf(netip.AddrPortFrom(atHome, 6666), now)
	if other == nil || other.session != 2 {
		t.Errorf("the sibling got %+v", other)
	}
	c.sweep(now.Add(11*flowPatience + flowIdle))
	if len(c.flows) != 0 {
		t.Errorf("%d flows that nobody uses", len(c.flows))
	}
}

// TestFlowsAreBounded: one address cannot hold any number of sockets.
func TestFlowsAreBounded(t *testing.T) {
	c, server := &companion{flows: map[netip.AddrPort]*flow{}, log: slog.New(slog.DiscardHandler)}, newUDP(t)
	defer c.wg.Wait()
	defer c.shut()
	for i := range 2 * flowsPerHost {
		c.join(uint64(i+1), atHome, server.at())
		c.flowOf(netip.AddrPortFrom(atHome, uint16(1000+i)), time.Now())
	}
	if len(c.flows) != flowsPerHost {
		t.Errorf("%d flows, want %d", len(c.flows), flowsPerHost)
	}
}

// TestPortTaken: the edge serves TCP, and clients fall back to it.
func TestPortTaken(t *testing.T) {
	taken := newUDP(t)
	c := newCompanion(taken.at(), slog.New(slog.DiscardHandler))
	c.run()
	c.join(1, atHome, taken.at())
	c.leave(1)
	c.shut()
}
