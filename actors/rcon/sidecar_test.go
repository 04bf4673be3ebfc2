package rcon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/actors"
)

// heard records what a World reports, one line an event.
type heard struct {
	mu    sync.Mutex
	lines []string
	when  []time.Time
	downs []error
}

func (h *heard) add(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines, h.when = append(h.lines, line), append(h.when, time.Now())
}

func (h *heard) Up(life string) { h.add("up " + life) }
func (h *heard) Down(err error) {
	h.add("down")
	h.mu.Lock()
	defer h.mu.Unlock()
	h.downs = append(h.downs, err)
}
func (h *heard) Joined(p actors.Player) {
	if p != player(p.Name) {
		p.Name += " with a wrong id"
	}
	h.add("joined " + p.Name)
}
func (h *heard) Left(p actors.Player, reason string) {
	h.add(strings.TrimSpace("left " + p.Name + " " + reason))
}
func (h *heard) Cancelled(p actors.Player)            { h.add("cancelled " + p.Name) }
func (h *heard) Asked(p actors.Player, region string) { h.add("asked " + p.Name + " " + region) }
func (h *heard) NoSuchPlace(p actors.Player, asked string, places []string) {
	h.add(fmt.Sprintf("no %s for %s but %s", asked, p.Name, strings.Join(places, "/")))
}

// take returns what was heard since the last take.
func (h *heard) take() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := strings.Join(h.lines, ", ")
	h.lines, h.when = nil, nil
	return out
}

// rig is a running Sidecar on a fake world, in a time bubble.
type rig struct {
	*testing.T
	world  *fakeWorld
	server *testServer
	car    *Sidecar
	heard  *heard
	ended  chan error
	cancel context.CancelFunc

	aliases []string
}

// inBubble runs f with everything up and time that only moves when all wait.
func inBubble(t *testing.T, world *fakeWorld, f func(r *rig), aliases ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, world: world, server: servePipe(t, world.answer), aliases: aliases}
		r.start(t.TempDir())
		f(r)
		r.stop()
	})
}

func testConfig(t *testing.T, dir string) Config {
	return Config{
		Address: "127.0.0.1:25575", Password: "secret", StateDir: dir, CommandTimeout: 3 * time.Second,
		Regions: []string{"mesa", "arena", "forest"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (r *rig) start(dir string) {
	r.Helper()
	c := testConfig(r.T, dir)
	c.Aliases = r.aliases
	car, err := New(c)
	if err != nil {
		r.Fatal(err)
	}
	car.console.client.dial = r.server.dial
	ctx, cancel := context.WithCancel(r.Context())
	r.car, r.heard, r.ended, r.cancel = car, &heard{}, make(chan error, 1), cancel
	go func() { r.ended <- car.Run(ctx, r.heard) }()
	r.pass(2 * time.Second)
}

func (r *rig) stop() {
	r.Helper()
	r.cancel()
	if err := <-r.ended; !errors.Is(err, context.Canceled) {
		r.Errorf("Run ended with %v", err)
	}
}

// pass lets virtual time go by.
func (r *rig) pass(d time.Duration) { <-time.After(d); synctest.Wait() }

func (r *rig) wants(want string) {
	r.Helper()
	if got := r.heard.take(); got != want {
		r.Errorf("heard %q, want %q", got, want)
	}
}

func TestRunReportsJoinsAndLeaves(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob", ".Al")
	inBubble(t, w, func(r *rig) {
		r.wants("up life-1, joined Bob, joined .Al")
		w.join("Cy")
		w.leave("Bob")
		r.pass(1500 * time.Millisecond)
		r.wants("left Bob, joined Cy")
		h, err := r.car.Health(r.Context())
		if err != nil || h.Players != 2 || h.MaxPlayers != 20 || h.MSPT == nil || *h.MSPT != 2.5 || h.TPS == nil || *h.TPS != 20 || h.HeapMax != nil {
			r.Errorf("health %+v, %v", h, err)
		}
	})
}

func TestRunOnPaperUsesTheGamesOwnCommands(t *testing.T) {
	w := newFakeWorld()
	w.paper = true
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		r.pass(5 * time.Second)
		h, err := r.car.Health(r.Context())
		if err != nil || h.MSPT == nil || *h.MSPT != 2.5 || h.TPS == nil || *h.TPS != 20 || !strings.Contains(h.Game, "Paper") {
			r.Errorf("health %+v, %v", h, err)
		}
		if err := r.car.Tell(r.Context(), player("Bob"), "hi"); err != nil {
			r.Error(err)
		}
		for _, c := range r.server.commands() {
			if !strings.HasPrefix(c, "minecraft:") && c != "tps" && c != "mspt" {
				r.Errorf("a plugin could answer %q", c)
			}
		}
	})
}

func TestRunTellsARestartFromAnOutage(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob", "Al")
	inBubble(t, w, func(r *rig) {
		r.wants("up life-1, joined Bob, joined Al")
		gate := make(chan struct{})
		w.set(func() { w.hook = func(string) { <-gate } })
		r.pass(5 * time.Second)
		r.wants("down")
		if _, err := r.car.Health(r.Context()); !errors.Is(err, actors.ErrDown) {
			r.Errorf("health while down: %v", err)
		}
		w.set(func() { w.hook = nil })
		close(gate)
		r.pass(5 * time.Second)
		r.wants("up life-1")

		r.server.setDown(true)
		w.leave("Al")
		r.pass(3 * time.Second)
		r.wants("down")
		r.server.setDown(false)
		r.pass(3 * time.Second)
		r.wants("left Al server restarted, left Bob server restarted, up life-2, joined Bob")
	})
}

func TestRunReportsAServerThatIsDownFromTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &rig{T: t, world: newFakeWorld()}
		r.server = servePipe(t, r.world.answer)
		r.server.setDown(true)
		r.start(t.TempDir())
		r.pass(10 * time.Second)
		r.wants("down")
		if _, err := r.car.Find(t.Context(), testRegion()); !errors.Is(err, actors.ErrDown) {
			t.Errorf("find while down: %v", err)
		}
		r.server.setDown(false)
		r.pass(2 * time.Second)
		r.wants("up life-1")
		r.stop()
	})
}

func TestRunEndsOnAWrongPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := servePipe(t, newFakeWorld().answer)
		server.password = "other"
		car, err := New(testConfig(t, t.TempDir()))
		if err != nil {
			t.Fatal(err)
		}
		car.console.client.dial = server.dial
		err = car.Run(t.Context(), &heard{})
		var auth *AuthError
		if !errors.As(err, &auth) {
			t.Errorf("got %v", err)
		}
	})
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"rcon.address":      func(c *Config) { c.Address = "localhost" },
		"rcon.passwordFile": func(c *Config) { c.Password = "" },
		"short line":        func(c *Config) { c.Password = "a\nb" },
		"directory":         func(c *Config) { c.StateDir = "" },
		"logger":            func(c *Config) { c.Log = nil },
		"aliases":           func(c *Config) { c.Aliases = []string{"rtp", "a b"} },
	} {
		c := testConfig(t, t.TempDir())
		change(&c)
		_, err := New(c)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTriggerNamesRegions(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob", "Al", "Cy", "Di")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		for i, name := range []string{"Bob", "Al", "Cy", "Di"} {
			if !w.trigger(name, []int{1, 2, 3, 9}[i]) {
				r.Errorf("%s cannot use the trigger", name)
			}
		}
		r.pass(1500 * time.Millisecond)
		r.wants("asked Bob , asked Al arena, asked Cy forest, no 9 for Di but 1 any/2 arena/3 forest/4 mesa")
		r.pass(3 * time.Second)
		r.wants("")
		if !w.trigger("Bob", 1) {
			r.Error("the trigger was not opened again")
		}
		r.pass(1500 * time.Millisecond)
		r.wants("asked Bob ")
		w.join("Ed")
		r.pass(2500 * time.Millisecond)
		if r.heard.take(); !w.trigger("Ed", 2) {
			r.Error("the trigger is not open for who joins")
		}
		r.pass(1500 * time.Millisecond)
		r.wants("asked Ed arena")
	})
}

// TestTriggerUnderEveryName: all names of the command do the same, and no other one does anything.
func TestTriggerUnderEveryName(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob", "Al")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		if w.trigger("Bob", 1) {
			r.Error("the name that was not given works")
		}
		for round := range 2 {
			if !w.triggerAs("wild", "Bob", 2) || !w.triggerAs("travel", "Al", 1) {
				r.Errorf("round %d: a name does not work", round)
			}
			r.pass(3 * time.Second)
			if got := r.heard.take(); got != "asked Bob arena, asked Al " && got != "asked Al , asked Bob arena" {
				r.Errorf("round %d: heard %q", round, got)
			}
			r.pass(3 * time.Second)
		}
		w.triggerAs("travel", "Bob", LeaveValue)
		r.pass(3 * time.Second)
		r.wants("cancelled Bob")
		w.join("Ed")
		r.pass(3 * time.Second)
		if !w.triggerAs("wild", "Ed", 1) || !w.triggerAs("travel", "Ed", 1) {
			r.Error("a name is not open for who joins")
		}
	}, "wild", "travel", "wild")
}

func TestTriggerLeaves(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		w.trigger("Bob", LeaveValue)
		r.pass(2500 * time.Millisecond)
		r.wants("cancelled Bob")
		if !w.trigger("Bob", 1) {
			r.Error("the trigger was not opened again")
		}
	})
}

func TestTriggerOfDecoratedNames(t *testing.T) {
	w := newFakeWorld()
	w.decor = true
	w.join("Bob", "Al")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		w.trigger("Al", 4)
		r.pass(2500 * time.Millisecond)
		r.wants("asked Al mesa")
	})
}

func TestTriggerOfYesterdayIsForgotten(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	w.board("rtp").scores["Bob"] = 2
	inBubble(t, w, func(r *rig) { r.wants("up life-1, joined Bob") })
}

// TestTriggerOfAnEarlierVisitIsForgotten: what was typed as the connection died is not done at the next visit, which
// begins with a trigger that is open.
func TestTriggerOfAnEarlierVisitIsForgotten(t *testing.T) {
	for name, away := range map[string]time.Duration{"seen to leave": 3 * time.Second, "back at once": 1100 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld()
			w.join("Bob", "Al", "Cy", "Di", "Ed", "Flo")
			inBubble(t, w, func(r *rig) {
				r.pass(200 * time.Millisecond) // between two looks
				r.heard.take()
				all := []string{"Bob", "Al", "Cy", "Di", "Ed", "Flo"}
				for _, name := range all {
					if !w.trigger(name, 2) {
						r.Errorf("%s cannot use the trigger", name)
					}
					w.leave(name)
				}
				r.pass(away)
				w.join(all...)
				r.pass(5 * time.Second)
				if got := r.heard.take(); strings.Contains(got, "asked") || !strings.Contains(got, "joined Bob") {
					r.Errorf("heard %q", got)
				}
				if !w.trigger("Bob", 1) {
					r.Error("the trigger is not open at the next visit")
				}
				r.pass(1500 * time.Millisecond)
				r.wants("asked Bob ")
			})
		})
	}
}

func TestTriggerThatCannotBeResetAsksOnce(t *testing.T) {
	w := newFakeWorld()
	w.join("Bob")
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		gate, first := make(chan struct{}), true
		w.set(func() {
			w.hook = func(c string) {
				if strings.Contains(c, "reset Bob") && first {
					first = false
					<-gate // longer than the time-out: the outcome stays unknown
				}
			}
		})
		w.trigger("Bob", 1)
		r.pass(4500 * time.Millisecond)
		r.wants("asked Bob , down")
		close(gate)
		r.pass(5 * time.Second)
		r.wants("up life-1")
	})
}

func TestExpectedPlayerIsSeenSoon(t *testing.T) {
	w := newFakeWorld()
	inBubble(t, w, func(r *rig) {
		r.heard.take()
		r.car.Expect(actors.Player{Name: "Bob"}, 20*time.Second) // the promise may know another id
		r.car.Expect(actors.Player{Name: "evil name"}, 20*time.Second)
		var worst time.Duration
		for range 10 {
			r.pass(700 * time.Millisecond)
			w.join("Bob")
			start := time.Now()
			for r.heard.take() == "" {
				r.pass(10 * time.Millisecond)
			}
			worst = max(worst, time.Since(start))
			w.leave("Bob")
			r.pass(4 * time.Second)
			r.heard.take()
			r.car.Expect(actors.Player{Name: "Bob"}, 20*time.Second)
		}
		if worst > 700*time.Millisecond {
			r.Errorf("seen after %v", worst)
		}
		for _, c := range r.server.commands() {
			if strings.Contains(c, "evil") {
				r.Errorf("sent %q", c)
			}
		}
	})
}

func TestManyExpectedPlayersCostOneListEach(t *testing.T) {
	w := newFakeWorld()
	inBubble(t, w, func(r *rig) {
		for i := range 20 {
			r.car.Expect(actors.Player{Name: fmt.Sprintf("Bot%d", i)}, 20*time.Second)
		}
		before := len(r.server.commands())
		r.pass(3 * time.Second)
		for i := range 20 {
			w.join(fmt.Sprintf("Bot%d", i))
		}
		r.heard.take()
		r.pass(800 * time.Millisecond)
		if got := strings.Count(r.heard.take(), "joined"); got != 20 {
			r.Errorf("%d of 20 seen", got)
		}
		for _, c := range r.server.commands()[before:] {
			if strings.HasPrefix(c, "data get entity Bot") {
				r.Errorf("looked one by one: %s", c)
			}
		}
	})
}

func TestPollsStayWithinThreeCommandsASecond(t *testing.T) {
	for name, expect := range map[string]int{"idle": 0, "one promised": 1, "five promised": 5} {
		t.Run(name, func(t *testing.T) {
			w := newFakeWorld()
			for i := range 40 {
				w.join(fmt.Sprintf("P%d", i))
			}
			inBubble(t, w, func(r *rig) {
				for i := range expect {
					r.car.Expect(actors.Player{Name: fmt.Sprintf("Bot%d", i)}, time.Hour)
				}
				r.pass(5 * time.Second)
				before := len(r.server.commands())
				r.pass(time.Minute)
				seen := r.server.commands()[before:]
				if len(seen) > 181 {
					r.Errorf("%d commands in a minute", len(seen))
				}
				for _, c := range []string{"list uuids", "execute if entity @a[scores={rtp=1..}]", "tick query"} {
					if n := len(slices.DeleteFunc(slices.Clone(seen), func(s string) bool { return s != c })); n < 12 {
						r.Errorf("%s only %d times in a minute", c, n)
					}
				}
				r.Logf("%d commands in a minute", len(seen))
			})
		})
	}
}
