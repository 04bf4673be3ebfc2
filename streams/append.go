package streams

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/landfall/landfall/events"
)

// tryTimeout is how long one publish waits for its acknowledgement before it is repeated
// as it was: the guard and the id make that harmless.
const tryTimeout = 2 * time.Second

// Headers that the guard consists of. Only publication sets them.
const (
	headerMsgID        = nats.MsgIdHdr
	headerGuardSeq     = nats.ExpectedLastSubjSeqHdr
	headerGuardSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
	headerStream       = nats.ExpectedStreamHdr
	headerLastID       = nats.ExpectedLastMsgIdHdr
	headerTTL          = "Nats-TTL"
	guardPrefix        = "nats-expected-"
)

// Append stores m if m.Prev is still the last sequence inside its guard, and returns the
// sequence once the fact is durable. It fails with *events.AppendError. The same event id
// again (a retry) returns the sequence of the first, whether its guard was refreshed or
// not. Without a deadline in ctx it gives up after 5 s; what it gave up does not land
// later, unless it had left already: that is Unknown.
func (s *Store) Append(ctx context.Context, m events.Message) (uint64, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	if err := cmp.Or(checkKey(m), m.CheckTTL()); err != nil {
		return 0, &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Err: err}
	}
	f := s.append.life()
	id := m.Header[events.HeaderID]
	seq, failed := s.land(ctx, m)
	if failed == nil {
		failed = s.settled(ctx, f, m)
	}
	if failed == nil {
		s.doubt.settle(id)
		return seq, nil
	}
	if failed.Reason == events.Unknown {
		s.doubt.add(id, m.Prev)
	}
	return 0, failed
}

// land brings m into the log, or finds it there when an earlier try of unknown outcome has landed.
func (s *Store) land(ctx context.Context, m events.Message) (uint64, *events.AppendError) {
	from, doubted := s.doubt.of(m.Header[events.HeaderID])
	if doubted {
		seq, found, err := s.doubted(ctx, m, from)
		if found {
			return seq, nil
		}
		if err != nil && m.Prev != from { // on a newer guard a second one would land
			return 0, &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: err}
		}
	}
	seq, failed := s.publish(ctx, m)
	if failed != nil && doubted && failed.Reason == events.Unavailable {
		failed.Reason = events.Unknown // this try did not leave, but an earlier one may have landed
	}
	return seq, failed
}

// doubted looks whether an append of unknown outcome has landed. It does not wait for the
// connection: an append fails at once without one. An error means that nothing is known.
func (s *Store) doubted(ctx context.Context, m events.Message, from uint64) (uint64, bool, error) {
	if s.cfg.NoRead {
		return 0, false, nil
	}
	if !s.read.nc.IsConnected() {
		return 0, false, nats.ErrConnectionReconnecting
	}
	return s.own(ctx, m, from, 0)
}

func checkKey(m events.Message) error {
	if _, ok := rowOf(m.Bucket); !ok {
		return fmt.Errorf("there is no bucket %q", m.Bucket)
	}
	if m.Key == "" || strings.ContainsAny(m.Key, "*> \t\r\n") || strings.HasPrefix(m.Key, ".") || strings.HasSuffix(m.Key, ".") || strings.Contains(m.Key, "..") {
		return fmt.Errorf("key %q: want tokens without blanks and wildcards, separated by dots", m.Key)
	}
	return nil
}

// publish tries until the store has answered. Only an unanswered try is repeated, and
// once one may have left, "could not send the next" is not an answer either.
func (s *Store) publish(ctx context.Context, m events.Message) (uint64, *events.AppendError) {
	wait := newBackOff(0)
	trying, stop := context.WithDeadline(ctx, triesEnd(ctx))
	defer stop()
	var unanswered *events.AppendError
	inFlight := 0
	for {
		seq, failed := s.try(trying, m)
		if failed == nil {
			return seq, nil
		}
		if failed.Reason == events.InFlight && inFlight < maxInFlight {
			inFlight++
			if pause(trying, time.Duration(inFlight)*inFlightPause) {
				continue
			}
		}
		if answered(failed.Reason) {
			return s.resolve(ctx, m, failed)
		}
		if failed.Reason == events.Unavailable && unanswered == nil {
			return 0, failed
		}
		if failed.Reason == events.Unknown {
			unanswered = failed
		}
		if !pause(trying, wait.NextBackOff()) {
			return s.resolve(ctx, m, unanswered)
		}
	}
}

// Another append inside the boundary takes a few milliseconds to be decided: asking again
// at once would only load the store. The guard stands, so nothing has to be decided anew.
const (
	maxInFlight   = 4
	inFlightPause = 2 * time.Millisecond
)

// triesEnd leaves the last part of the caller's time for reading back.
func triesEnd(ctx context.Context) time.Time {
	end, _ := ctx.Deadline()
	return end.Add(-min(time.Until(end)/5, maxReadBack))
}

// maxReadBack bounds the look for an append that nobody answered.
const maxReadBack = 500 * time.Millisecond

func answered(r events.AppendReason) bool { return r != events.Unknown && r != events.Unavailable }

// pause waits, and tells whether there is time left for something after it.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// try publishes once.
func (s *Store) try(ctx context.Context, m events.Message) (uint64, *events.AppendError) {
	return s.send(ctx, m, publication(m))
}

// send publishes m in a form, once.
func (s *Store) send(ctx context.Context, m events.Message, form *nats.Msg) (uint64, *events.AppendError) {
	fail := func(reason events.AppendReason, last uint64, code int, err error) (uint64, *events.AppendError) {
		return 0, &events.AppendError{Reason: reason, Key: m.Key, Last: last, Code: code, Err: err}
	}
	if err := ctx.Err(); err != nil {
		return fail(events.Unavailable, 0, 0, err)
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	answer, sent, err := s.append.request(ctx, form)
	if err != nil {
		return fail(reasonOfTransport(sent, err), 0, 0, err)
	}
	var ack struct {
		Stream    string      `json:"stream"`
		Seq       uint64      `json:"seq"`
		Duplicate bool        `json:"duplicate"`
		Error     *storeError `json:"error"`
	}
	if err := json.Unmarshal(answer.Data, &ack); err != nil {
		return fail(events.Unknown, 0, 0, fmt.Errorf("answer of the store: %w", err))
	}
	if ack.Error != nil {
		reason, last := reasonOf(ack.Error)
		return fail(reason, last, ack.Error.ErrCode, ack.Error)
	}
	if ack.Stream != StreamName(m.Bucket) || ack.Seq == 0 {
		return fail(events.Unknown, 0, 0, fmt.Errorf("stream %q acknowledged sequence %d", ack.Stream, ack.Seq))
	}
	if ack.Duplicate && !s.cfg.NoRead {
		return s.known(ctx, m, ack.Seq)
	}
	return ack.Seq, nil
}

// known looks at what the store has under an id that it knows already: an id stands for one fact,
// and only the same fact is a retry. What retention took since was there.
func (s *Store) known(ctx context.Context, m events.Message, seq uint64) (uint64, *events.AppendError) {
	r, found, err := s.at(ctx, m.Bucket, seq)
	switch {
	case err != nil:
		return 0, &events.AppendError{Reason: events.Unknown, Key: m.Key, Err: fmt.Errorf("read sequence %d, which has this id: %w", seq, err)}
	case found && !m.Is(r):
		return 0, &events.AppendError{Reason: events.NotAllowed, Key: m.Key, Err: m.OtherFact(r)}
	}
	return seq, nil
}

// publication is the one place where a guard is put on a message. Subject and guard come
// from the same key, and nothing the caller brings can replace them: on a replicated store
// two appends that name different guards inside one boundary can both win.
func publication(m events.Message) *nats.Msg {
	out := nats.NewMsg(m.Bucket.Subject(m.Key))
	for name, value := range m.Header {
		if !strings.HasPrefix(strings.ToLower(name), guardPrefix) {
			out.Header[name] = []string{value}
		}
	}
	out.Header[headerMsgID] = []string{m.Header[events.HeaderID]}
	if m.Header[events.HeaderID] == "" {
		delete(out.Header, headerMsgID)
	}
	out.Header[headerGuardSubject] = []string{m.Bucket.Guard(m.Key)}
	out.Header[headerGuardSeq] = []string{strconv.FormatUint(m.Prev, 10)}
	out.Header[headerStream] = []string{StreamName(m.Bucket)}
	if m.TTL > 0 {
		out.Header[headerTTL] = []string{fmt.Sprintf("%ds", int64(m.TTL/time.Second))}
	}
	out.Data = m.Body
	return out
}

// resolve looks for the own event before a refusal is believed: an acknowledgement may
// have been lost, here or in an earlier call.
func (s *Store) resolve(ctx context.Context, m events.Message, failed *events.AppendError) (uint64, *events.AppendError) {
	refused := failed.Reason == events.NotAllowed
	switch failed.Reason {
	case events.Conflict, events.Unknown, events.KeyIsFull:
	default: // of InFlight the next try tells more than the log does now
		if !refused || failed.Code == 0 || s.cfg.NoRead {
			return 0, failed
		} // a code that nobody knows may mean anything
	}
	seq, found, err := s.own(ctx, m, m.Prev, failed.Last)
	switch {
	case found:
		return seq, nil
	case err != nil && !refused: // who refused it may have been the fact itself
		failed.Reason, failed.Err = events.Unknown, errors.Join(failed.Err, err)
	}
	return 0, failed
}

// own finds m in the log by its event id, among what its key has above sequence from.
// last, when not 0, is known to be the last sequence inside the guard. Not found proves
// nothing: m may still be on its way.
func (s *Store) own(ctx context.Context, m events.Message, from, last uint64) (seq uint64, found bool, err error) {
	id := m.Header[events.HeaderID]
	switch {
	case id == "":
		return 0, false, nil
	case s.cfg.NoRead:
		return s.probe(ctx, m, last)
	}
	for range events.MaxKeyFacts {
		r, ok, err := s.next(ctx, m.Bucket, m.Key, from+1)
		if err != nil || !ok {
			return 0, false, err
		}
		if r.Header[events.HeaderID] == id {
			return r.Seq, true, nil
		}
		if from = r.Seq; from == last {
			return 0, false, nil
		}
	}
	return 0, false, nil
}

// probe is own for a host that may not read: it offers m again, in a form that is never
// stored, since it must follow a message that does not exist. One node looks at the guard
// first, so that must be what holds now; then at the ids of the last minutes, which give the
// sequence of m; and refuses only then what it does not know.
func (s *Store) probe(ctx context.Context, m events.Message, last uint64) (seq uint64, found bool, err error) {
	if last != 0 {
		m.Prev = last
	}
	var failed *events.AppendError
	for range maxProbes {
		form := publication(m)
		form.Header[headerLastID] = []string{"none"}
		if seq, failed = s.send(ctx, m, form); failed == nil {
			return seq, true, nil
		}
		switch {
		case failed.Code == codeWrongLastID:
			return 0, false, nil
		case failed.Reason == events.Conflict && failed.Last != m.Prev:
			m.Prev = failed.Last
		default:
			return 0, false, failed
		}
	}
	return 0, false, failed
}

// maxProbes bounds how often the guard may move on while a host asks for its own event.
const maxProbes = 3

var errNoAnswer = errors.New("no answer from the store")
