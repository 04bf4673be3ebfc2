package streams

import (
	"context"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// TestQuestionIsOfTheLifeThatAcknowledged: a carrier that was away in between may have lost what it
// had acknowledged. An append of a new life of the connection does not wait with those of the old
// one, and nothing is sent for these.
func TestQuestionIsOfTheLifeThatAcknowledged(t *testing.T) {
	before, after := life{lost: make(chan struct{}), reconnects: 1}, life{lost: make(chan struct{}), reconnects: 2}
	asked, answer := make(chan life), make(chan error)
	b := newBarrier(func(_ context.Context, f life, _ events.Bucket) error {
		asked <- f
		return <-answer
	})
	wait := func(f life) *question { return b.join(f, events.Transfers) }
	first := wait(before)
	if f := <-asked; f != before {
		t.Errorf("asked of %v", f)
	}
	second, third := wait(before), wait(after)
	if second == third {
		t.Fatal("two lives share a question")
	}
	if f := <-asked; f != after { // by itself, at once
		t.Errorf("asked of %v", f)
	}
	answer <- nil
	answer <- nil
	if f := <-asked; f != before {
		t.Errorf("asked of %v", f)
	}
	answer <- nats.ErrConnectionReconnecting
	for _, q := range []*question{first, second, third} {
		<-q.done
	}
	if first.err != nil || second.err == nil || third.err != nil {
		t.Errorf("answers: %v, %v, %v", first.err, second.err, third.err)
	}
	b.running.Wait()
}

func TestNothingIsSentForAnEarlierLife(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	now := make(chan struct{})
	l := &link{nc: &nats.Conn{}, lost: now, pending: map[*pending]struct{}{}}
	for _, c := range []struct {
		name string
		life life
		want bool
	}{
		{"this life", life{lost: now}, true},
		{"a life that has ended", life{lost: ended}, false},
		{"a life before a reconnect nobody was told of", life{lost: now, reconnects: 1}, false},
	} {
		p := &pending{}
		if got := l.begin(c.life, p); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
		l.finished(p)
	}
}
