package streamtest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
)

type handler = func(ctx context.Context, subject string, w events.Wire) events.Wire

// running is a Serve or Listen call under way.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

// begin starts a call that blocks, and waits until its subscription stands.
func begin(t *testing.T, call func(ctx context.Context, ready func()) error) *running {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &running{cancel: cancel, done: make(chan error, 1)}
	ready := make(chan struct{})
	go func() { r.done <- call(ctx, func() { close(ready) }) }()
	t.Cleanup(func() { r.stop(t) })
	select {
	case <-ready:
	case err := <-r.done:
		r.done <- nil
		t.Fatalf("subscription ended at once: %v", err)
	case <-time.After(patience):
		t.Fatal("subscription does not stand")
	}
	return r
}

func serve(t *testing.T, c Conn, subject, queue string, handle handler) *running {
	t.Helper()
	return begin(t, func(ctx context.Context, ready func()) error { return c.Serve(ctx, subject, queue, ready, handle) })
}

func listen(t *testing.T, c Conn, subject string, hear func(subject string, w events.Wire)) *running {
	t.Helper()
	return begin(t, func(ctx context.Context, ready func()) error { return c.Listen(ctx, subject, ready, hear) })
}

func (r *running) stop(t *testing.T) {
	t.Helper()
	r.cancel()
	select {
	case err := <-r.done:
		r.done <- nil
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v, want its context's error", err)
		}
	case <-time.After(patience):
		t.Error("did not end with its context")
	}
}

func newHost() events.HostID { return events.HostID(NewID[events.RequestID]().Hex()) }

// askAndAnswer: a request reaches who serves its subject, exactly as it was sent, and the
// answer comes back; a wildcard hears all of its subjects and no other.
func askAndAnswer(t *testing.T, s Store, _ Features) {
	server, asker := s.Connect(t), s.Connect(t)
	host := newHost()
	serve(t, server, events.ToBackend(host, "*"), "", func(_ context.Context, subject string, w events.Wire) events.Wire {
		return events.Wire{Header: events.Header{"subject": subject, "was": w.Header[events.HeaderID]}, Body: append([]byte("re:"), w.Body...)}
	})
	for _, verb := range events.BackendVerbs {
		subject := events.ToBackend(host, verb)
		got, err := asker.Ask(within(t), subject, events.Wire{Header: events.Header{events.HeaderID: "x"}, Body: []byte{0, 1, 2}})
		if err != nil || got.Header["subject"] != subject || got.Header["was"] != "x" || string(got.Body) != "re:\x00\x01\x02" {
			t.Errorf("ask %s: %v, %v", subject, got, err)
		}
	}
	if _, err := asker.Ask(within(t), events.ToBackend(newHost(), events.VerbMove), events.Wire{}); !errors.Is(err, events.ErrNobody) {
		t.Errorf("ask of another host: %v", err)
	}
}

// oneOfAQueue: each request is carried out by one server of a queue, and all take part.
func oneOfAQueue(t *testing.T, s Store, _ Features) {
	const servers, asks = 3, 300
	asker := s.Connect(t)
	host := newHost()
	var handled [servers]atomic.Int64
	for i := range servers {
		serve(t, s.Connect(t), events.AskOf(host, events.VerbRequest), "dispatchers", func(context.Context, string, events.Wire) events.Wire {
			handled[i].Add(1)
			return events.Wire{}
		})
	}
	for range asks {
		if _, err := asker.Ask(within(t), events.AskOf(host, events.VerbRequest), events.Wire{}); err != nil {
			t.Fatalf("ask: %v", err)
		}
	}
	sum := int64(0)
	for i := range handled {
		sum += handled[i].Load()
		if handled[i].Load() == 0 {
			t.Errorf("server %d of the queue was never chosen", i)
		}
	}
	if sum != asks {
		t.Errorf("%d requests were handled %d times", asks, sum)
	}
}

// nobodyAnswers: where no one serves, before as well as after, the caller learns it at once.
func nobodyAnswers(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbReserve)
	ask := func() error { _, err := c.Ask(within(t), subject, events.Wire{}); return err }
	if err := ask(); !errors.Is(err, events.ErrNobody) {
		t.Errorf("before anybody serves: %v", err)
	}
	server := serve(t, s.Connect(t), subject, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{} })
	if err := ask(); err != nil {
		t.Errorf("while served: %v", err)
	}
	server.stop(t)
	eventually(t, "the end of the subscription", func() error {
		if err := ask(); !errors.Is(err, events.ErrNobody) {
			return errors.Join(errors.New("still served"), err)
		}
		return nil
	})
}

// askDeadline: a caller waits no longer than its context for an answer that does not come.
func askDeadline(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbMove)
	release := make(chan struct{})
	serve(t, s.Connect(t), subject, "", func(context.Context, string, events.Wire) events.Wire { <-release; return events.Wire{} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Ask(ctx, subject, events.Wire{})
	close(release)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ask: %v, want its deadline", err)
	}
}

// handlersBounded: handlers of one Serve run beside each other, at most 256 at once.
func handlersBounded(t *testing.T, s Store, _ Features) {
	const asks = 600
	asker := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbReserve)
	var active, most atomic.Int64
	release := make(chan struct{})
	beside := make(chan struct{}, asks)
	serve(t, s.Connect(t), subject, "", func(context.Context, string, events.Wire) events.Wire {
		n := active.Add(1)
		defer active.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		if n > 1 {
			beside <- struct{}{}
		}
		<-release
		return events.Wire{}
	})
	var wg sync.WaitGroup
	ctx := within(t)
	for range asks {
		wg.Go(func() {
			if _, err := asker.Ask(ctx, subject, events.Wire{}); err != nil {
				t.Errorf("ask: %v", err)
			}
		})
	}
	select {
	case <-beside:
	case <-ctx.Done():
		t.Error("no two handlers ran at once")
	}
	close(release)
	wg.Wait()
	if most.Load() > maxHandlers {
		t.Errorf("%d handlers ran at once", most.Load())
	}
}

// serveWaits: Serve returns only after the handler that runs, and its answer still arrives.
func serveWaits(t *testing.T, s Store, _ Features) {
	asker := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbMove)
	entered, release := make(chan struct{}), make(chan struct{})
	var returned atomic.Bool
	server := serve(t, s.Connect(t), subject, "", func(context.Context, string, events.Wire) events.Wire {
		close(entered)
		<-release
		returned.Store(true)
		return events.Wire{Body: []byte("done")}
	})
	answered := make(chan error, 1)
	go func() {
		w, err := asker.Ask(within(t), subject, events.Wire{})
		if err == nil && string(w.Body) != "done" {
			err = errors.New("another answer")
		}
		answered <- err
	}()
	<-entered
	server.cancel()
	select {
	case <-server.done:
		t.Error("Serve returned while a handler ran")
	case <-time.After(50 * time.Millisecond): // a Serve that does not wait is back long before
	}
	close(release)
	server.stop(t)
	if !returned.Load() {
		t.Error("Serve returned before its handler")
	}
	if err := <-answered; err != nil {
		t.Errorf("ask: %v", err)
	}
}

// newsInOrder: every listener hears all news once, those of one publisher in their order,
// one call at a time.
func newsInOrder(t *testing.T, s Store, _ Features) {
	const publishers, news = 2, 500
	type heard struct {
		mu   sync.Mutex
		next map[string]int
		n    int
		all  chan struct{}
	}
	host := newHost()
	listeners := make([]*heard, 3)
	for i := range listeners {
		h := &heard{next: map[string]int{}, all: make(chan struct{})}
		listeners[i] = h
		listen(t, s.Connect(t), events.NewsOf(host, "*"), func(_ string, w events.Wire) {
			if !h.mu.TryLock() {
				t.Error("two news at once")
				return
			}
			defer h.mu.Unlock()
			who := w.Header["who"]
			if n, _ := strconv.Atoi(string(w.Body)); n != h.next[who] {
				t.Errorf("publisher %s: heard %d, want %d", who, n, h.next[who])
			}
			h.next[who]++
			if h.n++; h.n == publishers*news {
				close(h.all)
			}
		})
	}
	var wg sync.WaitGroup
	for p := range publishers {
		c, who := s.Connect(t), strconv.Itoa(p)
		wg.Go(func() {
			for i := range news {
				w := events.Wire{Header: events.Header{"who": who}, Body: []byte(strconv.Itoa(i))}
				if err := c.Announce(t.Context(), events.NewsOf(host, events.VerbJoined), w); err != nil {
					t.Errorf("announce: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i, h := range listeners {
		select {
		case <-h.all:
		case <-time.After(patience):
			t.Errorf("listener %d did not hear everything", i)
		}
	}
}

// busAcrossCut: who is cut off cannot be asked and does not hear; healed, both work again
// without being set up anew.
func busAcrossCut(t *testing.T, s Store, _ Features) {
	server, asker := s.Connect(t), s.Connect(t)
	host := newHost()
	subject := events.ToBackend(host, events.VerbReserve)
	serve(t, server, subject, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{} })
	heard := make(chan string, 100)
	listen(t, server, events.NewsOf(host, "*"), func(_ string, w events.Wire) { heard <- string(w.Body) })
	ask := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := asker.Ask(ctx, subject, events.Wire{})
		return err
	}
	s.Cut(t, server)
	if err := ask(); !errors.Is(err, events.ErrNobody) && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ask of a host that is cut off: %v", err)
	}
	s.Heal(t, server)
	eventually(t, "an answer after the cut", ask)
	eventually(t, "news after the cut", func() error {
		if err := asker.Announce(t.Context(), events.NewsOf(host, events.VerbLeft), events.Wire{Body: []byte("after")}); err != nil {
			return err
		}
		select {
		case <-heard:
			return nil
		default:
			return errors.New("not heard yet")
		}
	})
}
