package actors

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
)

// tellPatience is how long a message waits for a player who is between two servers.
const tellPatience = 30 * time.Second

// tellEnd tells a player why a transfer ended.
func (d *Dispatcher) tellEnd(t projections.Transfer, code events.Code, detail string) {
	d.tellPlayer(t.Player, "failed."+string(code), []events.Arg{
		{Name: "code", Value: string(code)}, {Name: "detail", Value: detail},
		{Name: "region", Value: t.Request.Wish.Region}, {Name: "server", Value: string(t.Destination())},
	})
}

// tellPlayer shows a message where the player stands, or as soon as the player stands
// somewhere. It does not wait for it.
func (d *Dispatcher) tellPlayer(player events.PlayerID, message string, args []events.Arg) {
	slices.SortFunc(args, func(a, b events.Arg) int { return strings.Compare(a.Name, b.Name) })
	if args == nil {
		args = []events.Arg{}
	}
	d.background(func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, tellPatience)
		defer cancel()
		for ctx.Err() == nil {
			if !d.wakeup.until(ctx, player, func() bool { s, ok := d.view.Session(player); return ok && s.Open }) {
				return
			}
			s, _ := d.view.Session(player)
			if d.tellAt(ctx, s, player, message, args) {
				d.count.told.Add(1)
				return
			}
			sleep(ctx, 500*time.Millisecond)
		}
	})
}

func (d *Dispatcher) tellAt(ctx context.Context, s projections.Session, player events.PlayerID, message string, args []events.Arg) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := ask[events.Answer](ctx, d.Identity, d.bus, events.ToBackend(s.Server, events.VerbTell),
		events.TellAsk{Player: player, Name: s.Name, Message: message, Args: args})
	return err == nil && answer.Code == events.OK
}
