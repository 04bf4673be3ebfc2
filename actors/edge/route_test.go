package edge

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

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

func TestTextsAreReplacedWhileItRuns(t *testing.T) {
	s := run(t, Config{Router: always(Decision{}), Texts: Texts{BadName: "not that name"}})
	for _, want := range []string{"not that name", "nor that one", "This network does not accept that player name"} {
		p := connect(t, s)
		p.send(t, hello(767, "a", 2), start(".Bedrock", offlineBot0[:]))
		if got := p.kicked(t); got != want {
			t.Errorf("text %q, want %q", got, want)
		}
		s.SetTexts(Texts{BadName: map[string]string{"not that name": "nor that one"}[want]})
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
	if err := next(t, "end of the hold", causes); !errors.Is(err, errClientLeft) {
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
