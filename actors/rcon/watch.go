package rcon

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfall/landfall/actors"
)

const (
	closePeriod   = 250 * time.Millisecond
	listPeriod    = time.Second
	triggerPeriod = time.Second
	healthPeriod  = 2 * time.Second
	// knockPeriod is how often a server that is down is tried.
	knockPeriod = time.Second
	// patience is how long other polls let the close look go first.
	patience = 2 * time.Second
	// closeLimit: for more players than this one list is cheaper.
	closeLimit = 3

	reasonSent    = "transfer sent"
	reasonRestart = "server restarted"
)

// watch is one Run: a single goroutine that polls, so that what it learns is
// in order and nobody is seen leaving by an answer older than the arrival.
type watch struct {
	*Sidecar
	h        actors.WorldEvents
	here     map[string]actors.Player
	triggers []*trigger
	polls    []*poll
	lists    *poll // the one of polls that lists
	yielded  bool  // the last turn went past the close look
	life     int
	restart  bool // the outage looks like the end of the server's process
	odd      int  // listed players whose names no parser knows
}

// poll is one thing to look at again and again.
type poll struct {
	every  time.Duration
	due    time.Time
	close  bool
	wanted func() bool
	look   func(context.Context) error
}

func newWatch(s *Sidecar, h actors.WorldEvents) *watch {
	w := &watch{Sidecar: s, h: h, here: map[string]actors.Player{}, restart: true}
	always := func() bool { return true }
	w.lists = &poll{every: listPeriod, wanted: always, look: w.lookList}
	w.polls = []*poll{
		{every: closePeriod, close: true, wanted: w.anySought, look: w.lookClosely},
		w.lists,
	}
	for _, name := range s.aliases {
		t := newTrigger(s.console, name)
		w.triggers = append(w.triggers, t)
		w.polls = append(w.polls, &poll{every: triggerPeriod, wanted: always, look: func(ctx context.Context) error { return w.lookTrigger(ctx, t) }})
	}
	w.polls = append(w.polls, &poll{every: healthPeriod, wanted: always, look: s.pollHealth})
	return w
}

func (w *watch) run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := w.rise(ctx)
		if err == nil {
			err = w.stay(ctx)
		}
		if ctx.Err() != nil {
			break
		}
		if mendable(err) && w.life == 0 {
			return err
		}
		w.fall(err)
		_ = pause(ctx, knockPeriod)
	}
	return context.Cause(ctx)
}

// rise finds the server answering and makes it ours: family, leftovers,
// trigger, players. Only then it is up.
func (w *watch) rise(ctx context.Context) error {
	if err := w.console.probe(ctx); err != nil {
		return err
	}
	if err := w.tidy(ctx); err != nil {
		return err
	}
	for _, t := range w.triggers {
		if err := t.setUp(ctx); err != nil {
			return err
		}
	}
	list, err := w.list(ctx, Work)
	if err != nil {
		return err
	}
	if w.restart {
		w.life++
		w.restart = false
		w.compare(nil, reasonRestart)
	}
	game := "Minecraft, vanilla family"
	if w.console.paper.Load() {
		game = "Minecraft, Paper family"
	}
	w.vitals.setUp(game)
	w.note(list)
	w.log.Info("game server answers", "address", w.console.client.address, "game", game, "players", list.Online)
	w.h.Up("life-" + strconv.Itoa(w.life))
	w.compare(list.Players, "")
	return nil
}

// fall reports an outage once. A server whose port was shut has ended; one
// that only was slow lives on.
func (w *watch) fall(err error) {
	var shut *UnreachableError
	if (errors.As(err, &shut) && !errors.Is(err, errTimeout)) || mendable(err) {
		w.restart = true
	}
	if w.vitals.setDown(err) {
		w.h.Down(err)
	}
}

// stay polls until a poll fails.
func (w *watch) stay(ctx context.Context) error {
	now := time.Now()
	for i, p := range w.polls {
		p.due = now.Add(time.Duration(i) * w.polls[0].every)
	}
	for {
		if err := w.untilDue(ctx); err != nil {
			return err
		}
		if err := w.console.limiter.Wait(ctx, Poll); err != nil {
			return err
		}
		p, _ := next(w.polls, time.Now(), w.yielded)
		if p == nil { // nobody is sought any more
			continue
		}
		w.yielded = !p.close
		if err := p.look(ctx); err != nil {
			return err
		}
		p.due = time.Now().Add(p.every)
	}
}

// untilDue waits until there is something to look at.
func (w *watch) untilDue(ctx context.Context) error {
	for {
		p, wait := next(w.polls, time.Now(), false)
		if p != nil {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.guests.wake:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// next chooses among what is due: who waited past patience, though never twice
// in a row (yielded), then the close look, then the longest due. If nothing is
// due it says how long not.
func next(polls []*poll, now time.Time, yielded bool) (*poll, time.Duration) {
	var best *poll
	wait := time.Hour
	rank := func(p *poll) int {
		switch {
		case now.Sub(p.due) >= patience && !yielded:
			return 0
		case p.close:
			return 1
		}
		return 2
	}
	for _, p := range polls {
		if !p.wanted() {
			continue
		}
		if late := now.Sub(p.due); late < 0 {
			wait = min(wait, -late)
		} else if best == nil || rank(p) < rank(best) || (rank(p) == rank(best) && p.due.Before(best.due)) {
			best = p
		}
	}
	return best, wait
}

func (w *watch) isHere(name string) bool { _, ok := w.here[name]; return ok }

func (w *watch) anySought() bool { return len(w.sought()) > 0 }

// sought lists whom to look for closely, whose turn it is first. A player who
// is still listed long after a transfer was sent is reported as left and
// joined: the client came straight back, between two looks.
func (w *watch) sought() []string {
	names, overdue := w.guests.sought(time.Now(), w.isHere)
	for _, p := range overdue {
		w.h.Left(w.here[p.Name], reasonSent)
		w.h.Joined(w.here[p.Name])
	}
	return names
}

// lookClosely looks for one sought player, or for all by one list. Who was
// found is reported from a list, which knows the id the server decided on.
func (w *watch) lookClosely(ctx context.Context) error {
	names := w.sought()
	if len(names) > closeLimit {
		return w.lookList(ctx)
	}
	if len(names) == 0 {
		return nil
	}
	name := names[0]
	w.guests.looked(name)
	entity, err := target("look for "+name, actors.Player{Name: name})
	if err != nil {
		w.guests.done(name)
		return nil //nolint:nilerr // no command takes such a name: there is nobody to look for
	}
	reply, err := w.console.run(ctx, Paid, w.console.own("data get entity "+entity+" Dimension"))
	if err != nil {
		return err
	}
	_, found := parseDimension(reply)
	switch {
	case found && !w.isHere(name):
		return w.listNow(ctx, Urgent)
	case nobody(reply) && w.isHere(name):
		w.gone(w.here[name], reasonSent)
	}
	return nil
}

func (w *watch) lookList(ctx context.Context) error { return w.listNow(ctx, Paid) }

func (w *watch) listNow(ctx context.Context, class Class) error {
	list, err := w.list(ctx, class)
	if err != nil {
		return err
	}
	w.lists.due = time.Now().Add(listPeriod)
	w.note(list)
	w.compare(list.Players, "")
	return nil
}

func (w *watch) list(ctx context.Context, class Class) (roster, error) {
	reply, err := w.console.run(ctx, class, w.console.own("list uuids"))
	if err != nil {
		return roster{}, err
	}
	list, ok := parseList(reply)
	if !ok {
		return roster{}, refused("list uuids", reply)
	}
	return list, nil
}

func (w *watch) note(list roster) {
	w.vitals.set(func(h *actors.Health) { h.Players, h.MaxPlayers = list.Online, list.Max })
	if odd := list.Online - len(list.Players); odd != w.odd {
		w.odd = odd
		if odd > 0 {
			w.log.Warn("players listed whose names cannot be used", "count", odd)
		}
	}
}

// compare reports who left and who joined since the last look.
func (w *watch) compare(players []actors.Player, reason string) {
	now := make(map[string]actors.Player, len(players))
	for _, p := range players {
		now[p.Name] = p
	}
	for _, name := range w.names() {
		if now[name] != w.here[name] {
			w.gone(w.here[name], reason)
		}
	}
	for _, p := range players {
		if w.isHere(p.Name) {
			continue
		}
		w.here[p.Name] = p
		w.guests.done(p.Name)
		for _, t := range w.triggers {
			t.closed = true
		}
		w.h.Joined(p)
	}
}

func (w *watch) gone(p actors.Player, reason string) {
	delete(w.here, p.Name)
	w.guests.left(p.Name)
	for _, t := range w.triggers {
		if reason != reasonRestart { // else all scores were reset
			t.left[p.Name] = true
		}
	}
	w.h.Left(p, reason)
}

// names of those who are here, in order.
func (w *watch) names() []string {
	names := make([]string, 0, len(w.here))
	for name := range w.here {
		names = append(names, name)
	}
	slices.SortFunc(names, strings.Compare)
	return names
}

func (w *watch) lookTrigger(ctx context.Context, t *trigger) error {
	scores, err := t.poll(ctx, w.names())
	if err != nil {
		return err
	}
	for _, s := range scores {
		if s.Value == LeaveValue {
			w.h.Cancelled(w.here[s.Name])
			continue
		}
		if region, named := regionOf(s.Value, w.bare, w.regions); named {
			w.h.Asked(w.here[s.Name], region)
		} else {
			w.h.NoSuchPlace(w.here[s.Name], strconv.Itoa(s.Value), choices(w.bare, w.regions))
		}
	}
	return t.settle(ctx)
}
