package main

import (
	"fmt"
	"syscall"
)

// filesystems are the names of those that a store may have been put on by mistake, by their
// magic numbers (statfs(2)).
var filesystems = map[int64]string{
	0x01021994: "tmpfs", 0x858458f6: "ramfs", 0x794c7630: "overlayfs", 0x6969: "nfs", 0xff534d42: "cifs", 0xfe534d42: "smb2",
	0x01021997: "9p", 0x65735546: "fuse", 0x00c36400: "ceph", 0xef53: "ext4", 0x58465342: "xfs", 0x9123683e: "btrfs", 0x2fc12fc1: "zfs",
}

// diskOf tells what a directory lies on, "" when it is none that we know, and how many bytes an
// ordinary user may still write there.
func diskOf(dir string) (filesystem string, free int64, err error) {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return "", 0, fmt.Errorf("look at the disk of %s: %w", dir, err)
	}
	return filesystems[int64(fs.Type)&0xffffffff], int64(fs.Bavail) * fs.Bsize, nil //nolint:gosec,unconvert // sizes of real disks; types differ by machine
}

// fileLimits are how many files this process may have open, and what it may raise that to.
func fileLimits() (now, most uint64) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0, 0
	}
	return limit.Cur, limit.Max
}
