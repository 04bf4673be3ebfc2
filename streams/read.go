package streams

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// Last gives the newest record inside the guard of key, as the log's leader knows it.
func (s *Store) Last(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	r, ok, err := s.get(ctx, b, map[string]any{"last_by_subj": b.Guard(key)})
	if err != nil {
		return r, false, fmt.Errorf("last of %s %s: %w", b, key, err)
	}
	return r, ok, nil
}

// LastOf gives the newest record of key itself, as the log's leader knows it.
func (s *Store) LastOf(ctx context.Context, b events.Bucket, key string) (events.Record, bool, error) {
	r, ok, err := s.get(ctx, b, map[string]any{"last_by_subj": b.Subject(key)})
	if err != nil {
		return r, false, fmt.Errorf("last of key %s %s: %w", b, key, err)
	}
	return r, ok, nil
}

// next gives the first record of key at or above seq.
func (s *Store) next(ctx context.Context, b events.Bucket, key string, seq uint64) (events.Record, bool, error) {
	return s.get(ctx, b, map[string]any{"seq": seq, "next_by_subj": b.Subject(key)})
}

// at gives the record at a sequence.
func (s *Store) at(ctx context.Context, b events.Bucket, seq uint64) (events.Record, bool, error) {
	return s.get(ctx, b, map[string]any{"seq": seq})
}

type storedMessage struct {
	Subject  string    `json:"subject"`
	Sequence uint64    `json:"seq"`
	Header   []byte    `json:"hdrs"`
	Data     []byte    `json:"data"`
	Time     time.Time `json:"time"`
}

// get reads one record through the leader. A direct get might be answered by a follower
// that lags: nothing may be decided on it.
func (s *Store) get(ctx context.Context, b events.Bucket, which map[string]any) (events.Record, bool, error) {
	var answer struct {
		Error   *jetstream.APIError `json:"error"`
		Message *storedMessage      `json:"message"`
	}
	if err := s.api(ctx, "STREAM.MSG.GET."+StreamName(b), which, &answer); err != nil {
		return events.Record{}, false, err
	}
	switch {
	case answer.Error != nil && answer.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return events.Record{}, false, nil
	case answer.Error != nil:
		return events.Record{}, false, answer.Error
	case answer.Message == nil:
		return events.Record{}, false, errNoAnswer
	}
	r, err := answer.Message.record()
	return r, err == nil, err
}

func (m *storedMessage) record() (events.Record, error) {
	b, key, err := events.ParseSubject(m.Subject)
	if err != nil {
		return events.Record{}, err
	}
	r := events.Record{Bucket: b, Key: key, Seq: m.Sequence, Stored: m.Time, Body: m.Data}
	if len(m.Header) == 0 {
		return r, nil
	}
	h, err := nats.DecodeHeadersMsg(m.Header)
	if err != nil {
		return events.Record{}, fmt.Errorf("headers of %s at %d: %w", m.Subject, m.Sequence, err)
	}
	r.Header = flatten(h)
	return r, nil
}

// flatten keeps the first value of each header: ours never have two.
func flatten(h nats.Header) events.Header {
	if len(h) == 0 {
		return nil
	}
	out := make(events.Header, len(h))
	for name, values := range h {
		if len(values) > 0 {
			out[name] = values[0]
		}
	}
	return out
}

// delivered makes a record of a consumer's message. pending is how many the consumer still
// has, number its running number at this consumer.
func delivered(m jetstream.Msg) (r events.Record, number, pending uint64, err error) {
	meta, err := m.Metadata()
	if err != nil {
		return r, 0, 0, err
	}
	b, key, err := events.ParseSubject(m.Subject())
	if err != nil {
		return r, 0, 0, err
	}
	r = events.Record{Bucket: b, Key: key, Seq: meta.Sequence.Stream, Stored: meta.Timestamp, Header: flatten(m.Headers()), Body: m.Data()}
	return r, meta.Sequence.Consumer, meta.NumPending, nil
}
