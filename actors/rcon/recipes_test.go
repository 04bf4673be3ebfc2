package rcon

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

func spot() events.Position {
	return events.Position{World: "minecraft:the_nether", X: 1234.5, Y: 80, Z: -99.25}
}

// silent lets the server go silent for commands that contain part: it executes
// them (or not) and hangs up instead of answering.
func (r *rig) silent(part string, times int) {
	r.server.onReply = func(c string, _ int) bool {
		if times == 0 || !strings.Contains(c, part) {
			return false
		}
		times--
		return true
	}
}

func TestPlaceReadsBack(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		got, err := r.car.Place(r.Context(), player("Bob"), spot())
		if err != nil || got != spot() || w.players["Bob"] != spot() {
			r.Errorf("got %+v, %v; stands at %+v", got, err, w.players["Bob"])
		}
		whole := events.Position{World: "minecraft:overworld", X: 5, Y: 64, Z: -7, Yaw: 90}
		if got, err = r.car.Place(r.Context(), player("Bob"), whole); err != nil || got != whole {
			r.Errorf("whole blocks: %+v, %v", got, err)
		}
		if _, err := r.car.Place(r.Context(), player("Al"), spot()); !errors.Is(err, actors.ErrNotHere) {
			r.Errorf("nobody: %v", err)
		}
	})
}

func TestPlaceWithAnUnknownOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		silences int
		frozen   bool
		unknown  bool
		tps      int
	}{
		"it happened":                {1, false, false, 1},
		"said yes, did nothing":      {0, true, true, 2},
		"unknown and did not happen": {2, true, true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld()
			w.join("Bob")
			inBubble(t, w, func(r *rig) {
				w.set(func() { w.frozen = c.frozen })
				r.silent("run tp", c.silences)
				_, err := r.car.Place(r.Context(), player("Bob"), spot())
				if errors.Is(err, actors.ErrUnknown) != c.unknown || (err == nil) == c.unknown {
					r.Errorf("got %v", err)
				}
				if n := strings.Count(strings.Join(r.server.commands(), "\n"), "run tp"); n != c.tps {
					r.Errorf("%d teleports, want %d", n, c.tps)
				}
			})
		})
	}
}

func TestPlaceChecksTheWorldWhenTheServerWasSilent(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		at := spot()
		at.World = "minecraft:overworld"
		w.set(func() { w.players["Bob"] = at; w.frozen = true })
		r.silent("run tp", 2)
		if _, err := r.car.Place(r.Context(), player("Bob"), spot()); !errors.Is(err, actors.ErrUnknown) {
			r.Errorf("same place in another world: %v", err)
		}
	})
}

func TestSend(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		const address = "r-0190c5b27d5e7c3a9d530b5a0d1f2e3c-1.play.example.net:25565"
		if err := r.car.Send(r.Context(), player("Bob"), address); err != nil {
			r.Error(err)
		}
		if err := r.car.Send(r.Context(), player("Al"), address); !errors.Is(err, actors.ErrNotHere) {
			r.Errorf("nobody: %v", err)
		}
		r.silent("transfer", 1)
		if err := r.car.Send(r.Context(), player("Bob"), address); !errors.Is(err, actors.ErrUnknown) || errors.Is(err, actors.ErrNotSent) {
			r.Errorf("silent: %v", err)
		}
		w.set(func() { w.old = true })
		err := r.car.Send(r.Context(), player("Bob"), address)
		var old *TooOldError
		if !errors.As(err, &old) || !errors.Is(err, actors.ErrNotSent) {
			r.Errorf("old server: %v", err)
		}
		if n := strings.Count(strings.Join(r.server.commands(), "\n"), "transfer "); n != 4 {
			r.Errorf("%d transfers sent, want each once", n)
		}
	})
}

func TestNothingCraftedReachesACommand(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		before := len(r.server.commands())
		names := []string{"", "Bob Al", "@a", "Bob\n", "ABCDEFGHIJKLMNOPQ", "*", "B\"ob", "..Bob", "Bob,Al", "Bøb"}
		for _, name := range names {
			p := actors.Player{Name: name}
			_, place := r.car.Place(r.Context(), p, spot())
			for act, err := range map[string]error{"send": r.car.Send(r.Context(), p, "a:1"), "tell": r.car.Tell(r.Context(), p, "x"), "place": place} {
				if !errors.Is(err, actors.ErrNotSent) {
					r.Errorf("%s %q: %v", act, name, err)
				}
			}
		}
		for _, address := range []string{"", "a", "a:", "a:0", "a:65536", "a b:1", "@a:1", "[::1]:1", "a_b:1", ":1", strings.Repeat("a", 254) + ":1", "a:1 Al"} {
			if err := r.car.Send(r.Context(), player("Bob"), address); !errors.Is(err, actors.ErrNotSent) {
				r.Errorf("address %q: %v", address, err)
			}
		}
		for _, at := range []events.Position{{World: "the end"}, {World: "a:b run op"}, {World: "a:b", X: math.NaN()}, {World: "a:b", Z: math.Inf(1)}, {World: "a:b", X: 4e7}} {
			_, err := r.car.Place(r.Context(), player("Bob"), at)
			_, findErr := r.car.Find(r.Context(), actors.Region{Name: "x", World: "a b"})
			for _, err := range []error{err, r.car.Check(r.Context(), at), findErr} {
				if !errors.Is(err, actors.ErrNotSent) {
					r.Errorf("%+v: %v", at, err)
				}
			}
		}
		if got := r.server.commands()[before:]; len(got) != 0 {
			r.Errorf("sent %q", got)
		}
	})
}

func TestTell(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		texts := []string{`He said "hi\" <b> & 'x'`, "ünïcode \U0001F600", "a\nb\u00a7cd\x00", strings.Repeat("\"\u25f4<", 2000)}
		for _, text := range texts {
			if err := r.car.Tell(r.Context(), player("Bob"), text); err != nil {
				r.Error(err)
			}
		}
		for i, want := range []string{texts[0], texts[1], "abcd", ""} {
			var got struct{ Text string }
			if err := json.Unmarshal([]byte(w.said[i]), &got); err != nil {
				r.Errorf("%d: %v in %q", i, err, w.said[i])
			}
			if want != "" && got.Text != want {
				r.Errorf("%d: said %q", i, got.Text)
			}
			if want == "" && (!strings.HasSuffix(got.Text, "…") || len(got.Text) < 300) {
				r.Errorf("long text became %q", got.Text)
			}
		}
		if err := r.car.Tell(r.Context(), player("Al"), "x"); !errors.Is(err, actors.ErrNotHere) {
			r.Errorf("nobody: %v", err)
		}
	})
}

func TestSentPlayerIsSeenLeavingAndReturning(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		send := func() {
			if err := r.car.Send(r.Context(), player("Bob"), "a.example:25565"); err != nil {
				r.Fatal(err)
			}
		}
		send()
		w.leave("Bob")
		r.pass(800 * time.Millisecond)
		r.wants("left Bob transfer sent")
		w.join("Bob") // the move led nowhere
		r.pass(800 * time.Millisecond)
		r.wants("joined Bob")
		send() // and straight back, between two looks
		r.pass(6 * time.Second)
		r.wants("left Bob transfer sent, joined Bob")
		r.pass(30 * time.Second)
		r.wants("")
	})
}

func testRegion() actors.Region {
	return actors.Region{Name: "wild", World: "minecraft:overworld", CentreX: 100, CentreZ: -200, MinRadius: 500, MaxRadius: 2000}
}

func (r *rig) wantsNothingLeft() {
	r.Helper()
	if got := r.world.forcedChunks(); len(got) != 0 {
		r.Errorf("chunks left loaded: %v", got)
	}
	if len(r.world.marker) != 0 {
		r.Errorf("markers left: %v", r.world.marker)
	}
	if kept := r.car.forced; len(kept.kept)+len(kept.stale) != 0 {
		r.Errorf("still on record: %v %v", kept.kept, kept.stale)
	}
}

func TestFindCheckForget(t *testing.T) {
	inBubble(t, newFakeWorld(), func(r *rig) {
		region := testRegion()
		var found []events.Position
		for range 30 {
			at, err := r.car.Find(r.Context(), region)
			if err != nil {
				r.Fatal(err)
			}
			if d := math.Hypot(at.X-100, at.Z+200); d < 500 || d > 2000 || at.World != region.World || at.Y != 71 {
				r.Errorf("found %+v, %.0f blocks out", at, d)
			}
			found = append(found, at)
		}
		if n := len(r.world.forcedChunks()); n != 30 || len(r.world.marker) != 0 {
			r.Errorf("%d chunks loaded, markers %v", n, r.world.marker)
		}
		if err := r.car.Check(r.Context(), found[0]); err != nil {
			r.Error(err)
		}
		r.world.set(func() { r.world.hot = true })
		if err := r.car.Check(r.Context(), found[0]); !errors.Is(err, actors.ErrUnsafe) {
			r.Errorf("magma: %v", err)
		}
		for _, at := range append(found, found[0]) {
			if err := r.car.Forget(r.Context(), at); err != nil {
				r.Error(err)
			}
		}
		r.wantsNothingLeft()
		r.world.set(func() { r.world.hot = false })
		if err := r.car.Check(r.Context(), found[1]); !errors.Is(err, actors.ErrUnsafe) {
			r.Errorf("not loaded: %v", err)
		}
	})
}

func TestFindOneCommandsOfAPlace(t *testing.T) {
	inBubble(t, newFakeWorld(), func(r *rig) {
		region := testRegion()
		region.World = "minecraft:the_nether"
		r.world.set(func() { r.world.airOf = "cave_air" })
		before := len(r.server.commands())
		if _, err := r.car.Find(r.Context(), region); err != nil {
			r.Fatal(err)
		}
		var got []string
		for _, c := range r.server.commands()[before:] {
			for _, part := range []string{"worldborder get", "forceload add", "summon marker", "under 120 false", "data get", "kill", "if block"} {
				if strings.Contains(c, part) {
					got = append(got, part)
				}
			}
		}
		if want := "[worldborder get forceload add summon marker under 120 false data get kill if block if block]"; fmt.Sprint(got) != want {
			r.Errorf("sent %v", got)
		}
	})
}

func TestFindRefusesWhatIsUnsafe(t *testing.T) {
	for name, spoil := range map[string]func(*fakeWorld, *actors.Region){
		"ocean":  func(w *fakeWorld, _ *actors.Region) { w.ocean = func(float64, float64) bool { return true } },
		"magma":  func(w *fakeWorld, _ *actors.Region) { w.hot = true },
		"no air": func(w *fakeWorld, _ *actors.Region) { w.airOf = "stone" },
		"all banned": func(_ *fakeWorld, r *actors.Region) {
			r.Exclude = []actors.Area{{MinX: -9000, MinZ: -9000, MaxX: 9000, MaxZ: 9000}}
		},
		"border": func(w *fakeWorld, _ *actors.Region) { w.border = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			w, region := newFakeWorld(), testRegion()
			spoil(w, &region)
			inBubble(t, w, func(r *rig) {
				if _, err := r.car.Find(r.Context(), region); !errors.Is(err, actors.ErrUnsafe) {
					r.Errorf("got %v", err)
				}
				r.wantsNothingLeft()
			})
		})
	}
}

func TestFindSkipsExcludesAndBorder(t *testing.T) {
	w, region := newFakeWorld(), testRegion()
	region.Exclude = []actors.Area{{MinX: -9000, MinZ: -200, MaxX: 9000, MaxZ: 9000}}
	w.border = 3000
	inBubble(t, w, func(r *rig) {
		found := 0
		for range 20 {
			at, err := r.car.Find(r.Context(), region)
			if err != nil {
				continue
			}
			found++
			if at.Z >= -200 || math.Abs(at.X) > 1500 || math.Abs(at.Z) > 1500 {
				r.Errorf("found %+v", at)
			}
		}
		if found < 15 {
			r.Errorf("found only %d of 20", found)
		}
	})
}

func TestFindWaitsForAnIdleServerAndKnowsOldBlocks(t *testing.T) {
	w := newFakeWorld()
	w.lacks = "powder_snow"
	inBubble(t, w, func(r *rig) {
		if _, err := r.car.Find(r.Context(), testRegion()); err != nil {
			r.Errorf("server without powder snow: %v", err)
		}
		w.set(func() { w.mspt = 35 })
		r.pass(4 * time.Second)
		if _, err := r.car.Find(r.Context(), testRegion()); !errors.Is(err, actors.ErrNotSent) || !strings.Contains(err.Error(), "35.0 ms") {
			r.Errorf("busy: %v", err)
		}
	})
}

func TestFindLeavesTheOperatorsChunks(t *testing.T) {
	inBubble(t, newFakeWorld(), func(r *rig) {
		region := testRegion()
		region.MinRadius, region.MaxRadius = 0, 60
		for x := -1; x < 14; x++ {
			for z := -20; z < -4; z++ {
				r.world.set(func() { r.world.forced[fmt.Sprintf("minecraft:overworld %d %d", x, z)] = true })
			}
		}
		n := len(r.world.forcedChunks())
		if _, err := r.car.Find(r.Context(), region); !errors.Is(err, actors.ErrUnsafe) {
			r.Errorf("got %v", err)
		}
		if got := len(r.world.forcedChunks()); got != n {
			r.Errorf("%d of the operator's %d chunks stay loaded", got, n)
		}
	})
}

func TestFindCutAnywhereLeavesNothing(t *testing.T) {
	for _, part := range []string{"forceload add", "summon", "spreadplayers", "data get entity @e", "kill", "if block", "worldborder"} {
		t.Run(part, func(t *testing.T) {
			inBubble(t, newFakeWorld(), func(r *rig) {
				r.silent(part, 1)
				if _, err := r.car.Find(r.Context(), testRegion()); !errors.Is(err, actors.ErrUnknown) {
					r.Errorf("got %v", err)
				}
				r.wantsNothingLeft()
				if _, err := r.car.Find(r.Context(), testRegion()); err != nil {
					r.Errorf("afterwards: %v", err)
				}
			})
		})
	}
}

func TestANewLifeReleasesWhatTheOldLeft(t *testing.T) {
	inBubble(t, newFakeWorld(), func(r *rig) {
		dir := strings.TrimSuffix(r.car.forced.file, "/forced-chunks.json")
		for range 3 {
			if _, err := r.car.Find(r.Context(), testRegion()); err != nil {
				r.Fatal(err)
			}
		}
		r.stop() // as if killed: nothing is forgotten
		r.world.set(func() {
			r.world.forced["minecraft:overworld 0 0"] = true
			r.world.marker = append(r.world.marker, spot())
		})
		r.start(dir)
		if got := r.world.forcedChunks(); fmt.Sprint(got) != "[minecraft:overworld 0 0]" || len(r.world.marker) != 0 {
			r.Errorf("loaded after the restart: %v, markers %v", got, r.world.marker)
		}
	})
}

func TestForgetWhileDownIsCarriedOutLater(t *testing.T) {
	inBubble(t, newFakeWorld(), func(r *rig) {
		at, err := r.car.Find(r.Context(), testRegion())
		if err != nil {
			r.Fatal(err)
		}
		r.server.setDown(true)
		r.pass(2 * time.Second)
		if err := r.car.Forget(r.Context(), at); !errors.Is(err, actors.ErrDown) {
			r.Errorf("got %v", err)
		}
		r.server.setDown(false)
		r.pass(3 * time.Second)
		r.wantsNothingLeft()
	})
}

func TestRecordOfForcedChunksIsRefusedWhenDamaged(t *testing.T) {
	for _, content := range []string{"{", `{"version":2,"chunks":[]}`} {
		dir := t.TempDir()
		file := dir + "/forced-chunks.json"
		if err := replaceFile(file, []byte(content)); err != nil {
			t.Fatal(err)
		}
		_, err := New(testConfig(t, dir))
		if err == nil {
			t.Fatal("no error")
		}
		oneLine(t, err, file, "/forceload remove")
	}
}
