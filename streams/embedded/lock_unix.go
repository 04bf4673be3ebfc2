//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrLocked says that another process has the directory open.
var ErrLocked = errors.New("another process has this store open")

const lockFile = "landfall.lock"

// lock is held for the life of the process: two servers on one directory both acknowledge,
// and one of them loses what it acknowledged. It ends with the process, however that ends.
type lock struct{ f *os.File }

func lockDir(dir string) (*lock, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, ErrLocked), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	return &lock{f: f}, nil
}

// release keeps the file: removing it would let two processes lock two different ones.
func (l *lock) release() error { return l.f.Close() }

// freeBytes is what an ordinary user may still write on dir's filesystem.
func freeBytes(dir string) (int64, error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(fs.Bavail) * int64(fs.Bsize), nil //nolint:gosec,unconvert // sizes of real disks; types differ by system
}
