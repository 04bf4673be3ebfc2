package actors

import (
	"sync"
	"time"
)

// tokenBucket lets so many acts through in a second, and up to its size at once. It is filled
// when somebody asks: nothing runs meanwhile. The zero value lets everything through. Safe
// for concurrent use.
type tokenBucket struct {
	mu   sync.Mutex
	rate float64 // tokens in a second, 0: no limit
	size float64
	held float64 // as of at
	at   time.Time
}

// set changes rate and size; a rate of 0 lifts the limit. A bucket that had none is full.
func (b *tokenBucket) set(now time.Time, perSecond float64, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	limited := b.rate > 0
	b.fill(now)
	b.rate, b.size = max(perSecond, 0), float64(max(size, 1))
	if !limited {
		b.held = b.size
	}
	b.held = min(b.held, b.size)
}

// take tells whether one act may pass now.
func (b *tokenBucket) take(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rate <= 0 {
		return true
	}
	b.fill(now)
	if b.held < 1 {
		return false
	}
	b.held--
	return true
}

// fill must be called with the lock held. A clock that went back fills nothing.
func (b *tokenBucket) fill(now time.Time) {
	b.held = min(b.held+b.rate*max(now.Sub(b.at), 0).Seconds(), b.size)
	b.at = now
}
