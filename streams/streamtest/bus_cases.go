package streamtest

import (
	"context"
	"errors"
	"strconv"
	"strings"
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

// warm marks what the suite sends only to see whether it arrives: "the subscription stands
// at the server" does not say that every server of a cluster knows it yet.
const warm = "suite-warm"

// serve answers requests on c, and waits until those of asker arrive.
func serve(t *testing.T, c, asker Conn, subject, queue string, handle handler) *running {
	t.Helper()
	r := begin(t, func(ctx context.Context, ready func()) error {
		return c.Serve(ctx, subject, queue, ready, func(ctx context.Context, subject string, w events.Wire) events.Wire {
			if w.Header[warm] != "" {
				return events.Wire{}
			}
			return handle(ctx, subject, w)
		})
	})
	eventually(t, "the first answer", func() error {
		return askBriefly(t, asker, strings.ReplaceAll(subject, "*", "warm"), events.Wire{Header: events.Header{warm: "1"}})
	})
	return r
}

// askBriefly waits 300 ms: a request that meets a subscription as it comes or goes may be
// neither answered nor refused.
func askBriefly(t *testing.T, c Conn, subject string, w events.Wire) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := c.Ask(ctx, subject, w)
	return err
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
	serve(t, server, asker, events.ToBackend(host, "*"), "", func(_ context.Context, subject string, w events.Wire) events.Wire {
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

// oneOfAQueue: each request is carried out by one server of a queue, whichever.
func oneOfAQueue(t *testing.T, s Store, _ Features) {
	const servers, asks = 3, 300
	asker := s.Connect(t)
	host := newHost()
	var handled atomic.Int64
	var serving []*running
	for range servers {
		serving = append(serving, serve(t, s.Connect(t), asker, events.AskOf(host, events.VerbRequest), "dispatchers", func(context.Context, string, events.Wire) events.Wire {
			handled.Add(1)
			return events.Wire{}
		}))
	}
	for range asks {
		if _, err := asker.Ask(within(t), events.AskOf(host, events.VerbRequest), events.Wire{}); err != nil {
			t.Fatalf("ask: %v", err)
		}
	}
	for _, r := range serving { // what waits for its handler is counted too
		r.stop(t)
	}
	if n := handled.Load(); n != asks {
		t.Errorf("%d requests were handled %d times", asks, n)
	}
}

// nobodyAnswers: where no one serves, before as well as after, the caller learns it at once.
func nobodyAnswers(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbReserve)
	ask := func() error { return askBriefly(t, c, subject, events.Wire{}) }
	if err := ask(); !errors.Is(err, events.ErrNobody) {
		t.Errorf("before anybody serves: %v", err)
	}
	server := serve(t, s.Connect(t), c, subject, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{} })
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
	serve(t, s.Connect(t), c, subject, "", func(context.Context, string, events.Wire) events.Wire { <-release; return events.Wire{} })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := c.Ask(ctx, subject, events.Wire{})
	close(release)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ask: %v, want its deadline", err)
	}
}

// silence: a server that must not answer leaves it to another one, or to nobody.
func silence(t *testing.T, s Store, _ Features) {
	c := s.Connect(t)
	subject := events.ToBackend(newHost(), events.VerbMove)
	mute := func(context.Context, string, events.Wire) events.Wire { return events.Silence() }
	serve(t, s.Connect(t), c, subject, "", mute)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if w, err := c.Ask(ctx, subject, events.Wire{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("ask: %v, %v, want its deadline", w, err)
	}
	serve(t, s.Connect(t), c, subject, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{Body: []byte("here")} })
	if w, err := c.Ask(within(t), subject, events.Wire{}); err != nil || string(w.Body) != "here" {
		t.Errorf("ask: %q, %v, want the answer of the one who speaks", w.Body, err)
	}
}

// handlersBounded: handlers of one Serve run beside each other, but never more than 256.
func handlersBounded(t *testing.T, s Store, _ Features) {
	const asks = 600
	server, asker := s.Connect(t), s.Connect(t)
	host := newHost()
	var active, most atomic.Int64
	entered, release := make(chan struct{}, asks), make(chan struct{})
	serve(t, server, asker, events.ToBackend(host, events.VerbReserve), "", func(context.Context, string, events.Wire) events.Wire {
		n := active.Add(1)
		defer active.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		entered <- struct{}{}
		<-release
		return events.Wire{}
	})
	other := events.ToBackend(host, events.VerbTell)
	serve(t, server, asker, other, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{} })
	var wg sync.WaitGroup
	ctx := within(t)
	for range asks {
		wg.Go(func() {
			if _, err := asker.Ask(ctx, events.ToBackend(host, events.VerbReserve), events.Wire{}); err != nil {
				t.Errorf("ask: %v", err)
			}
		})
	}
	for i := range maxHandlers {
		select {
		case <-entered:
		case <-ctx.Done():
			t.Errorf("only %d handlers ran at once", i)
		}
	}
	// Requests of the same asker to the same server, sent after most of the others: while
	// they are answered, one handler too many would have begun.
	for range 100 {
		if _, err := asker.Ask(ctx, other, events.Wire{}); err != nil {
			t.Errorf("ask beside a full Serve: %v", err)
		}
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
	server := serve(t, s.Connect(t), asker, subject, "", func(context.Context, string, events.Wire) events.Wire {
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

// ear is one listener and what it expects to hear next from each publisher.
type ear struct {
	busy atomic.Bool
	mu   sync.Mutex
	warm map[string]bool
	next map[string]int
	left int
	done chan struct{}
}

func (e *ear) hear(t *testing.T, w events.Wire) {
	if !e.busy.CompareAndSwap(false, true) {
		t.Error("two news at once")
	}
	defer e.busy.Store(false)
	e.mu.Lock()
	defer e.mu.Unlock()
	who := w.Header["who"]
	if w.Header[warm] != "" {
		e.warm[who] = true
		return
	}
	if n, _ := strconv.Atoi(string(w.Body)); n != e.next[who] {
		t.Errorf("publisher %s: heard %d, want %d", who, n, e.next[who])
	}
	e.next[who]++
	if e.left--; e.left == 0 {
		close(e.done)
	}
}

// newsInOrder: every listener hears all news once, those of one publisher in their order,
// one call at a time.
func newsInOrder(t *testing.T, s Store, _ Features) {
	const publishers, news = 2, 500
	host := newHost()
	ears := make([]*ear, 3)
	for i := range ears {
		ears[i] = &ear{warm: map[string]bool{}, next: map[string]int{}, left: publishers * news, done: make(chan struct{})}
		listen(t, s.Connect(t), events.NewsOf(host, "*"), func(_ string, w events.Wire) { ears[i].hear(t, w) })
	}
	var wg sync.WaitGroup
	for p := range publishers {
		c, who := s.Connect(t), strconv.Itoa(p)
		warmEars(t, c, events.NewsOf(host, events.VerbJoined), who, ears)
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
	for i, e := range ears {
		select {
		case <-e.done:
		case <-time.After(patience):
			t.Errorf("listener %d did not hear everything", i)
		}
	}
}

// warmEars announces until every listener hears this publisher.
func warmEars(t *testing.T, c Conn, subject, who string, ears []*ear) {
	t.Helper()
	eventually(t, "news to arrive", func() error {
		if err := c.Announce(t.Context(), subject, events.Wire{Header: events.Header{"who": who, warm: "1"}}); err != nil {
			return err
		}
		for i, e := range ears {
			if e.mu.Lock(); !e.warm[who] {
				e.mu.Unlock()
				return errors.New("listener " + strconv.Itoa(i) + " heard nothing yet")
			}
			e.mu.Unlock()
		}
		return nil
	})
}

// busAcrossCut: who is cut off cannot be asked and does not hear; healed, both work again
// without being set up anew.
func busAcrossCut(t *testing.T, s Store, _ Features) {
	server, asker := s.Connect(t), s.Connect(t)
	host := newHost()
	subject := events.ToBackend(host, events.VerbReserve)
	serve(t, server, asker, subject, "", func(context.Context, string, events.Wire) events.Wire { return events.Wire{} })
	heard := make(chan string, 100)
	listen(t, server, events.NewsOf(host, "*"), func(_ string, w events.Wire) { heard <- string(w.Body) })
	ask := func() error { return askBriefly(t, asker, subject, events.Wire{}) }
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
