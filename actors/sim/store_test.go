package sim_test

import (
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
	"github.com/landfall/landfall/streams/streamtest/r1"
)

// store is the log and the bus of a rig, which a test can break.
type store interface {
	// Client is the connection of one host; the name is its id, and behind a dot its life.
	Client(name string) conn
	Records(b events.Bucket) []events.Record
	Outage()
	Restore()
	DropRequest(match func(subject string) bool, n int)
	LoseAnswer(match func(subject string) bool, n int)
	Close()
}

// conn is the connection of one host, with faults that strike this host alone.
type conn interface {
	actors.Log
	actors.Bus
	Stop()
	Resume()
	Cut()
	Heal()
	LoseNextAck(n int)
	DelayAppend(d time.Duration)
	FailAppend(reason events.AppendReason, n int)
	Close()
}

// opener makes a store, inside a bubble.
type opener func(t *testing.T) store

// inMemory is a store in memory.
func inMemory(options ...streamtest.Option) opener {
	return func(*testing.T) store { return memory{streamtest.NewMemory(options...)} }
}

type memory struct{ *streamtest.Memory }

func (m memory) Client(name string) conn { return memoryConn{m.Memory.Client(name)} }
func (memory) Close()                    {}

type memoryConn struct{ *streamtest.Client }

func (memoryConn) Close() {}

// onR1 is a real store of one node, for the hosts of the chaos. Call it outside of the bubble.
func onR1(t *testing.T, latency time.Duration) opener {
	t.Helper()
	dir := t.TempDir()
	roles := map[events.HostID]r1.Role{"operator": r1.Operator, "tester": r1.Operator}
	for _, id := range chaosEdges {
		roles[id] = r1.Dispatcher
	}
	for _, id := range chaosServers {
		roles[id] = r1.Backend
	}
	r1.ForgetTimers()
	t.Cleanup(r1.ForgetTimers)
	return func(t *testing.T) store {
		t.Helper()
		return jetStream{r1.Open(t, dir, latency, roles)}
	}
}

type jetStream struct{ *r1.Network }

func (s jetStream) Client(name string) conn { return s.Network.Client(name) }
