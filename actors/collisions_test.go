package actors

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

func inWorld(id events.HostID, world string) *projections.Backend {
	b := destination(id, 9)
	b.Regions[0].World = world
	return b
}

// TestCollision: a region that means different worlds is named by the decision about it.
func TestCollision(t *testing.T) {
	f := fleetOf(inWorld("a", "overworld"), inWorld("b", "the_nether"), inWorld("c", "overworld"))
	for wish, want := range map[events.Wish]string{
		{Region: "wild"}:                     "a=overworld,b=the_nether,c=overworld",
		{}:                                   "", // any region is what was asked for
		{Region: "wild", World: "overworld"}: "",
		{Region: "wild", Pin: "b"}:           "",
		{Region: "other"}:                    "",
	} {
		q := anywhere()
		q.wish = wish
		if _, d := choose(q, f); d.Collision != want {
			t.Errorf("%+v: %q, want %q", wish, d.Collision, want)
		}
	}
	q := anywhere()
	q.wish.Region = "wild"
	if _, d := choose(q, fleetOf(inWorld("a", "overworld"), inWorld("c", "overworld"))); d.Collision != "" {
		t.Errorf("the same world everywhere: %q", d.Collision)
	}
}

// TestCollidingRegions are found in the whole fleet.
func TestCollidingRegions(t *testing.T) {
	a, b := inWorld("a", "overworld"), inWorld("b", "the_nether")
	a.Regions = append(a.Regions, events.RegionBeat{Name: "same", World: "x"}, events.RegionBeat{Name: "zoo", World: "x"})
	b.Regions = append(b.Regions, events.RegionBeat{Name: "same", World: "x"}, events.RegionBeat{Name: "zoo", World: "y"})
	if got := colliding(fleetOf(a, b)); !slices.Equal(got, []string{"wild", "zoo"}) {
		t.Errorf("%v", got)
	}
}

// TestCollisionIsToldOnce in the log, however often the sweep comes by.
func TestCollisionIsToldOnce(t *testing.T) {
	dispatching(t, func(t *testing.T, ctx context.Context, s *seer, _ *quay) {
		var log bytes.Buffer
		s.logger = slog.New(slog.NewTextHandler(&log, nil))
		s.warnOfCollisions()
		if log.Len() != 0 {
			t.Errorf("nothing collides: %s", log.String())
		}
		beat := inWorld("c", "the_nether").BackendBeat
		if _, err := s.mem.Client("c").Append(ctx, streamtest.Fact(t, events.BackendKey("c"), 0, &beat)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "heartbeat folded", func() bool { return s.view.Fleet().Backend("c") != nil })
		for range 3 {
			s.warnOfCollisions()
		}
		if got := log.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "region=wild") || !strings.Contains(got, "c=the_nether") {
			t.Errorf("told: %s", got)
		}
	})
}
