package edge

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// Cases that others reported of programs which do this job. The number is that of the case in our
// list.

// TestCase119_AcceptsAndStalls: a server took the connection and never answered the login; two
// equal time-outs raced, and the player was cut off instead of going to the next server. Here who
// does not say a word in time, far below the client's own patience, is left, and the login goes to
// the next server as if it had not been there before. The router is told which one failed.
func TestCase119_AcceptsAndStalls(t *testing.T) {
	if d := (Config{}).withDefaults(); d.AnswerTimeout+d.DialTimeout >= d.RouteTimeout || d.RouteTimeout >= 30*time.Second {
		t.Errorf("one answer may take %s and all of them %s; clients wait 30 s", d.AnswerTimeout, d.RouteTimeout)
	}
	for name, stall := range map[string]func(t *testing.T, far *player){
		"it says nothing":                   func(*testing.T, *player) {},
		"it reads nothing and says nothing": func(*testing.T, *player) {},
		"it closes without a word":          func(_ *testing.T, far *player) { far.Close() },
		"it ends its side without a word":   func(_ *testing.T, far *player) { far.CloseWrite() },
		"it resets the connection":          func(_ *testing.T, far *player) { far.SetLinger(0); far.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			stalls, answers := newBackend(t), newBackend(t)
			router := newScripted(func(_ context.Context, a Arrival) Decision {
				if len(a.Failed) == 0 {
					return Decision{Server: "stalls", Address: stalls.listener.Addr().String(), ProxyV2: true}
				}
				return answers.to()
			})
			s := run(t, Config{Router: router, AnswerTimeout: 300 * time.Millisecond})
			p := connect(t, s)
			sent := p.login(t, "a", intentTransfer)
			far := stalls.accept()
			if name == "it says nothing" {
				far.got(t, AppendProxyV2(nil, addrPort(p.LocalAddr()), s.Addr()))
				far.got(t, sent)
			}
			stall(t, far)
			next := nextOne(t, router, answers, sent)
			next.answers(t, p)
			p.send(t, []byte("up"))
			next.got(t, []byte("up"))
			if c := s.Counts(); c.Undialled != 1 || c.Spliced != 1 || c.Refused != 0 {
				t.Errorf("counts %+v", c)
			}
		})
	}
	t.Run("all of them", func(t *testing.T) {
		b := newBackend(t)
		router := always(b.to())
		s := run(t, Config{Router: router, AnswerTimeout: 20 * time.Millisecond, Redials: 2})
		p := connect(t, s)
		p.login(t, "a", intentLogin)
		if got := p.kicked(t); got != "That server is not reachable, try again" {
			t.Fatalf("text %q", got)
		}
		if len(router.arrivals) != 3 || len(router.opened) != 3 || len(router.closed) != 3 {
			t.Errorf("%d routes, %d opened, %d closed", len(router.arrivals), len(router.opened), len(router.closed))
		}
	})
	t.Run("the client does not wait for it", func(t *testing.T) {
		b := newBackend(t)
		router := always(b.to())
		s := run(t, Config{Router: router})
		p := connect(t, s)
		sent := p.login(t, "a", intentLogin)
		far := b.accept()
		far.got(t, sent)
		p.Close()
		far.ended(t)
		if c := next(t, "closed", router.closed); c.reason != ClosedSilent || len(router.arrivals) != 1 {
			t.Errorf("closed %+v after %d routes", c, len(router.arrivals))
		}
	})
	t.Run("one word is enough", func(t *testing.T) {
		b := newBackend(t)
		s := run(t, Config{Router: always(b.to()), AnswerTimeout: 200 * time.Millisecond})
		p := connect(t, s)
		sent := p.login(t, "a", intentLogin)
		far := b.accept()
		far.got(t, sent)
		far.send(t, []byte{1})
		p.got(t, []byte{1})
		select { // it may be as slow as it likes from then on
		case c := <-b.conns:
			t.Fatalf("dialled again: %v", c.RemoteAddr())
		case <-time.After(400 * time.Millisecond):
		}
		far.send(t, []byte{2})
		p.got(t, []byte{2})
	})
}

// nextOne waits for the login at the next server, after the first was given up.
func nextOne(t *testing.T, router *scripted, b *backend, sent []byte) *player {
	t.Helper()
	p := b.accept()
	p.got(t, sent)
	first, second := next(t, "arrival", router.arrivals), next(t, "arrival", router.arrivals)
	if fmt.Sprint(first.Failed, second.Failed) != "[] [stalls]" {
		t.Errorf("failed: %v, then %v", first.Failed, second.Failed)
	}
	opened, closed := next(t, "opened", router.opened), next(t, "closed", router.closed)
	if opened.Server != "stalls" || closed.Connection != opened || closed.reason != ClosedSilent {
		t.Errorf("opened %+v, closed %+v", opened, closed)
	}
	if again := next(t, "opened", router.opened); again.Server != "survival-1" || again.ConnID != opened.ConnID {
		t.Errorf("opened %+v", again)
	}
	return p
}
