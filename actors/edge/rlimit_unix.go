//go:build unix

package edge

import (
	"fmt"
	"syscall"
)

// filesPerPlayer: two sockets, and a pipe of two ends for each spliced direction.
const filesPerPlayer = 6

// fileLimitWarning says when players at once would need more open files than the
// process may have; "" when they fit.
func fileLimitWarning(players int) string {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return ""
	}
	return fileLimitText(players, uint64(limit.Cur)) //nolint:unconvert // signed on some systems
}

func fileLimitText(players int, limit uint64) string {
	const others = 256 // log, store, listeners, logins not spliced yet
	need := uint64(players)*filesPerPlayer + others
	if need <= limit {
		return ""
	}
	return fmt.Sprintf("open files are limited to %d, but %d players need %d; raise the limit (ulimit -n, LimitNOFILE)", limit, players, need)
}
