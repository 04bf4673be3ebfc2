package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
)

// triggerPatience is how long the answer of a dispatcher is waited for.
const triggerPatience = 10 * time.Second

// triggerFlags are the command line of trigger.
type triggerFlags struct {
	storeFlags
	player   string
	transfer string
	json     bool
}

func newTrigger() *cobra.Command {
	var f triggerFlags
	c := &cobra.Command{
		Use:   "trigger EVENT --player NAME|UUID",
		Short: "Say that an event happened for a player, who is moved where the event leads",
		Long: `Asks a running dispatcher to move a player because of an event of triggers.event.map in
network.yml. The player must be on the network, may lack no permission, and must not rest
(limits.EVENT). It says how the request was taken, not how the transfer ends: see replay.

When no answer came the request may have been taken all the same. Repeat it with --transfer and
the id that was shown: it is never taken twice.

Exit status: 0 the player has a transfer now, or had one for the same place, 1 refused or not
possible, 3 no answer, so nobody knows.`,
		Example: `  landfall trigger arena-end --player Ada --config network.yml
  landfall trigger arena-end --player 069a79f4-44e9-4726-a5be-fca90e38aaf5 --json`,
		Args: exactly(1, "the name of an event"),
		RunE: func(c *cobra.Command, args []string) error {
			t, err := f.plan(args[0])
			if err != nil {
				return err
			}
			t.out, t.notes = c.OutOrStdout(), c.ErrOrStderr()
			return f.run(c.Context(), t)
		},
	}
	f.addTo(c)
	return c
}

func (f *triggerFlags) addTo(c *cobra.Command) {
	f.add(c)
	c.Flags().StringVar(&f.player, "player", "", "whom it happened for: a name, or a UUID")
	c.Flags().StringVar(&f.transfer, "transfer", "", "id of the request, to repeat one; made when left out")
	c.Flags().BoolVar(&f.json, "json", false, "one JSON object")
}

// trigger is one event on its way.
type trigger struct {
	event    string
	player   string
	transfer events.TransferID
	json     bool

	out, notes io.Writer
}

// plan checks the command line; nothing is opened for what cannot be right.
func (f *triggerFlags) plan(event string) (*trigger, error) {
	t := &trigger{event: event, player: f.player, transfer: newID(), json: f.json}
	if _, err := events.ParseHostID(event); err != nil {
		return nil, usageError("event %q: want 1 to 63 of A-Z a-z 0-9 _ -", event)
	}
	if f.player == "" {
		return nil, usageError("--player is missing: for whom did %s happen?", event)
	}
	if err := checkPlayer(f.player); err != nil {
		return nil, err
	}
	if f.transfer == "" {
		return t, nil
	}
	id, err := events.ParseID[events.TransferID](f.transfer)
	if err != nil {
		return nil, usageError("--transfer: %w", err)
	}
	t.transfer = id
	return t, nil
}

func (f *triggerFlags) run(ctx context.Context, t *trigger) error {
	return f.within(ctx, func(d deciding) error {
		o, err := d.opener(ctx)
		if err != nil {
			return err
		}
		who, err := d.speaker()
		if err != nil {
			return err
		}
		return t.happen(ctx, d.Store, d.Store, o, who)
	})
}

// happen finds the player in the log, and asks over the bus.
func (t *trigger) happen(ctx context.Context, log history, bus actors.Bus, o *opener, who actors.Identity) error {
	ids, note, err := findPlayer(ctx, log, o, t.player)
	if err != nil {
		return err
	}
	if note != "" {
		fmt.Fprintln(t.notes, printable(note))
	}
	if len(ids) > 1 {
		return exitWith(statusFailed, fmt.Errorf("player %q: several had that name, give the UUID", t.player))
	}
	ctx, cancel := context.WithTimeout(ctx, triggerPatience)
	defer cancel()
	a, err := actors.TriggerEvent(ctx, who, bus, t.event, events.TriggerAsk{Player: ids[0], Transfer: t.transfer})
	switch {
	case errors.Is(err, events.ErrNobody):
		return errors.New("no dispatcher answers: is the network running?")
	case err != nil:
		return exitWith(statusIncomplete, fmt.Errorf("no answer, it may have been taken: %w; repeat it with --transfer %s", err, t.transfer))
	}
	return t.tell(ids[0], a)
}

// triggered is what trigger prints.
type triggered struct {
	Event    string            `json:"event"`
	Player   events.PlayerID   `json:"player"`
	Code     events.Code       `json:"code"`
	Detail   string            `json:"detail,omitempty"`
	Transfer events.TransferID `json:"transfer"`        // empty when it was refused
	Place    uint64            `json:"place,omitempty"` // its sequence in the log
	State    string            `json:"state,omitempty"`
}

func (t *trigger) tell(player events.PlayerID, a events.RequestAnswer) error {
	row := triggered{Event: t.event, Player: player, Code: a.Code, Detail: a.Detail, Transfer: a.Transfer, Place: a.Place, State: a.State}
	var err error
	if t.json {
		err = json.NewEncoder(t.out).Encode(row)
	} else {
		_, err = fmt.Fprintln(t.out, printable(row.String()))
	}
	if err == nil && a.Code != events.Accepted && a.Code != events.Active {
		return exitWith(statusFailed, nil)
	}
	return err
}

// String is one line.
func (r triggered) String() string {
	whom := fmt.Sprintf("%s for %s: %s", r.Event, r.Player, r.Code)
	switch {
	case r.Code == events.Accepted:
		return fmt.Sprintf("%s, transfer %s (sequence %d of transfers)", whom, r.Transfer, r.Place)
	case r.Code == events.Active:
		return fmt.Sprintf("%s, transfer %s is %s", whom, r.Transfer, r.State)
	case r.Code == events.Resting || r.Code == events.LimitReached:
		return fmt.Sprintf("%s, the player has to wait for %s s", whom, r.Detail)
	case r.Detail != "":
		return whom + ", " + r.Detail
	}
	return whom
}
