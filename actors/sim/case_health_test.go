package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// Cases of health: what is believed of hosts, and of a store, that do not answer.

// TestCase049_AnOutageEmptiesNothing: one time-out of the store emptied the list of players. Here
// what was known last stays, older by what has passed, and what was read is not unread: nobody is
// thrown out of anything, and all goes on when the store is back.
func TestCase049_AnOutageEmptiesNothing(t *testing.T) {
	for _, outage := range []time.Duration{time.Second, 5 * time.Second, 2 * time.Minute, 20 * time.Minute} {
		t.Run(outage.String(), func(t *testing.T) {
			gather(t, 9, nil, func(c *crowd) {
				w := c.down("b", 100, 8)
				c.lineUp(c.players[:4]...)
				view := c.view()
				transfers, sessions := len(c.facts(events.Transfers)), len(c.facts(events.Sessions))
				for range 3 {
					c.mem.Outage()
					c.pass(outage)
					for _, id := range crowdEdges { // as any of them sees it
						v := c.dispatchers[id].actor.View()
						for _, p := range c.players {
							if s, ok := v.Session(p.ID); !ok || !s.Open || s.Server != "a" {
								t.Errorf("%s: %s is not on a: %+v", id, p.Name, s)
							}
						}
						f := v.Fleet()
						if b := f.Backend("a"); b == nil || f.Live || time.Since(b.Seen) < outage-2*time.Second || f.Silence(b.Seen, time.Now()) != 0 {
							t.Errorf("%s: a is %+v, live %v", id, b, f.Live)
						}
					}
					if err := c.net.AddClient("Newcomer", 767).Join(c.ctx, "e1", events.Token{}); err != nil {
						t.Errorf("the door is shut: %v", err)
					}
					c.mem.Restore()
					c.pass(20 * time.Second)
				}
				if n := len(c.facts(events.Transfers)); n != transfers {
					t.Errorf("%d facts for those in line\n%s", n-transfers, c.story())
				}
				for _, e := range c.facts(events.Sessions)[sessions:] {
					if s, closed := e.Fact.(*events.SessionClosed); closed && s.Session.Name != "Newcomer" {
						t.Errorf("the session of %s was closed: %s", s.Session.Name, s.Reason)
					}
				}
				if view.Ahead(1<<62) != 4 {
					t.Errorf("%d in line", view.Ahead(1<<62))
				}
				w.Restart()
				for _, p := range c.players[:4] {
					c.arrives(p, c.placeOf(p), time.Minute)
				}
			})
		})
	}
}

// says changes what a backend's heartbeats say, for so many of them, and waits until the next one
// is seen. The backend itself does not know.
func (s *scene) says(id events.HostID, beats int, change func(b *events.BackendBeat)) {
	s.t.Helper()
	s.backends[id].client.forge.Store(forged(s.t, beats, change))
	seq := s.observer().View().Fleet().Backend(id).Seq
	s.until("a beat of "+string(id), 2*time.Second, func() bool { return s.observer().View().Fleet().Backend(id).Seq > seq })
}

// proxySays is says for all heartbeats of a proxy.
func (s *scene) proxySays(id events.HostID, change func(b *events.ProxyBeat)) {
	s.t.Helper()
	s.dispatchers[id].client.forge.Store(forged(s.t, 1<<30, change))
}

// forged changes so many facts of one kind as they leave their host.
func forged[F any, P interface {
	*F
	events.Fact
}](t *testing.T, times int, change func(P)) *func(events.Message) events.Message {
	forge := func(m events.Message) events.Message {
		e, refusal := events.Open(streamtest.Keyring(), events.Record{Bucket: m.Bucket, Key: m.Key, Header: m.Header, Body: m.Body})
		fact, ok := e.Fact.(P)
		if refusal != nil || !ok || times == 0 {
			return m
		}
		times--
		change(fact)
		if beat, is := events.Fact(fact).(*events.BackendBeat); is {
			e.Source.Incarnation = beat.Incarnation
		}
		return streamtest.Seal(t, e.Envelope, fact)
	}
	return &forge
}

// TestCase050_ForOnceAnotherAddress: one heartbeat named another address, and a server full of
// players was thrown away. Here nobody new is sent there until the address is the old one again,
// or another life's, or has been named often enough; who is there or on the way is not touched.
func TestCase050_ForOnceAnotherAddress(t *testing.T) {
	elsewhere := func(b *events.BackendBeat) { b.Advertise = "10.9.9.9:25565" }
	address := func(s *scene) string { return s.observer().View().Fleet().Backend("b").Advertise }
	t.Run("who is on the way", func(t *testing.T) {
		play(t, func(s *scene) {
			s.c.Kill()
			token := s.sentAway()
			s.says("b", 1, elsewhere)
			s.comesWith(token, "e2")
			s.completed(s.player, s.outcome(s.player, forever), "b")
		})
	})
	t.Run("who is there", func(t *testing.T) {
		play(t, func(s *scene) {
			s.player.Ask("")
			s.completed(s.player, s.outcome(s.player, forever), "b")
			before, _ := s.observer().View().Session(s.player.ID)
			s.says("b", 3, elsewhere)
			s.pass(5 * time.Second)
			if now, _ := s.observer().View().Session(s.player.ID); now.Number != before.Number || !now.Open || s.player.Look().Server != "b" {
				t.Errorf("session %+v became %+v", before, now)
			}
		})
	})
	t.Run("who asks waits until it is the old one again", func(t *testing.T) {
		play(t, func(s *scene) {
			s.c.Kill()
			s.pass(2 * time.Second)
			old := address(s)
			s.says("b", 2, elsewhere)
			s.player.Ask("")
			s.reads("transfer.waiting")
			d := s.observer().View().Player(s.player.ID).Active
			if b := s.observer().View().Fleet().Backend("b"); d.Reserved != nil || b.Advertise != old || b.Claimed == 0 {
				t.Errorf("sent to an address that nobody believes\n%s", s.story())
			}
			got := s.outcome(s.player, 10*time.Second)
			s.completed(s.player, got, "b")
			if b := s.observer().View().Fleet().Backend("b"); b.Advertise != old || b.Claimed != 0 {
				t.Errorf("%s, claimed %d times", b.Advertise, b.Claimed)
			}
		})
	})
	t.Run("it is believed after a while", func(t *testing.T) {
		play(t, func(s *scene) {
			old := address(s)
			s.says("b", 100, elsewhere)
			if got := address(s); got != old {
				t.Errorf("believed at once: %s", got)
			}
			s.pass(7 * time.Second)
			if b := s.observer().View().Fleet().Backend("b"); b.Advertise != "10.9.9.9:25565" || b.Claimed != 0 {
				t.Errorf("%s, claimed %d times", b.Advertise, b.Claimed)
			}
		})
	})
	t.Run("never when it is another one each time", func(t *testing.T) {
		play(t, func(s *scene) {
			old, n := address(s), 0
			s.says("b", 20, func(b *events.BackendBeat) {
				n++
				b.Advertise = "10.9.9." + string(rune('0'+n%2)) + ":25565"
			})
			s.pass(15 * time.Second)
			if got := address(s); got != old {
				t.Errorf("believed: %s", got)
			}
		})
	})
	t.Run("another life is believed at once", func(t *testing.T) {
		play(t, func(s *scene) {
			s.says("b", 1, func(b *events.BackendBeat) {
				elsewhere(b)
				b.Incarnation = streamtest.NewID[events.Incarnation]()
			})
			if got := address(s); got != "10.9.9.9:25565" {
				t.Errorf("%s", got)
			}
		})
	})
}
