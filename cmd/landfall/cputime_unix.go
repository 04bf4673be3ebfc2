//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime is how long this process has run on a processor; false: the system does not say.
func cpuTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
