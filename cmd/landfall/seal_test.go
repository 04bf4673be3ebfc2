package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// TestAStoreIsSealedAndVerified: a sealer at work on a real store, what its host remembers,
// and what verify says of store and export.
func TestAStoreIsSealedAndVerified(t *testing.T) {
	c := newCarrier(t, unused(t))
	story, _ := tapeOf(t, "completed")
	for _, r := range story.records[events.Transfers] {
		c.append(t, r)
	}
	path := filepath.Join(t.TempDir(), "hosts", "e1", checkpointFile)
	kept := make(chan events.Checkpoint, 8)
	s, err := actors.NewSealer(actors.SealerConfig{
		Identity: actors.Identity{Source: streamtest.Source(events.SourceEdge, "e1"), Keys: streamtest.Keyring(), Now: time.Now, NewID: newID},
		Log:      c.store, Records: records{c.store}, Logger: slog.New(slog.DiscardHandler), Facts: 4, Every: time.Hour, Look: 10 * time.Millisecond,
		Remember: func(x events.Checkpoint) {
			if err := keepCheckpoint(path, x); err != nil {
				t.Error(err)
			}
			kept <- x
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	first := <-kept
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if got, err := readCheckpoint(path); err != nil || got != first || first.To != 4 {
		t.Errorf("kept %+v, %v, want %+v", got, err, first)
	}
	t.Setenv(envSecret, encoded(realSecret)) // which has not signed them
	file := filepath.Join(t.TempDir(), "log.landfall")
	if o := typed(t, "export", file, "--store", c.cfg.Dir); o.status != statusOK {
		t.Fatalf("export: %+v", o)
	}
	for _, where := range [][]string{{"--store", c.cfg.Dir}, {"--from-file", file}} {
		o := typed(t, append([]string{"verify", "--remembered", path}, where...)...)
		if o.status != statusIncomplete || !strings.Contains(o.stdout, "1 checkpoint, sealed up to transfers 4\nnothing is wrong") {
			t.Errorf("%s: %+v", where[0], o)
		}
	}
}

// TestASealerOfAHost remembers in the host's own directory, unless the store forgets.
func TestASealerOfAHost(t *testing.T) {
	c := newCarrier(t, "")
	for storage, want := range map[string]bool{"file": true, "memory": false} {
		dir := t.TempDir()
		n, err := network.Parse(filepath.Join(dir, "network.yml"), []byte("store: { storage: "+storage+", dir: data }"))
		if err != nil {
			t.Fatal(err)
		}
		h := &host{net: n, log: slog.New(slog.DiscardHandler), keys: streamtest.Keyring()}
		path := filepath.Join(h.stateDir("e1"), checkpointFile)
		if err := keepCheckpoint(path, events.Checkpoint{Number: 7, Hash: "ff"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.sealer(c.store, "e1", events.KindEdge, func(events.Rejected) {}); err != nil {
			t.Errorf("%s: %v", storage, err)
		}
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := h.sealer(c.store, "e1", events.KindEdge, func(events.Rejected) {}); (err != nil) != want {
			t.Errorf("%s, with a damaged file: %v", storage, err)
		}
	}
}
