package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

type (
	// Reason is who decides, and why; both stand in the log.
	Reason struct {
		Who string `json:"who,omitempty" maxLength:"128" doc:"Who stands behind it; the name of the token stands before it in the log."`
		Why string `json:"why,omitempty" maxLength:"512" doc:"Why; shown to operators."`
	}
	// KillOrder switches new transfers off, or on again.
	KillOrder struct {
		On bool `json:"on"`
		Reason
	}
	// DrainOrder takes a host out, or puts it back.
	DrainOrder struct {
		Host  string `json:"host" pattern:"^[A-Za-z0-9_-]{1,63}$"`
		On    bool   `json:"on"`
		Force bool   `json:"force,omitempty" doc:"Although nobody of that name is known: it may not have started yet."`
		Reason
	}
	// PauseOrder stops grants, or lets them go on.
	PauseOrder struct {
		What  string `json:"what" enum:"line,server,region"`
		Name  string `json:"name,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"Of the server or the region."`
		On    bool   `json:"on"`
		Force bool   `json:"force,omitempty" doc:"Although nobody of that name is known: it may not have started yet."`
		Reason
	}
	// EvacuateOrder moves the players of a server away, or lets it be chosen again.
	EvacuateOrder struct {
		Host      string  `json:"host" pattern:"^[A-Za-z0-9_-]{1,63}$"`
		On        bool    `json:"on"`
		PerSecond float64 `json:"perSecond,omitempty" minimum:"0.1" maximum:"1000" doc:"How many players are asked to go in a second; left out: 2."`
		Force     bool    `json:"force,omitempty" doc:"Although nobody of that name is known: it may not have started yet."`
		Reason
	}
	// Decreed says where a decision stands.
	Decreed struct {
		Seq uint64 `json:"seq" doc:"In the bucket control."`
		Key string `json:"key"`
		Who string `json:"who"`
	}
	// Control is what operators have decided, as it holds.
	Control struct {
		Killed    *events.KillSet      `json:"killed,omitempty" doc:"Absent: transfers are on."`
		Drained   []events.DrainSet    `json:"drained"`
		Paused    []events.PauseSet    `json:"paused"`
		Evacuated []events.EvacuateSet `json:"evacuated"`
	}
)

func (s *Service) routeControl() {
	codes := []events.Code{events.NotKnown, events.Disabled}
	addPlain(s, route{
		name: "control.get", method: http.MethodGet, path: "/v1/control", scope: events.ScopeRead, tag: "control",
		summary: "What operators have decided", doc: "As it holds on this host.",
	}, s.getControl)
	addBody(s, route{
		name: "control.kill", method: http.MethodPost, path: "/v1/control/kill", scope: events.ScopeControl, tag: "control", codes: codes[1:],
		summary: "Stop new transfers on the whole network, or allow them again", doc: "As `landfall kill` does.",
	}, func(ctx context.Context, in *KillOrder) (*Decreed, error) {
		who := callerOf(ctx).who(in.Who)
		return s.decree(ctx, events.KillKey, who, &events.KillSet{On: in.On, Who: who, Why: in.Why})
	})
	addBody(s, route{
		name: "control.drain", method: http.MethodPost, path: "/v1/control/drain", scope: events.ScopeControl, tag: "control", codes: codes,
		summary: "Take one host out, or put it back", doc: "As `landfall drain` does.",
	}, s.drain)
	addBody(s, route{
		name: "control.pause", method: http.MethodPost, path: "/v1/control/pause", scope: events.ScopeControl, tag: "control", codes: codes,
		summary: "Give out no more places in line, on a server or in a region, or go on", doc: "As `landfall pause` does.",
	}, s.pause)
	addBody(s, route{
		name: "control.evacuate", method: http.MethodPost, path: "/v1/control/evacuate", scope: events.ScopeControl, tag: "control", codes: codes,
		summary: "Move the players of a server away and take it out, or put it back", doc: "As `landfall evacuate --no-wait` does.",
	}, s.evacuate)
}

// decree writes a decision, and waits until this host obeys it.
func (s *Service) decree(ctx context.Context, key, who string, f events.Fact) (*Decreed, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	if b.Operator == nil {
		return nil, refuse(events.Disabled, "this host takes no decisions")
	}
	seq, err := b.Operator.Decree(ctx, key, f)
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.Info("decided over the API", "key", key, "seq", seq, "who", who)
	if err := b.Dispatcher.View().WaitFolded(ctx, events.Control, seq); err != nil {
		return nil, err
	}
	return &Decreed{Seq: seq, Key: key, Who: who}, nil
}

func (s *Service) drain(ctx context.Context, in *DrainOrder) (*Decreed, error) {
	id, who := events.HostID(in.Host), callerOf(ctx).who(in.Who)
	if p := s.known(in.Force, in.Host, "host", func(f *projections.Fleet, c projections.Controls) []string {
		return append(append(servers(f, c), proxies(f)...), names(c.Drained)...)
	}); p != nil {
		return nil, p
	}
	return s.decree(ctx, events.DrainKey(id), who, &events.DrainSet{Host: id, On: in.On, Who: who, Why: in.Why})
}

func (s *Service) pause(ctx context.Context, in *PauseOrder) (*Decreed, error) {
	what, who := events.PauseWhat(in.What), callerOf(ctx).who(in.Who)
	if (what == events.PauseLine) != (in.Name == "") {
		return nil, refuse(events.BadRequest, "a server and a region have a name, the line has none")
	}
	var p *Problem
	switch what {
	case events.PauseServer:
		p = s.known(in.Force, in.Name, "server", servers)
	case events.PauseRegion:
		p = s.known(in.Force, in.Name, "region", regions)
	case events.PauseLine:
	}
	if p != nil {
		return nil, p
	}
	return s.decree(ctx, events.PauseKey(what, in.Name), who, &events.PauseSet{What: what, Name: in.Name, On: in.On, Who: who, Why: in.Why})
}

func (s *Service) evacuate(ctx context.Context, in *EvacuateOrder) (*Decreed, error) {
	id, who := events.HostID(in.Host), callerOf(ctx).who(in.Who)
	if p := s.known(in.Force, in.Host, "server", servers); p != nil {
		return nil, p
	}
	pace := cmp.Or(in.PerSecond, actors.EvacuationRate)
	return s.decree(ctx, events.EvacuateKey(id), who, &events.EvacuateSet{Host: id, On: in.On, PerSecond: pace, Who: who, Why: in.Why})
}

// known refuses a name that nobody bears, unless that is meant.
func (s *Service) known(force bool, name, what string, list func(*projections.Fleet, projections.Controls) []string) *Problem {
	b, p := s.ready()
	if p != nil || force {
		return p
	}
	names := list(b.Dispatcher.View().Fleet(), b.Dispatcher.View().Controls())
	if slices.Contains(names, name) {
		return nil
	}
	slices.Sort(names)
	return refuse(events.NotKnown, fmt.Sprintf("no %s %q is known; known: %v; with force it is decided all the same", what, name, slices.Compact(names)))
}

func servers(f *projections.Fleet, c projections.Controls) []string {
	out := names(c.Evacuated)
	for _, b := range f.Backends {
		out = append(out, string(b.Server))
	}
	for _, p := range c.Paused {
		if p.What == events.PauseServer {
			out = append(out, p.Name)
		}
	}
	return out
}

func proxies(f *projections.Fleet) []string {
	var out []string
	for _, p := range f.Proxies {
		out = append(out, string(p.Proxy))
	}
	return out
}

func regions(f *projections.Fleet, c projections.Controls) []string {
	var out []string
	for _, b := range f.Backends {
		for i := range b.Regions {
			out = append(out, b.Regions[i].Name)
		}
	}
	for _, p := range c.Paused {
		if p.What == events.PauseRegion {
			out = append(out, p.Name)
		}
	}
	return out
}

func names[V any](m map[events.HostID]V) []string {
	out := make([]string, 0, len(m))
	for id := range m {
		out = append(out, string(id))
	}
	return out
}

func (s *Service) getControl(context.Context, *Nothing) (*Control, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	c := b.Dispatcher.View().Controls()
	out := &Control{Drained: values(c.Drained), Paused: values(c.Paused), Evacuated: values(c.Evacuated)}
	if c.Killed {
		out.Killed = c.Kill
	}
	return out, nil
}

// values are those of a map, in the order of its keys.
func values[K cmp.Ordered, V any](m map[K]*V) []V {
	out := make([]V, 0, len(m))
	for _, key := range slices.Sorted(maps.Keys(m)) {
		out = append(out, *m[key])
	}
	return out
}
