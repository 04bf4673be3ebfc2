package api

import (
	"math"
	"sync"
	"time"
)

// Limits bound what programs may ask of one host. Rates are requests in a second, bursts requests
// at once.
type Limits struct {
	TokenPerSecond   float64 // of one token
	TokenBurst       int
	AddressPerSecond float64 // from one address, with a token or without
	AddressBurst     int
	Streams          int // event streams and long polls that are open at once, of all tokens
}

// ShippedLimits hold unless an operator says otherwise.
func ShippedLimits() Limits {
	return Limits{TokenPerSecond: 500, TokenBurst: 1000, AddressPerSecond: 500, AddressBurst: 1000, Streams: 256}
}

// maxBuckets bounds the memory of a limiter: beyond it whoever has been quiet is forgotten.
const maxBuckets = 10_000

// limiter is a token bucket for each of many keys. Safe for concurrent use.
type limiter struct {
	mu    sync.Mutex
	rate  float64
	burst float64
	by    map[string]*bucket
}

type bucket struct {
	held float64
	at   time.Time
}

func (l *limiter) set(rate float64, burst int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rate, l.burst, l.by = rate, float64(max(burst, 1)), map[string]*bucket{}
}

// take lets one request of key pass, or says after how long the next one may.
func (l *limiter) take(key string, now time.Time) (wait time.Duration, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.by[key]
	if b == nil {
		l.forget(now)
		b = &bucket{held: l.burst, at: now}
		l.by[key] = b
	}
	b.held = min(b.held+l.rate*max(now.Sub(b.at), 0).Seconds(), l.burst)
	b.at = now
	if b.held >= 1 {
		b.held--
		return 0, true
	}
	return time.Duration(math.Ceil((1-b.held)/l.rate)) * time.Second, false
}

// forget drops the buckets that are full again, and all of them if that is not enough: whoever
// comes from ten thousand addresses within a second is not stopped by a limit for each.
func (l *limiter) forget(now time.Time) {
	if len(l.by) < maxBuckets {
		return
	}
	for key, b := range l.by {
		if b.held+l.rate*now.Sub(b.at).Seconds() >= l.burst {
			delete(l.by, key)
		}
	}
	if len(l.by) >= maxBuckets {
		clear(l.by)
	}
}

// seats bounds how many things are open at once.
type seats struct {
	mu    sync.Mutex
	total int
	taken int
}

func (s *seats) set(total int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total = total
}

// sit takes one; leave must be called when it is done.
func (s *seats) sit() (leave func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.total {
		return nil, false
	}
	s.taken++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
	}), true
}
