package streamtest

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/landfall/landfall/events"
)

// Keyring signs and verifies with a secret that every test shares.
func Keyring() *events.Keyring {
	key, err := events.NewKey(bytes.Repeat([]byte("landfall"), events.MinSecret/8))
	if err != nil {
		panic(err)
	}
	return events.NewKeyring(key)
}

var keyring = Keyring()

// NewID makes an id of any kind, unique and of version 7.
func NewID[I ~[16]byte]() I { return I(uuid.Must(uuid.NewV7())) }

// Source is a host in a role, in the one life that its name gives it.
func Source(kind events.SourceKind, id events.HostID) events.Source {
	return events.Source{Kind: kind, ID: id, Incarnation: events.Incarnation(uuid.NewSHA1(uuid.NameSpaceOID, []byte(id)))}
}

// Fact seals f with a new event id, in the name of a host that may write it: the one that
// a claim, a session or a heartbeat names, else edge e1 or operator op.
func Fact(tb testing.TB, key string, prev uint64, f events.Fact) events.Message {
	tb.Helper()
	return FactBy(tb, writerOf(f), key, prev, f)
}

// FactBy seals f in the name of source.
func FactBy(tb testing.TB, source events.Source, key string, prev uint64, f events.Fact) events.Message {
	tb.Helper()
	return Seal(tb, events.Envelope{ID: NewID[events.EventID](), Source: source, Time: time.Now(), Key: key, Prev: prev}, f)
}

// Reseal is the same fact (the same event id) behind another guard, as a retry sends it.
func Reseal(tb testing.TB, m events.Message, prev uint64) events.Message {
	tb.Helper()
	e, refusal := events.Open(keyring, events.Record{Bucket: m.Bucket, Key: m.Key, Header: m.Header, Body: m.Body})
	if refusal != nil {
		tb.Fatalf("open %s to seal it again: %v", m.Key, refusal)
	}
	e.Prev = prev
	return Seal(tb, e.Envelope, e.Fact)
}

// Seal seals a fact in an envelope that the caller filled.
func Seal(tb testing.TB, e events.Envelope, f events.Fact) events.Message {
	tb.Helper()
	m, err := events.Seal(keyring, e, f)
	if err != nil {
		tb.Fatalf("seal %s: %v", e.Key, err)
	}
	return m
}

func writerOf(f events.Fact) events.Source {
	switch f := f.(type) {
	case *events.KillSet, *events.DrainSet, *events.PauseSet, *events.EvacuateSet, *events.ConfigSet, *events.RebuildSet, *events.TokenSet:
		return Source(events.SourceOperator, "op")
	case *events.BackendBeat:
		return events.Source{Kind: events.SourceBackend, ID: f.Server, Incarnation: f.Incarnation}
	case *events.InstanceBeat:
		return events.Source{Kind: events.SourceBackend, ID: f.Placement, Incarnation: f.Incarnation}
	case *events.ProxyBeat:
		return events.Source{Kind: events.SourceEdge, ID: f.Proxy, Incarnation: f.Incarnation}
	case *events.Claimed:
		return events.Source{Kind: events.SourceEdge, ID: f.Dispatcher, Incarnation: f.Incarnation}
	case *events.SessionOpened:
		return events.Source{Kind: events.SourceEdge, ID: f.Session.Holder, Incarnation: f.Session.HolderIncarnation}
	default:
		return Source(events.SourceEdge, "e1")
	}
}
