package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"
	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// lookEvery is how often a directory is asked who has it open.
const lookEvery = 100 * time.Millisecond

// holderFile is where the process that has a directory open says so.
const holderFile = "holder.json"

var (
	errFull  = errors.New("as many lines as were wanted")
	errMoved = errors.New("another process has the store now, or none")
)

// follow goes on where begin ended, until ctx ends or the limit is reached: neither is an
// error. It closes store. A directory is never held open while waiting: whoever carries the
// store must be able to come back.
func (t *tail) follow(ctx context.Context, src source, store *reader) error {
	holder := src.holder()
	if err := t.marks(ctx, store); err != nil {
		return errors.Join(err, store.Close())
	}
	err := src.stay(ctx, holder, store, t.note, t.attend)
	return ignore(ignore(err, errFull), ctx.Err())
}

// stay runs attend on one life of the store after another, until it fails, or ctx ends. It
// closes store. holder is who has the directory open; note hears what is waited for.
func (s source) stay(ctx context.Context, holder []byte, store *reader, note func(string), attend func(context.Context, *reader) error) (err error) {
	for err == nil {
		if store.shared {
			err = s.whileHeld(ctx, holder, func(ctx context.Context) error { return attend(ctx, store) })
		}
		if err = errors.Join(ignore(err, errMoved), store.Close()); err != nil {
			break
		}
		if !store.shared {
			holder = nil
			note(fmt.Sprintf("store %s is not running: waiting for it", s))
		}
		store, holder, err = s.await(ctx, holder)
	}
	return err
}

// whileHeld runs attend as long as the same process has the directory open. It always ends
// with an error: errMoved when the store is to be looked for again.
func (s source) whileHeld(ctx context.Context, holder []byte, attend func(context.Context) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return attend(ctx) })
	if s.dir != "" {
		group.Go(func() error {
			_, err := s.change(ctx, holder)
			if err == nil {
				err = errMoved
			}
			return err
		})
	}
	return group.Wait()
}

// ignore drops an error that means that all is well; what may be nil.
func ignore(err, what error) error {
	if what != nil && errors.Is(err, what) {
		return nil
	}
	return err
}

// marks notes for each bucket the record that the tail goes on from.
func (t *tail) marks(ctx context.Context, log history) error {
	for b, p := range t.at {
		p.cursor = events.Cursor{Seq: p.state.Last, Incarnation: p.state.Incarnation}
		if p.state.Last == 0 {
			continue
		}
		for r, err := range log.History(ctx, b, streams.Range{After: p.state.Last - 1, UpTo: p.state.Last}) {
			if err != nil {
				return err
			}
			p.cursor.ID = r.EventID()
		}
	}
	return nil
}

// attend follows every bucket on one life of the store. It always ends with an error.
func (t *tail) attend(ctx context.Context, store *reader) error {
	group, ctx := errgroup.WithContext(ctx)
	var mu sync.Mutex
	for _, b := range t.buckets {
		group.Go(func() error {
			return store.Tail(ctx, b, t.at[b].start(), &follower{tail: t, bucket: b, mu: &mu})
		})
	}
	if t.pulse > 0 {
		group.Go(func() error { return t.beat(ctx, store, &mu) })
	}
	return group.Wait()
}

// beat says now and then how far the tail is and how far the store is, so that silence can be
// told from a dead watcher: the store was asked. Of a reader who takes nothing off the output it
// says that.
func (t *tail) beat(ctx context.Context, log history, mu *sync.Mutex) error {
	tick := time.NewTicker(t.pulse)
	defer tick.Stop()
	before := t.writing.Load()
	for {
		select {
		case <-tick.C:
			now := t.writing.Load()
			stuck := now == before && now%2 == 1
			before = now
			for _, b := range t.buckets {
				state, err := log.Info(ctx, b)
				switch {
				case mu.TryLock():
					t.note(t.at[b].pulse(b, state, err))
					mu.Unlock()
				case stuck: // whoever writes waits, and nobody else notes anything
					t.note(fmt.Sprintf("%s: the store is at sequence %d, and nobody has taken anything off this output for %s", b, state.Last, t.pulse))
				}
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (p *position) pulse(b events.Bucket, s events.StreamState, err error) string {
	if err != nil {
		return fmt.Sprintf("%s: at sequence %d, the store does not answer: %v", b, p.last, err)
	}
	behind := max(s.Last, p.last) - p.last
	slow := ""
	if p.behind > 0 && behind > p.behind {
		slow = fmt.Sprintf(", %d behind and falling back: the log grows faster than it is read here", behind)
	}
	p.behind = behind
	return fmt.Sprintf("%s: alive, at sequence %d of %d%s", b, p.last, s.Last, slow)
}

func (p *position) start() events.TailStart {
	return events.TailStart{Mode: events.TailResume, Cursor: p.cursor}
}

// holder is who has the directory open, nil when nobody says so.
func (s source) holder() []byte {
	if s.dir == "" {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(s.dir, holderFile))
	if err != nil {
		return nil
	}
	return raw
}

// change waits until the directory's holder is another than was, or none.
func (s source) change(ctx context.Context, was []byte) (now []byte, err error) {
	err = backoff.Retry(func() error {
		if now = s.holder(); bytes.Equal(now, was) {
			return errMoved
		}
		return nil
	}, backoff.WithContext(backoff.NewConstantBackOff(lookEvery), ctx))
	return now, err
}

// await waits for another process to open the directory, and connects to it.
func (s source) await(ctx context.Context, was []byte) (*reader, []byte, error) {
	for {
		now, err := s.change(ctx, was)
		if err != nil {
			return nil, nil, err
		}
		was = now
		if now == nil {
			continue
		}
		store, err := s.open(ctx, nil)
		if err == nil && store.shared {
			return store, now, nil
		}
		if err == nil { // it has ended meanwhile, so this process opened the directory itself
			err = store.Close()
		}
		if err != nil {
			return nil, nil, err
		}
	}
}

// follower shows one bucket as it grows.
type follower struct {
	tail   *tail
	bucket events.Bucket
	mu     *sync.Mutex // the followers of one tail write in turn
}

// Begin implements events.Follower.
func (f *follower) Begin(s events.StreamState, fork bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.tail.at[f.bucket]
	switch {
	case fork:
		f.tail.note(fmt.Sprintf("%s is not the log that was read before: showing it anew from sequence %d", f.bucket, s.First))
		p.last, p.keys, p.cursor = 0, map[string]events.EventID{}, events.Cursor{}
	case f.bucket != events.Fleet && s.First > p.last+1:
		f.tail.note(fmt.Sprintf("%s: %s gone (retention) before they were shown: after sequence %d the first held is %d", f.bucket, plural(s.First-p.last-1, "message"), p.last, s.First))
	}
	p.state, p.cursor.Incarnation = s, s.Incarnation
}

// Record implements events.Follower.
func (f *follower) Record(r events.Record) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tail.writing.Add(1)
	defer f.tail.writing.Add(1)
	p := f.tail.at[f.bucket]
	if p.has(f.bucket, r) {
		return nil
	}
	if err := f.tail.show(f.tail.opener.open(r)); err != nil {
		return err
	}
	p.cursor.Seq, p.cursor.ID = r.Seq, r.EventID()
	if f.tail.full() {
		return errFull
	}
	if p.live {
		return f.tail.flush()
	}
	return nil
}

// has tells that a record was shown before: heartbeats are always given again, from the
// newest of each key, and their sequences say nothing.
func (p *position) has(b events.Bucket, r events.Record) bool {
	if b == events.Fleet {
		return p.keys[r.Key] == r.EventID()
	}
	return r.Seq <= p.last
}

// Live implements events.Follower.
func (f *follower) Live(last uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.tail.at[f.bucket]
	p.live = true
	if f.bucket != events.Fleet {
		p.last = max(p.last, last)
	}
	f.tail.note(fmt.Sprintf("%s: following, at sequence %d", f.bucket, p.last))
	if err := f.tail.flush(); err != nil {
		f.tail.note(err.Error())
	}
}

// Blind implements events.Follower.
func (f *follower) Blind(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tail.at[f.bucket].live = false
	f.tail.note(fmt.Sprintf("%v: waiting for the store", err))
}
