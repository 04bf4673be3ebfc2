package api

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

type (
	// TransferRequest asks for a player to be moved.
	TransferRequest struct {
		ID     string `json:"id,omitempty" maxLength:"64" pattern:"^[!-~]*$" doc:"Names this request, as the header Idempotency-Key does over HTTP."`
		Player string `json:"player" minLength:"1" maxLength:"64" doc:"UUID, or the name of somebody on the network." example:"Ada"`
		Region string `json:"region,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"Where to; left out: any region."`
		World  string `json:"world,omitempty" maxLength:"128" doc:"Only in this world, such as minecraft:the_nether."`
		Server string `json:"server,omitempty" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"To this server and no other."`
		Bypass bool   `json:"bypass,omitempty" doc:"Ahead of the line: at once or not at all."`
		Wait   bool   `json:"wait,omitempty" doc:"With server: the player may wait in line for it."`
	}

	// Transfer is one player's journey as the log tells it.
	Transfer struct {
		Transfer   string           `json:"transfer" format:"uuid"`
		Player     string           `json:"player" format:"uuid"`
		Name       string           `json:"name,omitempty"`
		Phase      string           `json:"phase" enum:"REQUESTED,WAITING,PENDING,CLAIMED,CONSUMED,COMPLETED,FAILED,CANCELLED,SUPERSEDED" doc:"Where it stands; the last four are ends."`
		Code       string           `json:"code,omitempty" doc:"How it ended: OK, or the reason."`
		Seq        uint64           `json:"seq,omitempty" doc:"Sequence of its newest fact: give it back as after."`
		Place      uint64           `json:"place,omitempty" doc:"Its place in line for good: lower is served first."`
		Position   int              `json:"position,omitempty" doc:"In line among those with the same wish, 1 is next; absent: not in line."`
		EtaSeconds *float64         `json:"etaSeconds,omitempty" doc:"How long the wait may be; absent: nobody knows."`
		Trigger    string           `json:"trigger,omitempty" doc:"What set it off."`
		Attempts   int              `json:"attempts,omitempty" doc:"How many tokens were reserved for it."`
		Token      string           `json:"token,omitempty" doc:"The one that stands."`
		Server     string           `json:"server,omitempty" doc:"The destination of that token."`
		Region     string           `json:"region,omitempty"`
		At         *events.Position `json:"at,omitempty" doc:"The place that is promised there."`
	}

	// TransferQuery asks how a transfer stands.
	TransferQuery struct {
		Transfer string `path:"transfer" json:"transfer" format:"uuid"`
		Player   string `query:"player" json:"player,omitempty" maxLength:"64" doc:"Whose it is: finds one that ended long ago, or before this host began."`
		After    uint64 `query:"after" json:"after,omitempty" doc:"Wait for a fact above this sequence, or for the end."`
		WaitMs   int    `query:"waitMs" json:"waitMs,omitempty" minimum:"0" maximum:"60000" doc:"How long to wait for it, in milliseconds; the answer then is how it stands."`
	}

	// TransferCancel takes a wish back.
	TransferCancel struct {
		Transfer string `path:"transfer" json:"transfer" format:"uuid"`
	}

	// TriggerFire says that an event happened for a player.
	TriggerFire struct {
		ID     string `json:"id,omitempty" maxLength:"64" pattern:"^[!-~]*$" doc:"Names this request, as the header Idempotency-Key does over HTTP."`
		Event  string `json:"event" pattern:"^[A-Za-z0-9_-]{1,63}$" doc:"A name of triggers.event.map in network.yml." example:"arena-end"`
		Player string `json:"player" minLength:"1" maxLength:"64" doc:"UUID, or the name of somebody on the network."`
	}

	// PlayerQuery names a player.
	PlayerQuery struct {
		Player string `path:"player" json:"player" minLength:"1" maxLength:"64" doc:"UUID, or the name of somebody on the network."`
	}

	// Player is where a player is, and what is under way.
	Player struct {
		Player string     `json:"player" format:"uuid"`
		Name   string     `json:"name"`
		Online bool       `json:"online"`
		Server string     `json:"server" doc:"Where the player is, or was last."`
		Holder string     `json:"holder" doc:"The host that holds the connection."`
		Kind   string     `json:"kind" doc:"How: edge, relay, direct or api."`
		Active *Transfer  `json:"active,omitempty" doc:"The transfer under way."`
		Done   []Transfer `json:"done" doc:"Those that ended of late, oldest first."`
	}
)

func (r *TransferRequest) setKey(key string) { r.ID = key }
func (r *TriggerFire) setKey(key string)     { r.ID = key }

func (s *Service) routeTransfers() {
	asked := []events.Code{
		events.NotHere, events.AlreadyMoving, events.KillSwitch, events.LineFull, events.RegionMissing, events.Disabled, events.Resting,
		events.LimitReached, events.LogFull, events.KeyReused, events.NotKnown,
	}
	addBody(s, route{
		name: "transfers.request", method: http.MethodPost, path: "/v1/transfers", status: http.StatusAccepted, scope: events.ScopeTransfer, tag: "transfers",
		summary: "Ask for a player to be moved", codes: asked,
		doc: "Opens a transfer, or gives the one under way when it has the same wish. A stronger wish replaces one that has not been claimed. How it goes on is to be asked or followed.",
	}, s.requestTransfer)
	addPlain(s, route{
		name: "transfers.get", method: http.MethodGet, path: "/v1/transfers/{transfer}", scope: events.ScopeRead, tag: "transfers",
		summary: "How a transfer stands", codes: []events.Code{events.NotKnown},
		doc: "At once, or with after and waitMs as soon as there is news: a long poll.",
	}, s.getTransfer)
	addPlain(s, route{
		name: "transfers.cancel", method: http.MethodPost, path: "/v1/transfers/{transfer}/cancel", scope: events.ScopeTransfer, tag: "transfers",
		summary: "Take a wish back", codes: []events.Code{events.NotKnown, events.AlreadyMoving},
		doc: "Ends a transfer that has not been claimed: the player leaves the line, a promised place goes back.",
	}, s.cancelTransfer)
	addBody(s, route{
		name: "triggers.fire", method: http.MethodPost, path: "/v1/triggers", status: http.StatusAccepted, scope: events.ScopeTransfer, tag: "transfers",
		summary: "Say that an event happened for a player", codes: append(asked, events.NoPermission),
		doc: "Moves the player where triggers.event.map of network.yml leads; permissions and limits hold as if the player had asked.",
	}, s.fireTrigger)
	addPlain(s, route{
		name: "players.get", method: http.MethodGet, path: "/v1/players/{player}", scope: events.ScopeRead, tag: "transfers",
		summary: "Where a player is, and what is under way", codes: []events.Code{events.NotKnown},
		doc: "The newest session, the transfer under way, and those that ended of late.",
	}, s.getPlayer)
}

// requestID is the id that a request goes by: the caller's own when it is a UUID, else one that
// follows from the token and the key, else a new one.
func (s *Service) requestID(ctx context.Context, key string) events.TransferID {
	if key == "" {
		return events.TransferID(s.cfg.NewID())
	}
	if id, err := events.ParseID[events.TransferID](key); err == nil {
		return id
	}
	sum := sha256.Sum256([]byte("landfall request\x00" + string(callerOf(ctx).Token) + "\x00" + key))
	id := events.TransferID(sum[:16])
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8: made by our own rule
	return id
}

// player finds whom a text names.
func (b *Backing) player(text string) (events.PlayerID, *Problem) {
	if id, err := events.ParseID[events.PlayerID](text); err == nil {
		return id, nil
	}
	switch ids := b.Dispatcher.View().Named(text); len(ids) {
	case 0:
		return events.PlayerID{}, refuse(events.NotKnown, fmt.Sprintf("nobody on the network goes by %q", text))
	case 1:
		return ids[0], nil
	}
	return events.PlayerID{}, refuse(events.BadRequest, fmt.Sprintf("several on the network go by %q: give the UUID", text))
}

func (s *Service) requestTransfer(ctx context.Context, in *TransferRequest) (*Transfer, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	if b.NoTransfers {
		return nil, refuse(events.Disabled, "triggers.api.enabled is false")
	}
	player, p := b.player(in.Player)
	if p != nil {
		return nil, p
	}
	wish := events.Wish{Region: in.Region, World: in.World, Pin: events.HostID(in.Server)}
	return s.open(b, player, s.requestID(ctx, in.ID), func(id events.TransferID) events.RequestAnswer {
		return b.Dispatcher.OpenHere(ctx, events.RequestAsk{
			Player: player, Transfer: id, Trigger: events.TriggerAPI, Via: callerOf(ctx).Name, Wish: wish, Bypass: in.Bypass, Wait: in.Wait,
		})
	})
}

func (s *Service) fireTrigger(ctx context.Context, in *TriggerFire) (*Transfer, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	player, p := b.player(in.Player)
	if p != nil {
		return nil, p
	}
	return s.open(b, player, s.requestID(ctx, in.ID), func(id events.TransferID) events.RequestAnswer {
		return b.Dispatcher.Happened(ctx, in.Event, events.TriggerAsk{Player: player, Transfer: id})
	})
}

// open asks for a transfer, and gives it as it stands then.
func (s *Service) open(b *Backing, player events.PlayerID, id events.TransferID, ask func(events.TransferID) events.RequestAnswer) (*Transfer, error) {
	if t, known := b.Dispatcher.View().Transfer(id); known && t.Player != player {
		return nil, refuse(events.KeyReused, "the id is that of another player's request")
	}
	a := ask(id)
	if a.Code != events.Accepted && a.Code != events.Active {
		return nil, refuse(a.Code, a.Detail)
	}
	if t, known := b.Dispatcher.View().Transfer(a.Transfer); known {
		return s.show(b, t), nil
	}
	return &Transfer{Transfer: a.Transfer.String(), Player: player.String(), Phase: a.State, Code: a.Detail}, nil
}

// show is a transfer as programs see it.
func (s *Service) show(b *Backing, t projections.Transfer) *Transfer {
	out := &Transfer{
		Transfer: t.ID.String(), Player: t.Player.String(), Name: t.Request.Name, Phase: string(t.Phase), Code: string(t.Code), Seq: t.Last,
		Place: t.Place, Trigger: string(t.Request.Trigger), Attempts: t.Attempts,
	}
	if r := t.Reserved; r != nil {
		out.Token, out.Server, out.Region, out.At = t.Token.String(), string(r.Server), r.Region, &r.At
	}
	view := b.Dispatcher.View()
	if t.Phase == projections.Requested || t.Phase == projections.Waiting {
		if out.Position = view.Position(t.Place); out.Position > 0 {
			out.EtaSeconds = s.eta(b, t.Request.Wish, out.Position)
		}
	}
	return out
}

// eta is how long a position of a lane may take, nil when nobody knows.
func (s *Service) eta(b *Backing, lane events.Wish, position int) *float64 {
	eta, ok := b.Dispatcher.View().ETA(lane, position, s.cfg.Now())
	if !ok {
		return nil
	}
	seconds := eta.Seconds()
	return &seconds
}

func (s *Service) getTransfer(ctx context.Context, in *TransferQuery) (*Transfer, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	id, err := events.ParseID[events.TransferID](in.Transfer)
	if err != nil {
		return nil, refuse(events.BadRequest, err.Error())
	}
	t, known := b.Dispatcher.View().Transfer(id)
	if !known {
		return s.endedTransfer(ctx, b, in.Player, id)
	}
	if in.WaitMs > 0 && !t.Phase.Terminal() && t.Last <= in.After {
		leave, free := s.streams.sit()
		if !free {
			return nil, refuse(events.RateLimited, "as many wait here already as may")
		}
		defer leave()
		ctx, cancel := context.WithTimeout(ctx, time.Duration(in.WaitMs)*time.Millisecond)
		defer cancel()
		t = await(ctx, b, t, in.After)
	}
	return s.show(b, t), nil
}

// await gives a transfer once it has a fact above a sequence, or as it stands when ctx ends.
func await(ctx context.Context, b *Backing, t projections.Transfer, after uint64) projections.Transfer {
	b.Dispatcher.Await(ctx, t.Player, func() bool {
		now, known := b.Dispatcher.View().Transfer(t.ID)
		if known {
			t = now
		}
		return !known || t.Last > after || t.Phase.Terminal()
	})
	return t
}

// endedTransfer looks in the log for one that is not held.
func (s *Service) endedTransfer(ctx context.Context, b *Backing, whose string, id events.TransferID) (*Transfer, error) {
	unknown := refuse(events.NotKnown, "no transfer "+id.String()+" is under way or ended of late; with player the log is looked at")
	if whose == "" {
		return nil, unknown
	}
	player, p := b.player(whose)
	if p != nil {
		return nil, p
	}
	phase, code, found, err := b.Dispatcher.Ended(ctx, player, id)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, unknown
	}
	return &Transfer{Transfer: id.String(), Player: player.String(), Phase: string(phase), Code: string(code)}, nil
}

func (s *Service) cancelTransfer(ctx context.Context, in *TransferCancel) (*Transfer, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	id, err := events.ParseID[events.TransferID](in.Transfer)
	if err != nil {
		return nil, refuse(events.BadRequest, err.Error())
	}
	t, known := b.Dispatcher.View().Transfer(id)
	if !known {
		return nil, refuse(events.NotKnown, "no transfer "+id.String()+" is under way")
	}
	if a := b.Dispatcher.Cancel(ctx, t.Player, id); a.Code != events.OK {
		return nil, refuse(a.Code, a.Detail)
	}
	if now, known := b.Dispatcher.View().Transfer(id); known {
		t = now
	}
	return s.show(b, t), nil
}

func (s *Service) getPlayer(_ context.Context, in *PlayerQuery) (*Player, error) {
	b, p := s.ready()
	if p != nil {
		return nil, p
	}
	id, p := b.player(in.Player)
	if p != nil {
		return nil, p
	}
	view := b.Dispatcher.View()
	session, known := view.Session(id)
	journeys := view.Player(id)
	if !known && journeys.Active == nil && len(journeys.Done) == 0 {
		return nil, refuse(events.NotKnown, "nothing is known of player "+id.String())
	}
	out := &Player{
		Player: id.String(), Name: session.Name, Online: session.Open, Server: string(session.Server), Holder: string(session.Holder),
		Kind: string(session.Kind), Done: make([]Transfer, 0, len(journeys.Done)),
	}
	if journeys.Active != nil {
		out.Active = s.show(b, *journeys.Active)
	}
	for _, t := range journeys.Done {
		out.Done = append(out.Done, *s.show(b, t))
	}
	return out, nil
}
