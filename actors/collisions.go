package actors

import (
	"maps"
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// maxCollision bounds what a decision says about a region that means several things.
const maxCollision = 256

// collisionOf tells where a region lies that means different worlds on different servers:
// "survival-1=minecraft:overworld,survival-2=minecraft:the_nether". Empty when the wish says
// more than the region, or nothing collides.
func collisionOf(w events.Wish, f *projections.Fleet) string {
	if w.Region == "" || w.World != "" || w.Pin != "" {
		return ""
	}
	first, differ := "", false
	var out strings.Builder
	for _, b := range f.Backends {
		for i := range b.Regions {
			x := &b.Regions[i]
			if x.Name != w.Region {
				continue
			}
			if first == "" {
				first = x.World
			}
			differ = differ || x.World != first
			if part := string(b.Server) + "=" + x.World; out.Len()+1+len(part) <= maxCollision {
				if out.Len() > 0 {
					out.WriteByte(',')
				}
				out.WriteString(part)
			}
		}
	}
	if !differ {
		return ""
	}
	return out.String()
}

// colliding gives the regions whose names mean different worlds, sorted.
func colliding(f *projections.Fleet) []string {
	first := map[string]string{}
	found := map[string]bool{}
	for _, b := range f.Backends {
		for i := range b.Regions {
			x := &b.Regions[i]
			world, known := first[x.Name]
			if !known {
				first[x.Name] = x.World
			}
			if known && world != x.World {
				found[x.Name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// warnOfCollisions says once of each region that its name means different worlds: a request
// for it may lead to either. Of the sweep's goroutine only.
func (d *Dispatcher) warnOfCollisions() {
	f := d.view.Fleet()
	for _, region := range colliding(f) {
		if d.collided[region] {
			continue
		}
		if d.collided == nil {
			d.collided = map[string]bool{}
		}
		d.collided[region] = true
		d.logger.Warn("a region means different worlds: ask for <server>:<region>, or rename one of them",
			"region", region, "where", collisionOf(events.Wish{Region: region}, f))
	}
}
