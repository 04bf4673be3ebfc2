package streams_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/streamtest"
)

// spread is a connection to a cluster whose subscriptions are ready only when every node
// knows of them. The store promises no more than the node it is connected to; the rest
// learn of it a moment later, and the suite asks at once, through any of them.
type spread struct {
	streamtest.Conn
	nodes []*streams.Store
}

const headerProbe = "Test-Probe"

// probe is a subject that a wildcard subscription hears.
func probe(subject string) string {
	return strings.NewReplacer("*", "probe", ">", "probe").Replace(subject)
}

func (s *spread) Serve(ctx context.Context, subject, queue string, ready func(), handle func(context.Context, string, events.Wire) events.Wire) error {
	defer s.gone(subject)
	return s.Conn.Serve(ctx, subject, queue, func() { go s.asked(ctx, subject, ready) },
		func(ctx context.Context, subject string, w events.Wire) events.Wire {
			if w.Header[headerProbe] != "" {
				return events.Wire{}
			}
			return handle(ctx, subject, w)
		})
}

// asked calls ready once an answer has come through every node.
func (s *spread) asked(ctx context.Context, subject string, ready func()) {
	for _, node := range s.nodes {
		for ctx.Err() == nil {
			if _, err := node.Ask(ctx, probe(subject), events.Wire{Header: events.Header{headerProbe: "1"}}); err == nil {
				break
			}
		}
	}
	ready()
}

// gone returns once every node knows that the subscription has ended, or has another one:
// what is sent on the strength of one that is gone is lost, and its caller waits in vain.
func (s *spread) gone(subject string) {
	for _, node := range s.nodes {
		for err := context.DeadlineExceeded; errors.Is(err, context.DeadlineExceeded); {
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			_, err = node.Ask(ctx, probe(subject), events.Wire{Header: events.Header{headerProbe: "1"}})
			cancel()
		}
	}
}

func (s *spread) Listen(ctx context.Context, subject string, ready func(), hear func(string, events.Wire)) error {
	heard := make(chan string, 1)
	id := streamtest.NewID[events.RequestID]().String()
	return s.Conn.Listen(ctx, subject, func() { go s.told(ctx, subject, id, heard, ready) },
		func(subject string, w events.Wire) {
			switch probe := w.Header[headerProbe]; probe {
			case "":
				hear(subject, w)
			case id:
				select {
				case heard <- string(w.Body):
				default:
				}
			}
		})
}

// told calls ready once news have come through every node.
func (s *spread) told(ctx context.Context, subject, id string, heard <-chan string, ready func()) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i, node := range s.nodes {
		name := string(rune('a' + i))
		for came := ""; came != name; {
			_ = node.Announce(ctx, probe(subject), events.Wire{Header: events.Header{headerProbe: id}, Body: []byte(name)})
			select {
			case came = <-heard:
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}
	ready()
}
