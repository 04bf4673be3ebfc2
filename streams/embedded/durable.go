package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/streams"
)

// durableService answers other processes that ask whether their appends are on the disk.
type durableService struct {
	disk      *disk
	nc        *nats.Conn
	answering sync.WaitGroup
	closed    chan struct{}
}

// serveDurable returns once questions reach it.
func serveDurable(c streams.Config, d *disk) (*durableService, error) {
	s := &durableService{disk: d, closed: make(chan struct{})}
	var err error
	s.nc, err = nats.Connect("", nats.InProcessServer(c.InProcess), nats.UserInfo(c.User, c.Password), nats.Name("landfall.durable"),
		nats.CustomInboxPrefix(streams.InboxPrefix(c.Role, c.ID)), nats.ClosedHandler(func(*nats.Conn) { close(s.closed) }))
	if err != nil {
		return nil, fmt.Errorf("offer grouped durability: %w", err)
	}
	if _, err = s.nc.Subscribe(streams.DurableSubject, s.hear); err == nil {
		err = s.nc.Flush()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("offer grouped durability: %w", err)
	}
	return s, nil
}

// hear does not wait for the disk: those who ask while it works share its next turn.
func (s *durableService) hear(m *nats.Msg) {
	s.answering.Go(func() { s.answer(m) })
}

func (s *durableService) answer(m *nats.Msg) {
	var ask streams.DurableAsk
	var answer streams.DurableAnswer
	err := json.Unmarshal(m.Data, &ask)
	if err == nil {
		err = s.disk.sync(context.Background(), ask.Bucket)
	}
	if err != nil {
		answer.Error = err.Error()
	}
	body, err := json.Marshal(answer)
	if err == nil {
		err = m.Respond(body)
	}
	if err != nil {
		s.disk.log.Warn("answer not sent", "subject", m.Subject, "error", err)
	}
}

// close stops answering and waits for what goes on.
func (s *durableService) close() {
	s.nc.Close()
	<-s.closed
	s.answering.Wait()
}
