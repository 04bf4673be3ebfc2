package embedded

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams"
)

// What a sync does to the files of a stream; whether that suffices is for the power cuts to
// show (powercut_test.go).

// streamDir is a store with the files of one stream, as the server makes them.
func streamDir(t *testing.T) (store, dir string) {
	t.Helper()
	store = t.TempDir()
	dir = filepath.Join(streamsDir(store), streams.StreamName(events.Transfers))
	if err := os.MkdirAll(filepath.Join(dir, blocksDir), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{metaFile, checksumFile, "msgs/1.blk", "msgs/index.db"} {
		write(t, filepath.Join(dir, name))
	}
	return store, dir
}

func write(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantKnown syncs and then looks at what is known: names of blocks, and the newest.
func wantKnown(t *testing.T, f *streamFiles, newest string, blocks ...string) {
	t.Helper()
	if err := f.sync(); err != nil {
		t.Fatal(err)
	}
	if got := filepath.Base(f.newest.Name()); got != newest {
		t.Errorf("the newest block is %s, want %s", got, newest)
	}
	if len(f.blocks.files) != len(blocks) {
		t.Errorf("knows %v, want %v", f.blocks.files, blocks)
	}
	for _, name := range blocks {
		info, err := os.Stat(filepath.Join(f.dir, blocksDir, name))
		if err != nil {
			t.Fatal(err)
		}
		if f.blocks.files[name] != inodeOf(info) {
			t.Errorf("%s was another file when it was synced", name)
		}
	}
}

// TestSyncFollowsTheFiles: blocks are added, removed and replaced behind its back.
func TestSyncFollowsTheFiles(t *testing.T) {
	_, dir := streamDir(t)
	msgs := filepath.Join(dir, blocksDir)
	f := &streamFiles{dir: dir}
	t.Cleanup(f.close)
	wantKnown(t, f, "1.blk", "1.blk")

	write(t, filepath.Join(msgs, "2.blk"))
	wantKnown(t, f, "2.blk", "1.blk", "2.blk")
	write(t, filepath.Join(msgs, "10.blk")) // not behind 2 by name
	wantKnown(t, f, "10.blk", "1.blk", "2.blk", "10.blk")

	write(t, filepath.Join(msgs, "2.new")) // a compaction
	if err := os.Rename(filepath.Join(msgs, "2.new"), filepath.Join(msgs, "2.blk")); err != nil {
		t.Fatal(err)
	}
	wantKnown(t, f, "10.blk", "1.blk", "2.blk", "10.blk")

	if err := os.Remove(filepath.Join(msgs, "1.blk")); err != nil { // retention
		t.Fatal(err)
	}
	wantKnown(t, f, "10.blk", "2.blk", "10.blk")

	if err := errors.Join(os.Rename(msgs, dir+"/__msgs__"), os.Mkdir(msgs, 0o700)); err != nil { // a purge
		t.Fatal(err)
	}
	write(t, filepath.Join(msgs, "11.blk"))
	wantKnown(t, f, "11.blk", "11.blk")
}

// TestSyncOfNothing: a stream without a block, and no stream at all.
func TestSyncOfNothing(t *testing.T) {
	store, dir := streamDir(t)
	if err := os.Remove(filepath.Join(dir, "msgs/1.blk")); err != nil {
		t.Fatal(err)
	}
	d := newDisk(store, slog.New(slog.DiscardHandler))
	t.Cleanup(d.close)
	if err := d.sync(t.Context(), events.Transfers); err != nil {
		t.Error(err)
	}
	if err := d.sync(t.Context(), events.Sessions); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a stream that is not there: %v", err)
	}
	if err := d.sync(t.Context(), "../../secrets"); err == nil || !strings.Contains(err.Error(), "no bucket") {
		t.Errorf("a bucket that is none: %v", err)
	}
	if err := d.settle(t.Context()); err != nil {
		t.Errorf("a store in which not every stream is there: %v", err)
	}
}

// TestListingTrustsNoFreshTime: names may change twice within one tick of the filesystem's
// clock. A directory that has been as it is for long is not listed again.
func TestListingTrustsNoFreshTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed time.Time // the time that the directory has before and after
		seen    bool
	}{
		{"now", time.Now(), true},
		{"an hour ago", time.Now().Add(-time.Hour), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, dir := streamDir(t)
			msgs := filepath.Join(dir, blocksDir)
			look := func(l listing) (listing, bool) {
				if err := os.Chtimes(msgs, c.changed, c.changed); err != nil {
					t.Fatal(err)
				}
				now, changed, err := l.look(msgs, func(name string) bool { return strings.HasSuffix(name, blockSuffix) })
				if err != nil {
					t.Fatal(err)
				}
				return now, changed
			}
			before, _ := look(listing{})
			write(t, filepath.Join(msgs, "2.blk"))
			if now, changed := look(before); changed != c.seen {
				t.Errorf("the second block is seen: %v; %v", changed, now.files)
			}
		})
	}
}

// TestFailedSyncIsTheLast: after it nobody knows what the disk has, whatever the next one says.
func TestFailedSyncIsTheLast(t *testing.T) {
	store, _ := streamDir(t)
	d := newDisk(store, slog.New(slog.DiscardHandler))
	t.Cleanup(d.close)
	if err := d.sync(t.Context(), events.Transfers); err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe() // which cannot be synced
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	files := &d.buckets[events.Transfers].files
	good := files.newest
	files.newest = r
	if err := d.sync(t.Context(), events.Transfers); !errors.Is(err, errSyncFailed) {
		t.Fatalf("a file that cannot be synced: %v", err)
	}
	files.newest = good
	for _, b := range []events.Bucket{events.Transfers, events.Sessions} {
		if err := d.sync(t.Context(), b); !errors.Is(err, errSyncFailed) {
			t.Errorf("%s, after a sync has failed: %v", b, err)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestSyncIsShared: whoever asks while the disk works is answered by its next turn, together.
func TestSyncIsShared(t *testing.T) {
	store, dir := streamDir(t)
	d := newDisk(store, slog.New(slog.DiscardHandler))
	t.Cleanup(d.close)
	b := &bucketDisk{files: streamFiles{dir: dir}, syncing: true} // by somebody else, until run is called
	d.buckets[events.Transfers] = b
	groups := map[*group]int{}
	for range 100 {
		g, err := d.join(events.Transfers)
		if err != nil {
			t.Fatal(err)
		}
		groups[g]++
	}
	if len(groups) != 1 {
		t.Errorf("100 who wait make %d groups", len(groups))
	}
	d.run(b)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := d.sync(t.Context(), events.Transfers); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for g := range groups {
		<-g.done
	}
}
