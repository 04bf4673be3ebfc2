package projections

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// watch is a View that folds a network in memory.
type watch struct {
	t      testing.TB
	mem    *streamtest.Memory
	reader *streamtest.Client
	writer *streamtest.Client
	view   *View
	cancel context.CancelFunc
	done   chan error
	guards map[string]uint64

	mu       sync.Mutex
	changes  []Change
	problems []Problem
	look     func(Change) // called for each change, from the tails' goroutines
}

func newWatch(t testing.TB) *watch {
	w := &watch{t: t, mem: streamtest.NewMemory(), guards: map[string]uint64{}}
	w.reader, w.writer = w.mem.Client("reader"), w.mem.Client("writer")
	w.view = NewView(Config{
		Log: w.reader, Keys: streamtest.Keyring(), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Changed: func(c Change) {
			w.mu.Lock()
			w.changes = append(w.changes, c)
			look := w.look
			w.mu.Unlock()
			if look != nil {
				look(c)
			}
		},
		Problem: func(p Problem) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.problems = append(w.problems, p)
		},
	})
	return w
}

// run starts the view; it ends with stop.
func (w *watch) run() *watch {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.cancel, w.done = cancel, make(chan error, 1)
	go func() { w.done <- w.view.Run(ctx) }()
	return w
}

func (w *watch) stop() error {
	w.cancel()
	return <-w.done
}

// live waits until everything has caught up.
func (w *watch) live() *watch {
	w.t.Helper()
	if err := w.view.WaitLive(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	return w
}

// put appends a fact as a correct writer would, and returns its sequence.
func (w *watch) put(key string, f events.Fact) uint64 {
	w.t.Helper()
	m := w.seal(key, f)
	seq, err := w.writer.Append(w.t.Context(), m)
	if err != nil {
		w.t.Fatal(err)
	}
	w.guards[m.Bucket.Guard(key)] = seq
	return seq
}

func (w *watch) seal(key string, f events.Fact) events.Message {
	w.t.Helper()
	kind, err := events.KindOf(f)
	if err != nil {
		w.t.Fatal(err)
	}
	e := events.Envelope{
		ID: streamtest.NewID[events.EventID](), Source: writerOf(f), Time: time.Now(), Key: key, Prev: w.guards[kind.Bucket.Guard(key)],
	}
	_, e.Correlation, _ = events.ParseTransferKey(key)
	return streamtest.Seal(w.t, e, f)
}

func (w *watch) of(p events.PlayerID, t events.TransferID, facts ...events.TransferFact) (seq uint64) {
	w.t.Helper()
	for _, f := range facts {
		seq = w.put(events.TransferKey(p, t), f)
	}
	return seq
}

// inject stores a message past every guard, signed like everything else.
func (w *watch) inject(b events.Bucket, key string, change func(m *events.Message)) uint64 {
	w.t.Helper()
	m := w.seal(events.TransferKey(steve, first), requested())
	m.Bucket, m.Key = b, key
	m.Header[events.HeaderKey] = key
	change(&m)
	m.Header[events.HeaderSig] = streamtest.Keyring().Sign(b.Subject(key), m.Header, m.Body)
	return w.mem.Inject(b, key, m.Header, m.Body)
}

func writerOf(f events.Fact) events.Source {
	s := events.Source{Kind: events.SourceEdge, ID: "e", Incarnation: lifeE}
	switch f := f.(type) {
	case *events.BackendBeat:
		s = events.Source{Kind: events.SourceBackend, ID: f.Server, Incarnation: f.Incarnation}
	case *events.ProxyBeat:
		s.ID = f.Proxy
	case *events.KillSet, *events.DrainSet:
		s.Kind = events.SourceOperator
	default:
	}
	return s
}

// fill puts one fact into each bucket that is folded.
func (w *watch) fill() *watch {
	w.of(steve, first, requested(), reserved(1))
	w.put(steve.String(), opened("a"))
	w.put(events.KillKey, &events.KillSet{On: true})
	w.put("backend.b", beat("b", lifeB, 0))
	return w
}

func TestViewFoldsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).fill().run().live()
		x, ok := w.view.Transfer(first)
		if !ok || x.Phase != Pending || w.view.Player(steve).Guard != 2 || len(w.view.Active()) != 1 || w.view.Folded() != 2 {
			t.Errorf("%+v", x)
		}
		if _, ok := w.view.Transfer(next); ok {
			t.Error("a transfer that is not there was found")
		}
		s, ok := w.view.Session(steve)
		if !ok || !s.Open || s.Number != 1 || len(w.view.OpenSessions("e")) != 1 || len(w.view.OpenSessions("x")) != 0 {
			t.Errorf("%+v", s)
		}
		b := w.view.Fleet().Backend("b")
		if !w.view.Controls().Killed || b == nil || !w.view.Fleet().Live || w.view.Pledged(b, "wild") != 1 {
			t.Errorf("controls %+v, backend %+v", w.view.Controls(), b)
		}
		w.put("backend.b", beat("b", lifeB, 1))
		synctest.Wait()
		if n := w.view.Pledged(w.view.Fleet().Backend("b"), "wild"); n != 0 || !w.view.Ready() {
			t.Errorf("%d pledged after the beat that counts it", n)
		}
		w.of(steve, first, &events.Cancelled{Code: events.GraceOver})
		w.of(alex, next, &events.Requested{}, &events.Reserved{Attempt: 1, Server: "gone", Promise: 1})
		synctest.Wait()
		w.view.Forget(time.Now().Add(time.Second))
		if p := w.view.Player(steve); p.Guard != 0 || w.view.pledges.servers["gone"] != nil || w.view.Player(alex).Active == nil {
			t.Errorf("forgot %+v", p)
		}
		if err := w.stop(); !errors.Is(err, context.Canceled) {
			t.Errorf("Run ended with %v", err)
		}
	})
}

// WaitFolded blocks until the sequence is folded, and rejects at once what it never will.
func TestWaitFolded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t)
		waited := make(chan error, 1)
		go func() { waited <- w.view.WaitFolded(t.Context(), events.Transfers, 2) }()
		synctest.Wait()
		w.of(steve, first, requested())
		w.run().live()
		select {
		case err := <-waited:
			t.Fatalf("passed before its sequence was there: %v", err)
		default:
		}
		w.of(steve, first, reserved(1))
		if err := <-waited; err != nil || w.view.Player(steve).Active.Phase != Pending {
			t.Errorf("%v", err)
		}
		if err := w.view.WaitFolded(t.Context(), events.Transfers, 1); err != nil {
			t.Errorf("an old sequence: %v", err)
		}
		for _, b := range []events.Bucket{events.Limits, events.Audit, "elsewhere"} {
			if err := w.view.WaitFolded(t.Context(), b, 1); !errors.Is(err, ErrFoldBucket) || !strings.Contains(err.Error(), string(b)) {
				t.Errorf("%s: %v", b, err)
			}
		}
		// the position of one bucket is not another's
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("tired of waiting"))
		defer cancel()
		if err := w.view.WaitFolded(ctx, events.Sessions, 1); err == nil || err.Error() != "tired of waiting" {
			t.Errorf("sessions: %v", err)
		}
		w.stop()
		if err := w.view.WaitFolded(t.Context(), events.Transfers, 99); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}

// A record that cannot be judged yet stops the fold where it stands: the state before it
// stays readable, readiness fails, and all who wait hear why, at every fold. Whoever starts it
// again finds it stopped at the same sequence, and never running.
func TestCase113_AFoldThatStopsSaysWhere(t *testing.T) {
	stranger, err := events.NewKey([]byte(strings.Repeat("s", events.MinSecret)))
	if err != nil {
		t.Fatal(err)
	}
	strange := func(m *events.Message) { m.Header[events.HeaderType] = "landfall.transfer.teleported.v1" }
	cases := []struct {
		name   string
		bucket events.Bucket
		put    func(w *watch) uint64
		code   events.Code
	}{
		{"unknown type", events.Transfers, func(w *watch) uint64 { return w.inject(events.Transfers, events.TransferKey(steve, first), strange) }, events.UnknownType},
		{"unknown type of a session", events.Sessions, func(w *watch) uint64 { return w.inject(events.Sessions, steve.String(), strange) }, events.UnknownType},
		{"unknown type of control", events.Control, func(w *watch) uint64 { return w.inject(events.Control, "kill", strange) }, events.UnknownType},
		{"unknown key", events.Transfers, func(w *watch) uint64 {
			m := w.seal(events.TransferKey(steve, first), claimed(1))
			m.Header[events.HeaderSig] = events.NewKeyring(stranger).Sign(m.Bucket.Subject(m.Key), m.Header, m.Body)
			return w.mem.Inject(m.Bucket, m.Key, m.Header, m.Body)
		}, events.UnknownKey},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t).fill().run().live()
				waited := make(chan error)
				for n := range 100 {
					go func() {
						waited <- w.view.WaitFolded(t.Context(), []events.Bucket{events.Transfers, events.Sessions}[n%2], 1000)
					}()
				}
				synctest.Wait()
				seq := c.put(w)
				ended := <-w.done
				want := fmt.Sprintf("sequence %d of %s: %s", seq, c.bucket, c.code)
				var refusal *events.Refusal
				if ended == nil || !strings.Contains(ended.Error(), want) || !errors.As(ended, &refusal) || refusal.Code != c.code {
					t.Errorf("Run ended with %v, want %q in it", ended, want)
				}
				for range 100 {
					if err := <-waited; err == nil || err.Error() != ended.Error() {
						t.Errorf("a waiter was released with %v", err)
					}
				}
				if w.view.Ready() || w.view.Player(steve).Active.Phase != Pending || w.view.Folded() != 2 {
					t.Errorf("ready %v, folded %d", w.view.Ready(), w.view.Folded())
				}
				if err := w.view.WaitLive(t.Context()); err == nil {
					t.Error("WaitLive passed")
				}
				w.cancel()
				again := newWatch(t)
				again.mem, again.view.cfg.Log = w.mem, w.mem.Client("again")
				again.run()
				if err := <-again.done; err == nil || !strings.Contains(err.Error(), want) || again.view.Ready() {
					t.Errorf("started again it ended with %v, ready %v; want %q", err, again.view.Ready(), want)
				}
				again.cancel()
			})
		})
	}
}

// What a backend may write to its own key stops no dispatcher.
func TestStrangeHeartbeatsArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t).fill().run().live()
		w.inject(events.Fleet, "backend.b", func(m *events.Message) { m.Header[events.HeaderType] = "landfall.fleet.backend.v2" })
		w.mem.Inject(events.Fleet, "backend.b", events.Header{
			events.HeaderID: streamtest.NewID[events.EventID]().String(), events.HeaderType: "landfall.fleet.backend.v1", events.HeaderSig: "v1;kid=ffffffff;00",
		}, nil)
		synctest.Wait()
		if !w.view.Ready() || w.view.Fleet().Backend("b").Seq != 1 {
			t.Errorf("ready %v, backend %+v", w.view.Ready(), w.view.Fleet().Backend("b"))
		}
		if len(w.problems) != 2 || w.problems[0].Refusal.Code != events.UnknownType || w.problems[1].Refusal.Code != events.UnknownKey {
			t.Errorf("%+v", w.problems)
		}
		w.stop()
	})
}

// A bad message changes nothing, is reported with its place, and moves the guard: whoever
// writes next does so on top of it.
func TestProblemsAreReported(t *testing.T) {
	key := events.TransferKey(steve, first)
	cases := []struct {
		name string
		put  func(w *watch) uint64
		code events.Code
	}{
		{"marker", func(w *watch) uint64 {
			return w.mem.Inject(events.Transfers, key, events.Header{"KV-Operation": "DEL"}, nil)
		}, events.Stray},
		{"bad signature", func(w *watch) uint64 {
			m := w.seal(key, claimed(1))
			return w.mem.Inject(m.Bucket, m.Key, m.Header, append(m.Body, 0))
		}, events.BadSignature},
		{"wrong actor", func(w *watch) uint64 {
			return w.inject(events.Transfers, key, func(m *events.Message) {
				m.Header[events.HeaderSource] = events.Source{Kind: events.SourceBackend, ID: "b", Incarnation: lifeB}.String()
			})
		}, events.WrongActor},
		{"malformed", func(w *watch) uint64 {
			return w.inject(events.Transfers, key, func(m *events.Message) { m.Body = []byte("\x80") })
		}, events.Malformed},
		{"wrong prev", func(w *watch) uint64 {
			return w.inject(events.Transfers, key, func(m *events.Message) { m.Header[events.HeaderPrev] = "1" })
		}, events.WrongPrev},
		{"impossible", func(w *watch) uint64 { return w.of(steve, first, completed(1)) }, events.Impossible},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWatch(t).fill().run().live()
				before := *w.view.Player(steve).Active
				seq := c.put(w)
				synctest.Wait()
				p := w.view.Player(steve)
				if p.Guard != seq || p.Active == nil || p.Active.Phase != before.Phase || p.Active.Token != before.Token || !w.view.Ready() {
					t.Errorf("%+v", p)
				}
				if len(w.problems) != 1 || w.problems[0].Seq != seq || w.problems[0].Key != key || w.problems[0].Refusal.Code != c.code || w.problems[0].Bucket != events.Transfers {
					t.Errorf("problems %+v", w.problems)
				}
				w.guards[events.Transfers.Guard(key)] = seq
				w.of(steve, first, claimed(1))
				synctest.Wait()
				if got := w.view.Player(steve).Active; got == nil || got.Phase != Claimed {
					t.Errorf("the next fact was not taken: %+v", got)
				}
				w.stop()
			})
		})
	}
}
