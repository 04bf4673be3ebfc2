package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// checkpointFile is where a host keeps the newest checkpoint that it has seen, so that a log
// which has lost its end is known again.
const checkpointFile = "checkpoint.json"

// records reads a store as a sealer wants it.
type records struct{ *streams.Store }

// Records implements actors.Records.
func (r records) Records(ctx context.Context, b events.Bucket, after, upTo uint64) iter.Seq2[events.Record, error] {
	return r.History(ctx, b, streams.Range{After: after, UpTo: upTo})
}

// sealer makes the one of this process, which dispatches under that id.
func (h *host) sealer(st *streams.Store, id events.HostID, kind events.SessionKind, report func(events.Rejected)) (*actors.Sealer, error) {
	c := actors.SealerConfig{
		Identity: h.identity(events.SourceKind(kind), id), Log: st, Records: records{st}, Logger: h.log.With("sealer", id),
		Lost: func(detail string) {
			report(events.Rejected{Code: events.LogChanged, Subject: events.Checkpoints.Subject(">"), Detail: detail})
		},
	}
	if h.net.Store.Storage == string(streams.Memory) {
		return actors.NewSealer(c) // which forgets at each start
	}
	path := filepath.Join(h.stateDir(string(id)), checkpointFile)
	var err error
	if c.Remembered, err = readCheckpoint(path); err != nil {
		return nil, err
	}
	c.Remember = func(x events.Checkpoint) {
		if err := keepCheckpoint(path, x); err != nil {
			h.log.Warn("the newest checkpoint is not remembered", "error", err)
		}
	}
	return actors.NewSealer(c)
}

// stateDir is where a host of this process keeps what it must know after a restart.
func (h *host) stateDir(id string) string {
	return filepath.Join(h.net.File(h.net.Store.Dir)+"-hosts", id)
}

// readCheckpoint gives what was kept, zero when nothing was.
func readCheckpoint(path string) (c events.Checkpoint, err error) {
	raw, err := os.ReadFile(path) //nolint:gosec // of this host's own directory
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(raw, &c); err != nil || c.Number == 0 {
		return events.Checkpoint{}, fmt.Errorf("%s: not a checkpoint (%w): if it was damaged, run `landfall verify`, then remove it", path, err)
	}
	return c, nil
}

// keepCheckpoint replaces the file as a whole.
func keepCheckpoint(path string, c events.Checkpoint) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return embedded.WriteJSON(path, c)
}
