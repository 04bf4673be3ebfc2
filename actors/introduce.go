package actors

import (
	"context"
	"sync"
	"time"

	"github.com/landfall/landfall/events"
)

const (
	// introduceEvery is how often somebody is asked about one host whom nobody knows: whoever
	// signs in the name of strangers shall not make others busy.
	introduceEvery   = time.Second
	introduceTimeout = 2 * time.Second
	maxStrangers     = 1024
)

// introductions bounds the questions about strangers.
type introductions struct {
	mu    sync.Mutex
	asked map[events.HostID]time.Time
}

// due tells that a host may be asked about now, and notes it.
func (n *introductions) due(host events.HostID, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if at, ok := n.asked[host]; ok && now.Sub(at) < introduceEvery {
		return false
	}
	if n.asked == nil || len(n.asked) >= maxStrangers {
		n.asked = map[events.HostID]time.Time{}
	}
	n.asked[host] = now
	return true
}

// introduce looks a host up in the log, where this dispatcher's fold may only be behind.
func (d *Dispatcher) introduce(ctx context.Context, host events.HostID) {
	if !d.introduced.due(host, d.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, introduceTimeout)
	defer cancel()
	r, found, err := d.log.LastOf(ctx, events.Control, events.IdentityKey(host))
	if err != nil || !found {
		return
	}
	if refusal := d.Keys.Learn(r); refusal != nil {
		d.logger.Warn("an identity was refused", "key", r.Key, "seq", r.Seq, "code", refusal.Code, "detail", refusal.Detail)
	}
}

// answerWhoIs hands on what the operator says of a host, and of this one, so that the asker can
// judge the answer as well.
func (d *Dispatcher) answerWhoIs(ctx context.Context, _ events.HostID, q events.WhoIsAsk) events.WhoIsAnswer {
	r, known := d.Keys.Identity(q.Host)
	if !known {
		d.introduce(ctx, q.Host)
		r, known = d.Keys.Identity(q.Host)
	}
	if !known {
		return events.WhoIsAnswer{Code: events.NotKnown}
	}
	a := events.WhoIsAnswer{Code: events.OK, Fact: events.SealedOf(r)}
	if own, ok := d.Keys.Identity(d.Source.ID); ok {
		a.Own = events.SealedOf(own)
	}
	return a
}

// introduce asks a dispatcher about a host: a backend cannot read the log. Whoever answers is
// believed only as far as the operator's signature goes.
func (b *Backend) introduce(ctx context.Context, host events.HostID) {
	if !b.strangers.due(host, b.cfg.Now()) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, introduceTimeout)
	defer cancel()
	i, subject := b.cfg.Identity, events.AskOf(b.cfg.Source.ID, events.VerbWhoIs)
	w, err := events.SealCall(i.Keys, events.Call{ID: i.NewID(), Source: i.Source, Deadline: introduceTimeout}, i.Now(), subject, events.WhoIsAsk{Host: host})
	if err != nil {
		return
	}
	back, err := b.cfg.Bus.Ask(ctx, subject, w)
	if err != nil {
		b.logger.Warn("nobody says who a host is", "host", host, "error", err)
		return
	}
	for _, f := range events.Introductions(back) {
		r, err := f.Record()
		if err != nil {
			b.logger.Warn("an identity cannot be read", "key", f.Key, "error", err)
			continue
		}
		if refusal := i.Keys.Learn(r); refusal != nil {
			b.logger.Warn("an identity was refused", "key", r.Key, "code", refusal.Code, "detail", refusal.Detail)
		}
	}
}
