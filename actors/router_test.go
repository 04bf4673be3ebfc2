package actors

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// withRouter runs a test body with a router on a log that holds some facts of the player, and a
// server b that beats.
func withRouter(t *testing.T, facts []events.TransferFact, body func(t *testing.T, ctx context.Context, mem *streamtest.Memory, r *Router)) {
	t.Helper()
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		for _, f := range facts {
			putFor(t, mem, steve, first, f)
		}
		beat := destination("b", 4).BackendBeat
		beat.Advertise = "b:25565"
		if _, err := mem.Client("b").Append(ctx, streamtest.Fact(t, events.BackendKey("b"), 0, &beat)); err != nil {
			t.Fatal(err)
		}
		r, err := NewRouter(RouterConfig{ID: "r1", Log: mem.Client("r1"), Keys: streamtest.Keyring(), Now: time.Now, Logger: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() { done <- r.Run(ctx) }()
		if err := r.View().WaitLive(ctx); err != nil {
			t.Fatal(err)
		}
		body(t, ctx, mem, r)
	})
}

// TestRouterLeadsByTokenAlone: the token, its player and a claim that stands; nobody else.
func TestRouterLeadsByTokenAlone(t *testing.T) {
	moving := []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}
	good := events.Token{Transfer: first, Attempt: 1}
	for name, c := range map[string]struct {
		facts []events.TransferFact
		login Login
		want  events.HostID
		code  events.Code
		held  bool
	}{
		"a token":              {moving, Login{Player: steve, Token: good}, "b", "", false},
		"no token":             {moving, Login{Player: steve}, "", "", false},
		"arrived already":      {append(moving, consumed(1)), Login{Player: steve, Token: good}, "b", "", false},
		"another player":       {moving, Login{Player: events.OfflinePlayer("Mallory"), Token: good}, "", events.WrongPlayer, false},
		"an older attempt":     {[]events.TransferFact{requested(), reserved(1), claimed(1, "e1"), &events.Expired{Attempt: 1, Reason: events.TTLPassed}, reserved(2), claimed(2, "e1")}, Login{Player: steve, Token: good}, "", events.TokenSpent, false},
		"not known":            {nil, Login{Player: steve, Token: good}, "", events.TokenUnknown, true},
		"could not be reached": {moving, Login{Player: steve, Token: good, Failed: []events.HostID{"b"}}, "", events.Unreachable, false},
	} {
		t.Run(name, func(t *testing.T) {
			withRouter(t, c.facts, func(t *testing.T, ctx context.Context, mem *streamtest.Memory, r *Router) {
				before := len(mem.Records(events.Transfers)) + len(mem.Records(events.Audit)) + len(mem.Records(events.Fleet))
				began := time.Now()
				got := r.Route(ctx, c.login)
				if got.Server != c.want || got.Code != c.code || c.want != "" && got.Address != "b:25565" {
					t.Errorf("led to %+v, want %s %s", got, c.want, c.code)
				}
				if took := time.Since(began); (took >= 5*time.Second) != c.held {
					t.Errorf("held for %s", took)
				}
				passTime(5 * time.Second)
				if after := len(mem.Records(events.Transfers)) + len(mem.Records(events.Audit)) + len(mem.Records(events.Fleet)); after != before {
					t.Errorf("%d records were written", after-before)
				}
			})
		})
	}
}

// TestRouterHoldsALogin whose claim is still on its way, and leads by what it saw while the log is away.
func TestRouterHoldsALogin(t *testing.T) {
	good := events.Token{Transfer: first, Attempt: 1}
	withRouter(t, []events.TransferFact{requested(), reserved(1)}, func(t *testing.T, ctx context.Context, mem *streamtest.Memory, r *Router) {
		got := make(chan Route, 1)
		go func() { got <- r.Route(ctx, Login{Player: steve, Token: good}) }()
		synctest.Wait()
		select {
		case early := <-got:
			t.Fatalf("led to %+v before the claim", early)
		default:
		}
		putFor(t, mem, steve, first, claimed(1, "e1"))
		if r := <-got; r.Server != "b" {
			t.Errorf("led to %+v", r)
		}
		putFor(t, mem, steve, first, consumed(1))
		mem.Outage()
		passTime(time.Second)
		if r := r.Route(ctx, Login{Player: steve, Token: good}); r.Server != "b" {
			t.Errorf("while the log is away led to %+v", r)
		}
	})
}

// TestRouterKnowsAnEnd that it has seen.
func TestRouterKnowsAnEnd(t *testing.T) {
	withRouter(t, []events.TransferFact{requested(), reserved(1), claimed(1, "e1")}, func(t *testing.T, ctx context.Context, mem *streamtest.Memory, r *Router) {
		putFor(t, mem, steve, first, &events.Failed{Code: events.NotArrived})
		synctest.Wait()
		if got := r.Route(ctx, Login{Player: steve, Token: events.Token{Transfer: first, Attempt: 1}}); got.Code != events.TokenSpent {
			t.Errorf("led to %+v", got)
		}
	})
}

// TestRouterIsDrained as an edge is.
func TestRouterIsDrained(t *testing.T) {
	withRouter(t, nil, func(t *testing.T, ctx context.Context, mem *streamtest.Memory, r *Router) {
		drain, changed := r.Drained()
		if drain != nil {
			t.Fatal("drained from the start")
		}
		f := &events.DrainSet{Host: "r1", On: true, Who: "op"}
		if _, err := mem.Client("op").Append(ctx, streamtest.Fact(t, events.DrainKey("r1"), 0, f)); err != nil {
			t.Fatal(err)
		}
		<-changed
		if drain, _ := r.Drained(); drain == nil || drain.Who != "op" {
			t.Errorf("drained by %+v", drain)
		}
	})
}

func TestNewRouterRefuses(t *testing.T) {
	if r, err := NewRouter(RouterConfig{}); err == nil || r != nil {
		t.Errorf("made of nothing: %v", r)
	}
}
