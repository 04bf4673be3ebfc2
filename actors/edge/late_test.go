package edge

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/edge/marker"
	"github.com/landfall/landfall/actors/edge/vintage"
)

// tracing is a scripted Router of a game that says late who its clients are.
type tracing struct {
	*scripted
	recognize  func(a Arrival, server string) Again
	recognized chan Arrival
	letIn      chan Connection
	gone       chan uint64
}

func traces(route func(context.Context, Arrival) Decision) *tracing {
	return &tracing{
		scripted: newScripted(route), recognize: func(Arrival, string) Again { return Again{} },
		recognized: make(chan Arrival, 1024), letIn: make(chan Connection, 1024), gone: make(chan uint64, 1024),
	}
}

func (s *tracing) Recognize(_ context.Context, a Arrival, server string) Again {
	s.recognized <- a
	return s.recognize(a, server)
}
func (s *tracing) LetIn(c Connection) { s.letIn <- c }
func (s *tracing) Gone(id uint64)     { s.gone <- id }

// byMarker routes to b who shows this id, everybody else to a.
func byMarker(id marker.ID, a, b *backend) func(context.Context, Arrival) Decision {
	return func(_ context.Context, arrival Arrival) Decision {
		if arrival.Marker == id {
			return Decision{Server: "b", Address: b.to().Address}
		}
		return Decision{Server: "a", Address: a.to().Address}
	}
}

// runLate runs an edge of such a game. Its clients need not wait for the whole of the usual moment.
func runLate(t testing.TB, game Game, r *tracing) *running {
	t.Helper()
	return run(t, Config{Router: r, Game: game, RedirectAddress: "play.example.net:42420", FirstFrameWait: 200 * time.Millisecond})
}

var (
	anID       = marker.ID{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}
	tokenQuery = vintage.AppendLoginTokenQuery(nil)
	alice      = vintage.AppendIdentification(nil, "alice", "uid-123")
	welcome    = vintage.AppendServerIdentification(nil)
	// tokenAnswer is the server's first frame.
	tokenAnswer = []byte{0, 0, 0, 3, 0xEA, 0x04, 0x00}
	chat        = []byte{0, 0, 0, 8, 0x22, 0x06, 0x0A, 0x02, 'h', 'i', 0x10, 0x07}
)

// enters brings a client of Vintage Story into a server, and gives both ends.
func enters(t testing.TB, s *running, r *tracing, b *backend, first ...[]byte) (near, far *player) {
	t.Helper()
	near = connect(t, s)
	near.send(t, join(first...), tokenQuery)
	far = b.accept()
	far.got(t, tokenQuery)
	far.send(t, tokenAnswer)
	near.got(t, tokenAnswer)
	near.send(t, alice)
	far.got(t, alice)
	far.send(t, welcome)
	near.got(t, welcome)
	if c := next(t, "let in", r.letIn); c.NativeID != "uid-123" || c.Name != "alice" {
		t.Errorf("let in: %+v", c)
	}
	return near, far
}

// TestMarkerIsTakenOff: wherever the marker and what follows it are cut, the server sees what follows, and no byte of the
// marker; where it leads, the id decides.
func TestMarkerIsTakenOff(t *testing.T) {
	for _, game := range []Game{VintageStory, TCP} {
		t.Run(string(game), func(t *testing.T) {
			a, b := newBackend(t), newBackend(t)
			s := runLate(t, game, traces(byMarker(anID, a, b)))
			stream := append(marker.Append(nil, anID), tokenQuery...)
			for cut := 1; cut <= len(stream); cut++ {
				near := connect(t, s)
				near.send(t, stream[:cut])
				near.send(t, stream[cut:])
				b.accept().got(t, tokenQuery)
				near.Close()
			}
		})
	}
}

// TestFirstBytesPassUnchanged: without a marker the server sees what the client sent, byte by byte, and so it does with a marker of
// another version or length, which leads nowhere and harms nobody.
func TestFirstBytesPassUnchanged(t *testing.T) {
	later := append([]byte("NMBS\x02\x10"), bytes.Repeat([]byte{7}, 60)...)
	longer := append([]byte("NMBS\x01\x20"), bytes.Repeat([]byte{7}, 60)...)
	for name, row := range map[string]struct {
		game  Game
		bytes []byte
	}{
		"token query":          {VintageStory, tokenQuery},
		"several frames":       {VintageStory, join(tokenQuery, []byte{0, 0, 0, 0}, chat, chat)},
		"empty frames first":   {VintageStory, join([]byte{0, 0, 0, 0, 0, 0, 0, 0}, tokenQuery)},
		"compressed first":     {VintageStory, join([]byte{0x80, 0, 0, 2, 0xAA, 0xBB}, tokenQuery)},
		"identification first": {VintageStory, join(alice, chat)},
		"another version":      {VintageStory, later},
		"another length":       {VintageStory, longer},
		"text":                 {TCP, []byte("GET / HTTP/1.1\r\n\r\n")},
		"one byte":             {TCP, []byte("N")},
		"a marker's beginning": {TCP, []byte("NMBS\x01\x10torn")},
		"version, TCP":         {TCP, later},
		"length, TCP":          {TCP, longer},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newBackend(t), newBackend(t)
			s := runLate(t, row.game, traces(byMarker(anID, a, b)))
			near := connect(t, s)
			near.send(t, row.bytes)
			far := a.accept()
			far.got(t, row.bytes)
			near.CloseWrite()
			far.ended(t)
		})
	}
}

// TestSilentClients: who says nothing is connected, and what is said later arrives whole, also where it was torn.
func TestSilentClients(t *testing.T) {
	for name, row := range map[string]struct {
		game      Game
		now, then []byte
	}{
		"nothing at first":    {VintageStory, nil, tokenQuery},
		"a torn header":       {VintageStory, tokenQuery[:2], tokenQuery[2:]},
		"a torn frame":        {VintageStory, alice[:9], alice[9:]},
		"a game that listens": {TCP, nil, []byte("hello")},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := newBackend(t), newBackend(t)
			s := runLate(t, row.game, traces(byMarker(anID, a, b)))
			near := connect(t, s)
			if row.now != nil {
				near.send(t, row.now)
			}
			far := a.accept() // after the moment has passed
			near.send(t, row.then)
			far.got(t, join(row.now, row.then))
		})
	}
}

// TestTornMarker: nothing else begins like one in Vintage Story, so the rest of it is waited for.
func TestTornMarker(t *testing.T) {
	a, b := newBackend(t), newBackend(t)
	s := run(t, Config{Router: traces(byMarker(anID, a, b)), Game: VintageStory, RedirectAddress: "x:1", FirstFrameWait: 200 * time.Millisecond})
	near, m := connect(t, s), marker.Append(nil, anID)
	near.send(t, m[:21])
	<-time.After(300 * time.Millisecond) // longer than the wait for a first frame
	near.send(t, m[21:], tokenQuery)
	b.accept().got(t, tokenQuery)
}

// TestNotVintageStory: what no client sends is not passed on, and holds no memory.
func TestNotVintageStory(t *testing.T) {
	a := newBackend(t)
	s := runLate(t, VintageStory, traces(byMarker(anID, a, a)))
	for _, first := range []string{"GET / HTTP/1.1\r\n\r\n", "\x7f\xff\xff\xff", "\x00\x01\x00\x01", "\r\n\r\n\x00\r\nQUIT\n", "\x00\x00\x00\x02\x0b\x0c"} {
		near := connect(t, s)
		near.send(t, []byte(first))
		near.ended(t)
	}
	if got := s.Counts().Malformed; got != 5 {
		t.Errorf("%d were refused, want 5", got)
	}
	if len(a.conns) != 0 {
		t.Error("one of them reached a server")
	}
}

// TestServerQuery: each form of the question is answered with the network's own state, and no server is asked.
func TestServerQuery(t *testing.T) {
	a := newBackend(t)
	r := traces(byMarker(anID, a, a))
	s := runLate(t, VintageStory, r)
	for _, question := range [][]byte{{0, 0, 0, 2, 0x08, 0x0F}, {0, 0, 0, 2, 0x52, 0}, {0, 0, 0, 4, 0x08, 0x0F, 0x52, 0}} {
		near := connect(t, s)
		near.send(t, question)
		b, err := io.ReadAll(near.r)
		if err != nil || len(b) < 5 {
			t.Fatal(b, err)
		}
		got, err := vintage.ParseServer(b[4:])
		if err != nil || got.Answer.Name != testStatus.Description || got.Answer.Players != testStatus.Online || got.Answer.Max != testStatus.Max {
			t.Errorf("% x: %+v %v", question, got, err)
		}
	}
	if len(r.arrivals) != 0 || len(a.conns) != 0 {
		t.Error("a server list became a login")
	}
}

// TestSessionOfVintageStory: who a client is, is known before its server hears it, and it is a connection from then on.
func TestSessionOfVintageStory(t *testing.T) {
	b := newBackend(t)
	r := traces(byMarker(anID, b, b))
	s := runLate(t, VintageStory, r)
	near, far := enters(t, s, r, b)
	a := next(t, "arrival", r.arrivals)
	if a.NativeID != "" || a.Protocol != ProtocolVintageStory || a.Game != VintageStory {
		t.Errorf("arrival %+v", a)
	}
	if id := next(t, "identity", r.recognized); id.NativeID != "uid-123" || id.Name != "alice" || id.ConnID != a.ConnID {
		t.Errorf("recognized %+v", id)
	}
	if opened := next(t, "connection", r.opened); opened.Server != "a" || opened.NativeID != "uid-123" {
		t.Errorf("opened %+v", opened)
	}
	for range 3 {
		near.send(t, chat)
		far.got(t, chat)
		far.send(t, chat, []byte{0, 0})
		near.got(t, chat)
		far.send(t, []byte{0, 0})
		near.got(t, []byte{0, 0, 0, 0})
	}
	near.CloseWrite()
	far.ended(t)
	far.Close()
	near.ended(t)
	if c := next(t, "end", r.closed); c.ConnID != a.ConnID || c.reason != ClosedByClient {
		t.Errorf("closed %+v", c)
	}
	if id := next(t, "end of all", r.gone); id != a.ConnID {
		t.Errorf("gone %d", id)
	}
}

// redirected reads a redirect, and that nothing follows it.
func (p *player) redirected(t testing.TB) vintage.Server {
	t.Helper()
	b, err := io.ReadAll(p.r)
	if err != nil || len(b) < 5 {
		t.Fatalf("% x, %v: want a redirect", b, err)
	}
	got, err := vintage.ParseServer(b[4:])
	if err != nil || got.Kind != vintage.Redirect || int(b[3]) != len(b)-4 {
		t.Fatalf("% x, %v: want a redirect", b, err)
	}
	return got
}

// TestRedirect: the client is told between two frames of the server's, however those are cut, and hears nothing more.
func TestRedirect(t *testing.T) {
	long := append([]byte{0, 0, 1, 0}, make([]byte, 256)...)
	for name, row := range map[string]struct {
		before, after []byte // of the server's stream, around the moment of the redirect
		passes        []byte // what the client still gets
	}{
		"between frames":    {nil, nil, nil},
		"inside a header":   {long[:2], long[2:], long},
		"inside a payload":  {long[:100], long[100:], long},
		"a frame behind it": {long[:100], join(long[100:], chat[:3]), long},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBackend(t)
			r := traces(byMarker(anID, b, b))
			s := runLate(t, VintageStory, r)
			near, far := enters(t, s, r, b)
			opened := next(t, "connection", r.opened)
			far.send(t, row.before)
			near.got(t, row.before)
			done := make(chan error, 1)
			go func() {
				done <- s.Redirect(t.Context(), opened.ConnID, Again{Name: marker.Announce("b", anID)})
			}()
			if row.after != nil {
				s.asked(t, opened.ConnID)
				far.send(t, row.after)
				near.got(t, row.passes[len(row.before):])
			}
			got := near.redirected(t)
			near.Close()
			if err := next(t, "end of the redirect", done); err != nil {
				t.Error(err)
			}
			if shown, id, announced := marker.Split(got.Name); shown != "b" || id != anID || !announced || got.Host != "play.example.net" {
				t.Errorf("redirect %+v", got)
			}
			if c := next(t, "end", r.closed); c.reason != ClosedByUs {
				t.Errorf("closed %+v", c)
			}
			if err := s.Redirect(t.Context(), opened.ConnID, Again{}); !errors.Is(err, ErrNoConnection) {
				t.Errorf("again: %v", err)
			}
		})
	}
}

// asked waits until a frame of the proxy's own waits for the end of the server's.
func (s *running) asked(t testing.TB, connID uint64) {
	t.Helper()
	s.mu.Lock()
	r := s.late[connID]
	s.mu.Unlock()
	for end := time.Now().Add(patience); !r.waiting(); <-time.After(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("no redirect is waiting")
		}
	}
}

// TestRedirectThatCannotBeSent: a server in the middle of a frame is not waited for; then the client plays on.
func TestRedirectThatCannotBeSent(t *testing.T) {
	b := newBackend(t)
	r := traces(byMarker(anID, b, b))
	s := run(t, Config{Router: r, Game: VintageStory, RedirectAddress: "x:1", FirstFrameWait: 200 * time.Millisecond, RedirectWait: 50 * time.Millisecond})
	near, far := enters(t, s, r, b)
	opened := next(t, "connection", r.opened)
	far.send(t, chat[:5])
	near.got(t, chat[:5])
	if err := s.Redirect(t.Context(), opened.ConnID, Again{Name: "b"}); !errors.Is(err, ErrNotRedirected) {
		t.Fatalf("in the middle of a frame: %v", err)
	}
	far.send(t, chat[5:], chat)
	near.got(t, join(chat[5:], chat))
	if err := s.Redirect(t.Context(), opened.ConnID, Again{Name: "b", Address: "other.example.net:42430"}); err != nil {
		t.Fatal(err)
	}
	if got := near.redirected(t); got.Host != "other.example.net:42430" || got.Name != "b" {
		t.Errorf("redirect %+v", got)
	}
	if err := s.Redirect(t.Context(), 1<<40, Again{}); !errors.Is(err, ErrNoConnection) {
		t.Errorf("of nobody: %v", err)
	}
}

// TestLateRedirect: who belongs elsewhere dials again before the server hears who it is, so the login is not spent.
func TestLateRedirect(t *testing.T) {
	b := newBackend(t)
	r := traces(byMarker(anID, b, b))
	r.recognize = func(Arrival, string) Again { return Again{Name: marker.Announce("b", anID)} }
	s := runLate(t, VintageStory, r)
	near := connect(t, s)
	near.send(t, tokenQuery)
	far := b.accept()
	far.got(t, tokenQuery)
	far.send(t, tokenAnswer)
	near.got(t, tokenAnswer)
	near.send(t, alice, chat)
	near.redirected(t)
	near.Close()
	far.ended(t)
	next(t, "end of all", r.gone)
	if len(r.opened) != 0 || len(r.closed) != 0 {
		t.Error("the login became a connection")
	}
}

// TestGoneBeforeIdentified: who leaves without a word about itself was no connection, and its route can be given back.
func TestGoneBeforeIdentified(t *testing.T) {
	b := newBackend(t)
	r := traces(byMarker(anID, b, b))
	s := runLate(t, VintageStory, r)
	near := connect(t, s)
	near.send(t, marker.Append(nil, anID), tokenQuery)
	far := b.accept()
	far.got(t, tokenQuery)
	near.Close()
	far.ended(t)
	far.Close()
	if id := next(t, "end", r.gone); id != next(t, "arrival", r.arrivals).ConnID || len(r.opened) != 0 {
		t.Errorf("gone %d, %d opened", id, len(r.opened))
	}
}

// TestRedialsLate: a server that cannot be dialled has seen nothing, so another one can.
func TestRedialsLate(t *testing.T) {
	b, dead := newBackend(t), deadAddress(t)
	r := traces(func(_ context.Context, a Arrival) Decision {
		if len(a.Failed) == 0 {
			return Decision{Server: "dead", Address: dead}
		}
		return b.to()
	})
	s := runLate(t, VintageStory, r)
	near := connect(t, s)
	near.send(t, marker.Append(nil, anID), tokenQuery)
	b.accept().got(t, tokenQuery)
	if first, second := next(t, "arrival", r.arrivals), next(t, "arrival", r.arrivals); first.Marker != anID || second.Marker != anID || len(second.Failed) != 1 {
		t.Errorf("asked with %+v, then %+v", first, second)
	}
}

// TestTextsOfVintageStory: whoever is not let in, or is cut off, reads why.
func TestTextsOfVintageStory(t *testing.T) {
	b := newBackend(t)
	r := traces(func(_ context.Context, a Arrival) Decision {
		if a.Marker == anID {
			return b.to()
		}
		return Decision{Refuse: "nobody is at home"}
	})
	s := runLate(t, VintageStory, r)
	reason := func(p *player) string {
		t.Helper()
		all, err := io.ReadAll(p.r)
		if err != nil || len(all) < 5 {
			t.Fatalf("% x %v", all, err)
		}
		got, err := vintage.ParseServer(all[4:])
		if err != nil || got.Kind != vintage.Disconnect {
			t.Fatalf("% x %v: want a disconnect", all, err)
		}
		return got.Reason
	}
	near := connect(t, s)
	near.send(t, tokenQuery)
	if got := reason(near); got != "nobody is at home" {
		t.Errorf("refused with %q", got)
	}
	near, _ = enters(t, s, r, b, marker.Append(nil, anID))
	s.Disconnect(next(t, "connection", r.opened).ConnID)
	if got := reason(near); !strings.Contains(got, "closed") {
		t.Errorf("cut with %q", got)
	}
	near, _ = enters(t, s, r, b, marker.Append(nil, anID))
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got := reason(near); !strings.Contains(got, "restarting") {
		t.Errorf("stopped with %q", got)
	}
}

// TestProxyHeaderOfLateGames: the address of the client, not of the balancer in front, is what it is led by, and the
// server gets it, too.
func TestProxyHeaderOfLateGames(t *testing.T) {
	for _, game := range []Game{VintageStory, TCP} {
		b := newBackend(t)
		r := traces(func(context.Context, Arrival) Decision { d := b.to(); d.ProxyV2 = true; return d })
		s := run(t, Config{
			Router: r, Game: game, RedirectAddress: "x:1", FirstFrameWait: 200 * time.Millisecond, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		})
		source, destination := netip.MustParseAddrPort("203.0.113.7:51234"), netip.MustParseAddrPort("10.0.0.5:42421")
		header := AppendProxyV2(nil, source, destination)
		near := connect(t, s)
		near.send(t, header, marker.Append(nil, anID), tokenQuery)
		b.accept().got(t, join(header, tokenQuery))
		if a := next(t, "arrival", r.arrivals); a.Remote != source || a.Marker != anID {
			t.Errorf("%s: arrival %+v", game, a)
		}
	}
}

// TestManyRedirects: a redirect that meets a busy stream, many at once, always stands between frames.
func TestManyRedirects(t *testing.T) {
	b := newBackend(t)
	r := traces(byMarker(anID, b, b))
	s := runLate(t, VintageStory, r)
	var all sync.WaitGroup
	for range 20 {
		near, far := enters(t, s, r, b)
		opened := next(t, "connection", r.opened)
		all.Go(func() {
			frame := append([]byte{0, 0, 0x10, 0}, make([]byte, 4096)...)
			for {
				if _, err := far.Write(frame); err != nil {
					return
				}
			}
		})
		all.Go(func() {
			if err := s.Redirect(t.Context(), opened.ConnID, Again{Name: "b"}); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			data, err := io.ReadAll(near.r)
			if err != nil {
				t.Error(err)
			}
			kinds := []vintage.Kind{}
			w := vintage.Walker{Begins: func(first []byte, _ bool) { kinds = append(kinds, vintage.ServerKind(first)) }}
			if _, err := w.Walk(data); err != nil || !w.AtBoundary() || len(kinds) == 0 || kinds[len(kinds)-1] != vintage.Redirect {
				t.Errorf("%d bytes, %d frames, at a boundary: %t, %v", len(data), len(kinds), w.AtBoundary(), err)
			}
			near.Close()
		})
	}
	all.Wait()
}

// TestCompatibilityMatrix: clients and proxies of before and after, and servers without any proxy, side by side. A marker is
// sent where one was announced, and nowhere else; everybody gets in.
func TestCompatibilityMatrix(t *testing.T) {
	const (
		ours  = "a proxy that announces"
		older = "a proxy that redirects without a word"
		plain = "a server without a proxy"
	)
	for _, row := range []struct {
		at      string
		knows   bool // the client knows markers
		redials bool // after a redirect that it got there
		server  string
		marker  bool // sent by the client
	}{
		{ours, true, true, "b", true},
		{ours, false, true, "a", false}, // led by who it is, or from where: here by neither
		{ours, true, false, "a", false},
		{ours, false, false, "a", false},
		{older, true, true, "plain", false},
		{older, false, true, "plain", false},
		{plain, true, false, "plain", false},
		{plain, false, false, "plain", false},
	} {
		t.Run(fmt.Sprintf("%s, client knows markers: %t, after a redirect: %t", row.at, row.knows, row.redials), func(t *testing.T) {
			a, b, alone := newBackend(t), newBackend(t), newBackend(t)
			r := traces(byMarker(anID, a, b))
			s := runLate(t, VintageStory, r)
			at, name := s.Addr().String(), marker.Announce("b", anID)
			if row.at != ours {
				at, name = alone.listener.Addr().String(), "b"
			}
			const dialled = "play.example.net:42420"
			memory := &marker.Memory{}
			if row.redials && row.knows {
				if shown := memory.Redirected(name, dialled, time.Now()); shown != "b" {
					t.Errorf("shown as %q", shown)
				}
			}
			first := memory.First(marker.Join, dialled, time.Now())
			if (first != nil) != row.marker {
				t.Fatalf("the client sends % x", first)
			}
			conn, err := net.Dial("tcp", at)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := conn.Write(append(first, tokenQuery...)); err != nil {
				t.Fatal(err)
			}
			far := map[string]*backend{"a": a, "b": b, "plain": alone}[row.server].accept()
			far.got(t, tokenQuery)
		})
	}
}

// BenchmarkFirstBytes is what leading one connection costs: the marker, the first frame and what to ask for.
func BenchmarkFirstBytes(b *testing.B) {
	first := append(marker.Append(nil, anID), alice...)
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	src := bytes.NewReader(first)
	in := bufio.NewReaderSize(src, 4096)
	for b.Loop() {
		src.Reset(first)
		in.Reset(src)
		var p prelude
		if err := p.open(near, in, VintageStory, time.Second, time.Second); err != nil || p.marker != anID || p.first.UID != "uid-123" {
			b.Fatal(err, p)
		}
	}
}
