package api

import (
	"context"
	"net/http"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

type (
	// LineQuery asks who waits.
	LineQuery struct {
		Region string `query:"region" json:"region,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"Only those whom this region could serve."`
		Limit  int    `query:"limit" json:"limit,omitempty" minimum:"0" maximum:"10000" doc:"At most so many; left out: 100."`
	}
	// Line is everybody who waits, in the order in which they are served.
	Line struct {
		Length  int      `json:"length" doc:"How many wait, over all lanes."`
		Paused  bool     `json:"paused" doc:"An operator has stopped it."`
		Waiting []InLine `json:"waiting"`
	}
	// InLine is one who waits.
	InLine struct {
		Transfer   string      `json:"transfer" format:"uuid"`
		Player     string      `json:"player" format:"uuid"`
		Name       string      `json:"name"`
		Place      uint64      `json:"place"`
		Position   int         `json:"position" doc:"Among those with the same wish, 1 is next."`
		EtaSeconds *float64    `json:"etaSeconds,omitempty"`
		Wish       events.Wish `json:"wish" doc:"The lane."`
		Server     string      `json:"server" doc:"Where the player is, or was last."`
		Online     bool        `json:"online"`
	}

	// Nothing is the input of what needs none.
	Nothing struct{}

	// Fleet is every host as it beats.
	Fleet struct {
		Seq      uint64    `json:"seq" doc:"Of the newest heartbeat."`
		Killed   bool      `json:"killed" doc:"New transfers are switched off."`
		Backends []Backend `json:"backends"`
		Proxies  []Proxy   `json:"proxies"`
	}
	// Backend is one game server.
	Backend struct {
		events.BackendBeat
		Seq    uint64 `json:"seq"`
		AgeMs  int64  `json:"ageMs" doc:"Since its last heartbeat."`
		Silent bool   `json:"silent" doc:"For longer than loadBalancer.staleAfterMs: it is not chosen."`
		// Control is what operators decided about it.
		Control []string `json:"control" doc:"What operators decided about it: drained, evacuated, paused."`
	}
	// Proxy is one dispatcher.
	Proxy struct {
		events.ProxyBeat
		Seq    uint64 `json:"seq"`
		AgeMs  int64  `json:"ageMs"`
		Silent bool   `json:"silent"`
	}
)

func (s *Service) routeNetwork() {
	addPlain(s, route{
		name: "line.get", method: http.MethodGet, path: "/v1/line", scope: events.ScopeRead, tag: "network",
		summary: "Who waits, in order", doc: "The same on every host at the same sequence.",
	}, s.getLine)
	addPlain(s, route{
		name: "fleet.get", method: http.MethodGet, path: "/v1/fleet", scope: events.ScopeRead, tag: "network",
		summary: "The hosts as they beat", doc: "The last heartbeat of every game server and dispatcher, with its age by this host's clock.",
	}, s.getFleet)
}

// defaultLine is how many who wait are shown unless more are asked for.
const defaultLine = 100

func (s *Service) getLine(_ context.Context, in *LineQuery) (*Line, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	limit := in.Limit
	if limit == 0 {
		limit = defaultLine
	}
	view := b.Dispatcher.View()
	out := &Line{Paused: view.Controls().LinePaused(), Waiting: []InLine{}}
	lanes := map[events.Wish]int{}
	var wishes []events.Wish
	view.InOrder(func(q projections.Queued) bool {
		out.Length++
		lanes[q.Wish]++
		if len(out.Waiting) < limit && (in.Region == "" || q.Wish.Region == "" || q.Wish.Region == in.Region) {
			wishes = append(wishes, q.Wish)
			out.Waiting = append(out.Waiting, InLine{
				Transfer: q.Transfer.String(), Player: q.Player.String(), Name: q.Session.Name, Place: q.Place, Position: lanes[q.Wish],
				Wish: q.Wish, Server: string(q.Session.Server), Online: q.Session.Open,
			})
		}
		return true
	})
	for i := range out.Waiting {
		out.Waiting[i].EtaSeconds = s.eta(b, wishes[i], out.Waiting[i].Position)
	}
	return out, nil
}

func (s *Service) getFleet(context.Context, *Nothing) (*Fleet, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	f, controls, stale := b.Dispatcher.View().Fleet(), b.Dispatcher.View().Controls(), b.Dispatcher.Stale()
	now := s.cfg.Now()
	age := func(seen time.Time) (int64, bool) { return now.Sub(seen).Milliseconds(), f.Silence(seen, now) > stale }
	out := &Fleet{Seq: f.Seq, Killed: controls.Killed, Backends: make([]Backend, 0, len(f.Backends)), Proxies: make([]Proxy, 0, len(f.Proxies))}
	for _, x := range f.Backends {
		row := Backend{BackendBeat: x.BackendBeat, Seq: x.Seq, Control: decidedOn(controls, x.Server)}
		row.AgeMs, row.Silent = age(x.Seen)
		if row.Regions == nil {
			row.Regions = []events.RegionBeat{}
		}
		out.Backends = append(out.Backends, row)
	}
	for _, x := range f.Proxies {
		row := Proxy{ProxyBeat: x.ProxyBeat, Seq: x.Seq}
		row.AgeMs, row.Silent = age(x.Seen)
		out.Proxies = append(out.Proxies, row)
	}
	return out, nil
}

func decidedOn(c projections.Controls, id events.HostID) []string {
	out := []string{}
	for _, x := range []struct {
		is   bool
		name string
	}{
		{c.Drained[id] != nil, "drained"},
		{c.Evacuated[id] != nil, "evacuated"},
		{c.Paused[events.PauseKey(events.PauseServer, string(id))] != nil, "paused"},
	} {
		if x.is {
			out = append(out, x.name)
		}
	}
	return out
}
