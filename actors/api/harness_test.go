package api_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// network is a simulated network over the log in memory, with the API on one of its proxies.
type network struct {
	t       *testing.T
	mem     *streamtest.Memory
	stage   *sim.Stage
	service *api.Service
	server  *httptest.Server
	op      actors.Operator
	tokens  map[string]string // by scopes, so that each is made once
}

// source reads the log in memory.
type source struct {
	*streamtest.Client
	mem *streamtest.Memory
}

// look is a follower that wants to know where a bucket begins and ends, and no more.
type look struct{ state events.StreamState }

var errSeen = errors.New("seen")

func (l *look) Begin(s events.StreamState, _ bool) { l.state = s }
func (*look) Record(events.Record) error           { return errSeen }
func (*look) Live(uint64)                          {}
func (*look) Blind(error)                          {}

// Info implements api.Source. The bucket must not be empty.
func (s source) Info(ctx context.Context, b events.Bucket) (events.StreamState, error) {
	var l look
	if err := s.Tail(ctx, b, events.TailStart{Mode: events.TailAll}, &l); !errors.Is(err, errSeen) {
		return l.state, err
	}
	return l.state, nil
}

// After implements api.Source.
func (s source) After(_ context.Context, b events.Bucket, seq uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range s.mem.Records(b) {
			if r.Seq > seq && !yield(r, nil) {
				return
			}
		}
	}
}

func identity(kind events.SourceKind, id events.HostID) actors.Identity {
	return actors.Identity{
		Source: events.Source{Kind: kind, ID: id, Incarnation: streamtest.NewID[events.Incarnation]()},
		Keys:   streamtest.Keyring(), Now: time.Now, NewID: streamtest.NewID[[16]byte],
	}
}

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// open raises a network of two proxies and two backends.
func open(t *testing.T) *network {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	n := &network{t: t, mem: streamtest.NewMemory(), tokens: map[string]string{}}
	n.stage = sim.NewStage(ctx, sim.StageConfig{
		Proxies: []events.HostID{"proxy-1", "proxy-2"}, Backends: []events.HostID{"backend-1", "backend-2"}, Keep: 8, Seats: 100,
		Tick: time.Millisecond, Reconnect: 10 * time.Millisecond, Timing: actors.Timing{TTL: 10 * time.Second, MoveTimeout: 3 * time.Second},
		Connect: func(_ context.Context, _ events.SourceKind, id events.HostID) (sim.Conn, error) {
			return n.mem.Client(string(id)), nil
		},
		Identity: identity, Logger: logger(t),
	})
	var running sync.WaitGroup
	running.Go(func() { _ = n.stage.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait(); n.stage.Net().Wait() })
	select {
	case <-n.stage.Ready():
	case <-t.Context().Done():
		t.Fatal("the network does not get ready")
	}
	n.op = actors.Operator{Identity: identity(events.SourceOperator, "op"), Log: n.mem.Client("operator")}
	n.service = newService(t)
	n.service.Attach(api.Backing{Dispatcher: n.stage.Observer(), Source: source{n.mem.Client("proxy-1"), n.mem}, Operator: &n.op})
	n.server = httptest.NewServer(n.service)
	t.Cleanup(n.server.Close)
	return n
}

func newService(t *testing.T) *api.Service {
	t.Helper()
	s, err := api.New(api.Config{Now: time.Now, NewID: streamtest.NewID[[16]byte], Logger: logger(t), Network: "test", Version: "0.0.0"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// token gives an API token with scopes.
func (n *network) token(scopes ...events.Scope) string {
	n.t.Helper()
	var key strings.Builder
	for _, s := range scopes {
		key.WriteString(string(s) + " ")
	}
	if text, made := n.tokens[key.String()]; made {
		return text
	}
	text := n.makeToken(time.Now().Add(time.Hour), scopes...)
	n.tokens[key.String()] = text
	return text
}

func (n *network) makeToken(expires time.Time, scopes ...events.Scope) string {
	n.t.Helper()
	var random [40]byte
	id := streamtest.NewID[[16]byte]()
	copy(random[:], id[8:])
	b := events.NewBearer(random)
	n.decree(events.APITokenKey(b.ID), &events.TokenSet{ID: b.ID, Name: "tester", Hash: b.Hash(), Scopes: scopes, Expires: expires.Unix(), Who: "op"})
	return b.Text()
}

// decree lets an operator decide, and waits until the API's host knows.
func (n *network) decree(key string, f events.Fact) {
	n.t.Helper()
	seq, err := n.op.Decree(n.t.Context(), key, f)
	if err == nil {
		err = n.stage.Observer().View().WaitFolded(n.t.Context(), events.Control, seq)
	}
	if err != nil {
		n.t.Fatal(err)
	}
}

// join brings a player onto a server over a proxy.
func (n *network) join(name string) *sim.Client {
	n.t.Helper()
	c := n.stage.Net().AddClient(name, 767)
	if err := c.Join(n.t.Context(), "proxy-1", events.Token{}); err != nil {
		n.t.Fatal(err)
	}
	d := n.stage.Observer()
	if !d.Await(n.t.Context(), c.ID, func() bool { s, known := d.View().Session(c.ID); return known && s.Open }) {
		n.t.Fatalf("%s has no session", name)
	}
	return c
}

// reply is an answer of the API.
type reply struct {
	status int
	header http.Header
	body   []byte
}

func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

// code is the code of a problem.
func (r reply) code(t *testing.T) events.Code {
	t.Helper()
	var p api.Problem
	r.into(t, &p)
	if got := r.header.Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("a problem comes as %s", got)
	}
	if p.Status != r.status {
		t.Errorf("status %d says %d", r.status, p.Status)
	}
	return events.Code(p.Code)
}

func (n *network) call(method, path, token, body string, header ...string) reply {
	n.t.Helper()
	return call(n.t, n.server.URL, method, path, token, body, header...)
}

func call(t *testing.T, url, method, path, token, body string, header ...string) reply {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	if body != "" {
		q.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Body.Close()
	var all bytes.Buffer
	if _, err := all.ReadFrom(a.Body); err != nil {
		t.Fatal(err)
	}
	return reply{a.StatusCode, a.Header, all.Bytes()}
}

// sse is one event of a stream.
type sse struct{ id, event, data string }

// follow reads a stream, event by event, until the caller stops or it ends.
func (n *network) follow(path, token string, header ...string) iter.Seq[sse] {
	n.t.Helper()
	return func(yield func(sse) bool) {
		q, err := http.NewRequestWithContext(n.t.Context(), http.MethodGet, n.server.URL+path, nil)
		if err != nil {
			n.t.Fatal(err)
		}
		q.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i+1 < len(header); i += 2 {
			q.Header.Set(header[i], header[i+1])
		}
		a, err := http.DefaultClient.Do(q)
		if err != nil {
			n.t.Error(err)
			return
		}
		defer a.Body.Close()
		if a.StatusCode != http.StatusOK || a.Header.Get("Content-Type") != "text/event-stream" {
			n.t.Errorf("%s: %d %s", path, a.StatusCode, a.Header.Get("Content-Type"))
			return
		}
		var e sse
		for lines := bufio.NewScanner(a.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "id":
				e.id = value
			case "event":
				e.event = value
			case "data":
				e.data = value
			case "":
				if e.event != "" && !yield(e) {
					return
				}
				e = sse{}
			}
		}
	}
}
