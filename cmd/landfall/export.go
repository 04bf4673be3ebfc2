package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// exportBuckets are what a network is made of; heartbeats and what expires are not history.
var exportBuckets = []events.Bucket{events.Transfers, events.Sessions, events.Control, events.Audit, events.Checkpoints}

// exportFlags are the command line of export.
type exportFlags struct {
	storeFlags
	heartbeats, force, json bool
}

func newExport() *cobra.Command {
	var f exportFlags
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Write the whole log into one compressed file, which tail and replay read like a store",
		Long: `Writes every fact with its headers, sequence and stored time into one file, as the log stands
when the command begins: transfers, sessions, control, audit and checkpoints, and with
--heartbeats also fleet. The file ends with a checksum; a copy that is cut off or changed is
refused when it is read. What retention removes later stays in it:

  landfall tail --from-file FILE      landfall replay token ID --from-file FILE

The file is written beside its name first, so that an interrupted export leaves no file of
that name. It holds player names and signatures, no secrets.

Exit status: 0 done, 1 failed, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall export november.landfall
  landfall export --config network.yml --heartbeats before-upgrade.landfall`,
		Args: exactly(1, "the name of the file to write"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], c.OutOrStdout())
		},
	}
	f.add(c)
	c.Flags().BoolVar(&f.heartbeats, "heartbeats", false, "also those heartbeats that are still held")
	c.Flags().BoolVar(&f.force, "force", false, "replace a file of that name")
	c.Flags().BoolVar(&f.json, "json", false, "say what was written as one JSON object")
	return c
}

func (f *exportFlags) run(ctx context.Context, path string, stdout io.Writer) (err error) {
	if _, err := os.Stat(path); !f.force && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("export: %s is there already: name another file, or give --force", path)
	}
	src, err := f.find(os.Getenv)
	if err != nil {
		return err
	}
	log, err := src.read(ctx)
	if err != nil {
		return err
	}
	buckets := exportBuckets
	if f.heartbeats {
		buckets = append(buckets[:len(buckets):len(buckets)], events.Fleet)
	}
	head, records, err := exportTo(ctx, path, log, buckets)
	if err = errors.Join(err, log.Close()); err != nil {
		return err
	}
	if f.json {
		return json.NewEncoder(stdout).Encode(map[string]any{"file": path, "records": records, "head": head})
	}
	for _, b := range head.Buckets {
		fmt.Fprintf(stdout, "%-12s sequences %d to %d\n", b.Bucket, b.First, b.Last)
	}
	_, err = fmt.Fprintf(stdout, "%s in %s\n", plural(records, "record"), path)
	return err
}

// exportTo writes the file under another name, and gives it its own when it is whole.
func exportTo(ctx context.Context, path string, log history, buckets []events.Bucket) (exportHead, uint64, error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".landfall-export-*")
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("export: there is no folder %s: make it first", filepath.Dir(path))
	}
	if err != nil {
		return exportHead{}, 0, err
	}
	defer os.Remove(file.Name()) //nolint:errcheck // gone already when all went well
	head, records, err := exportLog(ctx, file, log, buckets)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return head, records, err
	}
	return head, records, os.Rename(file.Name(), path)
}

// exportLog writes buckets as they stand now.
func exportLog(ctx context.Context, w io.Writer, log history, buckets []events.Bucket) (exportHead, uint64, error) {
	head := exportHead{Format: exportFormat, Version: buildInfo().Version}
	for _, b := range buckets {
		s, err := log.Info(ctx, b)
		if err != nil {
			return head, 0, err
		}
		head.Buckets = append(head.Buckets, exportBucket{Bucket: b, Incarnation: s.Incarnation, First: s.First, Last: s.Last, Clock: s.Clock})
	}
	x, err := newExportWriter(w, head)
	if err != nil {
		return head, 0, err
	}
	for _, b := range head.Buckets {
		if b.Last == 0 {
			continue // an empty stream; 0 would mean "no bound"
		}
		for rec, err := range log.History(ctx, b.Bucket, streams.Range{UpTo: b.Last}) {
			if err == nil {
				err = x.record(rec)
			}
			if err != nil {
				return head, x.records, err
			}
		}
	}
	return head, x.records, x.close()
}
