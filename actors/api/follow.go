package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

type (
	// FollowTransfer asks for the news of one transfer.
	FollowTransfer struct {
		Transfer string `path:"transfer" format:"uuid"`
	}

	// FollowEvents asks for the facts of the log.
	FollowEvents struct {
		Bucket    string `query:"bucket" enum:"transfers,sessions,control,audit" doc:"Which facts; left out: transfers. Those of control and audit take the scope control."`
		After     string `query:"after" pattern:"^[0-9]{1,20}$" doc:"Begin behind this sequence; left out: with the next fact. 0: with the oldest that the log holds."`
		LastEvent string `header:"Last-Event-ID" pattern:"^[0-9]{1,20}$" doc:"As after; browsers send it when they come back. It goes before after."`
		Player    string `query:"player" maxLength:"64" doc:"Only the facts of this player: a UUID, or the name of somebody on the network."`
		Type      string `query:"type" maxLength:"64" pattern:"^[a-z0-9.]*$" doc:"Only facts whose type ends with this, such as completed or transfer.failed."`
	}

	// Fact is one fact of the log.
	Fact struct {
		Seq         uint64          `json:"seq" doc:"In its bucket."`
		Bucket      string          `json:"bucket"`
		Key         string          `json:"key"`
		Type        string          `json:"type" example:"landfall.transfer.completed.v1"`
		ID          string          `json:"id" format:"uuid"`
		Source      string          `json:"source" doc:"Who wrote it."`
		Stored      time.Time       `json:"stored" doc:"By the store's clock."`
		Correlation string          `json:"correlation,omitempty" doc:"The transfer."`
		Fact        json.RawMessage `json:"fact" doc:"What happened; docs/WIRE.md tells the fields of each type."`
	}
)

func typeOf(v any) reflect.Type { return reflect.TypeOf(v) }

func (s *Service) routeEvents() {
	addStream(s, route{
		name: "transfers.follow", method: http.MethodGet, path: "/v1/transfers/{transfer}/events", scope: events.ScopeRead, tag: "transfers",
		summary: "Follow a transfer to its end", codes: []events.Code{events.NotKnown},
		doc: "Server-sent events, each the transfer as it stands, from now until it has ended. Coming back begins with how it stands.",
	}, Transfer{}, s.followTransfer)
	addStream(s, route{
		name: "events.follow", method: http.MethodGet, path: "/v1/events", scope: events.ScopeRead, tag: "network",
		summary: "Follow the log", codes: []events.Code{events.NotKnown},
		doc: "Server-sent events, each one fact, in the order of the log and without a gap: coming back with the last id goes on behind it. An event `reset` says that the log is another one now; what follows begins anew. An event `gap` says that retention took facts behind that id.",
	}, Fact{}, s.followEvents)
}

func (s *Service) followTransfer(_ context.Context, in *FollowTransfer) (func(context.Context, *stream) error, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	id, err := events.ParseID[events.TransferID](in.Transfer)
	if err != nil {
		return nil, refuse(events.BadRequest, err.Error())
	}
	t, known := b.Dispatcher.View().Transfer(id)
	if !known {
		return nil, refuse(events.NotKnown, "no transfer "+in.Transfer+" is under way or ended of late")
	}
	return func(ctx context.Context, out *stream) error {
		for {
			if err := out.send(t.Last, "transfer", s.show(b, t)); err != nil || t.Phase.Terminal() {
				return err
			}
			for last := t.Last; t.Last == last; {
				wait, cancel := context.WithTimeout(ctx, keepAlive)
				t = await(wait, b, t, last)
				cancel()
				if ctx.Err() != nil {
					return ctx.Err()
				}
				if t.Last == last {
					if err := out.alive(); err != nil {
						return err
					}
				}
			}
		}
	}, nil
}

func (s *Service) followEvents(ctx context.Context, in *FollowEvents) (func(context.Context, *stream) error, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	f := &follower{s: s, source: b.Source, bucket: events.Transfers, suffix: in.Type, keys: b.Dispatcher.Keys}
	if in.Bucket != "" {
		f.bucket = events.Bucket(in.Bucket)
	}
	if (f.bucket == events.Control || f.bucket == events.Audit) && !callerOf(ctx).may(events.ScopeControl) {
		return nil, refuse(events.ScopeMissing, "the facts of "+string(f.bucket)+" take the scope "+string(events.ScopeControl))
	}
	if in.Player != "" {
		if f.player, p = b.player(in.Player); p != nil {
			return nil, p
		}
	}
	state, err := b.Source.Info(ctx, f.bucket)
	if err != nil {
		return nil, err
	}
	if f.at = state.Last; in.After != "" || in.LastEvent != "" {
		text := in.LastEvent
		if text == "" {
			text = in.After
		}
		if f.at, err = strconv.ParseUint(text, 10, 64); err != nil {
			return nil, refuse(events.BadRequest, "after: "+err.Error())
		}
	}
	f.state = state
	return f.run, nil
}

// follower writes the facts of a bucket to a stream.
type follower struct {
	s      *Service
	source Source
	keys   *events.Keyring
	bucket events.Bucket
	player events.PlayerID // zero: everybody's
	suffix string

	state events.StreamState // as it was at the beginning
	at    uint64             // the last sequence that was looked at
	id    events.EventID     // of the record there, zero: not known

	facts chan item // from the tail to the one who writes
}

// item is a record, or what is said between records.
type item struct {
	record events.Record
	say    string // reset, gap
	at     uint64
}

// run writes what is stored already, and then follows the tail. The tail is read by a goroutine of
// its own, with little room between: a reader that is too slow ends the stream, and comes back.
func (f *follower) run(ctx context.Context, out *stream) error {
	switch {
	case f.at > f.state.Last: // the log was longer when the reader last saw it
		f.at = 0
		if err := out.send(f.state.Last, "reset", said{Seq: f.state.Last}); err != nil {
			return err
		}
	case f.at > 0 && f.at+1 < f.state.First:
		if err := out.send(f.state.First-1, "gap", said{Seq: f.state.First - 1}); err != nil {
			return err
		}
		f.at = f.state.First - 1
	}
	if err := f.catchUp(ctx, out); err != nil {
		return err
	}
	return f.follow(ctx, out)
}

// said is what stands between facts.
type said struct {
	Seq uint64 `json:"seq"`
}

// catchUp writes what lies above the position, and notes the id of the last record: a tail goes on
// behind a record that it knows.
func (f *follower) catchUp(ctx context.Context, out *stream) error {
	from := f.at
	if from > 0 {
		from-- // the record at the position itself tells its id
	}
	for r, err := range f.source.After(ctx, f.bucket, from) {
		if err != nil {
			return err
		}
		known := r.Seq <= f.at
		f.at, f.id = r.Seq, r.EventID()
		if !known {
			if err := f.write(out, r); err != nil {
				return err
			}
		}
	}
	return nil
}

var errSlow = errors.New("the reader is too slow")

func (f *follower) follow(ctx context.Context, out *stream) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.facts = make(chan item, 1024)
	start := events.TailStart{Mode: events.TailAll}
	if f.at > 0 && !f.id.IsZero() {
		start = events.TailStart{Mode: events.TailResume, Cursor: events.Cursor{Seq: f.at, ID: f.id, Incarnation: f.state.Incarnation}}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		cancel(f.source.Tail(ctx, f.bucket, start, &tailer{facts: f.facts, skip: f.at}))
	}()
	defer func() { cancel(nil); <-done }()
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for {
		var err error
		select {
		case x := <-f.facts:
			if x.say != "" {
				err = out.send(x.at, x.say, said{Seq: x.at})
			} else {
				err = f.write(out, x.record)
			}
		case <-alive.C:
			err = out.alive()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// write sends a record that is wanted. What cannot be verified is not shown as a fact.
func (f *follower) write(out *stream, r events.Record) error {
	e, refusal := events.Open(f.keys, r)
	if refusal == nil && f.wants(e) {
		return f.show(out, r, e)
	}
	return nil
}

func (f *follower) wants(e events.Event) bool {
	return strings.HasSuffix(strings.TrimSuffix(events.TypeName(e.Fact), ".v1"), f.suffix) &&
		(f.player.IsZero() || slices.Contains(strings.Split(e.Key, "."), f.player.String()))
}

func (f *follower) show(out *stream, r events.Record, e events.Event) error {
	raw, err := json.Marshal(e.Fact)
	if err != nil {
		return err
	}
	x := Fact{
		Seq: r.Seq, Bucket: string(r.Bucket), Key: r.Key, Type: events.TypeName(e.Fact), ID: e.ID.String(), Source: e.Source.String(),
		Stored: r.Stored.UTC(), Fact: raw,
	}
	if !e.Correlation.IsZero() {
		x.Correlation = e.Correlation.String()
	}
	return out.send(r.Seq, "fact", x)
}

// tailer is a follower as the tail sees it. It never waits for the reader.
type tailer struct {
	facts chan<- item
	skip  uint64 // what was sent already
	begun bool
	slow  bool
}

var _ events.Follower = (*tailer)(nil)

// Begin implements events.Follower: to begin again means that what was sent is no longer the history.
func (t *tailer) Begin(state events.StreamState, fork bool) {
	first := !t.begun
	t.begun = true
	switch {
	case fork:
		t.skip = 0
		t.put(item{say: "reset", at: state.First})
	case !first:
		t.put(item{say: "gap", at: state.First})
	}
}

// Record implements events.Follower.
func (t *tailer) Record(r events.Record) error {
	if r.Seq <= t.skip {
		return nil
	}
	t.put(item{record: r})
	if t.slow {
		return errSlow
	}
	return nil
}

// Live implements events.Follower.
func (*tailer) Live(uint64) {}

// Blind implements events.Follower: the stream goes on when the log is in sight again.
func (*tailer) Blind(error) {}

func (t *tailer) put(x item) {
	select {
	case t.facts <- x:
	default:
		t.slow = true
	}
}

var _ projections.Tailer = Source(nil)
