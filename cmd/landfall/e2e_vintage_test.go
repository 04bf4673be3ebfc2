package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/edge/marker"
	"github.com/landfall/landfall/actors/edge/vintage"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// storyServer is a game server that speaks Vintage Story as far as a client needs to come in: it answers a server list, hands
// out a login token, lets each account in once per token, and then sends without end.
type storyServer struct {
	t    *testing.T
	name string
	tcp  *net.TCPListener
	udp  *net.UDPConn
	all  sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]bool
	inside map[string]int // by account
	firsts [][]byte       // what each connection began with
	logins []string
}

func startStory(t *testing.T, name string) *storyServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(l.Addr().(*net.TCPAddr).AddrPort()))
	if err != nil {
		t.Fatal(err)
	}
	s := &storyServer{t: t, name: name, tcp: l.(*net.TCPListener), udp: u, conns: map[net.Conn]bool{}, inside: map[string]int{}}
	s.all.Go(s.accept)
	s.all.Go(s.echo)
	t.Cleanup(func() {
		l.Close()
		u.Close()
		s.mu.Lock()
		for c := range s.conns {
			c.Close()
		}
		s.mu.Unlock()
		s.all.Wait()
	})
	return s
}

func (s *storyServer) address() string { return s.tcp.Addr().String() }

func (s *storyServer) accept() {
	for {
		c, err := s.tcp.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.all.Go(func() {
			defer c.Close()
			s.serve(c)
		})
	}
}

// echo answers each datagram with the server's name.
func (s *storyServer) echo() {
	buf := make([]byte, 1500)
	for {
		n, from, err := s.udp.ReadFromUDPAddrPort(buf)
		if err != nil {
			return
		}
		_, _ = s.udp.WriteToUDPAddrPort([]byte(s.name+" heard "+string(buf[:n])), from)
	}
}

func (s *storyServer) serve(c net.Conn) {
	var in vintage.Frames
	buf := make([]byte, 4096)
	var uid string
	for first := true; ; {
		f, ok, err := in.Next(vintage.MaxFirst)
		if err != nil {
			return
		}
		if !ok {
			n, err := c.Read(buf)
			if first && n > 0 {
				first = false
				s.mu.Lock()
				s.firsts = append(s.firsts, bytes.Clone(buf[:n]))
				s.mu.Unlock()
			}
			in.Add(buf[:n])
			if err != nil {
				s.leaves(uid)
				return
			}
			continue
		}
		if uid = or(uid, s.answer(c, f)); uid == "-" {
			return
		}
	}
}

func or(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// answer gives the account that has come in, "-" for who is sent off.
func (s *storyServer) answer(c net.Conn, f vintage.Frame) string {
	p, err := vintage.ParseClient(f.Payload())
	if err != nil {
		return "-"
	}
	switch p.Kind {
	case vintage.ServerQuery:
		s.mu.Lock()
		n := len(s.inside)
		s.mu.Unlock()
		_, _ = c.Write(vintage.AppendQueryAnswer(nil, vintage.Answer{Name: s.name, Players: n, Max: 20, Version: "1.22.6"}))
		return "-"
	case vintage.LoginTokenQuery:
		_, _ = c.Write([]byte{0, 0, 0, 3, 0xEA, 0x04, 0x00})
	case vintage.Identification:
		s.mu.Lock()
		s.inside[p.UID]++
		s.logins = append(s.logins, p.Name)
		s.mu.Unlock()
		_, _ = c.Write(vintage.AppendServerIdentification(nil))
		s.all.Go(func() { // the world, in frames of some size, as long as somebody listens
			chunk := append([]byte{0, 0, 0x40, 0, 0x1A}, make([]byte, 0x4000-1)...)
			for every := time.NewTicker(time.Millisecond); ; <-every.C {
				if _, err := c.Write(chunk); err != nil {
					return
				}
			}
		})
		return p.UID
	default:
	}
	return ""
}

func (s *storyServer) leaves(uid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inside[uid]--; s.inside[uid] <= 0 {
		delete(s.inside, uid)
	}
}

// storyPlayer is a client: it comes in, follows redirects, and keeps the marker's rules if it knows any.
type storyPlayer struct {
	t      *testing.T
	name   string
	memory *marker.Memory // nil: a client that knows no markers
	udp    *net.UDPConn
	door   string // where its last connection led
	conn   net.Conn
	in     vintage.Frames
	shown  string // the display name of the last redirect
	host   string
}

func newStoryPlayer(t *testing.T, name string, marks bool) *storyPlayer {
	t.Helper()
	u, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := &storyPlayer{t: t, name: name, udp: u}
	if marks {
		p.memory = &marker.Memory{}
	}
	t.Cleanup(func() {
		u.Close()
		if p.conn != nil {
			p.conn.Close()
		}
	})
	return p
}

func (p *storyPlayer) uid() string         { return "uid/" + p.name }
func (p *storyPlayer) id() events.PlayerID { return events.NativePlayer("vintagestory", p.uid()) }

const storyHost = domain + ":42420"

// dials opens a connection and sends what a client begins with. Which of the doors behind the one name it gets to is not its choice.
func (p *storyPlayer) dials(door string) {
	p.t.Helper()
	if p.conn != nil {
		p.conn.Close()
	}
	c, err := net.Dial("tcp", door)
	if err != nil {
		p.t.Fatal(err)
	}
	p.conn, p.door, p.in = c, door, vintage.Frames{}
	c.SetDeadline(time.Now().Add(patience))
	var first []byte
	if p.memory != nil {
		first = p.memory.First(marker.Join, storyHost, time.Now())
	}
	if _, err := c.Write(vintage.AppendLoginTokenQuery(first)); err != nil {
		p.t.Fatal(err)
	}
}

// frame reads the next one, whatever its size.
func (p *storyPlayer) frame() (vintage.Server, error) {
	buf := make([]byte, 32<<10)
	for {
		f, ok, err := p.in.Next(vintage.MaxFrame)
		if err != nil {
			return vintage.Server{}, err
		}
		if ok {
			s, _ := vintage.ParseServer(f.Payload()) // what is no packet known here is passed over
			return s, nil
		}
		n, err := p.conn.Read(buf)
		if p.in.Add(buf[:n]); err != nil && n == 0 {
			return vintage.Server{}, err
		}
	}
}

// comes goes through a login; the end is being let in, or being told to dial again.
func (p *storyPlayer) comes(door string) (in bool) {
	p.t.Helper()
	p.dials(door)
	if s, err := p.frame(); err != nil || s.Kind != vintage.Other {
		p.t.Fatalf("%s at %s: %+v %v instead of a token", p.name, door, s, err)
	}
	if _, err := p.conn.Write(vintage.AppendIdentification(nil, p.name, p.uid())); err != nil {
		p.t.Fatal(err)
	}
	return p.reads() == vintage.ServerIdentification
}

// reads goes on until the client is let in, or told to dial again. An end is what it is told, too.
func (p *storyPlayer) reads() vintage.Kind {
	p.t.Helper()
	for {
		s, err := p.frame()
		if err != nil {
			p.t.Fatalf("%s, at %s: %v", p.name, p.door, err)
		}
		switch s.Kind {
		case vintage.ServerIdentification:
			return s.Kind
		case vintage.Redirect:
			p.shown, p.host = s.Name, s.Host
			if p.memory != nil {
				p.shown = p.memory.Redirected(s.Name, storyHost, time.Now())
			}
			if _, err := io.ReadAll(p.conn); err != nil {
				p.t.Fatalf("%s, behind the redirect: %v", p.name, err)
			}
			return s.Kind
		case vintage.Disconnect:
			p.t.Fatalf("%s, at %s: sent off: %s", p.name, p.door, s.Reason)
		default:
		}
	}
}

// speaks sends datagrams to the port that it dialled until it is answered, and gives the answer.
func (p *storyPlayer) speaks() string {
	p.t.Helper()
	to, err := net.ResolveUDPAddr("udp", p.door)
	if err != nil {
		p.t.Fatal(err)
	}
	buf := make([]byte, 1500)
	for range 100 {
		if _, err := p.udp.WriteToUDP([]byte(p.name), to); err != nil {
			p.t.Fatal(err)
		}
		p.udp.SetReadDeadline(time.Now().Add(patience / 100))
		if n, err := p.udp.Read(buf); err == nil {
			return string(buf[:n])
		}
	}
	p.t.Fatalf("%s is not heard", p.name)
	return ""
}

// TestVintageStory plays it through real processes: two edges behind one name, three servers, and players who share an address.
func TestVintageStory(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "landfall")
	output(t, ".", "go", "build", "-o", binary, ".")
	town, east, west := startStory(t, "town"), startStory(t, "east"), startStory(t, "west")
	doors := [2]string{fmt.Sprintf("127.0.0.1:%d", freePort(t)), fmt.Sprintf("127.0.0.1:%d", freePort(t))}
	own := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	edgeOf := func(id, listen, more string) string {
		return fmt.Sprintf("  %s: { edges: [ { game: vintagestory, listen: %q, redirectAddress: %q%s } ] }\n", id, listen, storyHost, more)
	}
	serverOf := func(s *storyServer, regions string) string {
		return fmt.Sprintf("  %s: { game: vintagestory, advertise: %q, regions: { %s } }\n", s.name, s.address(), regions)
	}
	n := newTestNetwork(t, binary, carriedYAML("proxy-1", freePort(t))+
		"edge: { domain: "+domain+" }\nrouting: { lobbies: [town] }\n"+
		"triggers: { event: { enabled: true, map: { go-east: { region: east }, go-west: { region: west } } } }\n"+
		"hosts:\n"+edgeOf("proxy-1", doors[0], "")+edgeOf("proxy-2", doors[1], fmt.Sprintf(", dialled: { %q: west }", own))+
		serverOf(town, "")+serverOf(east, "east: { keep: 4, world: \"vintagestory:world\" }")+serverOf(west, "west: { keep: 4, world: \"vintagestory:world\" }"))
	n.up(t, "proxy-1", "proxy-2", "town", "east", "west")
	for _, id := range []events.HostID{"town", "east", "west"} {
		n.ready(t, id)
	}
	on := func(p *storyPlayer, server events.HostID) {
		t.Helper()
		n.until(t, p.name+" on "+string(server), func() bool {
			s, ok := n.Session(p.id())
			return ok && s.Open && s.Server == server
		})
	}
	ended := func(p *storyPlayer) projections.Transfer {
		t.Helper()
		var last projections.Transfer
		n.until(t, "the end of "+p.name+"'s transfer", func() bool {
			done := n.Player(p.id()).Done
			if len(done) > 0 {
				last = done[len(done)-1]
			}
			return len(done) > 0
		})
		return last
	}

	// A server list shows the network.
	c, err := net.Dial("tcp", doors[0])
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(patience))
	if _, err := c.Write(vintage.AppendServerQuery(nil)); err != nil {
		t.Fatal(err)
	}
	listed, err := io.ReadAll(c)
	if err != nil || len(listed) < 5 {
		t.Fatal(listed, err)
	}
	if a, err := vintage.ParseServer(listed[4:]); err != nil || a.Answer.Max != 60 || a.Answer.Version != "1.22.6" {
		t.Errorf("listed as %+v, %v", a, err)
	}

	// Two clients that share an address, and one that knows no markers. All begin in town.
	alice, bob, old := newStoryPlayer(t, "alice", true), newStoryPlayer(t, "bob", true), newStoryPlayer(t, "old", false)
	for i, p := range []*storyPlayer{alice, bob, old} {
		if !p.comes(doors[i%2]) {
			t.Fatalf("%s is redirected at once", p.name)
		}
		on(p, "town")
	}
	if heard := alice.speaks(); heard != "town heard alice" {
		t.Errorf("datagrams of alice: %q", heard)
	}

	// They are sent to different servers at once, and come back in the other order, through the other edges.
	n.landfall(t, "trigger", "go-east", "--player", alice.id().String(), "--config", "network.yml")
	n.landfall(t, "trigger", "go-west", "--player", bob.id().String(), "--config", "network.yml")
	_, ownPort, _ := net.SplitHostPort(own)
	for _, row := range []struct {
		*storyPlayer

		server, host string
	}{{alice, "east", domain}, {bob, "west", domain + ":" + ownPort}} { // proxy-2 has an address for west alone
		if got := row.reads(); got != vintage.Redirect || row.shown != row.server || row.storyPlayer.host != row.host {
			t.Fatalf("%s reads %s, %q, %q", row.name, got, row.shown, row.storyPlayer.host)
		}
	}
	if !bob.comes(doors[0]) || !alice.comes(doors[1]) {
		t.Fatal("who shows a marker is redirected again")
	}
	on(bob, "west")
	on(alice, "east")
	for p, server := range map[*storyPlayer]*storyServer{alice: east, bob: west} {
		if end := ended(p); end.Phase != projections.Completed || string(end.Destination()) != server.name {
			t.Errorf("%s: %s %s at %s", p.name, end.Phase, end.Code, end.Destination())
		}
		if heard, want := p.speaks(), server.name+" heard "+p.name; heard != want {
			t.Errorf("datagrams of %s: %q, want %q", p.name, heard, want)
		}
	}

	// Who knows no markers is led by its address, now that nobody else is expected from there, or else after it has said who it is.
	n.landfall(t, "trigger", "go-west", "--player", old.id().String(), "--config", "network.yml")
	if got := old.reads(); got != vintage.Redirect {
		t.Fatalf("old reads %s", got)
	}
	for tries := 0; !old.comes(doors[1]); tries++ {
		if tries == 3 {
			t.Fatal("old is redirected again and again")
		}
	}
	on(old, "west")
	if end := ended(old); end.Phase != projections.Completed {
		t.Errorf("old: %s %s", end.Phase, end.Code)
	}

	// An address of a server's own leads there, whoever dials it.
	vanilla := newStoryPlayer(t, "vanilla", false)
	if !vanilla.comes(own) {
		t.Fatal("redirected from a server's own address")
	}
	on(vanilla, "west")

	// No server has seen a byte of a marker, and nobody logged in where he did not belong.
	for _, s := range []*storyServer{town, east, west} {
		s.mu.Lock()
		for _, first := range s.firsts {
			if bytes.Contains(first, []byte(marker.Magic)) {
				t.Errorf("%s has seen % x", s.name, first)
			}
		}
		t.Log(s.name, s.logins)
		s.mu.Unlock()
	}
	if len(east.logins) != 1 || len(west.logins) != 3 || len(town.logins) != 3 {
		t.Errorf("logins: town %v, east %v, west %v", town.logins, east.logins, west.logins)
	}
	for _, id := range []string{"proxy-1", "proxy-2"} {
		if lines := n.hosts[id].saying("nmbs1"); len(lines) > 0 {
			t.Errorf("%s shows an announcement: %s", id, lines[0])
		}
	}

	// An operator reads what was followed, and no marker.
	routes := n.landfall(t, "tail", "--bucket", "routes", "--store", "landfall-data", "--config", "network.yml")
	for _, want := range []string{"led to east: marker", "led to west: marker"} {
		if !strings.Contains(routes, want) {
			t.Errorf("tail does not say %q:\n%s", want, routes)
		}
	}
	story := n.landfall(t, "replay", "player", alice.id().String(), "--store", "landfall-data", "--config", "network.yml")
	if !strings.Contains(story, "arrived on east") {
		t.Errorf("replay says nothing of the arrival:\n%s", story)
	}

	// An edge that ends says so.
	if err := n.hosts["proxy-1"].cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for {
		s, err := bob.frame()
		if errors.Is(err, io.EOF) {
			t.Error("bob hears nothing of the end")
		}
		if err != nil || s.Kind == vintage.Disconnect {
			break
		}
	}
	<-n.hosts["proxy-1"].exited
	if status := n.hosts["proxy-1"].cmd.ProcessState.ExitCode(); status != statusOK {
		t.Errorf("proxy-1 ended with status %d", status)
	}
}
