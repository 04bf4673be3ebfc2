package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/cmd/landfall/network"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
	"github.com/landfall/landfall/streams/embedded"
)

// importFlags are the command line of import.
type importFlags struct {
	config     string
	unverified bool
}

func newImport() *cobra.Command {
	var f importFlags
	c := &cobra.Command{
		Use:   "import FILE --config network.yml",
		Short: "Make the store of a network out of an exported file",
		Long: `Makes the directory that store.dir of network.yml names out of a file that export wrote: every
fact at its own sequence, byte for byte, so that tail, replay, state and verify say of it what
they said of the store it came from. Stored times are those of the import, and retention counts
from there. Run it on the carrier, before "landfall up".

The file is verified first, as "landfall verify --from-file" does; one with a finding is refused.
The directory must not exist yet: nothing is ever written over a store. An import that fails
leaves no directory.

Exit status: 0 done, 1 failed, 2 the file does not verify, 64 wrong command line, 130 interrupted.`,
		Example: `  landfall import november.landfall --config network.yml`,
		Args:    exactly(1, "the file to import"),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), args[0], c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&f.config, "config", "network.yml", "the network's file, which names the directory and the secret")
	c.Flags().BoolVar(&f.unverified, "accept-unverified", false, "also take facts whose key is not at hand")
	return c
}

func (f *importFlags) run(ctx context.Context, path string, stdout io.Writer) error {
	n, err := network.Load(f.config)
	if err != nil {
		return err
	}
	if n.Store.Mode != "embedded" {
		return &network.Error{File: f.config, Key: "store.mode", Msg: "is external: import makes the directory of an embedded store"}
	}
	t, err := trustOf(n, os.Getenv)
	if err != nil {
		return err
	}
	x, err := openExport(path)
	if err != nil {
		return err
	}
	if err := f.verified(ctx, x, t); err != nil {
		return err
	}
	dir := n.File(n.Store.Dir)
	if err := importInto(ctx, dir, n, x); err != nil {
		return err
	}
	for _, b := range x.head.Buckets {
		fmt.Fprintf(stdout, "%-12s sequences %d to %d\n", b.Bucket, b.First, b.Last)
	}
	_, err = fmt.Fprintf(stdout, "imported into %s\n", dir)
	return err
}

// verified refuses a file in which something is wrong, or not known to be right.
func (f *importFlags) verified(ctx context.Context, x *exported, t trust) error {
	o, err := newOpener(t)
	if err == nil {
		err = o.know(ctx, x)
	}
	if err != nil {
		return err
	}
	var said bytes.Buffer
	err = verify(ctx, x, o, nil, printer{w: &said})
	switch statusOf(err) {
	case statusOK:
		return nil
	case statusIncomplete:
		if f.unverified {
			return nil
		}
		return errors.New("import: signatures cannot be checked without the network's secret: set it as network.yml says, or give --accept-unverified")
	case statusInconsistent:
		return exitWith(statusInconsistent, fmt.Errorf("import: this is not the log that was written; `landfall verify --from-file %s` tells what is wrong", x.path))
	}
	return err
}

// importInto makes the directory under another name, and gives it its own when it is whole.
func importInto(ctx context.Context, dir string, n *network.Network, x *exported) (err error) {
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("import: %s is there already: a store is never written over; name another store.dir, or move it away", dir)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".landfall-import-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made) //nolint:errcheck // gone already when all went well
	server, err := embedded.Open(ctx, embedded.Config{
		Dir: made, Network: n.Network.Name, Creator: createdByUp, Settings: settingsOf(n), MaxBytes: n.Store.MaxBytes,
		Durability: streams.Lazy, // one sync at the end
	})
	if err != nil {
		return err
	}
	err = fillStore(ctx, server, x)
	if err = errors.Join(err, server.Close()); err != nil {
		return err
	}
	if err := syncTree(made); err != nil {
		return err
	}
	return os.Rename(made, dir)
}

// syncTree makes the disk hold what was written into a directory.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		file, err := os.Open(path) //nolint:gosec // just made
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}

func fillStore(ctx context.Context, server *embedded.Server, x *exported) error {
	st, err := streams.Connect(ctx, server.Connection())
	if err != nil {
		return err
	}
	for _, b := range x.head.Buckets {
		if b.Bucket == events.Fleet {
			continue // who beats, beats anew
		}
		state := events.StreamState{First: b.First, Last: b.Last}
		if err := st.Import(ctx, b.Bucket, state, x.History(ctx, b.Bucket, streams.Range{})); err != nil {
			return errors.Join(err, st.Close())
		}
	}
	return errors.Join(st.Ensure(ctx), st.Close())
}
