package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/landfall/landfall/actors/sim"
	"github.com/landfall/landfall/events"
)

// roleCost is what a role of the demo's network costs this process while nobody asks for
// anything: the difference to the network without it.
type roleCost struct {
	Role     string  `json:"role"`
	Hosts    int     `json:"hosts"`
	CPU      float64 `json:"cpu"`       // cores, all hosts together
	HeapMB   float64 `json:"heapMB"`    // held, all hosts together
	PerHost  float64 `json:"cpuOfHost"` // cores
	HostKB   float64 `json:"heapOfHostKB"`
	Beats    float64 `json:"beats"`    // heartbeats a second in the log, of all hosts so far: fewer than hosts tell that the machine is too busy
	Measured bool    `json:"measured"` // false: the system does not say what CPU a process uses
}

// String is the line for people.
func (r roleCost) String() string {
	return fmt.Sprintf("%-9s %4d   CPU %6.3f cores, %8.5f each   heap %7.1f MB, %8.0f KB each   %7.1f heartbeats a second",
		r.Role, r.Hosts, r.CPU, r.PerHost, r.HeapMB, r.HostKB, r.Beats)
}

// roleMeter measures one role after the other, as they are begun.
type roleMeter struct {
	window time.Duration
	beaten func() uint64 // heartbeats in the log so far
	say    func(roleCost)

	cpu  float64 // of all roles before, in cores
	heap float64 // likewise, in bytes
}

// settleRoles is how long a role is left alone at most before it is measured: what it does once is over.
const settleRoles = 5 * time.Second

// measure takes the difference that one more role makes. It blocks for the window and what comes before it.
func (m *roleMeter) measure(ctx context.Context, role string, hosts int) {
	if !pause(ctx, min(settleRoles, m.window)) {
		return
	}
	before, known := cpuTime()
	began, beaten := time.Now(), m.beaten()
	if !pause(ctx, m.window) {
		return
	}
	took := time.Since(began)
	after, _ := cpuTime()
	beats := float64(m.beaten()-beaten) / took.Seconds()
	cpu, heap := float64(after-before)/float64(took), heapHeld()
	r := roleCost{Role: role, Hosts: hosts, CPU: cpu - m.cpu, HeapMB: (heap - m.heap) / 1e6, Beats: beats, Measured: known}
	r.PerHost, r.HostKB = r.CPU/float64(hosts), r.HeapMB*1000/float64(hosts)
	m.cpu, m.heap = cpu, heap
	m.say(r)
}

// heapHeld is what the process holds on its heap once it has been cleared.
func heapHeld() float64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc)
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// costs measures the parts of a stage as they are raised; nil when nobody wants to know.
func (r *demoRun) costs(ctx context.Context) func(context.Context, sim.Part) {
	if r.o.measure == 0 {
		return nil
	}
	m := &roleMeter{window: r.o.measure, beaten: func() uint64 {
		info, err := r.conns[0].Info(ctx, events.Fleet)
		if err != nil {
			return 0
		}
		return info.Last
	}, say: func(c roleCost) {
		r.roles = append(r.roles, c)
		if !r.o.json {
			_ = r.out.print(c)
		}
	}}
	m.measure(ctx, "store", 1)
	hosts := map[sim.Part]int{sim.BackendsUp: r.o.backends, sim.ProxiesUp: r.o.proxies}
	return func(ctx context.Context, p sim.Part) { m.measure(ctx, string(p), hosts[p]) }
}
