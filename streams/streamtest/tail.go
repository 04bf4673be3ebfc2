package streamtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/landfall/landfall/events"
)

var errStreamChanged = errors.New("the stream is not what it was")

// batch bounds how many records a tail takes at once.
const batch = 256

// Tail delivers a bucket to f, from this goroutine, until ctx ends or f fails.
func (c *Client) Tail(ctx context.Context, b events.Bucket, from events.TailStart, f events.Follower) error {
	t := &tail{c: c, name: b, mode: from.Mode, f: f}
	if from.Mode == events.TailLive {
		follower, ok := f.(events.LiveFollower)
		if !ok {
			return fmt.Errorf("tail %s: mode TailLive wants a follower that can tell what is alive, %T cannot", b, f)
		}
		t.alive = follower
	}
	if from.Mode == events.TailResume {
		t.cursor = from.Cursor
	}
	for {
		if err := c.until(ctx, func() bool { return c.up() && !c.stopped }); err != nil {
			return err
		}
		t.attach()
		if err := t.follow(ctx); !errors.Is(err, errNoConnection) && !errors.Is(err, errStreamChanged) {
			return err
		}
	}
}

// tail is one Tail call. Only its goroutine touches it.
type tail struct {
	c      *Client
	name   events.Bucket
	mode   events.TailMode
	f      events.Follower
	begun  bool
	cursor events.Cursor // the last record that was delivered, and of which life
	life   int
	live   bool
	target uint64          // what makes it live
	first  []events.Record // of TailLastPerKey and TailLive: what is delivered before following

	alive  events.LiveFollower // of TailLive
	looked bool                // and has everything up to the end at which it looked
}

// attach looks at the stream and settles from where to follow it.
func (t *tail) attach() {
	m := t.c.m
	m.mu.Lock()
	b := m.bucket(t.name)
	state := b.state(m.now())
	anew, fork := t.place(b)
	var all, settled []events.Record
	look := anew && t.alive != nil
	if look {
		all, t.cursor, t.looked = b.all(), events.Cursor{}, false
	}
	t.life, t.target, t.live = b.life, state.Last, false
	t.cursor.Incarnation, t.begun = b.incarnation, true
	m.mu.Unlock()
	if look {
		settled = t.look(all)
	}
	if anew {
		t.f.Begin(state, fork)
	}
	for _, r := range settled {
		t.alive.Settled(r.Key, r.Seq)
	}
}

// look keeps for delivery what lies inside a guard with a live key, and gives the last
// record of every other guard.
func (t *tail) look(all []events.Record) (settled []events.Record) {
	byKey, byGuard := map[string]events.Record{}, map[string]events.Record{}
	for _, r := range all {
		byKey[r.Key], byGuard[t.name.Guard(r.Key)] = r, r
		t.cursor.Seq, t.cursor.ID = r.Seq, r.EventID()
	}
	live := map[string]bool{}
	for key, r := range byKey {
		if t.alive.Newest(r) {
			live[t.name.Guard(key)] = true
		}
	}
	for guard, r := range byGuard {
		if !live[guard] {
			settled = append(settled, r)
		}
	}
	slices.SortFunc(settled, func(x, y events.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	t.first = slices.DeleteFunc(all, func(r events.Record) bool { return !live[t.name.Guard(r.Key)] })
	return settled
}

// place puts the cursor where the tail goes on. anew: the follower has to drop what it
// has, be it for a fork, or because retention took records that it has not seen.
func (t *tail) place(b *bucket) (anew, fork bool) {
	if t.mode == events.TailLastPerKey {
		t.first, t.cursor = b.newestPerKey(), events.Cursor{Seq: b.last()}
		return true, false
	}
	fork = t.cursor.Incarnation != "" && t.forked(b)
	missed := t.cursor.Seq != 0 && t.cursor.Seq+1 < b.first()
	if fork || missed {
		t.cursor = events.Cursor{}
	}
	return fork || missed || !t.begun || t.alive != nil && !t.looked, fork
}

// forked tells that what was delivered is no longer the stream's history.
func (t *tail) forked(b *bucket) bool {
	if t.cursor.Incarnation != b.incarnation || t.cursor.Seq > b.last() {
		return true
	}
	if r := b.at(t.cursor.Seq); r != nil {
		return r.EventID() != t.cursor.ID
	}
	evicts := b.limits.history > 0 && !b.limits.refuse
	return t.cursor.Seq >= b.first() && !evicts
}

func (b *bucket) newestPerKey() []events.Record {
	out := make([]events.Record, 0, len(b.byKey))
	for _, seqs := range b.byKey {
		out = append(out, *b.at(newest(seqs)))
	}
	slices.SortFunc(out, func(x, y events.Record) int { return int(x.Seq) - int(y.Seq) }) //nolint:gosec // small in tests
	return out
}

func (t *tail) follow(ctx context.Context) error {
	if err := t.deliver(ctx, t.first, false); err != nil {
		return err
	}
	t.first, t.looked = nil, true
	for {
		records, changed, err := t.next()
		if err != nil {
			return t.blind(ctx, err)
		}
		if err := t.deliver(ctx, records, true); err != nil {
			return err
		}
		if !t.live && (len(records) == 0 || t.cursor.Seq >= t.target) {
			if err := t.c.running(ctx); err != nil {
				return err
			}
			t.live = true
			t.f.Live(t.target)
		}
		if len(records) > 0 {
			continue
		}
		if err := t.wait(ctx, changed); err != nil {
			return err
		}
	}
}

// blind tells the follower, unless it is stopped: then it learns it when it wakes.
func (t *tail) blind(ctx context.Context, err error) error {
	if ended := t.c.running(ctx); ended != nil {
		return ended
	}
	t.f.Blind(fmt.Errorf("tail %s: %w", t.name, err))
	return err
}

type changes struct{ client, bucket <-chan struct{} }

// next takes the records behind the cursor.
func (t *tail) next() ([]events.Record, changes, error) {
	m := t.c.m
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.bucket(t.name)
	if err := t.broken(b); err != nil {
		return nil, changes{}, err
	}
	var out []events.Record
	for seq := max(t.cursor.Seq, b.base) + 1; seq <= b.last() && len(out) < batch; seq++ {
		if r := b.at(seq); r != nil {
			out = append(out, *r)
		}
	}
	return out, changes{client: t.c.changed.wait(), bucket: b.changed.wait()}, nil
}

// broken wants m.mu held.
func (t *tail) broken(b *bucket) error {
	if !t.c.up() {
		return errNoConnection
	}
	if b.life != t.life {
		return errStreamChanged
	}
	return nil
}

// deliver hands records over one by one; each waits until it has arrived, and while the
// host is stopped. That the store's clock is ahead keeps none back.
func (t *tail) deliver(ctx context.Context, records []events.Record, advance bool) error {
	latest := time.Now().Add(t.c.m.latency)
	for _, r := range records {
		arrives := r.Stored.Add(t.c.m.latency)
		if arrives.After(latest) {
			arrives = latest
		}
		if err := sleepUntil(ctx, arrives); err != nil {
			return err
		}
		if err := t.c.running(ctx); err != nil {
			return err
		}
		if err := t.check(); err != nil {
			return t.blind(ctx, err)
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.f.Record(r); err != nil {
			return err
		}
		if advance {
			t.cursor.Seq, t.cursor.ID = r.Seq, r.EventID()
		}
	}
	return nil
}

func (t *tail) check() error {
	t.c.m.mu.Lock()
	defer t.c.m.mu.Unlock()
	return t.broken(t.c.m.bucket(t.name))
}

func (t *tail) wait(ctx context.Context, on changes) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-on.client:
	case <-on.bucket:
	}
	return nil
}

// sleepUntil returns at once when the moment has passed.
func sleepUntil(ctx context.Context, moment time.Time) error {
	d := time.Until(moment)
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
