package embedded

import (
	"errors"
	"os"
	"syscall"
)

// datasync makes the content of a file durable, and its length, but not its times.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		for {
			if failed = syscall.Fdatasync(int(fd)); !errors.Is(failed, syscall.EINTR) { //nolint:gosec // a descriptor is small
				return
			}
		}
	})
	if err != nil {
		return err
	}
	return os.NewSyscallError("fdatasync "+f.Name(), failed)
}
