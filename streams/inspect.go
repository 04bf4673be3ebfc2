package streams

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/landfall/landfall/events"
)

// Inspection is a store as somebody sees it who looks for what is wrong with it.
type Inspection struct {
	Server  ServerInfo   // the one this connection leads to: its name and version alone
	Guarded bool         // it wants to know who connects
	Clock   time.Time    // of the store; zero when no stream told
	Asked   time.Time    // by our clock, half way between question and answer
	Streams []StreamLook // one for each bucket, in the order of the topology
}

// StreamLook is one bucket's stream beside what it should be.
type StreamLook struct {
	Bucket  events.Bucket
	Missing bool
	Foreign string   // whose it is, when it is not this network's; "" when it is ours
	Drift   []string // "maxAge is 24h0m0s, want 720h0m0s"; empty when the settings are not compared
	// DedupeShort is the window in which the store knows an id again, when it is shorter than it must be.
	DedupeShort time.Duration

	First, Last     uint64
	Begin, End      time.Time // stored times of the first and the last record
	Records, Bytes  uint64
	MaxBytes        int64 // 0: bounded by the store alone
	Want            int   // copies it should have; 0: not compared
	Clustered       bool
	Leader          string
	Copies          []CopyLook // beside the leader's
	Consumers       []ConsumerLook
	ConsumersHidden bool // this login may not list them
}

// CopyLook is a copy of a stream on another server than the leader.
type CopyLook struct {
	Server           string
	Current, Offline bool
	Lag              uint64 // operations behind the leader
}

// ConsumerLook is somebody who reads a stream.
type ConsumerLook struct {
	Name        string
	Pending     uint64 // records it has not been given yet
	Redelivered int    // records it was given again and has not acknowledged
	Waiting     int    // pulls that wait for records: somebody is there
}

// Inspect looks at everything and changes nothing. network is whose store it should be, "" for
// anybody's; want is how it should be set up, nil when that is not known. It fails when the
// store does not answer.
func (s *Store) Inspect(ctx context.Context, network string, want *Settings) (Inspection, error) {
	out := Inspection{
		Server:  ServerInfo{Name: s.read.nc.ConnectedServerName(), Version: s.read.nc.ConnectedServerVersion()},
		Guarded: s.Guarded(),
	}
	for _, r := range topology {
		began := time.Now()
		look, clock, err := s.look(ctx, r, network, want)
		if err != nil {
			return out, err
		}
		if !clock.IsZero() {
			out.Clock, out.Asked = clock, began.Add(time.Since(began)/2)
		}
		if err := s.lookAtConsumers(ctx, &look); err != nil {
			return out, err
		}
		out.Streams = append(out.Streams, look)
	}
	return out, nil
}

func (s *Store) look(ctx context.Context, r row, network string, want *Settings) (StreamLook, time.Time, error) {
	info, err := s.streamInfo(ctx, r.bucket)
	if errors.Is(err, errNotThere) {
		return StreamLook{Bucket: r.bucket, Missing: true}, time.Time{}, nil
	}
	if err != nil {
		return StreamLook{}, time.Time{}, err
	}
	out := StreamLook{
		Bucket: r.bucket, First: info.State.FirstSeq, Last: info.State.LastSeq, Begin: info.State.FirstTime, End: info.State.LastTime,
		Records: info.State.Msgs, Bytes: info.State.Bytes, MaxBytes: max(info.Config.MaxBytes, 0),
	}
	if err := (identity{network: network}).check(info.Config.Name, info.Config.Metadata); err != nil {
		out.Foreign = err.Error()
	}
	if info.Config.Duplicates < dedupe {
		out.DedupeShort = info.Config.Duplicates
	}
	if want != nil {
		as := r.config(want.withDefaults())
		out.Drift, out.Want = drift(as, info.Config), as.Replicas
	}
	if info.Cluster != nil {
		out.takeCluster(info.Cluster)
	}
	return out, info.TimeStamp, nil
}

// takeCluster: a server alone also names itself as the leader of a cluster without a name.
func (l *StreamLook) takeCluster(c *jetstream.ClusterInfo) {
	l.Clustered, l.Leader = c.Name != "", c.Leader
	for _, p := range c.Replicas {
		l.Copies = append(l.Copies, CopyLook{Server: p.Name, Current: p.Current, Offline: p.Offline, Lag: p.Lag})
	}
}

// lookAtConsumers lists who reads a stream, as far as this login may know.
func (s *Store) lookAtConsumers(ctx context.Context, l *StreamLook) error {
	if l.Missing {
		return nil
	}
	for {
		var answer struct {
			Error     *jetstream.APIError       `json:"error"`
			Total     int                       `json:"total"`
			Consumers []*jetstream.ConsumerInfo `json:"consumers"`
		}
		err := s.api(ctx, "CONSUMER.LIST."+StreamName(l.Bucket), map[string]int{"offset": len(l.Consumers)}, &answer)
		switch {
		case errors.Is(err, errDenied):
			l.ConsumersHidden = true
			return nil
		case err != nil:
			return fmt.Errorf("list who reads %s: %w", l.Bucket, err)
		case answer.Error != nil:
			return fmt.Errorf("list who reads %s: %w", l.Bucket, answer.Error)
		}
		for _, c := range answer.Consumers {
			l.Consumers = append(l.Consumers, ConsumerLook{Name: c.Name, Pending: c.NumPending, Redelivered: c.NumRedelivered, Waiting: c.NumWaiting})
		}
		if len(answer.Consumers) == 0 || len(l.Consumers) >= answer.Total {
			return nil
		}
	}
}

// ReadsAs is the beginning of the names of the consumers by which a host reads.
func ReadsAs(role Role, id events.HostID) string {
	return "landfall-" + string(role) + "-" + string(id) + "-"
}
