package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"regexp"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// Scenes are the places that zone transfers lead to, by canonical path.
type Scenes map[string]Scene

// Scene is one place in a zone, with the points where players enter it.
type Scene struct {
	Zone   string
	Points map[string]events.Position // by name; "default" is meant when none is named
}

// DefaultPoint is where a player enters a scene unless another point is named.
const DefaultPoint = "default"

// canonical is the only spelling of a scene: lower case, no empty part, no dots.
var canonical = regexp.MustCompile(`^[a-z0-9_-]+(/[a-z0-9_-]+)*$`)

// IsCanonical tells that a text may name a scene.
func IsCanonical(path string) bool { return len(path) <= 128 && canonical.MatchString(path) }

// Allocating is what an operator says about allocation.
type Allocating struct {
	Scenes   Scenes
	Fallback events.HostID
}

type (
	// AllocationRequest asks for a seat on an instance.
	AllocationRequest struct {
		ID      string `json:"id,omitempty" maxLength:"64" pattern:"^[!-~]*$" doc:"Names this request, as the header Idempotency-Key does over HTTP."`
		Player  string `json:"player" minLength:"1" maxLength:"64" doc:"UUID, or the id that the game gives the player."`
		Name    string `json:"name,omitempty" maxLength:"64"`
		Realm   string `json:"realm,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"No other one will do."`
		Region  string `json:"region,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"Preferred; another one will do."`
		Zone    string `json:"zone,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"No other one will do."`
		Refused string `json:"refused,omitempty" maxLength:"64" doc:"A token whose instance refused the player: another seat, not there."`
		Why     string `json:"why,omitempty" maxLength:"256" doc:"With refused: the reason, for operators."`
	}
	// ZoneTransferRequest asks for a seat where a scene is.
	ZoneTransferRequest struct {
		ID         string `json:"id,omitempty" maxLength:"64" pattern:"^[!-~]*$" doc:"Names this request, as the header Idempotency-Key does over HTTP."`
		Player     string `json:"player" minLength:"1" maxLength:"64" doc:"UUID, or the id that the game gives the player."`
		Name       string `json:"name,omitempty" maxLength:"64"`
		Scene      string `json:"scene" minLength:"1" maxLength:"128" doc:"Canonical path of the table of scenes." example:"harbor/main"`
		EntryPoint string `json:"entryPoint,omitempty" maxLength:"63" doc:"Left out: default."`
		Realm      string `json:"realm,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"No other one will do."`
		Region     string `json:"region,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"Preferred; another one will do."`
		Refused    string `json:"refused,omitempty" maxLength:"64" doc:"A token whose instance refused the player: another seat, not there."`
		Why        string `json:"why,omitempty" maxLength:"256" doc:"With refused: the reason, for operators."`
	}
	// Allocation is a seat, held for a player by a token.
	Allocation struct {
		Transfer    string              `json:"transfer" format:"uuid"`
		Player      string              `json:"player" format:"uuid"`
		Token       string              `json:"token" doc:"What the player shows the instance: good once, there, for this player."`
		Placement   string              `json:"placement"`
		Incarnation string              `json:"incarnation" format:"uuid" doc:"The life that gave the seat."`
		Realm       string              `json:"realm,omitempty"`
		Region      string              `json:"region,omitempty"`
		Zone        string              `json:"zone,omitempty"`
		Scene       string              `json:"scene,omitempty"`
		EntryPoint  string              `json:"entryPoint,omitempty"`
		At          *events.Position    `json:"at,omitempty" doc:"Of the entry point."`
		Bootstrap   events.EndpointBeat `json:"bootstrap" doc:"Where the client begins."`
		Gameplay    events.EndpointBeat `json:"gameplay" doc:"Where it plays."`
		ExpiresMs   int64               `json:"expiresMs" doc:"How long the seat is held from now."`
		Degraded    bool                `json:"degraded" doc:"Nobody fitted: it is the fallback."`
	}

	// Instances are the newest lives of all instances.
	Instances struct {
		Seq       uint64     `json:"seq" doc:"Of the newest heartbeat."`
		Instances []Instance `json:"instances"`
	}
	// Instance is one of them.
	Instance struct {
		events.InstanceBeat
		Seq     uint64   `json:"seq"`
		AgeMs   int64    `json:"ageMs"`
		Silent  bool     `json:"silent" doc:"For longer than loadBalancer.staleAfterMs: it is not chosen."`
		Control []string `json:"control" doc:"What operators decided about it."`
	}
)

func (r *AllocationRequest) setKey(key string)   { r.ID = key }
func (r *ZoneTransferRequest) setKey(key string) { r.ID = key }

func (s *Service) routeAllocations() {
	codes := []events.Code{events.NoCapacity, events.KillSwitch, events.AlreadyMoving, events.TokenSpent, events.KeyReused, events.LogFull}
	addBody(s, route{
		name: "allocations.create", method: http.MethodPost, path: "/v1/allocations", status: http.StatusCreated, scope: events.ScopeAllocate, tag: "allocation",
		summary: "Take a seat on an instance", codes: codes,
		doc: "The instance itself gives the seat, and it is held by the token: nobody else can be given it meanwhile. The same player, or the same key, gets the same seat while it is held.",
	}, s.allocate)
	addBody(s, route{
		name: "zones.transfer", method: http.MethodPost, path: "/v1/zone-transfers", status: http.StatusCreated, scope: events.ScopeAllocate, tag: "allocation",
		summary: "Take a seat where a scene is", codes: append([]events.Code{events.BadScene, events.Disabled}, codes...),
		doc: "As an allocation in the zone of the scene, with the entry point resolved.",
	}, s.zoneTransfer)
	addPlain(s, route{
		name: "instances.get", method: http.MethodGet, path: "/v1/instances", scope: events.ScopeRead, tag: "allocation",
		summary: "The instances as they beat", doc: "The newest life of each, with the age of its last heartbeat by this host's clock.",
	}, s.getInstances)
}

// SetAllocating replaces what operators say about allocation. It does not block.
func (s *Service) SetAllocating(a Allocating) { s.allocating.Store(&a) }

func (s *Service) allocate(ctx context.Context, in *AllocationRequest) (*Allocation, error) {
	return s.seat(ctx, in, nil, "")
}

func (s *Service) zoneTransfer(ctx context.Context, in *ZoneTransferRequest) (*Allocation, error) {
	scenes := s.allocating.Load().Scenes
	if scenes == nil {
		return nil, refuse(events.Disabled, "allocation.scenes names no table of scenes")
	}
	if !IsCanonical(in.Scene) {
		return nil, refuse(events.BadScene, fmt.Sprintf("%q is not canonical: want parts of a-z 0-9 _ - separated by single slashes", in.Scene))
	}
	scene, known := scenes[in.Scene]
	if !known {
		return nil, refuse(events.BadScene, fmt.Sprintf("%q is not in the table of scenes", in.Scene))
	}
	point := cmp.Or(in.EntryPoint, DefaultPoint)
	if _, known := scene.Points[point]; !known {
		return nil, refuse(events.BadScene, fmt.Sprintf("%s has no entry point %q", in.Scene, point))
	}
	a := AllocationRequest{ID: in.ID, Player: in.Player, Name: in.Name, Realm: in.Realm, Region: in.Region, Zone: scene.Zone, Refused: in.Refused, Why: in.Why}
	return s.seat(ctx, &a, &in.Scene, point)
}

// seat takes a seat; scene is nil for one anywhere in a zone.
func (s *Service) seat(ctx context.Context, in *AllocationRequest, scene *string, point string) (*Allocation, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	player, err := events.ParseID[events.PlayerID](in.Player)
	native := ""
	if err != nil {
		player, native = events.NativePlayer("allocation", in.Player), in.Player
	}
	conf := s.allocating.Load()
	q := actors.AllocationAsk{
		Player: player, NativeID: native, Name: cmp.Or(in.Name, in.Player), Transfer: s.requestID(ctx, in.ID), Via: callerOf(ctx).Name, Fallback: conf.Fallback,
		Seat: actors.Seat{Realm: in.Realm, Region: in.Region, Zone: in.Zone},
	}
	if scene != nil {
		q.Seat.Scene = *scene
	}
	var a actors.Allocation
	var refusal *events.Refusal
	if in.Refused != "" {
		token, err := events.ParseToken(in.Refused)
		if err != nil {
			return nil, refuse(events.BadRequest, "refused: "+err.Error())
		}
		a, refusal = b.Dispatcher.Reallocate(ctx, q, token, in.Why)
	} else {
		if t, known := b.Dispatcher.View().Transfer(q.Transfer); known && t.Player != player {
			return nil, refuse(events.KeyReused, "the id is that of another player's request")
		}
		a, refusal = b.Dispatcher.Allocate(ctx, q)
	}
	if refusal != nil {
		return nil, refusal
	}
	return conf.show(a, scene, point), nil
}

func (conf *Allocating) show(a actors.Allocation, scene *string, point string) *Allocation {
	t := a.Transfer
	out := &Allocation{
		Transfer: t.ID.String(), Player: t.Player.String(), Token: t.Token.String(), Placement: string(t.Destination()), Incarnation: t.Reserved.Incarnation.String(),
		Realm: a.Instance.Realm, Region: a.Instance.Region, Zone: t.Reserved.Region, Bootstrap: a.Instance.Bootstrap, Gameplay: a.Instance.Gameplay,
		ExpiresMs: a.ExpiresIn.Milliseconds(), Degraded: a.Degraded,
	}
	if scene != nil {
		at := conf.Scenes[*scene].Points[point]
		out.Scene, out.EntryPoint, out.At = *scene, point, &at
	}
	return out
}

func (s *Service) getInstances(context.Context, *Nothing) (*Instances, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	f, controls, now := b.Dispatcher.View().Fleet(), b.Dispatcher.View().Controls(), s.cfg.Now()
	out := &Instances{Seq: f.Seq, Instances: make([]Instance, 0, len(f.Instances))}
	for _, x := range f.Instances {
		out.Instances = append(out.Instances, Instance{
			InstanceBeat: x.InstanceBeat, Seq: x.Seq, AgeMs: now.Sub(x.Seen).Milliseconds(), Silent: f.Silence(x.Seen, now) > b.Dispatcher.Stale(),
			Control: decidedOn(controls, x.Placement),
		})
	}
	return out, nil
}
