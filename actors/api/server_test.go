package api_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/events"
)

// listen serves a network's API on a port of its own until stop is called.
func (n *network) listen(connections int) (url string, stop func() error) {
	n.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(n.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.service.Serve(ctx, l, nil, connections) }()
	return "http://" + l.Addr().String(), func() error { cancel(); return <-ended }
}

// When a host ends a request under way is answered, a stream ends, and nobody can connect any more.
func TestTheEndOfAHost(t *testing.T) {
	n := open(t)
	n.join("Ada")
	n.decree(events.PauseKey(events.PauseLine, ""), &events.PauseSet{What: events.PauseLine, On: true, Who: "op"})
	token := n.token(events.ScopeTransfer, events.ScopeRead)
	var asked api.Transfer
	n.call("POST", "/v1/transfers", token, `{"player":"Ada"}`).into(t, &asked)
	url, stop := n.listen(8)
	n.server.URL = url

	streams := make(chan int, 1)
	begun := make(chan struct{})
	go func() {
		seen := 0
		for range n.follow("/v1/events?after=0", token) {
			if seen++; seen == 1 {
				close(begun)
			}
		}
		streams <- seen
	}()
	<-begun
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if seen := <-streams; seen == 0 {
		t.Error("the stream saw nothing")
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(url, "http://")); err == nil {
		t.Error("somebody can still connect")
	}
}

// Who connects beyond the bound waits, and is served when somebody goes.
func TestConnectionsAreBounded(t *testing.T) {
	n := open(t)
	url, stop := n.listen(1)
	first, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(c net.Conn) error {
		if _, err := c.Write([]byte("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
			return err
		}
		a, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return err
		}
		return a.Body.Close()
	}
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	second, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	answered := make(chan error, 1)
	go func() { answered <- ask(second) }()
	if err := ask(first); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-answered:
		t.Errorf("two were served at once: %v", err)
	default:
	}
	first.Close()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A token, and an address, may ask so often and no more; others are not held up by it.
func TestWhoAsksTooOften(t *testing.T) {
	n := open(t)
	first, second := n.makeToken(time.Now().Add(time.Hour), events.ScopeRead), n.makeToken(time.Now().Add(time.Hour), events.ScopeRead)
	limits := api.ShippedLimits()
	limits.TokenPerSecond, limits.TokenBurst = 0.001, 3
	n.service.SetLimits(limits)
	refused := 0
	for range 10 {
		r := n.call("GET", "/v1/line", first, "")
		if r.status == http.StatusTooManyRequests {
			refused++
			if r.code(t) != events.RateLimited || r.header.Get("Retry-After") == "" {
				t.Errorf("%s %v", r.body, r.header)
			}
		}
	}
	if refused != 7 {
		t.Errorf("%d of 10 were refused, want 7", refused)
	}
	if r := n.call("GET", "/v1/line", second, ""); r.status != http.StatusOK {
		t.Errorf("another token: %d", r.status)
	}
	limits.AddressPerSecond, limits.AddressBurst = 0.001, 2
	n.service.SetLimits(limits)
	codes := map[int]int{}
	for range 5 {
		codes[n.call("GET", "/v1/line", "no token", "").status]++
	}
	if codes[http.StatusUnauthorized] != 2 || codes[http.StatusTooManyRequests] != 3 {
		t.Errorf("from one address: %v", codes)
	}
}

// As many streams and long polls are open as may be, and not one more.
func TestStreamsAreBounded(t *testing.T) {
	n := open(t)
	n.join("Ada")
	token := n.token(events.ScopeRead, events.ScopeTransfer)
	n.call("POST", "/v1/transfers", token, `{"player":"Ada"}`)
	limits := api.ShippedLimits()
	limits.Streams = 1
	n.service.SetLimits(limits)
	for range n.follow("/v1/events?after=0", token) {
		if r := n.call("GET", "/v1/events", token, ""); r.status != http.StatusTooManyRequests || r.code(t) != events.RateLimited {
			t.Errorf("a second stream: %d %s", r.status, r.body)
		}
		break
	}
}
