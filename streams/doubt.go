package streams

import "sync"

// maxDoubts bounds what is remembered; the oldest is forgotten first. The store's own
// window against doubles (2 minutes) covers what falls out.
const maxDoubts = 1024

// doubts remembers appends whose outcome this process never learned, so that a retry with
// a refreshed guard, however late, looks for the first before it stores a second.
type doubts struct {
	mu    sync.Mutex
	from  map[string]uint64 // event id → the guard of its first try
	order []string
}

func (d *doubts) add(id string, prev uint64) {
	if id == "" {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.from == nil {
		d.from = map[string]uint64{}
	}
	if first, ok := d.from[id]; ok && first <= prev {
		return
	} else if !ok {
		d.order = append(d.order, id)
	}
	d.from[id] = prev
	for len(d.order) > maxDoubts {
		delete(d.from, d.order[0])
		d.order = d.order[1:]
	}
}

func (d *doubts) of(id string) (uint64, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	prev, ok := d.from[id]
	return prev, ok
}

func (d *doubts) settle(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.from[id]; !ok {
		return
	}
	delete(d.from, id)
	for i := range d.order {
		if d.order[i] == id {
			d.order = append(d.order[:i], d.order[i+1:]...)
			return
		}
	}
}
