package projections

import (
	"context"
	"time"

	"github.com/landfall/landfall/events"
)

// introducePause is how long a fold that cannot reach the log waits before it asks again.
const introducePause = 200 * time.Millisecond

// introduced opens a record. When it is signed with the key of a host that is not known here, it
// asks the log's leader what the operator says of that host: this process's own fold of control
// may only be behind. Whom the operator has not named by then had no key to sign with, so that
// is BAD_SIGNATURE and stops nobody.
func (f *feed) introduced(r events.Record) (events.Event, *events.Refusal, error) {
	keys := f.view.cfg.Keys
	e, refusal := events.Open(keys, r)
	if refusal == nil || refusal.Code != events.UnknownKey || f.bucket == events.Fleet {
		return e, refusal, nil
	}
	host, strange := keys.Stranger(r.Header)
	if !strange {
		return e, refusal, nil
	}
	if err := f.introduce(host); err != nil {
		return e, refusal, err
	}
	if e, refusal = events.Open(keys, r); refusal != nil && refusal.Code == events.UnknownKey {
		refusal = events.Refuse(events.BadSignature, refusal.Detail+", whom the operator has given no such key")
	}
	return e, refusal, nil
}

// introduce takes in the newest identity fact of a host, if there is one that verifies.
func (f *feed) introduce(host events.HostID) error {
	for {
		r, found, err := f.view.cfg.Log.LastOf(f.ctx, events.Control, events.IdentityKey(host))
		if err == nil {
			if found {
				f.view.learn(r)
			}
			return nil
		}
		f.view.cfg.Logger.Warn("the log does not say who a host is, asking again", "host", host, "error", err)
		pause := time.NewTimer(introducePause)
		select {
		case <-pause.C:
		case <-f.ctx.Done():
			pause.Stop()
			return context.Cause(f.ctx)
		}
	}
}

// learn takes in an identity fact. What is refused is reported by the fold of control, which
// meets it too.
func (v *View) learn(r events.Record) {
	if refusal := v.cfg.Keys.Learn(r); refusal != nil {
		v.cfg.Logger.Warn("an identity was refused", "key", r.Key, "seq", r.Seq, "code", refusal.Code, "detail", refusal.Detail)
	}
}
