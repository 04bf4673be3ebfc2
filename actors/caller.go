package actors

import (
	"context"
	"fmt"
	"time"

	"github.com/landfall/landfall/events"
)

// Identity is who a host is for one life, and what it needs of the outside world beside its
// ports: a clock and a maker of UUIDv7 ids. Only cmd knows the real ones.
type Identity struct {
	Source events.Source
	Keys   *events.Keyring
	Now    func() time.Time
	NewID  func() [16]byte
	// Introduce learns, if it can, whose key another host signs with. nil: nobody can.
	Introduce func(ctx context.Context, host events.HostID)
}

// open verifies and decodes what came over subject. It lets a host whose key is not known yet
// be introduced first.
func (i Identity) open(ctx context.Context, subject string, w events.Wire, into any) (events.Call, *events.Refusal) {
	if host, strange := i.Keys.Stranger(w.Header); strange && i.Introduce != nil {
		i.Introduce(ctx, host)
	}
	return events.OpenCall(i.Keys, subject, w, into)
}

// seal makes a fact of this host ready to append.
func (i Identity) seal(id events.EventID, key string, transfer events.TransferID, prev uint64, f events.Fact) (events.Message, error) {
	return events.Seal(i.Keys, events.Envelope{
		ID: id, Source: i.Source, Time: i.Now(), Key: key, Correlation: transfer, Prev: prev,
	}, f)
}

// ask sends a request in this host's name and decodes the answer. The deadline is ctx's.
func ask[A any](ctx context.Context, i Identity, bus Bus, subject string, body any) (A, error) {
	answer, _, err := askSigned[A](ctx, i, bus, subject, body)
	return answer, err
}

// askSigned is ask for who keeps the signature of the answer as evidence.
func askSigned[A any](ctx context.Context, i Identity, bus Bus, subject string, body any) (answer A, sig string, err error) {
	deadline := 5 * time.Second
	if at, ok := ctx.Deadline(); ok {
		deadline = time.Until(at)
	}
	call := events.Call{ID: i.NewID(), Source: i.Source, Deadline: max(deadline, time.Millisecond)}
	w, err := events.SealCall(i.Keys, call, i.Now(), subject, body)
	if err != nil {
		return answer, "", fmt.Errorf("%w: %w", ErrNotSent, err)
	}
	back, err := bus.Ask(ctx, subject, w)
	if err != nil {
		return answer, "", fmt.Errorf("ask %s: %w", subject, err)
	}
	got, refusal := i.open(ctx, subject, back, &answer)
	if refusal != nil {
		return answer, "", fmt.Errorf("answer to %s: %w", subject, refusal)
	}
	if got.Cause != call.ID {
		return answer, "", fmt.Errorf("answer to %s: belongs to another request", subject)
	}
	return answer, back.Header[events.HeaderSig], nil
}

// announce publishes news in this host's name.
func announce(ctx context.Context, i Identity, bus Bus, subject string, body any) error {
	w, err := events.SealCall(i.Keys, events.Call{ID: i.NewID(), Source: i.Source}, i.Now(), subject, body)
	if err != nil {
		return err
	}
	return bus.Announce(ctx, subject, w)
}

// answerWith turns a typed handler into one for a Bus: it verifies and decodes the request,
// bounds the time by the caller's deadline, and signs the answer. A request that cannot be
// read is answered with its refusal, never with silence; a handler that gives a zero answer
// leaves it to another one.
func answerWith[Q any, A comparable](i Identity, allowed func(subject string, s events.Source) *events.Refusal, refuse func(*events.Refusal) A,
	handle func(ctx context.Context, from events.HostID, q Q) A,
) func(context.Context, string, events.Wire) events.Wire {
	return answerWatched(i, allowed, func(string, events.Wire, *events.Refusal) {}, refuse, handle)
}

// answerWatched is answerWith that also tells what was refused before it was handled.
func answerWatched[Q any, A comparable](i Identity, allowed func(subject string, s events.Source) *events.Refusal,
	rejected func(subject string, w events.Wire, refusal *events.Refusal), refuse func(*events.Refusal) A,
	handle func(ctx context.Context, from events.HostID, q Q) A,
) func(context.Context, string, events.Wire) events.Wire {
	return func(ctx context.Context, subject string, w events.Wire) events.Wire {
		var q Q
		call, refusal := i.open(ctx, subject, w, &q)
		if refusal == nil {
			refusal = allowed(subject, call.Source)
		}
		var a A
		if refusal != nil {
			rejected(subject, w, refusal)
			a = refuse(refusal)
		} else {
			if call.Deadline > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, call.Deadline)
				defer cancel()
			}
			a = handle(ctx, call.Source.ID, q)
		}
		if a == *new(A) {
			return events.Silence()
		}
		out, err := events.SealCall(i.Keys, events.Call{ID: i.NewID(), Source: i.Source, Cause: call.ID}, i.Now(), subject, a)
		if err != nil {
			return events.Wire{}
		}
		return out
	}
}

// fromBackend allows a request whose subject names the backend that signed it.
func fromBackend(verb events.Verb) func(string, events.Source) *events.Refusal {
	return func(subject string, s events.Source) *events.Refusal {
		if s.Kind != events.SourceBackend || subject != events.AskOf(s.ID, verb) {
			return events.Refuse(events.AuthFailed, s.String()+" may not ask over "+subject)
		}
		return nil
	}
}

// fromDispatcher allows a request of any dispatcher.
func fromDispatcher(_ string, s events.Source) *events.Refusal {
	if !s.Kind.Dispatcher() && s.Kind != events.SourceOperator {
		return events.Refuse(events.AuthFailed, s.String()+" is no dispatcher")
	}
	return nil
}
