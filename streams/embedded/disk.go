package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// disk makes durable what a lazy server has acknowledged: it syncs the server's files from
// outside, which is as good, since a sync is of the file and not of who wrote it. One sync
// answers for all who asked before it began. A sync that failed is never repeated: the
// system may have dropped what it could not write, and would call the next one a success.
// Safe for concurrent use.
type disk struct {
	dir string // of all streams
	log *slog.Logger

	running sync.WaitGroup
	mu      sync.Mutex
	buckets map[events.Bucket]*bucketDisk
	failed  error
}

// bucketDisk is one stream's directory, and who waits for it.
type bucketDisk struct {
	files   streamFiles
	syncing bool
	next    *group // who waits for the next sync; nil: nobody
}

// group is answered by one sync.
type group struct {
	done chan struct{}
	err  error
}

func newDisk(store string, log *slog.Logger) *disk {
	return &disk{dir: streamsDir(store), log: log, buckets: map[events.Bucket]*bucketDisk{}}
}

// known tells that there is such a bucket: the name becomes a path.
func known(b events.Bucket) bool { return slices.Contains(events.Buckets, b) }

// streamsDir is where the server keeps the streams of its one account.
func streamsDir(store string) string { return filepath.Join(store, "jetstream", "$G", "streams") }

// sync returns once everything that the bucket's stream had acknowledged before is durable.
func (d *disk) sync(ctx context.Context, bucket events.Bucket) error {
	if !known(bucket) {
		return fmt.Errorf("there is no bucket %q", bucket)
	}
	g, err := d.join(bucket)
	if err != nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *disk) join(bucket events.Bucket) (*group, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return nil, d.failed
	}
	b := d.buckets[bucket]
	if b == nil {
		b = &bucketDisk{files: streamFiles{dir: filepath.Join(d.dir, streams.StreamName(bucket))}}
		d.buckets[bucket] = b
	}
	if b.next == nil {
		b.next = &group{done: make(chan struct{})}
	}
	if !b.syncing {
		b.syncing = true
		d.running.Go(func() { d.run(b) })
	}
	return b.next, nil
}

// run syncs as long as somebody waits.
func (d *disk) run(b *bucketDisk) {
	for {
		d.mu.Lock()
		g := b.next
		b.next, b.syncing = nil, g != nil
		d.mu.Unlock()
		if g == nil {
			return
		}
		g.err = d.syncOnce(b)
		close(g.done)
	}
}

func (d *disk) syncOnce(b *bucketDisk) error {
	d.mu.Lock()
	err := d.failed
	d.mu.Unlock()
	if err != nil {
		return err
	}
	if err = b.files.sync(); !errors.Is(err, errSyncFailed) {
		return err // nil, or nothing was tried that could not be tried again
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = fmt.Errorf("the disk of the store failed, nothing is acknowledged any more: %w", err)
		d.log.Error("the disk of the store failed: no fact is acknowledged any more; look after the disk, then start this host again", "error", err)
	}
	return d.failed
}

// settle makes durable whatever an earlier life of the store may have left in memory, before
// this one acknowledges anything on top of it.
func (d *disk) settle(ctx context.Context) error {
	for _, b := range events.Buckets {
		if err := d.sync(ctx, b); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sync bucket %s: %w", b, err)
		}
	}
	return nil
}

// close waits for what goes on and lets the files go.
func (d *disk) close() {
	d.running.Wait()
	for _, b := range d.buckets {
		b.files.close()
	}
}
