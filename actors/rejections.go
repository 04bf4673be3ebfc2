package actors

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

// auditPerSecond is how many rejections of one culprit are written in a second, so that who is
// refused cannot fill the log of refusals. The others are counted.
const auditPerSecond = 100

// auditBacklog is how many may wait to be written, while the store is slow.
const auditBacklog = 1024

// rejections are what waits to be written about who was refused what, and bound it for each
// culprit. The zero value is ready. Safe for concurrent use.
type rejections struct {
	mu      sync.Mutex
	buckets map[string]*tokenBucket
	waiting []events.Rejected
	writing bool   // somebody takes them
	left    uint64 // out
}

// put takes one to be written. write tells that nobody writes yet: the caller sees to it that
// somebody does. left is how many were left out so far, when this one was; else 0.
func (r *rejections) put(x events.Rejected, culprit string, now time.Time) (write bool, left uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.buckets[culprit]
	if b == nil {
		b = &tokenBucket{}
		b.set(now, auditPerSecond, auditPerSecond)
		if r.buckets == nil {
			r.buckets = map[string]*tokenBucket{}
		}
		r.buckets[culprit] = b
	}
	if !b.take(now) || len(r.waiting) >= auditBacklog {
		r.left++
		return false, r.left
	}
	r.waiting = append(r.waiting, x)
	write, r.writing = !r.writing, true
	return write, 0
}

// next gives the one that has waited longest. When there is none, nobody writes any more.
func (r *rejections) next() (x events.Rejected, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		r.writing, r.waiting = false, nil
		return x, false
	}
	x, r.waiting = r.waiting[0], r.waiting[1:]
	return x, true
}

// drop forgets what waits: there is nobody to write it.
func (r *rejections) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writing, r.waiting = false, nil
}

// audit appends to the audit bucket in the background, one at a time. Losing one under a store
// outage is accepted, and so is what one culprit brings about beyond auditPerSecond: it is counted.
func (d *Dispatcher) audit(r events.Rejected) {
	culprit := culpritOf(r)
	write, left := d.rejected.put(r, culprit, d.Now())
	switch {
	case left > 0 && left&(left-1) == 0: // 1, 2, 4, 8, …: a flood must not fill this log either
		d.logger.Warn("rejections are not written any more, too many come from one source", "culprit", culprit, "code", r.Code, "leftOut", left)
	case write && !d.background(d.writeRejections):
		d.rejected.drop()
	}
}

func (d *Dispatcher) writeRejections(ctx context.Context) {
	prev := map[string]uint64{} // last sequence of each key, as far as it is known
	for {
		r, ok := d.rejected.next()
		if !ok {
			return
		}
		d.writeRejection(ctx, &r, prev)
	}
}

func (d *Dispatcher) writeRejection(ctx context.Context, r *events.Rejected, prev map[string]uint64) {
	key := string(d.Source.ID) + "." + string(r.Code)
	for range maxAttempts {
		m, err := d.seal(d.NewID(), key, events.TransferID{}, prev[key], r)
		if err != nil {
			d.logger.Error("seal audit entry", "error", err)
			return
		}
		seq, err := d.log.Append(ctx, m)
		if err == nil {
			prev[key] = seq
			return
		}
		var failed *events.AppendError
		if !errors.As(err, &failed) || failed.Reason != events.Conflict && failed.Reason != events.InFlight {
			return
		}
		last, _, err := d.log.Last(ctx, events.Audit, key)
		if err != nil {
			return
		}
		prev[key] = last.Seq
	}
}

// culpritOf is who is to blame, as far as nobody could forge it: the backend in a subject that
// only its login may publish to, or the login itself. What stands in the log may have been
// written by anybody who may write there.
func culpritOf(r events.Rejected) string {
	switch {
	case strings.HasPrefix(r.Subject, "landfall.ask.backend."), strings.HasPrefix(r.Subject, "landfall.news.backend."):
		return strings.Split(r.Subject, ".")[3]
	case strings.HasPrefix(r.Source, loginSource):
		return r.Source
	}
	return "log"
}

// loginSource begins the source of what a login was not allowed to do: the store knows the
// login, and nobody signed anything.
const loginSource = "login/"

// Denied puts what the store refused to a login into the audit, for operators. It does not
// block.
func (d *Dispatcher) Denied(login, act, subject string) {
	d.audit(events.Rejected{Source: loginSource + login, Code: events.WrongActor, Subject: subject, Detail: "may not " + act})
}

// rejectedAsk puts a request that does not verify, or is not the asker's to make, into the audit.
func (d *Dispatcher) rejectedAsk(subject string, w events.Wire, refusal *events.Refusal) {
	d.audit(events.Rejected{Source: w.Header[events.HeaderSource], Code: refusal.Code, Subject: subject, Detail: refusal.Detail})
}
