package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// userHZ is the unit of times in /proc, the same on every Linux that Go runs on.
const userHZ = 100

// cpuTime is what this process and all servers have used so far. The servers that are not measured at the moment wait,
// and use next to nothing. Of another machine's load it knows nothing, so it tells more than a rate on a busy one.
func (e *env) cpuTime() (time.Duration, error) {
	var self syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
		return 0, err
	}
	used := time.Duration(self.Utime.Nano() + self.Stime.Nano())
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, err
	}
	for _, path := range files {
		ticks, err := e.ticksOf(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // it may have ended
			return 0, err
		}
		used += time.Duration(ticks) * time.Second / userHZ
	}
	return used, nil
}

// ticksOf reads the time of a process if it is one of ours, or the child of one: PostgreSQL has a process for each connection.
func (e *env) ticksOf(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	name := strings.LastIndexByte(string(text), ')') // which may contain anything
	fields := strings.Fields(string(text)[name+1:])
	if name < 0 || len(fields) < 13 {
		return 0, fmt.Errorf("%s: cannot read %q", path, text)
	}
	pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
	if err != nil {
		return 0, err
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil || !e.pids[pid] && !e.pids[parent] {
		return 0, err
	}
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return user + system, errors.Join(err1, err2)
}
