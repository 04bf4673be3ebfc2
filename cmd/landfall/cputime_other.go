//go:build !unix

package main

import "time"

// cpuTime is how long this process has run on a processor; false: the system does not say.
func cpuTime() (time.Duration, bool) { return 0, false }
