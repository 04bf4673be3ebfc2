package actors

import (
	"context"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden holds text against a file, or writes the file.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", filepath.FromSlash(name))
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil { //nolint:gosec // a test file
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path) //nolint:gosec // a test file
	if err != nil {
		t.Fatalf("%v (go test ./actors -update writes it)", err)
	}
	if string(want) != got {
		t.Errorf("%s differs (go test ./actors -update writes it anew), got:\n%s", path, got)
	}
}

// num is the id of its number.
func num[I ~[16]byte](n byte) I {
	var id I
	id[6], id[8], id[15] = 0x70, 0x80, n
	return id
}

var (
	steve  = events.OfflinePlayer("Steve")
	first  = num[events.TransferID](1)
	second = num[events.TransferID](2)
	t0     = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
)

// edge is the source of a dispatcher in the life that its name gives it.
func edge(id events.HostID) events.Source { return streamtest.Source(events.SourceEdge, id) }

// lifeOf is the life of a host that the tests call by this name.
func lifeOf(id events.HostID) events.Incarnation { return edge(id).Incarnation }

func logger(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func identity(kind events.SourceKind, id events.HostID) Identity {
	return Identity{Source: streamtest.Source(kind, id), Keys: streamtest.Keyring(), Now: time.Now, NewID: streamtest.NewID[[16]byte]}
}

// passTime lets fake time pass, inside a bubble.
func passTime(d time.Duration) { time.Sleep(d); synctest.Wait() }

// bubble runs a test body in fake time on a log in memory; all it started must have ended
// when its context has.
func bubble(t *testing.T, body func(t *testing.T, ctx context.Context, mem *streamtest.Memory)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body(t, ctx, streamtest.NewMemory())
	})
}

// eventually waits in fake time.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 6000 {
		synctest.Wait()
		if cond() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not within a minute: %s", what)
}

// tap is a connection that shows each append to a test before it leaves, and may hold up
// what a tail delivers.
type tap struct {
	*streamtest.Client
	before func(try int, m events.Message) // try counts from 1

	beforeLast func(b events.Bucket) // shows each question for a last record

	mu    sync.Mutex
	sent  []events.Message
	lasts map[events.Bucket]int // how often Last was asked
	holds map[events.Bucket]chan struct{}
}

func (p *tap) Append(ctx context.Context, m events.Message) (uint64, error) {
	p.mu.Lock()
	p.sent = append(p.sent, m)
	try := len(p.sent)
	p.mu.Unlock()
	if p.before != nil {
		p.before(try, m)
	}
	return p.Client.Append(ctx, m)
}

func (p *tap) Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	p.mu.Lock()
	if p.lasts == nil {
		p.lasts = map[events.Bucket]int{}
	}
	p.lasts[b]++
	p.mu.Unlock()
	if p.beforeLast != nil {
		p.beforeLast(b)
	}
	return p.Client.Last(ctx, b, key)
}

// reads counts the questions for the last record of a key.
func (p *tap) reads(b events.Bucket) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lasts[b]
}

func (p *tap) tries() []events.Message {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sent
}

// hold makes the tail of a bucket wait before each record until the channel is closed.
func (p *tap) hold(b events.Bucket) (release func()) {
	ch := make(chan struct{})
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holds = map[events.Bucket]chan struct{}{b: ch}
	return func() {
		p.mu.Lock()
		delete(p.holds, b)
		p.mu.Unlock()
		close(ch)
	}
}

func (p *tap) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	return p.Client.Tail(ctx, b, from, heldFollower{LiveFollower: f.(events.LiveFollower), p: p, bucket: b})
}

type heldFollower struct {
	events.LiveFollower
	p      *tap
	bucket events.Bucket
}

func (h heldFollower) Record(r events.Record) error {
	h.p.mu.Lock()
	ch := h.p.holds[h.bucket]
	h.p.mu.Unlock()
	if ch != nil {
		<-ch
	}
	return h.LiveFollower.Record(r)
}

// seer is a dispatcher whose folds run and whose loops do not: nothing is written but
// what the test asks for.
type seer struct {
	*Dispatcher
	log *tap
	mem *streamtest.Memory
}

func newSeer(t *testing.T, ctx context.Context, mem *streamtest.Memory, id events.HostID) *seer {
	t.Helper()
	log := &tap{Client: mem.Client(string(id))}
	d, err := NewDispatcher(DispatcherConfig{
		Identity: identity(events.SourceEdge, id), Log: log, Bus: log.Client, Logger: logger(t), Kind: events.KindEdge, Domain: "play.example.net",
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.view.Run(ctx) }()
	if err := d.view.WaitLive(ctx); err != nil {
		t.Fatal(err)
	}
	return &seer{Dispatcher: d, log: log, mem: mem}
}

// put lets somebody else append a fact of the player's first transfer, and gives its sequence.
func (s *seer) put(t *testing.T, facts ...events.TransferFact) (seq uint64) {
	t.Helper()
	for _, f := range facts {
		seq = putFor(t, s.mem, steve, first, f)
	}
	return seq
}

func putFor(t *testing.T, mem *streamtest.Memory, player events.PlayerID, transfer events.TransferID, f events.TransferFact) uint64 {
	t.Helper()
	c := mem.Client("somebody else")
	key := events.TransferKey(player, transfer)
	last, _, err := c.Last(t.Context(), events.Transfers, key)
	if err != nil {
		t.Fatal(err)
	}
	e := events.Envelope{ID: streamtest.NewID[events.EventID](), Source: edge("e1"), Time: time.Now(), Key: key, Correlation: transfer, Prev: last.Seq}
	if claim, ok := f.(*events.Claimed); ok {
		e.Source = events.Source{Kind: events.SourceEdge, ID: claim.Dispatcher, Incarnation: claim.Incarnation}
	}
	seq, err := c.Append(t.Context(), streamtest.Seal(t, e, f))
	if err != nil {
		t.Fatal(err)
	}
	return seq
}

// kill lets an operator switch transfers off, and waits until the dispatcher knows.
func (s *seer) kill(t *testing.T) {
	t.Helper()
	c := s.mem.Client("operator")
	if _, err := c.Append(t.Context(), streamtest.Fact(t, "kill", 0, &events.KillSet{On: true, Who: "op", Why: "a test"})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "kill folded", func() bool { return s.view.Controls().Killed })
}

// stored opens what a bucket holds.
func stored(t *testing.T, mem *streamtest.Memory, b events.Bucket) []events.Event {
	t.Helper()
	var out []events.Event
	for _, r := range mem.Records(b) {
		e, refusal := events.Open(streamtest.Keyring(), r)
		if refusal != nil {
			t.Fatalf("sequence %d: %v", r.Seq, refusal)
		}
		out = append(out, e)
	}
	return out
}

// The facts of a journey from server a to server b.
func requested() *events.Requested {
	return &events.Requested{Trigger: events.TriggerCommand, Wish: events.Wish{Region: "wild"}, Origin: "a", Name: "Steve"}
}

func reserved(attempt int) *events.Reserved {
	return &events.Reserved{
		Attempt: attempt, Server: "b", Incarnation: lifeOf("b"), Promise: uint64(attempt), Region: "wild", At: events.Position{World: "w", X: 1, Y: 2, Z: 3}, //nolint:gosec // small
		TTLMs: 30_000, Decision: events.Decision{Policy: "weighted/0a1b2c3d", Snapshot: 50, Candidates: []events.Candidate{}, Filtered: []events.Filtered{}},
	}
}

func claimed(attempt int, by events.HostID) *events.Claimed {
	return &events.Claimed{Attempt: attempt, Dispatcher: by, Incarnation: lifeOf(by), Session: 7, From: "a"}
}

func consumed(attempt int) *events.Consumed {
	return &events.Consumed{Attempt: attempt, Server: "b", Incarnation: lifeOf("b"), Join: num[events.JoinID](9)}
}

// journey folds facts that come a second apart from t0 on, the request first.
func journey(t testing.TB, facts ...events.TransferFact) projections.Transfer {
	t.Helper()
	const place = 100
	tr := projections.Begin(events.Event{Envelope: events.Envelope{Correlation: first}, Seq: place}, steve, requested(), t0)
	for i, f := range facts {
		var refusal *events.Refusal
		if tr, refusal = tr.Apply(place+1+uint64(i), f, t0.Add(time.Duration(i+1)*time.Second)); refusal != nil { //nolint:gosec // small
			t.Fatalf("fact %d: %v", i+1, refusal)
		}
	}
	return tr
}

// sessionOn is the open session of the player on a server, held by a dispatcher.
func sessionOn(server, holder events.HostID) projections.Session {
	return projections.Session{Open: true, Last: 7, Seen: t0, Session: events.Session{
		Number: 7, Holder: holder, HolderIncarnation: lifeOf(holder), Kind: events.KindEdge, Server: server, Join: num[events.JoinID](8), Name: "Steve", Protocol: 767,
	}}
}
