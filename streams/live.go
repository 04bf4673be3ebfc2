package streams

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// fewFilters bounds how many guards one consumer is asked for by name; above, the whole
// stream is read and dropped by subject. Up to here names are far quicker (with 500 of
// 20,000 transfers alive seven times, BenchmarkBoot); the bound keeps the request small.
const fewFilters = 1024

var errReplaced = errors.New("the stream was made again meanwhile")

// survey is what a look at the newest record of each key tells: what is alive, and where
// everybody else's guard stands.
type survey struct {
	state   events.StreamState
	newest  events.Record              // the last one that was seen; zero when there is none
	alive   map[string]map[string]bool // by guard: its keys that are alive
	settled map[string]events.Record   // by guard: its last record, without header and body
}

// attachLive begins a tail of what is alive, and follows the stream from there.
func (t *tail) attachLive(ctx context.Context, f life, known events.StreamState) error {
	follower, ok := t.f.(events.LiveFollower)
	if !ok {
		return followerError{fmt.Errorf("tail %s: mode TailLive wants a follower that can tell what is alive, %T cannot", t.bucket, t.f)}
	}
	s, err := t.survey(ctx, f, follower)
	if err != nil {
		return err
	}
	switch {
	case !t.s.read.alive(f):
		return errLinkLost
	case s.state.Incarnation != known.Incarnation:
		return errReplaced
	}
	t.begin(s.state)
	t.anew = true // until the follower has everything that was looked at
	for _, r := range s.inOrder() {
		follower.Settled(r.Key, r.Seq)
	}
	if err := t.readAlive(ctx, f, s); err != nil {
		return err
	}
	t.anew, t.cursor.Seq, t.cursor.ID = false, s.newest.Seq, s.newest.EventID()
	c, err := t.s.consume(ctx, t.bucket, f, t.behindCursor())
	if err != nil {
		return err
	}
	defer c.close()
	if !t.s.read.alive(f) {
		return errLinkLost
	}
	return t.follow(ctx, c, s.state)
}

// survey asks the follower about the newest record of each key. The consumer gives the
// newest records as of its creation, and all that came after: wherever it is stopped behind
// that moment, no key with a record up to there is left out. The stream is looked at once
// the consumer stands, so the end found there is late enough. The consumer may not know of
// it yet and say sooner that nothing is left; what counts as seen is what it gave.
func (t *tail) survey(ctx context.Context, f life, follower events.LiveFollower) (survey, error) {
	newest := Range{Newest: true}
	c, err := t.s.consume(ctx, t.bucket, f, newest.consumer(t.bucket))
	if err != nil {
		return survey{}, err
	}
	defer c.close()
	info, err := t.s.streamInfo(ctx, t.bucket)
	if err != nil {
		return survey{}, err
	}
	asked := time.Now()
	s := survey{state: stateOf(info), alive: map[string]map[string]bool{}, settled: map[string]events.Record{}}
	if s.state.Last >= s.state.First {
		err = newest.read(ctx, c, s.state.Last, func(r events.Record) bool {
			s.take(r, follower.Newest(r))
			return ctx.Err() == nil
		})
	}
	s.state.Clock += time.Since(asked).Nanoseconds() // as it is now
	return s, cmp.Or(err, ctx.Err())
}

func (s *survey) take(r events.Record, live bool) {
	s.newest = r
	guard := r.Bucket.Guard(r.Key)
	s.settled[guard] = events.Record{Key: r.Key, Seq: r.Seq}
	keys := s.alive[guard]
	switch {
	case live && keys == nil:
		s.alive[guard] = map[string]bool{r.Key: true}
	case live:
		keys[r.Key] = true
	case keys != nil:
		if delete(keys, r.Key); len(keys) == 0 {
			delete(s.alive, guard)
		}
	}
}

// filters gives the subjects that read the guards with something alive, and the record that
// was seen last, which tells that nothing is missing; none when they are too many.
func (s *survey) filters() []string {
	out := map[string]bool{}
	for guard, keys := range s.alive {
		out[guard] = true
		for key := range keys {
			out[s.subject(guard, key)] = true
		}
		if len(out) >= fewFilters {
			return nil
		}
	}
	out[s.subject(s.newest.Bucket.Guard(s.newest.Key), s.newest.Key)] = true
	return slices.Sorted(maps.Keys(out))
}

// subject reads a key: as a rule its guard does, but a misspelt key may lie beside the guard
// that is taken for it.
func (s *survey) subject(guard, key string) string {
	subject := s.newest.Bucket.Subject(key)
	if strings.HasSuffix(guard, ">") && strings.HasPrefix(subject, strings.TrimSuffix(guard, ">")) {
		return guard
	}
	return subject
}

// inOrder lists the last records of the guards with nothing alive.
func (s *survey) inOrder() []events.Record {
	maps.DeleteFunc(s.settled, func(guard string, _ events.Record) bool { return s.alive[guard] != nil })
	return slices.SortedFunc(maps.Values(s.settled), func(a, b events.Record) int { return cmp.Compare(a.Seq, b.Seq) })
}

// readAlive delivers what the guards with something alive hold up to the last record that
// was looked at: by their
// subjects when they are few, else out of everything.
func (t *tail) readAlive(ctx context.Context, f life, s survey) error {
	if len(s.alive) == 0 {
		return nil
	}
	cfg := jetstream.ConsumerConfig{DeliverPolicy: jetstream.DeliverAllPolicy, FilterSubjects: s.filters()}
	c, err := t.s.consume(ctx, t.bucket, f, cfg)
	if err != nil {
		return err
	}
	defer c.close()
	c.sees = true
	var failed error
	err = Range{}.read(ctx, c, s.newest.Seq, func(r events.Record) bool {
		failed = ctx.Err()
		if failed == nil && s.alive[r.Bucket.Guard(r.Key)] != nil {
			if err := t.f.Record(r); err != nil {
				failed = followerError{err}
			}
		}
		return failed == nil
	})
	return cmp.Or(failed, err)
}
