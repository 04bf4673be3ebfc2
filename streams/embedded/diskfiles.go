package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// streamFiles are the files of one stream. A message is written at the end of the newest
// block, msgs/<n>.blk, before it is acknowledged. A full block is followed by a new file and
// never written again, but it may be removed (retention) or replaced as a whole
// (compaction). What the stream is stands in meta.inf and meta.sum. The server can make
// everything else again from these.
type streamFiles struct {
	dir    string
	meta   listing
	blocks listing
	newest *os.File // the block that is written now; nil: none is known
}

const (
	metaFile     = "meta.inf"
	checksumFile = "meta.sum"
	blocksDir    = "msgs"
	blockSuffix  = ".blk"
)

// maxLooks bounds how often files may change their names under one sync.
const maxLooks = 100

// sync makes durable what has been written so far. It ends once no name has changed since it
// began: what was written before is then in a file that has been synced. It fails with
// fs.ErrNotExist when there is no such stream.
func (f *streamFiles) sync() error {
	var err error
	for range maxLooks {
		var changed bool
		if changed, err = f.catchUp(); errors.Is(err, fs.ErrNotExist) {
			continue // it was replaced while we looked, or there is none
		}
		if err == nil {
			err = f.syncNewest()
		}
		if err != nil || !changed {
			return err
		}
	}
	if err == nil {
		err = fmt.Errorf("%s: its files are replaced all the time", f.dir)
	}
	return err
}

// catchUp syncs files and names that are new since the last time.
func (f *streamFiles) catchUp() (changed bool, err error) {
	meta, newMeta, err := f.meta.look(f.dir, func(name string) bool { return name == metaFile || name == checksumFile })
	if err != nil {
		return false, err
	}
	blocks, newBlocks, err := f.blocks.look(filepath.Join(f.dir, blocksDir), func(name string) bool { return strings.HasSuffix(name, blockSuffix) })
	if err != nil {
		return false, err
	}
	if newMeta {
		if err := f.adoptMeta(meta); err != nil {
			return false, err
		}
	}
	if newBlocks {
		if err := f.adoptBlocks(blocks); err != nil {
			return false, err
		}
	}
	f.meta, f.blocks = meta, blocks
	return newMeta || newBlocks, nil
}

// adoptMeta: with a stream that has just been made, the directories above may be new, too.
func (f *streamFiles) adoptMeta(now listing) error {
	if err := now.syncNew(f.meta); err != nil {
		return err
	}
	for _, dir := range []string{".", "..", "../..", "../../..", "../../../.."} {
		if err := syncPath(filepath.Join(f.dir, dir)); err != nil {
			return err
		}
	}
	return nil
}

// adoptBlocks: what was the newest block until now has been written to after its last sync.
func (f *streamFiles) adoptBlocks(now listing) error {
	if err := f.syncNewest(); err != nil {
		return err
	}
	if err := now.syncNew(f.blocks); err != nil {
		return err
	}
	f.close()
	if name := now.newestBlock(); name != "" {
		var err error
		if f.newest, err = os.Open(filepath.Join(now.dir, name)); err != nil {
			return err
		}
	}
	return syncPath(now.dir)
}

func (f *streamFiles) syncNewest() error {
	if f.newest == nil {
		return nil
	}
	if err := datasync(f.newest); err != nil {
		return fmt.Errorf("%w: %w", errSyncFailed, err)
	}
	return nil
}

func (f *streamFiles) close() {
	if f.newest != nil {
		_ = f.newest.Close() // it was only read
		f.newest = nil
	}
}

// listing is which files a directory had at one moment.
type listing struct {
	dir   string
	mark  mark
	files map[string]uint64 // name → inode
}

// mark says whether the names in a directory may have changed.
type mark struct {
	inode   uint64
	changed time.Time
	sure    bool // the change lies so far back that another would carry another time
}

// clockTick is more than the steps in which filesystems take the time.
const clockTick = 50 * time.Millisecond

// look lists those of the directory's files that match, unless nothing can have changed.
// changed tells that there is a name or a file that l does not know.
func (l listing) look(dir string, match func(name string) bool) (now listing, changed bool, err error) {
	info, err := os.Stat(dir)
	if err != nil {
		return l, false, err
	}
	m := mark{inode: inodeOf(info), changed: info.ModTime()}
	m.sure = time.Since(m.changed) > clockTick
	if l.mark == m && m.sure {
		return l, false, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return l, false, err
	}
	now = listing{dir: dir, mark: m, files: map[string]uint64{}}
	for _, e := range entries {
		if !match(e.Name()) {
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed since
		}
		if err != nil {
			return l, false, err
		}
		now.files[e.Name()] = inodeOf(info)
	}
	return now, m.inode != l.mark.inode || !maps.Equal(now.files, l.files), nil
}

func inodeOf(info os.FileInfo) uint64 { return info.Sys().(*syscall.Stat_t).Ino }

// syncNew syncs the files that before does not know by name and inode.
func (l listing) syncNew(before listing) error {
	for name, inode := range l.files {
		if before.files[name] == inode && before.mark.inode == l.mark.inode {
			continue
		}
		err := syncPath(filepath.Join(l.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // removed: nothing of it is needed
			return err
		}
	}
	return nil
}

// errSyncFailed says that the disk did not take what was written.
var errSyncFailed = errors.New("sync failed")

// syncPath syncs a file with its length and times, or the names in a directory.
func syncPath(path string) error {
	f, err := os.Open(path) //nolint:gosec // in the store's own directory
	if err != nil {
		return err
	}
	defer f.Close() // it was only read
	if err := f.Sync(); err != nil {
		return fmt.Errorf("%w: %w", errSyncFailed, err)
	}
	return nil
}

// newestBlock is the name of the block with the highest number, "" without any.
func (l listing) newestBlock() string {
	newest, highest := "", int64(-1)
	for name := range l.files {
		if n, err := strconv.ParseInt(strings.TrimSuffix(name, blockSuffix), 10, 64); err == nil && n > highest {
			newest, highest = name, n
		}
	}
	return newest
}
