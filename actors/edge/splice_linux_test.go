package edge

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// A wrapper around either socket would silently turn splice(2) into a copy loop. While
// a connection stands, both its directions wait inside the runtime's splice.
func TestSpliceUsesTheKernel(t *testing.T) {
	b := newBackend(t)
	s := run(t, Config{Router: always(b.to())})
	p := connect(t, s)
	sent := p.login(t, "a", intentLogin)
	server := b.accept()
	server.got(t, sent)
	server.send(t, []byte("down"))
	p.got(t, []byte("down"))

	buf := make([]byte, 1<<20)
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		stacks := string(buf[:runtime.Stack(buf, true)])
		if strings.Count(stacks, "internal/poll.Splice(") == 2 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("bytes are copied through the process; goroutines:\n%s", stacks)
		}
	}
}
