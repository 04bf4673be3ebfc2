package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// hubConfig is what a server of the store needs beside the rest for leaf nodes to come in.
const hubConfig = `
leafnodes { listen: "127.0.0.1:-1", authorization { user: leaf, password: PASSWORD, account: "landfall-net" } }
default_js_domain: { "landfall-net": "" }
`

// leafOf starts a nats-server after docs/nats-leaf.conf, and waits until it speaks to hub.
func leafOf(t *testing.T, hub *server.Server, users []embedded.User) *server.Server {
	t.Helper()
	page, err := os.ReadFile("../../docs/nats-leaf.conf")
	if err != nil {
		t.Fatal(err)
	}
	state, err := hub.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for from, to := range map[string]string{
		"127.0.0.1:4222":      "127.0.0.1:-1",
		"10.0.0.21:7422":      fmt.Sprintf("127.0.0.1:%d", state.LeafNode.Port),
		"landfall-my-network": "landfall-net",
	} {
		if !strings.Contains(text, from) {
			t.Fatalf("docs/nats-leaf.conf has no %q", from)
		}
		text = strings.ReplaceAll(text, from, to)
	}
	leaf := serverAfter(t, text, users)
	until(t, "the leaf node is connected", 10*time.Second, func() bool { return leaf.NumLeafNodes() == 1 && hub.NumLeafNodes() == 1 })
	return leaf
}

// TestThroughALeaf: hosts behind a leaf node make the streams, beat, append, follow and ask as hosts
// at the store do, with each other and with those, and have the rights of their logins and no more.
func TestThroughALeaf(t *testing.T) {
	users := loginsOf([]byte("a secret of thirty-two bytes, or more"))
	hub := serverAfter(t, externalConfig(t, "always")+hubConfig, users)
	leaf := leafOf(t, hub, users)
	operator := connectAs(t, leaf, users[0], true)
	if err := operator.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if servers, err := operator.Servers(t.Context()); err != nil || len(servers) != 1 || servers[0].Name != "nats-1" || !servers[0].Synced {
		t.Errorf("the store's servers tell %+v, %v", servers, err)
	}
	beats := uint64(0)
	for _, where := range []struct {
		name                string
		dispatcher, backend *server.Server
	}{{"both", leaf, leaf}, {"the dispatcher", leaf, hub}, {"the backend", hub, leaf}} {
		t.Run(where.name, func(t *testing.T) {
			d, b := connectAs(t, where.dispatcher, users[2], false), connectAs(t, where.backend, users[3], false)
			if err := d.Ensure(t.Context()); err != nil {
				t.Fatal(err)
			}
			beats = wantBeat(t, d, b, beats)
			put(t, d, uuid.NewString(), 0)
			wantAnswer(t, d, b, events.AskOf("survival-1", "request"))
			wantAnswer(t, b, d, events.ToBackend("survival-1", "reserve"))
			if _, err := b.Append(t.Context(), message(events.Sessions, "p", 0)); reasonOf(err) != events.NotAllowed {
				t.Errorf("a backend wrote a fact: %v", err)
			}
		})
	}
}

// wantBeat sees a heartbeat of b come in at d, behind prev.
func wantBeat(t *testing.T, d, b *streams.Store, prev uint64) uint64 {
	t.Helper()
	f := tailing(t, d, events.Fleet)
	await(t, f.live)
	seq, err := b.Append(t.Context(), message(events.Fleet, events.BackendKey("survival-1"), prev))
	if err != nil {
		t.Fatal(err)
	}
	for got := prev; got < seq; {
		got = await(t, f.seen)
	}
	return seq
}

// TestALeafIsCutOff: its hosts notice, nothing is kept back to land later, and they go on when the
// store can be reached again.
func TestALeafIsCutOff(t *testing.T) {
	users := loginsOf([]byte("a secret of thirty-two bytes, or more"))
	config := externalConfig(t, "always") + hubConfig
	hub := serverAfter(t, config, users)
	leaf := leafOf(t, hub, users)
	d := connectAs(t, leaf, users[2], false)
	if err := connectAs(t, hub, users[0], true).Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := d.Ensure(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := tailing(t, d, events.Sessions)
	await(t, f.live)
	state, err := hub.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	hub.Shutdown()
	hub.WaitForShutdown()
	await(t, f.blind)
	if _, err := d.Append(t.Context(), message(events.Sessions, "lost", 0)); reasonOf(err) != events.Unavailable {
		t.Errorf("an append without a store: %v", err)
	}
	serverAfter(t, strings.Replace(config, `leafnodes { listen: "127.0.0.1:-1"`, fmt.Sprintf(`leafnodes { listen: "127.0.0.1:%d"`, state.LeafNode.Port), 1), users)
	await(t, f.live)
	seq := put(t, d, "after", 0)
	if got := await(t, f.seen); got != seq || seq != 1 {
		t.Errorf("the first fact that is seen is %d, the first that was appended %d: want 1", got, seq)
	}
}

// tailing follows a bucket until the test is over.
func tailing(t *testing.T, st *streams.Store, b events.Bucket) beats {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	f, ended := beats{make(chan struct{}, 8), make(chan struct{}, 8), make(chan uint64, 8)}, make(chan error, 1)
	go func() { ended <- st.Tail(ctx, b, events.TailStart{}, f) }()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return f
}

// wantAnswer sees a request of one come to the other, as soon as the servers know who serves it.
func wantAnswer(t *testing.T, server, caller *streams.Store, subject string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- server.Serve(ctx, subject, "", func() { close(ready) }, func(_ context.Context, _ string, w events.Wire) events.Wire { return w })
	}()
	defer func() {
		cancel()
		<-ended
	}()
	await(t, ready)
	for {
		got, err := caller.Ask(t.Context(), subject, events.Wire{Body: []byte("ask")})
		if errors.Is(err, events.ErrNobody) && t.Context().Err() == nil {
			continue // who serves stands at one server, and the other has not heard of it yet
		}
		if err != nil || string(got.Body) != "ask" {
			t.Errorf("%s: %q, %v", subject, got.Body, err)
		}
		return
	}
}

func await[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(20 * time.Second):
		t.Fatal("it does not come")
		panic("unreachable")
	}
}

// beats hands on what a tail tells.
type beats struct {
	live, blind chan struct{}
	seen        chan uint64
}

func (b beats) Begin(events.StreamState, bool) {}
func (b beats) Record(r events.Record) error   { b.seen <- r.Seq; return nil }
func (b beats) Live(uint64)                    { b.live <- struct{}{} }
func (b beats) Blind(error)                    { b.blind <- struct{}{} }

func message(bucket events.Bucket, key string, prev uint64) events.Message {
	return events.Message{Bucket: bucket, Key: key, Prev: prev, Header: events.Header{events.HeaderID: uuid.NewString()}, Body: []byte("x")}
}

func reasonOf(err error) events.AppendReason {
	failed, ok := errors.AsType[*events.AppendError](err)
	if !ok {
		return ""
	}
	return failed.Reason
}
