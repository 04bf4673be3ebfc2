package actors

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams/streamtest"
)

// realm is a network that only allocates: API dispatchers and instances over the log in memory.
type realm struct {
	t       *testing.T
	ctx     context.Context
	mem     *streamtest.Memory
	running sync.WaitGroup
	apis    []*Dispatcher
}

func inRealm(t *testing.T, apis int, body func(r *realm)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		r := &realm{t: t, ctx: ctx, mem: streamtest.NewMemory(streamtest.WithLatency(time.Millisecond))}
		defer func() { cancel(); r.running.Wait() }()
		for n := range apis {
			id := events.HostID(fmt.Sprintf("api-%d", n+1))
			d, err := NewDispatcher(DispatcherConfig{
				Identity: newborn(events.SourceAPI, id), Log: r.mem.Client(string(id)), Bus: r.mem.Client(string(id)), Logger: logger(t), Kind: events.KindAPI,
			})
			if err != nil {
				t.Fatal(err)
			}
			r.running.Go(func() { _ = d.Run(ctx) })
			r.apis = append(r.apis, d)
		}
		eventually(t, "dispatchers see the log", func() bool {
			return !slices.ContainsFunc(r.apis, func(d *Dispatcher) bool { return !d.Ready() })
		})
		body(r)
	})
}

// newborn is an identity with a life of its own.
func newborn(kind events.SourceKind, id events.HostID) Identity {
	i := identity(kind, id)
	i.Source.Incarnation = streamtest.NewID[events.Incarnation]()
	return i
}

// life runs an instance until end is called, which is as kill -9 is: nothing leaves it any more.
func (r *realm) life(id events.HostID, change func(*InstanceConfig)) (i *Instance, end func()) {
	r.t.Helper()
	who := newborn(events.SourceBackend, id)
	conn := r.mem.Client(string(id) + who.Source.Incarnation.String())
	cfg := InstanceConfig{
		Identity: who, Log: conn, Bus: conn, Logger: logger(r.t), MaxPlayers: 10,
		Endpoints: func() (events.EndpointBeat, events.EndpointBeat) {
			at := events.EndpointBeat{Address: string(id) + ":1", Health: events.EndpointHealthy}
			return at, at
		},
	}
	if change != nil {
		change(&cfg)
	}
	i, err := NewInstance(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	r.running.Go(func() { _ = i.Run(ctx) })
	eventually(r.t, "every API sees the instance", func() bool { return r.sees(id, who.Source.Incarnation) })
	return i, func() { conn.Cut(); cancel() }
}

func (r *realm) sees(id events.HostID, inc events.Incarnation) bool {
	return !slices.ContainsFunc(r.apis, func(d *Dispatcher) bool {
		x := d.View().Fleet().Instance(id)
		return x == nil || x.Incarnation != inc || x.State != events.Ready
	})
}

func (r *realm) ask(n int, name string, seat Seat) (Allocation, *events.Refusal) {
	return r.apis[n%len(r.apis)].Allocate(r.ctx, AllocationAsk{
		Player: events.OfflinePlayer(name), Name: name, Transfer: streamtest.NewID[events.TransferID](), Seat: seat, Via: "test",
	})
}

// Two joiners were sent to the last seat at the same time: fifty ask for it over three processes,
// one gets it, the others hear that there is no room, and nobody hears of a conflict.
func TestCase007_TheLastSeatIsGivenOnce(t *testing.T) {
	inRealm(t, 3, func(r *realm) {
		i, _ := r.life("zone-1", func(c *InstanceConfig) { c.MaxPlayers = 1 })
		var mu sync.Mutex
		var won []Allocation
		codes := map[events.Code]int{}
		var callers sync.WaitGroup
		for n := range 50 {
			callers.Go(func() {
				a, refusal := r.ask(n, fmt.Sprintf("p%d", n), Seat{})
				mu.Lock()
				defer mu.Unlock()
				if refusal != nil {
					codes[refusal.Code]++
					if !strings.Contains(refusal.Detail, "zone-1") {
						t.Errorf("why not: %v", refusal)
					}
					return
				}
				won = append(won, a)
			})
		}
		callers.Wait()
		if len(won) != 1 || codes[events.NoCapacity] != 49 {
			t.Fatalf("%d got a seat, the others heard %v", len(won), codes)
		}
		if won[0].Transfer.Phase != projections.Claimed || won[0].Transfer.Token.IsZero() || i.beat().Outstanding != 1 {
			t.Errorf("%+v, outstanding %d", won[0], i.beat().Outstanding)
		}
		open := 0
		for _, x := range r.apis[0].View().Active() {
			if x.ID != won[0].Transfer.ID {
				open++
			}
		}
		if open != 0 {
			t.Errorf("%d requests are still open", open)
		}
	})
}

// A zone server is restarted while programs ask: after its successor's first heartbeat nobody gets a
// seat on the old life, although that one still beats.
func TestARestartedInstanceIsNotChosenAnyMore(t *testing.T) {
	inRealm(t, 2, func(r *realm) {
		old, _ := r.life("zone-1", nil)
		n := 0
		for ; n < 3; n++ {
			if a, refusal := r.ask(n, fmt.Sprintf("p%d", n), Seat{}); refusal != nil || a.Transfer.Reserved.Incarnation != old.cfg.Source.Incarnation {
				t.Fatalf("%+v %v", a, refusal)
			}
		}
		next, _ := r.life("zone-1", nil)
		for range 20 {
			n++
			a, refusal := r.ask(n, fmt.Sprintf("p%d", n), Seat{})
			if refusal == nil && a.Transfer.Reserved.Incarnation != next.cfg.Source.Incarnation {
				t.Fatalf("a seat on the old life: %+v", a.Transfer.Reserved)
			}
			if refusal != nil && n < 3+10 {
				t.Errorf("%d: %v", n, refusal)
			}
			passTime(100 * time.Millisecond) // the old life beats on
		}
	})
}

// An instance that crashes is not chosen any more once it has been silent for longer than staleness.
func TestACrashedInstanceDropsOut(t *testing.T) {
	inRealm(t, 1, func(r *realm) {
		_, kill := r.life("zone-1", nil)
		kill()
		died := time.Now()
		for n := 0; ; n++ {
			_, refusal := r.ask(n, fmt.Sprintf("p%d", n), Seat{})
			if refusal != nil && strings.Contains(refusal.Detail, "STALE") {
				break
			}
			if time.Since(died) > r.apis[0].Stale()+3*time.Second {
				t.Fatalf("%s after its death: %v", time.Since(died), refusal)
			}
			passTime(100 * time.Millisecond)
		}
	})
}

// The player comes with the token: the instance admits that player alone, once, and the log says so.
func TestAHandshakeConsumesTheSeat(t *testing.T) {
	inRealm(t, 2, func(r *realm) {
		i, _ := r.life("zone-1", func(c *InstanceConfig) { c.Zones = []Zone{{Name: "harbor", MaxPlayers: 2}} })
		a, refusal := r.ask(0, "Ada", Seat{Zone: "harbor", Scene: "harbor/main"})
		if refusal != nil || a.Transfer.Reserved.At.World != "harbor/main" {
			t.Fatalf("%+v %v", a, refusal)
		}
		again, refusal := r.ask(1, "Ada", Seat{Zone: "harbor", Scene: "harbor/main"})
		if refusal != nil || again.Transfer.Token != a.Transfer.Token {
			t.Errorf("asked again, another seat: %+v %v", again.Transfer.Token, refusal)
		}
		ada, join := Player{ID: events.OfflinePlayer("Ada"), Name: "Ada"}, streamtest.NewID[events.JoinID]()
		if refusal := i.Admit(r.ctx, Player{ID: events.OfflinePlayer("Eve"), Name: "Eve"}, a.Transfer.Token, join); refusal == nil || refusal.Code != events.WrongPlayer {
			t.Errorf("another player: %v", refusal)
		}
		if refusal := i.Admit(r.ctx, ada, a.Transfer.Token, join); refusal != nil {
			t.Fatalf("the handshake: %v", refusal)
		}
		eventually(t, "the log says that she is there", func() bool {
			x := r.apis[1].View().Player(ada.ID).Find(a.Transfer.ID)
			return x != nil && x.Phase == projections.Completed
		})
		if refusal := i.Admit(r.ctx, ada, a.Transfer.Token, join); refusal == nil {
			t.Error("the seat was taken twice")
		}
		if b := i.beat(); b.Players != 1 || b.Outstanding != 0 || b.Zone("harbor").Players != 1 {
			t.Errorf("%+v", b)
		}
		i.Left(ada.ID)
		if b := i.beat(); b.Players != 0 {
			t.Errorf("she left: %+v", b)
		}
	})
}

// The instance refuses at the handshake: another seat is taken, not there, under the same request.
func TestARefusedHandshakeIsAllocatedAnew(t *testing.T) {
	inRealm(t, 2, func(r *realm) {
		first, _ := r.life("zone-1", nil)
		r.life("zone-2", func(c *InstanceConfig) { c.MaxPlayers = 5 })
		a, refusal := r.ask(0, "Ada", Seat{})
		if refusal != nil || a.Instance.Placement != "zone-1" {
			t.Fatalf("%+v %v", a.Instance, refusal)
		}
		q := AllocationAsk{Player: events.OfflinePlayer("Ada"), Name: "Ada"}
		b, refusal := r.apis[1].Reallocate(r.ctx, q, a.Transfer.Token, "banned there")
		if refusal != nil || b.Instance.Placement != "zone-2" || b.Transfer.ID != a.Transfer.ID || b.Transfer.Token == a.Transfer.Token {
			t.Fatalf("%+v %v", b, refusal)
		}
		if c, refusal := r.apis[0].Reallocate(r.ctx, q, a.Transfer.Token, "again"); refusal != nil || c.Transfer.Token != b.Transfer.Token {
			t.Errorf("refused twice: %+v %v", c.Transfer.Token, refusal)
		}
		eventually(t, "the first seat is free again", func() bool { return first.beat().Outstanding == 0 })
		if _, refusal := r.apis[1].Reallocate(r.ctx, q, b.Transfer.Token, "nor there"); refusal == nil || refusal.Code == events.AlreadyMoving {
			// zone-1 may be asked again: only the last refuser is left out
			if x := r.apis[1].View().Player(q.Player).Active; x == nil || x.Destination() != "zone-1" {
				t.Errorf("%v, %+v", refusal, x)
			}
		} else {
			t.Errorf("%v", refusal)
		}
	})
}

// A seat that nobody takes ends by itself, in the log and on the instance; the player may ask again.
func TestASeatThatNobodyTakesEnds(t *testing.T) {
	inRealm(t, 2, func(r *realm) {
		i, _ := r.life("zone-1", func(c *InstanceConfig) { c.MaxPlayers = 1 })
		a, refusal := r.ask(0, "Ada", Seat{})
		if refusal != nil {
			t.Fatal(refusal)
		}
		eventually(t, "it has ended", func() bool {
			x := r.apis[1].View().Player(events.OfflinePlayer("Ada")).Find(a.Transfer.ID)
			return x != nil && x.Phase == projections.Failed && x.Code == events.NotArrived
		})
		eventually(t, "the seat is free", func() bool { return i.beat().Outstanding == 0 })
		passTime(2 * time.Second)
		if _, refusal := r.ask(1, "Bob", Seat{}); refusal != nil {
			t.Errorf("the next one: %v", refusal)
		}
	})
}

// Nobody fits: the fallback is asked all the same, and the seat says that it is one; it may refuse.
func TestAFallbackIsFlagged(t *testing.T) {
	inRealm(t, 1, func(r *realm) {
		r.life("spare", func(c *InstanceConfig) { c.Region, c.MaxPlayers = "eu", 1 })
		q := AllocationAsk{Player: events.OfflinePlayer("Ada"), Name: "Ada", Transfer: first, Seat: Seat{Realm: "us"}, Fallback: "spare"}
		a, refusal := r.apis[0].Allocate(r.ctx, q)
		if refusal != nil || !a.Degraded || a.Instance.Placement != "spare" {
			t.Fatalf("%+v %v", a, refusal)
		}
		q.Player, q.Transfer = events.OfflinePlayer("Bob"), second
		if _, refusal := r.apis[0].Allocate(r.ctx, q); refusal == nil || refusal.Code != events.NoCapacity {
			t.Errorf("a full fallback: %v", refusal)
		}
	})
}
