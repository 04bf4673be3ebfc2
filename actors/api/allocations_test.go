package api_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/actors/api"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/streams/streamtest"
)

// instance runs an instance until the test ends, and waits until the API's host sees it.
func (n *network) instance(id events.HostID, seats int, zones ...actors.Zone) *actors.Instance {
	n.t.Helper()
	conn := n.mem.Client("instance " + string(id))
	i, err := actors.NewInstance(actors.InstanceConfig{
		Identity: identity(events.SourceBackend, id), Log: conn, Bus: conn, Logger: logger(n.t), Realm: "eu", Region: "west", MaxPlayers: seats, Zones: zones,
		Endpoints: func() (events.EndpointBeat, events.EndpointBeat) {
			return events.EndpointBeat{Address: "10.0.0.9:80", Health: events.EndpointHealthy}, events.EndpointBeat{Address: "10.0.0.9:4433", Health: events.EndpointHealthy}
		},
	})
	if err != nil {
		n.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(n.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = i.Run(ctx) })
	n.t.Cleanup(func() { cancel(); running.Wait() })
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		if x := n.stage.Observer().View().Fleet().Instance(id); x != nil && x.State == events.Ready {
			return i
		}
		<-look.C
	}
}

// A seat is taken over HTTP, is the same when asked for again, and admits the player who shows the token.
func TestASeatIsAllocated(t *testing.T) {
	n := open(t)
	i := n.instance("zone-1", 2, actors.Zone{Name: "harbor", MaxPlayers: 2})
	token := n.token(events.ScopeAllocate, events.ScopeRead)
	r := n.call("POST", "/v1/allocations", token, `{"player":"u-17","region":"west"}`, "Idempotency-Key", "login-1")
	var a, again api.Allocation
	if r.into(t, &a); r.status != http.StatusCreated || a.Placement != "zone-1" || a.Gameplay.Address != "10.0.0.9:4433" || a.Degraded || a.ExpiresMs <= 0 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	n.call("POST", "/v1/allocations", token, `{"player":"u-17","region":"west"}`, "Idempotency-Key", "login-1").into(t, &again)
	if again.Token != a.Token {
		t.Errorf("%+v, then %+v", a, again)
	}
	seat, err := events.ParseToken(a.Token)
	if err != nil {
		t.Fatal(err)
	}
	who := actors.Player{ID: events.NativePlayer("allocation", "u-17"), Name: "u-17"}
	if refusal := i.Admit(t.Context(), who, seat, streamtest.NewID[events.JoinID]()); refusal != nil {
		t.Fatal(refusal)
	}
	var done api.Transfer
	n.call("GET", "/v1/transfers/"+a.Transfer+"?waitMs=5000&after=999999", token, "").into(t, &done)
	if done.Phase != "COMPLETED" || done.Trigger != "allocate" {
		t.Errorf("%+v", done)
	}
	var all api.Instances
	n.call("GET", "/v1/instances", token, "").into(t, &all)
	if len(all.Instances) != 1 || all.Instances[0].Silent || all.Instances[0].MaxPlayers != 2 {
		t.Errorf("%+v", all)
	}
}

// What is wrong with the request is 400, that nobody has room is 503 with the reasons.
func TestAllocationRefusals(t *testing.T) {
	n := open(t)
	token := n.token(events.ScopeAllocate)
	zone := func(scene, point string) reply {
		return n.call("POST", "/v1/zone-transfers", token, `{"player":"u-1","scene":"`+scene+`","entryPoint":"`+point+`"}`)
	}
	if r := zone("harbor/main", ""); r.status != http.StatusForbidden || r.code(t) != events.Disabled {
		t.Errorf("no table of scenes: %d %s", r.status, r.body)
	}
	n.service.SetAllocating(api.Allocating{Scenes: api.Scenes{
		"harbor/main": {Zone: "harbor", Points: map[string]events.Position{"default": {World: "harbor/main"}, "gate": {World: "harbor/main", X: 10, Y: 64, Z: -3}}},
		"moon":        {Zone: "moon", Points: map[string]events.Position{"default": {World: "moon"}}},
	}})
	if r := zone("harbor/main", ""); r.status != http.StatusServiceUnavailable || r.code(t) != events.NoCapacity {
		t.Errorf("no instance at all: %d %s", r.status, r.body)
	}
	n.instance("zone-1", 1, actors.Zone{Name: "harbor", MaxPlayers: 1})
	for _, bad := range []string{"Harbor/main", "harbor//main", "/harbor/main", "harbor/main/", "harbor/../main", "harbor main", "harbor/attic"} {
		if r := zone(bad, ""); r.status != http.StatusBadRequest || r.code(t) != events.BadScene {
			t.Errorf("%q: %d %s", bad, r.status, r.body)
		}
	}
	if r := zone("harbor/main", "cellar"); r.status != http.StatusBadRequest || r.code(t) != events.BadScene {
		t.Errorf("no such entry point: %d %s", r.status, r.body)
	}
	if r := zone("moon", ""); r.status != http.StatusServiceUnavailable || r.code(t) != events.NoCapacity || r.header.Get("Retry-After") == "" {
		t.Errorf("nobody hosts it: %d %s", r.status, r.body)
	}
	var a api.Allocation
	r := zone("harbor/main", "gate")
	if r.into(t, &a); r.status != http.StatusCreated || a.Scene != "harbor/main" || a.EntryPoint != "gate" || a.At == nil || a.At.X != 10 || a.Zone != "harbor" {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := n.call("POST", "/v1/allocations", token, `{"player":"u-2"}`); r.status != http.StatusServiceUnavailable || r.code(t) != events.NoCapacity {
		t.Errorf("full: %d %s", r.status, r.body)
	}
	if r := n.call("POST", "/v1/allocations", token, `{"player":"u-1","refused":"`+a.Token+`","why":"banned"}`); r.status != http.StatusServiceUnavailable || r.code(t) != events.NoCapacity {
		t.Errorf("refused by the only one: %d %s", r.status, r.body)
	}
	if r := n.call("POST", "/v1/allocations", token, `{"player":"u-1","refused":"x"}`); r.status != http.StatusUnprocessableEntity || r.code(t) != events.BadRequest {
		t.Errorf("not a token: %d %s", r.status, r.body)
	}
}
