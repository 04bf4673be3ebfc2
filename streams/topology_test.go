package streams_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

var update = flag.Bool("update", false, "write golden files instead of comparing them")

var goldenPath = filepath.Join("..", "testdata", "topology.golden.json")

// TestTopologyGolden: a change of the topology is a change of every store there is, and
// must be seen in review.
func TestTopologyGolden(t *testing.T) {
	got, err := json.MarshalIndent(map[string]any{
		"formatVersion": streams.FormatVersion,
		"r1-file":       streams.Topology(streams.Settings{}),
		"r1-memory":     streams.Topology(streams.Settings{Storage: streams.Memory}),
		"r3-file":       streams.Topology(streams.Settings{Replicas: 3}),
	}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(goldenPath, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(goldenPath)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("topology differs from %s; if that is meant: raise FormatVersion or say how stores move, then go test ./streams -run Golden -update", goldenPath)
	}
}

func TestTopologyHoldsEveryBucketInOrder(t *testing.T) {
	var got []events.Bucket
	for _, c := range streams.Topology(streams.Settings{}) {
		got = append(got, events.Bucket(strings.TrimPrefix(c.Name, "KV_")))
	}
	if !slices.Equal(got, events.Buckets) {
		t.Errorf("topology has %v, want %v", got, events.Buckets)
	}
}

// TestDurableBucketsForgetNothing: no durable stream accepts what could take facts out,
// also not after the server has had its say about the settings.
func TestDurableBucketsForgetNothing(t *testing.T) {
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	js := raw(t, srv)
	for _, b := range durableBuckets {
		c := streamConfig(t, js, b)
		if !c.DenyDelete || !c.DenyPurge || c.AllowRollup || c.AllowMsgTTL || c.AllowMsgSchedules || c.AllowDirect || c.AllowAtomicPublish {
			t.Errorf("bucket %s: %+v", b, c)
		}
		for _, incarnation := range []string{c.Metadata["landfall.incarnation"]} {
			if len(incarnation) != 36 {
				t.Errorf("bucket %s has incarnation %q", b, incarnation)
			}
		}
	}
}

var durableBuckets = []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Audit, events.Checkpoints, events.Fleet}

// TestKeyValueClientOpensEveryBucket: whoever knows NATS can look with its own tools.
func TestKeyValueClientOpensEveryBucket(t *testing.T) {
	srv := openServer(t, testConfig(t))
	st := ensured(t, srv.Connection())
	js := raw(t, srv)
	for _, b := range events.Buckets {
		seq := mustAppend(t, st, message(b, "a.b", 0))
		kv, err := js.KeyValue(t.Context(), string(b))
		if err != nil {
			t.Errorf("bucket %s: %v", b, err)
			continue
		}
		if e, err := kv.Get(t.Context(), "a.b"); err != nil || e.Revision() != seq {
			t.Errorf("bucket %s: %v %v", b, e, err)
		}
	}
}

// TestErasingHeadersAreRefused by the code that says why.
func TestErasingHeadersAreRefused(t *testing.T) {
	st := newStore(t)
	for _, b := range durableBuckets {
		for header, want := range map[string]struct {
			value string
			code  int
		}{
			"Nats-Rollup":   {"all", 10111},
			"Nats-TTL":      {"1s", 10166},
			"Nats-Schedule": {"@at 2100-01-01T00:00:00Z", 10188},
		} {
			m := message(b, "x."+header, 0)
			m.Header[header] = want.value
			_, err := st.Append(t.Context(), m)
			if failed := wantReason(t, err, events.NotAllowed); failed.Code != want.code {
				t.Errorf("%s %s: code %d, want %d", b, header, failed.Code, want.code)
			}
		}
	}
}

// TestMarkerIsStoredAndNothingElse: a KV client's delete adds a message and removes none.
func TestMarkerIsStoredAndNothingElse(t *testing.T) {
	st := newStore(t)
	first := mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
	m := message(events.Transfers, key(1, 1), first)
	m.Header["KV-Operation"] = "PURGE"
	second := mustAppend(t, st, m)
	var got []uint64
	for r, err := range st.History(t.Context(), events.Transfers, streams.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Seq)
	}
	if !slices.Equal(got, []uint64{first, second}) {
		t.Errorf("log holds %v, want both", got)
	}
}

// TestCallerCannotReplaceTheGuard with headers of its own.
func TestCallerCannotReplaceTheGuard(t *testing.T) {
	st := newStore(t)
	mustAppend(t, st, message(events.Transfers, key(1, 1), 0))
	for _, name := range []string{nats.ExpectedLastSubjSeqHdr, nats.ExpectedLastSeqHdr, "nats-expected-last-subject-sequence-subject", "Nats-Expected-Last-Subject-Sequence-Subject"} {
		m := message(events.Transfers, key(1, 2), 0)
		m.Header[name] = "0"
		_, err := st.Append(t.Context(), m)
		wantReason(t, err, events.Conflict)
	}
}

func TestBadKeysAreRefused(t *testing.T) {
	st := newStore(t)
	for _, k := range []string{"", "*", "a.>", "a b", ".a", "a.", "a..b", "a\r\nPUB x 0"} {
		_, err := st.Append(t.Context(), message(events.Sessions, k, 0))
		wantReason(t, err, events.NotAllowed)
	}
	_, err := st.Append(t.Context(), message("nothing", "a", 0))
	wantReason(t, err, events.NotAllowed)
}

// TestStoreOfOthersIsRefused, in one line that says what to do.
func TestStoreOfOthersIsRefused(t *testing.T) {
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	for name, c := range map[string]struct {
		change func(*streams.Config)
		want   string
	}{
		"another network":   {func(c *streams.Config) { c.Network = "other" }, `belongs to network "net", not "other"`},
		"another creator":   {func(c *streams.Config) { c.Creator = "demo" }, "made by `landfall up`, not by `landfall demo`"},
		"another retention": {func(c *streams.Config) { c.Retention = 24 * time.Hour }, "maxAge is 720h0m0s, want 24h0m0s"},
		"another storage":   {func(c *streams.Config) { c.Storage = streams.Memory }, "storage is File, want Memory"},
	} {
		for _, carrier := range []bool{true, false} {
			cfg := srv.Connection()
			cfg.Carrier = carrier
			c.change(&cfg)
			err := connect(t, cfg).Ensure(t.Context())
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, carrier %v: %v, want %q", name, carrier, err, c.want)
			}
		}
	}
	cfg := srv.Connection()
	cfg.Retention, cfg.AnySettings = 24*time.Hour, true
	if err := connect(t, cfg).Ensure(t.Context()); err != nil {
		t.Errorf("a reader without settings: %v", err)
	}
}

func TestDriftIsNamedAndNotMended(t *testing.T) {
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	js := raw(t, srv)
	c := streamConfig(t, js, events.Sessions)
	c.MaxMsgsPerSubject = 5
	if _, err := js.UpdateStream(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	var d *streams.DriftError
	if err := connect(t, srv.Connection()).Ensure(t.Context()); !errors.As(err, &d) || d.Stream != "KV_sessions" || !slices.Equal(d.Diff, []string{"maxMsgsPerSubject is 5, want 64"}) {
		t.Errorf("got %v", err)
	}
	if got := streamConfig(t, js, events.Sessions); got.MaxMsgsPerSubject != 5 {
		t.Error("the stream was changed")
	}
}

// TestOtherFormatIsRefused, and a stream that is not ours at all.
func TestOtherFormatIsRefused(t *testing.T) {
	srv := openServer(t, testConfig(t))
	ensured(t, srv.Connection())
	js := raw(t, srv)
	setMeta := func(meta map[string]string) {
		c := streamConfig(t, js, events.Transfers)
		c.Metadata = meta
		if _, err := js.UpdateStream(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	setMeta(map[string]string{"landfall.incarnation": "x", "landfall.network": "net", "landfall.creator": "up", "landfall.format": "99"})
	if err := connect(t, srv.Connection()).Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "format version 99") {
		t.Errorf("got %v", err)
	}
	setMeta(nil)
	if err := connect(t, srv.Connection()).Ensure(t.Context()); err == nil || !strings.Contains(err.Error(), "not made by Landfall") {
		t.Errorf("got %v", err)
	}
}

// TestOthersWaitForTheCarrier: only the carrier makes streams.
func TestOthersWaitForTheCarrier(t *testing.T) {
	srv := openServer(t, testConfig(t))
	other := srv.Connection()
	other.Carrier = false
	waiting := connect(t, other)
	done := make(chan error, 1)
	go func() { done <- waiting.Ensure(t.Context()) }()
	js := raw(t, srv)
	if _, err := js.Stream(t.Context(), "KV_transfers"); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Fatalf("the stream exists before the carrier made it: %v", err)
	}
	ensured(t, srv.Connection())
	if err := receive(t, "Ensure", done); err != nil {
		t.Error(err)
	}
}

// TestManyMakeTheStreamsAtOnce: the hosts of an external store start in any order, each of
// them makes what is missing, and every stream is made once.
func TestManyMakeTheStreamsAtOnce(t *testing.T) {
	c, err := embedded.Cluster(t.Context(), 3, t.TempDir(), testConfig(t).Logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	var made madeStreams
	stores := make([]*streams.Store, 6)
	for i := range stores {
		cfg := c.Connection(i % 3)
		cfg.Logger = slog.New(&made)
		stores[i] = connect(t, cfg)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for _, st := range stores {
		group.Go(func() error { return st.Ensure(ctx) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	if want := int64(len(streams.Topology(streams.Settings{}))); made.n.Load() != want {
		t.Errorf("%d streams were made, want %d", made.n.Load(), want)
	}
}

// madeStreams is a log that counts the streams that were made.
type madeStreams struct{ n atomic.Int64 }

func (*madeStreams) Enabled(context.Context, slog.Level) bool { return true }
func (m *madeStreams) WithAttrs([]slog.Attr) slog.Handler     { return m }
func (m *madeStreams) WithGroup(string) slog.Handler          { return m }
func (m *madeStreams) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "stream created" {
		m.n.Add(1)
	}
	return nil
}
