package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// maxAttempts bounds how often one command is decided anew after a conflict.
const maxAttempts = 12

// landed is a fact that stands in the log and in this process's fold.
type landed struct {
	seq      uint64
	transfer events.TransferID
	fact     events.TransferFact
}

// draft is a fact between two attempts to land it. The zero value has none.
type draft struct {
	id       events.EventID
	transfer events.TransferID
	fact     events.Fact
	guard    uint64 // named by the store ...
	over     uint64 // ... when the fold stood here
	named    bool
}

// take puts in what was decided now. An equal fact keeps its id on a retry, so that a lost
// acknowledgement cannot double it; a different one is another event.
func (l *draft) take(transfer events.TransferID, fact events.Fact, newID func() [16]byte) {
	if transfer != l.transfer || !reflect.DeepEqual(fact, l.fact) {
		l.id, l.transfer, l.fact = newID(), transfer, fact
	}
}

// prev is the guard to write on, when the fold stands at folded: the one that the store named
// last, as long as the fold has not moved since. Retention took the message that the fold
// still holds, or the fold has forgotten an idle player.
func (l *draft) prev(folded uint64) uint64 {
	if l.named && l.over == folded {
		return l.guard
	}
	return folded
}

// write is the one way a command becomes a fact: take the standing and its guard, decide,
// append, wait until it is folded; on a conflict wait for what came between and do all of
// it again. A refusal is an answer; an error means that nobody knows, or nobody could try.
func (d *Dispatcher) write(ctx context.Context, player events.PlayerID, c Command) (landed, *events.Refusal, error) {
	var (
		out     landed
		refusal *events.Refusal
		last    draft
	)
	try := func() error {
		var err error
		out, refusal, err = d.attempt(ctx, player, c, &last)
		return err
	}
	err := backoff.Retry(try, againAfterConflict(ctx))
	if err != nil {
		return landed{}, nil, fmt.Errorf("write %T for %s: %w", c, player, err)
	}
	return out, refusal, nil
}

// againAfterConflict is how often and how soon a decision that met another writer's is taken anew.
func againAfterConflict(ctx context.Context) backoff.BackOff {
	wait := backoff.NewExponentialBackOff(backoff.WithInitialInterval(time.Millisecond),
		backoff.WithMaxInterval(16*time.Millisecond), backoff.WithMultiplier(1.7), backoff.WithMaxElapsedTime(0))
	return backoff.WithContext(backoff.WithMaxRetries(wait, maxAttempts), ctx)
}

// writeFresh is write for a command that answers somebody else's question: a refusal counts
// only once the fold holds what the log's leader holds, since another dispatcher may have
// answered that somebody's last question a moment ago.
func (d *Dispatcher) writeFresh(ctx context.Context, player events.PlayerID, c Command) (landed, *events.Refusal, error) {
	for {
		decidedOn := d.view.Folded() // not the player's guard: an idle player's is forgotten
		done, refusal, err := d.write(ctx, player, c)
		if err != nil || refusal == nil {
			return done, refusal, err
		}
		last, err := d.leaderSeq(ctx, player)
		if err != nil || last <= decidedOn {
			return done, refusal, err
		}
		if err := d.view.WaitFolded(ctx, events.Transfers, last); err != nil {
			return done, nil, err
		}
		if d.view.Player(player).Guard <= decidedOn {
			return done, refusal, nil // an idle player whom the fold has forgotten: nothing new to decide on
		}
	}
}

func (d *Dispatcher) leaderSeq(ctx context.Context, player events.PlayerID) (uint64, error) {
	r, found, err := d.log.Last(ctx, events.Transfers, events.TransferKey(player, events.TransferID{}))
	if err != nil || !found {
		return 0, err
	}
	return r.Seq, nil
}

func (d *Dispatcher) attempt(ctx context.Context, player events.PlayerID, c Command, last *draft) (landed, *events.Refusal, error) {
	if !d.view.Ready() {
		return landed{}, nil, backoff.Permanent(errBlind)
	}
	s := d.standing(player)
	transfer, fact, refusal := Decide(s, c)
	if refusal != nil {
		return landed{}, refusal, nil
	}
	last.take(transfer, fact, d.NewID)
	m, err := d.seal(last.id, events.TransferKey(player, transfer), transfer, last.prev(s.Guard), fact)
	if err != nil {
		return landed{}, nil, backoff.Permanent(err)
	}
	seq, err := d.appendSurely(ctx, m)
	if err != nil {
		refusal, err = d.afterFailedAppend(ctx, s, err, last)
		return landed{}, refusal, err
	}
	if err := d.view.WaitFolded(ctx, events.Transfers, seq); err != nil {
		return landed{}, nil, backoff.Permanent(err)
	}
	d.count.appends.Add(1)
	return landed{seq: seq, transfer: transfer, fact: fact}, nil, nil
}

// errBlind says that this process cannot see the log now, and so decides nothing.
var errBlind = errors.New("the log is out of sight")

// appendSurely repeats an append whose outcome is unknown until it is known: the same event
// id lands at most once. That a later try did not leave says nothing of the first.
func (d *Dispatcher) appendSurely(ctx context.Context, m events.Message) (uint64, error) {
	doubted := false
	for pause := 10 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		seq, err := d.log.Append(ctx, m)
		var failed *events.AppendError
		if err == nil || !errors.As(err, &failed) {
			return seq, err
		}
		if doubted && failed.Reason == events.Unavailable {
			failed.Reason = events.Unknown
		}
		if failed.Reason != events.Unknown {
			return 0, err
		}
		doubted = true
		if !sleep(ctx, pause) {
			return 0, err
		}
	}
}

// afterFailedAppend sorts out a refused append. A nil error with a refusal is final, a plain
// error asks for another attempt, a permanent one gives up.
func (d *Dispatcher) afterFailedAppend(ctx context.Context, s Standing, err error, last *draft) (*events.Refusal, error) {
	var failed *events.AppendError
	if !errors.As(err, &failed) {
		return nil, backoff.Permanent(err)
	}
	switch failed.Reason {
	case events.Conflict, events.InFlight:
		d.count.conflicts.Add(1)
		if err := d.catchUp(ctx, events.Transfers, s.Guard, failed, last); err != nil {
			return nil, backoff.Permanent(err)
		}
		return nil, failed
	case events.KeyIsFull:
		return events.Refuse(events.KeyFull, ""), nil
	case events.StreamIsFull:
		return events.Refuse(events.LogFull, ""), nil
	case events.Unknown, events.Unavailable, events.NotAllowed:
		return nil, backoff.Permanent(err)
	}
	return nil, backoff.Permanent(err)
}

// catchUp waits until the fold, which stood at folded, holds what a conflict was about, and
// notes the guard that the store named.
func (d *Dispatcher) catchUp(ctx context.Context, b events.Bucket, folded uint64, failed *events.AppendError, last *draft) error {
	guard := failed.Last
	if failed.Reason == events.InFlight || guard == 0 && failed.Code == 0 {
		r, found, err := d.log.Last(ctx, b, failed.Key)
		if err != nil {
			return err
		}
		if found {
			guard = r.Seq
		}
	}
	if guard > folded {
		if err := d.view.WaitFolded(ctx, b, guard); err != nil {
			return err
		}
	}
	last.guard, last.over, last.named = guard, folded, true
	return nil
}

// standing takes everything a decision may look at.
func (d *Dispatcher) standing(player events.PlayerID) Standing {
	s := Standing{Player: d.view.Player(player), Controls: d.view.Controls()}
	s.Session, s.HasSession = d.view.Session(player)
	if b := d.view.Fleet().Backend(s.Session.Server); b != nil {
		s.Origin = &b.Incarnation
	}
	if s.Active != nil && s.Active.Reserved != nil {
		if b := d.view.Fleet().Backend(s.Active.Destination()); b != nil {
			s.There = &b.Incarnation
		}
	}
	return s
}

func (d *Dispatcher) watch() watch { return d.watchBy(*d.timing.Load()) }

func (d *Dispatcher) watchBy(t Timing) watch {
	return watch{fleet: d.view.Fleet(), now: d.Now(), timing: t, self: d.Source, jitter: d.jitter}
}

// sleep waits, or tells that ctx ended first.
func sleep(ctx context.Context, length time.Duration) bool {
	t := time.NewTimer(length)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

var _ projections.Tailer = Log(nil)
