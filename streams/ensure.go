package streams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// ensurePatience is how long whoever makes the streams waits for the store, unless its
// Patience is longer.
const ensurePatience = 60 * time.Second

// DriftError says that a stream is not set up as this host wants it.
type DriftError struct {
	Stream string
	Diff   []string // "maxAge is 24h0m0s, want 720h0m0s"
}

func (e *DriftError) Error() string {
	return fmt.Sprintf("stream %s differs from this host's network.yml: %s; give all hosts the same network.yml (retention is changed by `landfall retention` only)",
		e.Stream, strings.Join(e.Diff, ", "))
}

// errNotThere says that a stream does not exist (yet).
var errNotThere = errors.New("stream does not exist")

// Ensure holds the store against the topology. The carrier makes the streams that are
// missing; every other host waits for them, until ctx ends. A stream of another network
// or format fails, one that is set up differently fails with *DriftError: nothing is ever
// changed here. It also fails when the carrier's durability is another one than this host's.
func (s *Store) Ensure(ctx context.Context) error {
	for i, want := range Topology(s.cfg.Settings) {
		if err := s.ensure(ctx, topology[i].bucket, want); err != nil {
			return err
		}
	}
	return s.checkDurability(ctx)
}

func (s *Store) ensure(ctx context.Context, b events.Bucket, want jetstream.StreamConfig) error {
	patience := time.Duration(0)
	if s.cfg.Carrier {
		patience = max(ensurePatience, s.cfg.Patience)
	}
	notify := func(err error, _ time.Duration) { s.log.Debug("waiting for stream", "stream", want.Name, "error", err) }
	return backoff.RetryNotify(func() error { return s.ensureOnce(ctx, b, want) },
		backoff.WithContext(newBackOff(patience), ctx), notify)
}

func (s *Store) ensureOnce(ctx context.Context, b events.Bucket, want jetstream.StreamConfig) error {
	info, err := s.streamInfo(ctx, b)
	if errors.Is(err, errNotThere) && s.cfg.Carrier {
		if err := s.wasLost(ctx, b, want); err != nil {
			return err
		}
		if err := s.create(ctx, want); err != nil {
			return err
		}
		info, err = s.streamInfo(ctx, b) // what the server made of it
	}
	if err != nil {
		return err
	}
	if err := s.identity().check(want.Name, info.Config.Metadata); err != nil {
		return backoff.Permanent(err)
	}
	if diff := drift(want, info.Config); len(diff) > 0 && !s.cfg.AnySettings {
		return backoff.Permanent(&DriftError{Stream: want.Name, Diff: diff})
	}
	if info.Cluster != nil && info.Cluster.Leader == "" && want.Replicas > 1 {
		return fmt.Errorf("stream %s has no leader yet", want.Name)
	}
	return nil
}

// wasLost refuses to make a durable stream where one must have been: streams are made in the
// order of the table, so none is missing in front of one that is there. An empty log in its
// place would be taken for the truth.
func (s *Store) wasLost(ctx context.Context, b events.Bucket, want jetstream.StreamConfig) error {
	if row, _ := rowOf(b); row.kind != durable || want.Storage != jetstream.FileStorage {
		return nil
	}
	behind := false
	for _, r := range topology {
		switch _, err := s.streamInfo(ctx, r.bucket); {
		case r.bucket == b:
			behind = true
		case !behind || errors.Is(err, errNotThere):
		case err != nil:
			return err
		default:
			if _, err := s.streamInfo(ctx, b); !errors.Is(err, errNotThere) {
				return err // somebody else has made all of them just now
			}
			return backoff.Permanent(fmt.Errorf("stream %s is missing and %s is there: it was lost, and no empty one is made in its place: restore the store's directory from a copy, or import an exported file into a new one",
				want.Name, StreamName(r.bucket)))
		}
	}
	return nil
}

func (s *Store) identity() identity { return identity{network: s.cfg.Network, creator: s.cfg.Creator} }

// create makes a stream. Only "could not create now" and "is there already" are worth
// another try; any other refusal is for a person.
func (s *Store) create(ctx context.Context, want jetstream.StreamConfig) error {
	want.Metadata = s.identity().metadata(uuid.NewString())
	ctx, cancel := within(ctx)
	defer cancel()
	_, err := s.js.CreateStream(ctx, want)
	var refused *jetstream.APIError
	if errors.As(err, &refused) && refused.ErrorCode != codeCreateFailed && refused.ErrorCode != codeNameInUse {
		return backoff.Permanent(fmt.Errorf("create stream %s: %w", want.Name, err))
	}
	if err != nil {
		return fmt.Errorf("create stream %s: %w", want.Name, err)
	}
	s.log.Info("stream created", "stream", want.Name)
	return nil
}

// Info tells where a bucket's stream begins and ends, and its clock, as its leader knows.
func (s *Store) Info(ctx context.Context, b events.Bucket) (events.StreamState, error) {
	info, err := s.streamInfo(ctx, b)
	if err != nil {
		return events.StreamState{}, err
	}
	return stateOf(info), nil
}

func stateOf(info *jetstream.StreamInfo) events.StreamState {
	return events.StreamState{
		Network:     info.Config.Metadata[metaNetwork],
		Incarnation: info.Config.Metadata[metaIncarnation],
		First:       info.State.FirstSeq,
		Last:        info.State.LastSeq,
		Clock:       info.TimeStamp.UnixNano(),
		Keeps:       info.Config.MaxAge,
	}
}

func (s *Store) streamInfo(ctx context.Context, b events.Bucket) (*jetstream.StreamInfo, error) {
	var answer struct {
		Error *jetstream.APIError `json:"error"`
		jetstream.StreamInfo
	}
	if err := s.api(ctx, "STREAM.INFO."+StreamName(b), nil, &answer); err != nil {
		return nil, fmt.Errorf("look at bucket %s: %w", b, err)
	}
	if e := answer.Error; e != nil {
		if e.ErrorCode == jetstream.JSErrCodeStreamNotFound {
			return nil, fmt.Errorf("look at bucket %s: %w", b, errNotThere)
		}
		return nil, fmt.Errorf("look at bucket %s: %w", b, e)
	}
	return &answer.StreamInfo, nil
}

// api calls JetStream to read. Such a request is answered by the leader, never by a
// follower. While nobody can answer it is repeated, until ctx ends.
func (s *Store) api(ctx context.Context, call string, body, answer any) error {
	ctx, cancel := within(ctx)
	defer cancel()
	raw := []byte(nil)
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return err
		}
	}
	wait := newBackOff(0)
	for {
		got, err := s.apiOnce(ctx, call, raw)
		if err == nil {
			return json.Unmarshal(got, answer)
		}
		if errors.Is(err, errDenied) || errors.Is(err, nats.ErrConnectionClosed) || !pause(ctx, wait.NextBackOff()) {
			return err
		}
	}
}

func (s *Store) apiOnce(ctx context.Context, call string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	m := nats.NewMsg("$JS.API." + call)
	m.Data = body
	got, _, err := s.read.request(ctx, m)
	if err != nil {
		return nil, err
	}
	return got.Data, nil
}
