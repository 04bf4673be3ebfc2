package streamtest

import "sync"

// Rules say which requests, news and answers get lost. The zero value loses none. Safe for
// concurrent use.
type Rules struct {
	mu            sync.Mutex
	drops, losses []*rule
}

// rule is a fault that strikes a number of times.
type rule struct {
	match func(subject string) bool
	left  int
}

// Drop loses the next n requests or news whose subject matches.
func (r *Rules) Drop(match func(subject string) bool, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 {
		r.drops = append(r.drops, &rule{match: match, left: n})
	}
}

// Lose loses the answers to the next n requests whose subject matches.
func (r *Rules) Lose(match func(subject string) bool, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 {
		r.losses = append(r.losses, &rule{match: match, left: n})
	}
}

// Drops tells that this request does not arrive. It counts.
func (r *Rules) Drops(subject string) bool { return r.strike(&r.drops, subject) }

// Loses tells that the answer to this request does not arrive. It counts.
func (r *Rules) Loses(subject string) bool { return r.strike(&r.losses, subject) }

// strike uses up one of the first rule that matches.
func (r *Rules) strike(rules *[]*rule, subject string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, x := range *rules {
		if x.match(subject) {
			if x.left--; x.left == 0 {
				*rules = append((*rules)[:i:i], (*rules)[i+1:]...)
			}
			return true
		}
	}
	return false
}
