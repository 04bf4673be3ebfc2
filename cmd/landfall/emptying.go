package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/landfall/landfall/actors"
	"github.com/landfall/landfall/events"
	"github.com/landfall/landfall/projections"
	"github.com/landfall/landfall/streams"
)

const (
	// emptyingLook is how often it is looked who is where, and emptyingLine the least time
	// between two lines of progress.
	emptyingLook = 100 * time.Millisecond
	emptyingLine = time.Second
)

var errEmptied = errors.New("nobody is left who may still be moved")

// stay is what has become of a player of a server that is being emptied.
type stay string

const (
	stayThere   stay = "there"   // still to be asked, or on the way
	stayWaiting stay = "waiting" // in line: nobody has a place
	stayRefused stay = "refused" // could not be moved
	stayMoved   stay = "moved"
	stayLeft    stay = "left" // the network
)

// guest is one player who was seen on the server since it was to be emptied.
type guest struct {
	player events.PlayerID
	name   string
	stay   stay
	last   projections.Transfer // of the refused: what could not be done
}

// emptying follows the players of a server, through restarts of the store.
type emptying struct {
	host  events.HostID
	keys  *events.Keyring
	out   printer
	notes io.Writer

	guests  map[events.PlayerID]*guest
	shown   emptyingRow
	shownAt time.Time
	named   map[events.TransferID]bool // refusals that were printed
	halted  bool                       // that transfers are off was said

	mu      sync.Mutex
	details map[events.TransferID]string // of failures, as they are folded
}

func newEmptying(host events.HostID, out printer, notes io.Writer) *emptying {
	return &emptying{
		host: host, out: out, notes: notes,
		guests: map[events.PlayerID]*guest{}, named: map[events.TransferID]bool{}, details: map[events.TransferID]string{},
	}
}

// begin takes in who is on the server now.
func (e *emptying) begin(ctx context.Context, d deciding, n *census) error {
	opener, err := d.opener(ctx)
	if err != nil {
		return err
	}
	e.keys = opener.keys
	for rec, err := range d.History(ctx, events.Sessions, streams.Range{Newest: true}) {
		if err != nil {
			return err
		}
		got := opener.open(rec)
		if s, open := openSession(got.event.Fact); got.verified == genuine && open && s.Server == e.host && connected(n.fleet, s, n.now) {
			e.guests[got.player()] = &guest{player: got.player(), name: s.Name, stay: stayThere}
		}
	}
	return nil
}

// openSession is what a fact says of an open session.
func openSession(f events.Fact) (s events.Session, open bool) {
	switch f := f.(type) {
	case *events.SessionOpened:
		return f.Session, true
	case *events.SessionRefreshed:
		return f.Session, true
	default:
		return s, false
	}
}

// attend follows one life of the store. It ends with errEmptied when all are accounted for.
func (e *emptying) attend(ctx context.Context, store *reader) error {
	view := projections.NewView(projections.Config{
		Log: store, Keys: e.keys, Logger: slog.New(slog.DiscardHandler), Now: time.Now, Changed: e.hear,
	})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return view.Run(ctx) })
	g.Go(func() error {
		if err := view.WaitLive(ctx); err != nil {
			return err
		}
		look := time.NewTicker(emptyingLook)
		defer look.Stop()
		for {
			if view.Ready() {
				if err := e.look(view); err != nil {
					return err
				}
			}
			select {
			case <-look.C:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	})
	return g.Wait()
}

// hear keeps what only a failure itself says.
func (e *emptying) hear(c projections.Change) {
	if f, ok := c.Event.Fact.(*events.Failed); ok && f.Detail != "" {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.details[c.Event.Correlation] = f.Detail
	}
}

// look takes in who is where now, and says what is new.
func (e *emptying) look(v *projections.View) error {
	for player, s := range v.OpenOn(e.host) {
		if e.guests[player] == nil && connected(v.Fleet(), s.Session, time.Now()) {
			e.guests[player] = &guest{player: player}
		}
		if g := e.guests[player]; g != nil {
			g.name = s.Name
		}
	}
	for _, g := range e.guests {
		g.settle(v, e.host)
	}
	e.mention(v.Controls())
	if err := e.nameRefused(); err != nil {
		return err
	}
	now := e.counts()
	over := now.There+now.Waiting == 0
	if now.Total > 0 && now != e.shown && (over || time.Since(e.shownAt) >= emptyingLine) {
		e.shown, e.shownAt = now, time.Now()
		if err := e.out.print(now); err != nil {
			return err
		}
	}
	if over {
		return errEmptied
	}
	return nil
}

// connected tells that somebody holds the connection of a session.
func connected(f *projections.Fleet, s events.Session, now time.Time) bool {
	p := f.Proxy(s.Holder)
	return p != nil && p.Incarnation == s.HolderIncarnation && p.State != events.ShuttingDown && now.Sub(p.Seen) <= deadAfter
}

// settle says what has become of a guest.
func (g *guest) settle(v *projections.View, host events.HostID) {
	s, known := v.Session(g.player)
	p := v.Player(g.player)
	here := known && s.Open && s.Server == host && connected(v.Fleet(), s.Session, time.Now())
	moving := p.Active != nil && (p.Active.Phase == projections.Claimed || p.Active.Phase == projections.Consumed)
	switch {
	case moving:
		g.stay = stayThere
	case !here && (known && s.Open && s.Server != host || wentFrom(p, host)):
		g.stay = stayMoved
	case !here:
		g.stay = stayLeft
	case p.Active != nil && p.Active.Phase == projections.Waiting:
		g.stay = stayWaiting
	case p.Active == nil && couldNotGo(p, host):
		g.stay, g.last = stayRefused, *p.Last()
	default:
		g.stay = stayThere
	}
}

// wentFrom tells that a player arrived elsewhere when last moved away from a server, although
// the session there may not be known yet.
func wentFrom(p projections.Player, host events.HostID) bool {
	t := p.Last()
	return t != nil && t.Request.Origin == host && t.Phase == projections.Completed
}

// couldNotGo tells that the last that was tried with a player on a server was to move the
// player away.
func couldNotGo(p projections.Player, host events.HostID) bool {
	t := p.Last()
	return t != nil && t.Request.Trigger == events.TriggerEvacuate && t.Request.Origin == host && t.Phase != projections.Completed
}

// mention says once that nobody is moved for now.
func (e *emptying) mention(c projections.Controls) {
	if c.Killed && !e.halted {
		e.note("transfers are switched off: nobody is asked to go until `landfall kill off`")
	}
	e.halted = c.Killed
}

// sorted are all guests, by name.
func (e *emptying) sorted() []*guest {
	out := make([]*guest, 0, len(e.guests))
	for _, g := range e.guests {
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b *guest) int {
		return cmp.Or(strings.Compare(a.name, b.name), strings.Compare(a.player.String(), b.player.String()))
	})
	return out
}

func (e *emptying) nameRefused() error {
	for _, g := range e.sorted() {
		if g.stay != stayRefused || e.named[g.last.ID] {
			continue
		}
		e.named[g.last.ID] = true
		if err := e.out.print(e.refusal(g)); err != nil {
			return err
		}
	}
	return nil
}

func (e *emptying) refusal(g *guest) refusalRow {
	e.mu.Lock()
	defer e.mu.Unlock()
	return refusalRow{
		Kind: "refused", Player: g.player, Name: g.name, Transfer: g.last.ID, Code: g.last.Code,
		Text: actors.ShippedMessages().Text("failed."+string(g.last.Code), []events.Arg{{Name: "detail", Value: e.details[g.last.ID]}}),
	}
}

func (e *emptying) counts() emptyingRow {
	row := emptyingRow{Kind: "progress", Server: e.host, Total: len(e.guests)}
	for _, g := range e.guests {
		switch g.stay {
		case stayMoved:
			row.Moved++
		case stayLeft:
			row.Left++
		case stayWaiting:
			row.Waiting++
		case stayRefused:
			row.Refused++
		case stayThere:
			row.There++
		}
	}
	return row
}

func (e *emptying) end() emptiedRow {
	row := emptiedRow{emptyingRow: e.counts(), Players: []refusalRow{}}
	row.Kind = "end"
	for _, g := range e.sorted() {
		if g.stay == stayRefused {
			row.Players = append(row.Players, e.refusal(g))
		}
	}
	return row
}

func (e *emptying) note(text string) { fmt.Fprintln(e.notes, printable(text)) }

// emptyingRow is how far it is.
type emptyingRow struct {
	Kind    string        `json:"kind"` // progress, end
	Server  events.HostID `json:"server"`
	Total   int           `json:"total"` // players seen there since the verb began
	Moved   int           `json:"moved"`
	Left    int           `json:"left"`
	Waiting int           `json:"waiting"`
	Refused int           `json:"refused"`
	There   int           `json:"there"` // to be asked, or on the way
}

func (r emptyingRow) String() string {
	return fmt.Sprintf("%s: %d moved, %d left, %d waiting, %d refused, %d to go", plural(r.Total, "player"), r.Moved, r.Left, r.Waiting, r.Refused, r.There)
}

// refusalRow is one player who could not be moved.
type refusalRow struct {
	Kind     string            `json:"kind"` // refused
	Player   events.PlayerID   `json:"player"`
	Name     string            `json:"name"`
	Transfer events.TransferID `json:"transfer"`
	Code     events.Code       `json:"code"`
	Text     string            `json:"text"`
}

func (r refusalRow) String() string {
	return printable(fmt.Sprintf("refused: %s (%s) %s: %s", r.Name, r.Player, r.Code, r.Text))
}

// emptiedRow is the end.
type emptiedRow struct {
	emptyingRow

	Players []refusalRow `json:"players"` // who could not be moved
}

func (r emptiedRow) String() string {
	switch {
	case r.Total == 0:
		return fmt.Sprintf("%s is empty: nobody was there", r.Server)
	case r.Refused == 0:
		return fmt.Sprintf("%s is empty: %d moved, %d left", r.Server, r.Moved, r.Left)
	}
	names := make([]string, len(r.Players))
	for i, p := range r.Players {
		names[i] = fmt.Sprintf("%s (%s)", p.Name, p.Code)
	}
	return printable(fmt.Sprintf("%s is not empty: %d of %s could not be moved: %s; the evacuation is on until `landfall evacuate %s --off`",
		r.Server, r.Refused, plural(r.Total, "player"), strings.Join(names, ", "), r.Server))
}
