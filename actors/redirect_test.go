package actors

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"

	"github.com/landfall/landfall/events"
)

// redirecting is an edge that tells its clients to dial again, or fails as a test says.
type redirecting struct {
	err  error
	sent []Redirection
}

func (r *redirecting) Redirect(_ context.Context, conn uint64, to Redirection) error {
	if conn != 1 {
		return ErrNotHere
	}
	r.sent = append(r.sent, to)
	return r.err
}

// TestMoveByRedirect: the origin lets go of the player first, which fences older claims, and the client is told once;
// what became of it stands in the log, and who was told is led by what was staged.
func TestMoveByRedirect(t *testing.T) {
	for name, row := range map[string]struct {
		origin events.Code
		err    error
		told   bool
		want   events.Fact
	}{
		"told":                       {events.Sent, nil, true, &events.Transferred{Attempt: 1, How: events.HowRedirect, Result: events.MoveSent}},
		"the origin refuses":         {events.TooOld, nil, false, &events.Released{}},
		"the player is not here":     {events.NotHere, nil, false, &events.Released{}},
		"the stream is stuck":        {events.Sent, fmt.Errorf("redirect: %w", ErrNotSent), true, &events.Released{}},
		"the connection has ended":   {events.Sent, ErrNotHere, true, &events.Released{}},
		"perhaps":                    {events.Sent, fmt.Errorf("redirect: %w", ErrUnknown), true, &events.Transferred{Attempt: 1, How: events.HowRedirect, Result: events.MoveSent}},
		"perhaps, for other reasons": {events.Sent, errors.New("broken pipe"), true, &events.Transferred{Attempt: 1, How: events.HowRedirect, Result: events.MoveSent}},
	} {
		t.Run(name, func(t *testing.T) {
			mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
				s.holdsSession(t)
				s.tasks.begin(ctx)
				edge := &redirecting{err: row.err}
				s.cfg.Redirector = edge
				session, _ := s.view.Session(steve)
				s.conns.byID[1] = &held{Connection: Connection{ID: 1, Name: "Steve", Server: "a", Redirects: true, Remote: netip.AddrPortFrom(oneHome, 5000)}, number: session.Number}
				origin(ctx, s, func(q events.MoveAsk) events.Code {
					if q.How != events.HowRedirect {
						t.Errorf("the origin is asked for a %s", q.How)
					}
					if len(edge.sent) > 0 && !q.Query {
						t.Error("the client was told before its server let go")
					}
					return row.origin
				})
				passTime(0)
				s.claimAndMove(ctx, s.standing(steve), *s.timing.Load())
				if (len(edge.sent) == 1) != row.told {
					t.Fatalf("told %d times, want once: %t", len(edge.sent), row.told)
				}
				got, want := s.newest(t), row.want
				if events.TypeName(got) != events.TypeName(want) {
					t.Errorf("the last fact is %+v, want %+v", got, want)
				}
				if f, moved := got.(*events.Transferred); moved && *f != *want.(*events.Transferred) {
					t.Errorf("recorded %+v, want %+v", f, want)
				}
				if !row.told {
					return
				}
				l := s.FindRoute(ctx, Trace{Marker: edge.sent[0].Marker})
				if stands := events.TypeName(want) == events.TypeName(&events.Transferred{}); edge.sent[0].Server != "b" || stands && (l.Server != "b" || l.Token != tokenOne || l.Player != steve) {
					t.Errorf("told %+v, which leads to %+v", edge.sent[0], l)
				}
				synctest.Wait()
			})
		})
	}
}

// TestClientsOfOthersAreNotRedirected: a session that another host holds, or that came over an edge without redirects, is moved
// by its server.
func TestClientsOfOthersAreNotRedirected(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
		s.holdsSession(t)
		session, _ := s.view.Session(steve)
		for name, h := range map[string]*held{
			"none":             nil,
			"another session":  {Connection: Connection{Redirects: true}, number: session.Number + 1},
			"no redirects":     {number: session.Number},
			"ended":            {Connection: Connection{Redirects: true}, number: session.Number, closed: true},
			"without a number": {Connection: Connection{Redirects: true}},
		} {
			s.cfg.Redirector = &redirecting{}
			delete(s.conns.byID, 1)
			if h != nil {
				s.conns.byID[1] = h
			}
			if q := s.moveAsk(*s.standing(steve).Active, s.standing(steve), 5); q.How != events.HowTransfer {
				t.Errorf("%s: moved by %s", name, q.How)
			}
		}
	})
}

// TestSightings: a backend that does not see its players hears of them as long as the connection stands, and of the end.
func TestSightings(t *testing.T) {
	proxies(t, func(t *testing.T, ctx context.Context, e1, _ *seer) {
		var heard []events.SeenAsk
		code := events.OK
		who, client := identity(events.SourceBackend, "a"), e1.mem.Client("a")
		go func() {
			_ = client.Serve(ctx, events.ToBackend("a", events.VerbSeen), "", func() {}, answerWith(who, fromDispatcher, refusePlain,
				func(_ context.Context, _ events.HostID, q events.SeenAsk) events.Answer {
					heard = append(heard, q)
					return events.Answer{Code: code}
				}))
		}()
		synctest.Wait()
		conn := Connection{ID: 7, Name: "alex", Player: alex, Server: "a"}
		e1.Opened(conn)
		e1.LetIn(conn, "uid-alex")
		e1.LetIn(conn, "uid-alex") // the same one
		passTime(2*SeenEvery + SeenEvery/2)
		e1.Closed(7, "left")
		passTime(SeenEvery)
		if len(heard) != 4 {
			t.Fatalf("heard %d times: %+v", len(heard), heard)
		}
		for i, q := range heard {
			if q.Player != alex || q.Name != "alex" || q.NativeID != "uid-alex" || q.Connection != heard[0].Connection || q.Here != (i < 3) {
				t.Errorf("%d: %+v", i, q)
			}
		}
	})
}

// TestMoveOverAnEdgeThatReadsNothing: whose connection is whose its server says by the address that it was told; the server tells the client
// to dial again, and what to begin with.
func TestMoveOverAnEdgeThatReadsNothing(t *testing.T) {
	mutating(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, s *seer) {
		s.tasks.begin(ctx)
		at := netip.AddrPortFrom(oneHome, 5000)
		for id, remote := range map[uint64]netip.AddrPort{1: netip.AddrPortFrom(oneHome, 4999), 2: at} {
			s.Opened(Connection{ID: id, Server: "a", Protocol: ProtocolTCP, Remote: remote, Redial: "play.example.net:7000"})
		}
		there := events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](1)}
		if s.conns.joined(s.Dispatcher, "a", there) {
			t.Error("a join without an address has a connection")
		}
		there.Remote = at.String()
		if !s.conns.joined(s.Dispatcher, "a", there) {
			t.Fatal("a join with an address has no connection")
		}
		eventually(t, "the session", func() bool { x, _ := s.view.Session(steve); return x.Open })
		if x, _ := s.view.Session(steve); x.Name != "Steve" || x.Protocol != ProtocolTCP {
			t.Errorf("session %+v", x)
		}
		var asked events.MoveAsk
		origin(ctx, s, func(q events.MoveAsk) events.Code { asked = q; return events.Sent })
		passTime(0)
		s.claimAndMove(ctx, s.standing(steve), *s.timing.Load())
		id, err := hex.DecodeString(asked.Marker)
		if err != nil || len(id) != 16 || asked.Address != "play.example.net:7000" || asked.How != events.HowTransfer {
			t.Fatalf("asked %+v", asked)
		}
		if l := s.FindRoute(ctx, Trace{Marker: [16]byte(id)}); l.Server != "b" || l.Player != steve || l.Token != tokenOne {
			t.Errorf("the marker leads to %+v", l)
		}
		s.Closed(1, "the other one") // the session is that of connection 2
		synctest.Wait()
		if x, _ := s.view.Session(steve); !x.Open {
			t.Error("closed with somebody else's connection")
		}
	})
}

// marking is a game server whose clients know markers.
type marking struct {
	*ground

	id [16]byte
}

func (m *marking) SendMarked(ctx context.Context, p Player, address string, id [16]byte) error {
	m.id = id
	return m.Send(ctx, p, address)
}

// TestSendMarked: a World that can gets the marker, any other one the address alone.
func TestSendMarked(t *testing.T) {
	for name, row := range map[string]struct {
		marker string
		want   [16]byte
	}{
		"a marker": {"0102030405060708090a0b0c0d0e0f10", [16]byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}},
		"none":     {"", [16]byte{}},
		"half":     {"0102", [16]byte{}},
		"no hex":   {"this is no hex, and it is 32 long", [16]byte{}},
	} {
		onSite(t, func(t *testing.T, ctx context.Context, s *site) {
			world := &marking{ground: s.ground}
			s.cfg.World = world
			s.comes()
			q := moveFor(5)
			q.Marker = row.marker
			if a := s.answerMove(ctx, s.life, q); a.Code != events.Sent || world.id != row.want || s.ground.sends() != 1 {
				t.Errorf("%s: %+v, marker %x, sent %d times", name, a, world.id, s.ground.sends())
			}
		})
	}
}
