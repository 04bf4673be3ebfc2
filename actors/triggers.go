package actors

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landfall/landfall/events"
)

// EventTriggers say for which events players are moved, and where to. The zero value: for none.
type EventTriggers struct {
	Enabled bool
	Regions map[string]string // by the event's name; an empty region is any place
}

// SetEvents replaces what events do. It does not block; it holds from the next event on.
func (d *Dispatcher) SetEvents(e EventTriggers) { d.triggers.Store(&e) }

// wishOf is where an event leads.
func (d *Dispatcher) wishOf(event string) (events.Wish, *events.Refusal) {
	rules := d.triggers.Load()
	if !rules.Enabled {
		return events.Wish{}, events.Refuse(events.Disabled, "triggers.event.enabled is false")
	}
	region, known := rules.Regions[event]
	if !known {
		there := "there are none"
		if names := slices.Sorted(maps.Keys(rules.Regions)); len(names) > 0 {
			there = "there are " + strings.Join(names, ", ")
		}
		return events.Wish{}, events.Refuse(events.BadRequest, fmt.Sprintf("no event is called %q: %s", event, there))
	}
	return events.Wish{Region: region}, nil
}

// answerEvent opens a transfer for a player for whom something has happened. Operators and
// dispatchers may say so; a backend asks for its own players (see answerRequest).
func (d *Dispatcher) answerEvent(ctx context.Context, subject string, w events.Wire) events.Wire {
	answer := answerWatched(d.Identity, fromDispatcher, d.rejectedAsk, refuseRequest, func(ctx context.Context, _ events.HostID, q events.TriggerAsk) events.RequestAnswer {
		return d.Happened(ctx, events.EventOf(subject), q)
	})
	return answer(ctx, subject, w)
}

// Happened opens a transfer for a player for whom an event happened, where the event leads.
func (d *Dispatcher) Happened(ctx context.Context, event string, q events.TriggerAsk) events.RequestAnswer {
	wish, refusal := d.wishOf(event)
	if refusal != nil {
		return refuseRequest(refusal)
	}
	return d.OpenHere(ctx, events.RequestAsk{
		Player: q.Player, Transfer: q.Transfer, Trigger: events.TriggerEvent, Via: event, Wish: wish,
	})
}

// OpenHere opens a transfer for a player on the network who has not asked for it, wherever the
// player stands, and tells the player.
func (d *Dispatcher) OpenHere(ctx context.Context, q events.RequestAsk) events.RequestAnswer {
	s, known := d.view.Session(q.Player)
	if !known || !s.Open {
		return refuseRequest(events.Refuse(events.NotHere, "the player is not on the network"))
	}
	q.Name = s.Name
	a := d.Open(ctx, q, s.Server)
	if a.Code == events.Accepted {
		d.tellPlayer(q.Player, "transfer.accepted", nil)
	}
	return a
}

// TriggerEvent says over a bus, in an operator's name or a dispatcher's, that an event
// happened for a player. The answer is that of a request. events.ErrNobody: no dispatcher
// serves; any other error leaves the outcome unknown, and the same transfer may be asked for again.
func TriggerEvent(ctx context.Context, i Identity, bus Bus, event string, q events.TriggerAsk) (events.RequestAnswer, error) {
	return ask[events.RequestAnswer](ctx, i, bus, events.TriggerOf(event), q)
}
