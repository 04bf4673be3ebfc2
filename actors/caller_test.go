package actors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

var requestSubject = events.AskOf("b", events.VerbRequest)

// answering serves requests of backends and counts those that reached the handler.
type answering struct {
	handle   func(context.Context, string, events.Wire) events.Wire
	reached  int
	deadline time.Duration
}

func newAnswering() *answering {
	a := &answering{}
	a.handle = answerWith(identity(events.SourceEdge, "e1"), fromBackend(events.VerbRequest), refuseRequest,
		func(ctx context.Context, _ events.HostID, q events.RequestAsk) events.RequestAnswer {
			a.reached++
			if at, ok := ctx.Deadline(); ok {
				a.deadline = time.Until(at)
			}
			return events.RequestAnswer{Code: events.Accepted, Transfer: q.Transfer}
		})
	return a
}

func sealed(t *testing.T, who Identity, subject string, body any) (events.Wire, events.Call) {
	t.Helper()
	call := events.Call{ID: who.NewID(), Source: who.Source, Deadline: 3 * time.Second}
	w, err := events.SealCall(who.Keys, call, who.Now(), subject, body)
	if err != nil {
		t.Fatal(err)
	}
	return w, call
}

func opened(t *testing.T, w events.Wire) (events.RequestAnswer, events.Call) {
	t.Helper()
	var a events.RequestAnswer
	call, refusal := events.OpenCall(streamtest.Keyring(), requestSubject, w, &a)
	if refusal != nil {
		t.Fatalf("the answer cannot be read: %v", refusal)
	}
	return a, call
}

func ask1() events.RequestAsk {
	return events.RequestAsk{Player: steve, Name: "Steve", Transfer: first, Trigger: events.TriggerCommand}
}

// TestAnswerRefuses: what cannot be trusted or read is answered with a code, never with
// silence, and does not reach the handler.
func TestAnswerRefuses(t *testing.T) {
	b := identity(events.SourceBackend, "b")
	stranger := b
	key, err := events.NewKey(bytes.Repeat([]byte("stranger"), events.MinSecret/8))
	if err != nil {
		t.Fatal(err)
	}
	stranger.Keys = events.NewKeyring(key)
	rows := map[string]struct {
		wire func() events.Wire
		want events.Code
	}{
		"another secret": {func() events.Wire { w, _ := sealed(t, stranger, requestSubject, ask1()); return w }, events.AuthFailed},
		"no signature": {func() events.Wire {
			w, _ := sealed(t, b, requestSubject, ask1())
			delete(w.Header, events.HeaderSig)
			return w
		}, events.AuthFailed},
		"a changed body": {func() events.Wire { w, _ := sealed(t, b, requestSubject, ask1()); w.Body[len(w.Body)-1] ^= 1; return w }, events.AuthFailed},
		"a changed header": {func() events.Wire {
			w, _ := sealed(t, b, requestSubject, ask1())
			w.Header[events.HeaderSource] = identity(events.SourceBackend, "c").Source.String()
			return w
		}, events.AuthFailed},
		"from another subject": {func() events.Wire { w, _ := sealed(t, b, events.AskOf("b", events.VerbPlaced), ask1()); return w }, events.AuthFailed},
		"another backend": {func() events.Wire {
			w, _ := sealed(t, identity(events.SourceBackend, "c"), requestSubject, ask1())
			return w
		}, events.AuthFailed},
		"a dispatcher": {func() events.Wire {
			w, _ := sealed(t, identity(events.SourceEdge, "b"), requestSubject, ask1())
			return w
		}, events.AuthFailed},
		"nothing":      {func() events.Wire { return events.Wire{} }, events.AuthFailed},
		"another body": {func() events.Wire { w, _ := sealed(t, b, requestSubject, events.Answer{Code: events.OK}); return w }, events.BadRequest},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			a := newAnswering()
			got, _ := opened(t, a.handle(t.Context(), requestSubject, row.wire()))
			if got.Code != row.want || got.Detail == "" || a.reached != 0 {
				t.Errorf("answer %+v, handler reached %d times; want %s with a reason", got, a.reached, row.want)
			}
		})
	}
}

// TestAnswerAccepts: the answer names its request, and the handler has the caller's time.
func TestAnswerAccepts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAnswering()
		w, call := sealed(t, identity(events.SourceBackend, "b"), requestSubject, ask1())
		got, answer := opened(t, a.handle(t.Context(), requestSubject, w))
		if got.Code != events.Accepted || answer.Cause != call.ID || answer.Source.ID != "e1" || a.deadline != 3*time.Second {
			t.Errorf("answer %+v to %s, deadline %s", got, answer.Cause, a.deadline)
		}
	})
}

// TestAnswerJSON: a request may be JSON, when its content type says so.
func TestAnswerJSON(t *testing.T) {
	a := newAnswering()
	b := identity(events.SourceBackend, "b")
	w, _ := sealed(t, b, requestSubject, ask1())
	body, err := json.Marshal(ask1())
	if err != nil {
		t.Fatal(err)
	}
	w.Header[events.HeaderContent], w.Body = "application/json", body
	w.Header[events.HeaderSig] = b.Keys.Sign(requestSubject, w.Header, w.Body)
	if got, _ := opened(t, a.handle(t.Context(), requestSubject, w)); got.Code != events.Accepted || got.Transfer != first {
		t.Errorf("answer %+v", got)
	}
	w.Header[events.HeaderContent] = "text/plain"
	w.Header[events.HeaderSig] = b.Keys.Sign(requestSubject, w.Header, w.Body)
	if got, _ := opened(t, a.handle(t.Context(), requestSubject, w)); got.Code != events.BadRequest {
		t.Errorf("a text: %+v, want BAD_REQUEST", got)
	}
}

// TestFromDispatcher: dispatchers and operators may ask a backend, another backend may not.
func TestFromDispatcher(t *testing.T) {
	for kind, may := range map[events.SourceKind]bool{
		events.SourceEdge: true, events.SourceRelay: true, events.SourceDirect: true, events.SourceAPI: true, events.SourceOperator: true,
		events.SourceBackend: false, "pirate": false,
	} {
		if refusal := fromDispatcher("", events.Source{Kind: kind, ID: "x"}); (refusal == nil) != may {
			t.Errorf("%s: %v", kind, refusal)
		}
	}
}

// liar is a bus that answers as it likes.
type liar struct {
	Bus
	answer func(subject string, w events.Wire) (events.Wire, error)
}

func (l liar) Ask(_ context.Context, subject string, w events.Wire) (events.Wire, error) {
	return l.answer(subject, w)
}

// TestAskChecksTheAnswer: an answer counts only if it is signed, and belongs to the request.
func TestAskChecksTheAnswer(t *testing.T) {
	me, them := identity(events.SourceBackend, "b"), identity(events.SourceEdge, "e1")
	reply := func(cause func(events.Wire) events.RequestID, spoil func(*events.Wire)) func(string, events.Wire) (events.Wire, error) {
		return func(subject string, w events.Wire) (events.Wire, error) {
			out, err := events.SealCall(them.Keys, events.Call{ID: them.NewID(), Source: them.Source, Cause: cause(w)}, time.Now(), subject,
				events.Answer{Code: events.OK})
			spoil(&out)
			return out, err
		}
	}
	mine := func(w events.Wire) events.RequestID {
		id, err := events.ParseID[events.RequestID](w.Header[events.HeaderID])
		if err != nil {
			t.Error(err)
		}
		return id
	}
	other := func(events.Wire) events.RequestID { return num[events.RequestID](5) }
	keep := func(*events.Wire) {}
	rows := map[string]struct {
		answer func(string, events.Wire) (events.Wire, error)
		want   string // "" when it counts
	}{
		"a good one":         {reply(mine, keep), ""},
		"of another request": {reply(other, keep), "another request"},
		"of no request":      {reply(func(events.Wire) events.RequestID { return events.RequestID{} }, keep), "another request"},
		"unsigned":           {reply(mine, func(w *events.Wire) { delete(w.Header, events.HeaderSig) }), "AUTH_FAILED"},
		"changed":            {reply(mine, func(w *events.Wire) { w.Body[0] ^= 1 }), "AUTH_FAILED"},
		"empty":              {func(string, events.Wire) (events.Wire, error) { return events.Wire{}, nil }, "AUTH_FAILED"},
		"the request itself": {func(_ string, w events.Wire) (events.Wire, error) { return w, nil }, "BAD_REQUEST"},
		"nobody":             {func(string, events.Wire) (events.Wire, error) { return events.Wire{}, events.ErrNobody }, "nobody"},
	}
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			a, sig, err := askSigned[events.Answer](t.Context(), me, liar{answer: row.answer}, requestSubject, ask1())
			switch {
			case row.want == "" && (err != nil || a.Code != events.OK || sig == ""):
				t.Errorf("answer %+v, signature %q, error %v", a, sig, err)
			case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
				t.Errorf("error %v, want one with %q", err, row.want)
			}
			if row.want != "" && a != (events.Answer{}) && err == nil {
				t.Errorf("a refused answer is handed on: %+v", a)
			}
		})
	}
}

// TestAskNotSent: what did not leave this process is told apart from what was not answered.
func TestAskNotSent(t *testing.T) {
	me := identity(events.SourceBackend, "b")
	_, err := ask[events.Answer](t.Context(), me, liar{}, requestSubject, make(chan int))
	if !errors.Is(err, ErrNotSent) {
		t.Errorf("error %v, want ErrNotSent", err)
	}
}

// TestNewsRefused: an announcement that cannot be trusted is audited and changes nothing.
func TestNewsRefused(t *testing.T) {
	bubble(t, func(t *testing.T, ctx context.Context, mem *streamtest.Memory) {
		s := newSeer(t, ctx, mem, "e1")
		s.tasks.begin(ctx)
		defer s.tasks.end()
		subject := events.NewsOf("b", events.VerbJoined)
		joined := events.Joined{Player: steve, Name: "Steve", Join: num[events.JoinID](9)}
		good, _ := sealed(t, identity(events.SourceBackend, "b"), subject, joined)
		foreign, _ := sealed(t, identity(events.SourceBackend, "c"), subject, joined)
		edge, _ := sealed(t, identity(events.SourceEdge, "b"), subject, joined)
		unsigned, _ := sealed(t, identity(events.SourceBackend, "b"), subject, joined)
		delete(unsigned.Header, events.HeaderSig)
		var into events.Joined
		if from, ok := s.news(events.VerbJoined, subject, good, &into); !ok || from != "b" || into != joined {
			t.Errorf("good news: %v by %s, %+v", ok, from, into)
		}
		for name, w := range map[string]events.Wire{"another backend": foreign, "a dispatcher": edge, "unsigned": unsigned} {
			if _, ok := s.news(events.VerbJoined, subject, w, &into); ok {
				t.Errorf("%s was believed", name)
			}
		}
		eventually(t, "all three audited", func() bool { return len(mem.Records(events.Audit)) == 3 })
		for _, e := range stored(t, mem, events.Audit) {
			if r := e.Fact.(*events.Rejected); r.Code != events.AuthFailed || r.Subject != subject {
				t.Errorf("audited %+v", r)
			}
		}
	})
}
