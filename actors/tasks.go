package actors

import (
	"context"
	"sync"
)

// tasks runs what outlives the call that asked for it: messages, releases, announcements.
// Whatever is asked for before begin or after end is dropped; end waits for the rest. Safe
// for concurrent use: edges and game servers call in while an actor starts and ends.
type tasks struct {
	mu    sync.Mutex
	alive context.Context //nolint:containedctx // the actor's own, from begin to end
	wg    sync.WaitGroup
}

// begin lets tasks run until ctx ends.
func (t *tasks) begin(ctx context.Context) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alive = ctx
}

// run starts a task, if its actor lives, and tells whether it does. It does not wait for it.
func (t *tasks) run(task func(ctx context.Context)) (started bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx := t.alive
	if ctx == nil || ctx.Err() != nil {
		return false
	}
	t.wg.Go(func() { task(ctx) })
	return true
}

// end waits for the tasks, whose context has ended, and takes no more.
func (t *tasks) end() {
	t.mu.Lock()
	t.alive = nil
	t.mu.Unlock()
	t.wg.Wait()
}
